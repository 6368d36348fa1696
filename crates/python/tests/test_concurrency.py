"""Threads, asyncio, forks and Ctrl-C."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from attentive import AttentiveError, Translation, Translator
from attentive.score import BLEU


def texts(translations: list[Translation]) -> list[str]:
    return [translation.text for translation in translations]


def test_many_threads_get_what_one_gets(translator: Translator, many: list[str]) -> None:
    expected = texts(translator.translate(many))
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(translator.translate, [many[begin::8] for begin in range(8)]))
        singles = list(pool.map(translator.translate, many[:40]))
    for begin, part in enumerate(parts):
        assert texts(part) == expected[begin::8]
    assert texts(singles) == expected[:40]


def test_other_threads_run_while_one_translates(translator: Translator, many: list[str]) -> None:
    beats = 0
    done = threading.Event()

    def beat() -> None:
        nonlocal beats
        while not done.wait(0.001):
            beats += 1

    thread = threading.Thread(target=beat)
    thread.start()
    before = beats
    translator.translate(many)
    during = beats - before
    done.set()
    thread.join()
    assert during > 3, "the GIL was held"


def test_asyncio_gets_what_one_call_gets(translator: Translator, many: list[str]) -> None:
    expected = texts(translator.translate(many))

    async def main() -> tuple[list[Translation], list[Translation]]:
        singles = await asyncio.gather(*map(translator.atranslate, many))
        return singles, await translator.atranslate(many)

    for found in asyncio.run(main()):
        assert texts(found) == expected
    assert texts(asyncio.run(main())[0]) == expected, "another event loop"


def test_asyncio_keeps_options_apart_and_tells_errors(translator: Translator) -> None:
    sentence = "Guten Morgen!"

    async def main() -> list[object]:
        return await asyncio.gather(
            translator.atranslate(sentence),
            translator.atranslate(sentence, n_best=2),
            translator.atranslate(sentence, prefix="Hello"),
            translator.atranslate(f"<b>{sentence}</b>", html=True),
            translator.atranslate([]),
            translator.atranslate(sentence, beam=0),
            return_exceptions=True,
        )

    plain, two, hello, page, nothing, wrong = asyncio.run(main())
    assert plain == translator.translate(sentence) and two == translator.translate(sentence, n_best=2)
    assert str(hello).startswith("Hello") and str(page) == "<b>Good morning!</b>" and nothing == []
    assert isinstance(wrong, AttentiveError)


def test_a_cancelled_task_stops_the_work_and_others_go_on(translator: Translator, many: list[str]) -> None:
    async def main() -> str:
        long = asyncio.ensure_future(translator.atranslate(many * 4, beam=16))
        await asyncio.sleep(0.05)
        waiting = asyncio.ensure_future(translator.atranslate("Danke."))
        await asyncio.sleep(0)
        long.cancel()
        with pytest.raises(asyncio.CancelledError):
            await long
        return str(await waiting)

    assert asyncio.run(main()) == "Thanks."


def test_ctrl_c_interrupts_and_the_translator_lives_on(translator: Translator, many: list[str]) -> None:
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    found = None
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        found = translator.translate(many * 40, beam=16)
    timer.join()
    assert found is None
    assert translator.translate("Danke.").text == "Thanks."


def test_ctrl_c_interrupts_a_single_long_text_and_leaves_no_file(translator: Translator, many: list[str], tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    source = folder / "long.de"
    source.write_text("\n".join(many * 40), encoding="utf-8")
    works = [
        lambda: translator.translate(" ".join(many * 20), beam=16),
        lambda: list(translator.translate_stream(many * 40, beam=16)),
        lambda: translator.translate_file(source, folder / "long.en", beam=16),
    ]
    for work in works:
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            work()
        timer.join()
    assert list(folder.iterdir()) == [source]


def test_a_signal_handler_that_does_not_raise_interrupts_nothing(translator: Translator, many: list[str]) -> None:
    called = []
    old = signal.signal(signal.SIGALRM, lambda *_: called.append(translator.name))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        assert len(translator.translate(many)) == len(many)
    finally:
        signal.signal(signal.SIGALRM, old)
    assert called == ["de-en"]


def test_a_signal_handler_may_translate(many: list[str]) -> None:
    for threads in (1, 2):
        translator = Translator("de-en", threads=threads)
        called: list[str] = []
        old = signal.signal(signal.SIGALRM, lambda *_: called.append(translator.translate("Danke.").text))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            assert len(translator.translate(many)) == len(translator.translate([" ".join(many)] * 2)) * 126
        finally:
            signal.signal(signal.SIGALRM, old)
        assert called == ["Thanks."]


FORKED = """
import os, sys, threading
from attentive import Translator
from attentive.score import corpus_bleu

translator = Translator("de-en", threads=2)
lines = ["Ein Hund rennt.", "Zwei Katzen schlafen."] * 20
expected = [t.text for t in translator.translate(lines)]
bleu = corpus_bleu(expected, [lines]).score
busy = threading.Thread(target=lambda: [translator.translate(lines) for _ in range(20)])
busy.start()
children = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        import signal
        signal.alarm(60)  # Ends a child that waits for threads that are not there.
        same = [t.text for t in translator.translate(lines)] == expected
        same = same and corpus_bleu(expected, [lines]).score == bleu
        same = same and translator.translate(lines[0], glossary={"Hund": "hound"}).text == "A hound runs."
        os._exit(0 if same else 1)
    children.append(child)
statuses = [os.waitpid(child, 0)[1] for child in children]
busy.join()
print(statuses)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_children_of_a_fork_translate_and_score(translator: Translator) -> None:
    hound = translator.translate("Ein Hund rennt.", glossary={"Hund": "hound"}).text
    code = FORKED.replace("A hound runs.", hound)
    command = [sys.executable, "-W", "ignore", "-c", code]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output.strip() == str([0] * 8)


def test_scores_from_many_threads(many: list[str]) -> None:
    bleu = BLEU(references=[many])
    shifted = [*many[1:], many[0]]
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: bleu.corpus_score(shifted, None).score, range(16)))
    assert len(found) == 1
