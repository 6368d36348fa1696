"""The Python package beside the command line and beside CTranslate2 + sentencepiece: called by `benchmarks/run python`.

    python.py compare BINARY DATA MARIAN [--quick]     speed, overhead, Ctrl-C
    python.py long BINARY DATA [--lines N]             N lines from threads and from asyncio equal the command line's output

BINARY is the command line's program, DATA the folder that has multi30k and tatoeba, MARIAN one that has model.npz and vocab.spm of
a Marian model for Multi30k. Everything that is compared takes turns in one run, and medians count.
"""

import asyncio
import gzip
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import attentive

ROUNDS = 7


def lines_of(path, count=None):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file]
    return lines[:count]


def seconds(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def in_turn(works, rounds=ROUNDS):
    """The median time of each, after a round that does not count."""
    times = {name: [] for name in works}
    for turn in range(rounds + 1):
        for name, work in works.items():
            took = seconds(work)
            if turn:
                times[name].append(took)
            time.sleep(0.2)
    return {name: statistics.median(took) for name, took in times.items()}


def memory_mib():
    for line in open("/proc/self/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024


def command_line(binary, lines, folder):
    """1,000 sentences by the command line; its start and loading are those of a single blank line."""
    path, blank = os.path.join(folder, "lines.de"), os.path.join(folder, "blank.de")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    with open(blank, "w") as file:
        file.write("\n")

    def run(source, *options):
        command = [binary, "--quiet", "translate", "--model", "de-en", "-i", source, "-o", os.path.join(folder, "out"), *options]
        subprocess.run(command, check=True)

    return lambda *options: run(path, *options), lambda: run(blank)


def beside_the_command_line(binary, lines, rounds):
    print("\n### Beside the command line: built-in de-en, 1,000 captions, medians\n")
    print("| | Python, sentences/s | command line | ratio |\n| --- | --- | --- | --- |")
    translator = attentive.Translator("de-en")
    with tempfile.TemporaryDirectory() as folder:
        run, start = command_line(binary, lines, folder)
        for beam in (1, 4):
            times = in_turn(
                {
                    "python": lambda: translator.translate(lines, beam=beam),
                    "cli": lambda: run("--beam", str(beam)),
                    "start": start,
                },
                rounds,
            )
            cli = times["cli"] - times["start"]
            name = "greedy" if beam == 1 else f"beam {beam}"
            print(f"| {name}, without loading | {len(lines) / times['python']:.0f} | {len(lines) / cli:.0f} | {cli / times['python']:.3f} |")


def overhead(rounds):
    """What a call costs beside the model: a text without words never reaches it."""
    translator = attentive.Translator("de-en", threads=1)
    print("\n### Overhead of a call, microseconds\n")
    for name, call in {
        "an empty text": lambda: translator.translate(""),
        "an empty text, with options": lambda: translator.translate("", beam=1, n_best=1),
        "a number, which is copied": lambda: translator.translate("42"),
        "a list of one empty text": lambda: translator.translate([""]),
    }.items():
        found = min(seconds(lambda: [call() for _ in range(2000)]) for _ in range(rounds)) / 2000
        print(f"- {name}: {found * 1e6:.1f}")


def interrupts(lines):
    """From the signal to the KeyboardInterrupt, in the middle of different works."""
    translator = attentive.Translator("de-en")
    many = lines * 20
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "many.de")
        with open(source, "w", encoding="utf-8") as file:
            file.write("\n".join(many))
        works = {
            "a list of 20,000": lambda: translator.translate(many),
            "a text of 5,000 sentences": lambda: translator.translate(" ".join(many[:5000])),
            "a stream": lambda: list(translator.translate_stream(many)),
            "a file": lambda: translator.translate_file(source, os.path.join(folder, "out")),
            "a beam of 64": lambda: translator.translate(many, beam=64),
        }
        print("\n### Ctrl-C: milliseconds until KeyboardInterrupt, the worst of 8\n")
        for name, work in works.items():
            found = []
            for turn in range(8):
                sent = []

                def send():
                    sent.append(time.perf_counter())
                    os.kill(os.getpid(), signal.SIGINT)

                timer = threading.Timer(0.15 + 0.13 * turn, send)
                timer.start()
                try:
                    work()
                    raise SystemExit(f"{name} was not interrupted")
                except KeyboardInterrupt:
                    found.append(time.perf_counter() - sent[0])
                timer.join()
            print(f"- {name}: {1000 * max(found):.0f}")


def beside_ctranslate2(binary, marian, lines, rounds, quick):
    import ctranslate2
    import sentencepiece

    print("\n### Beside CTranslate2 + sentencepiece in one process, text to text, the same int8 weights\n")
    with tempfile.TemporaryDirectory() as folder:
        ours_dir, int8, peer = (os.path.join(folder, name) for name in ("ours", "int8", "peer"))
        for command in (
            ["import", os.path.join(marian, "model.npz"), "--out", ours_dir],
            ["quantize", ours_dir, "--out", int8],
            ["export", ours_dir, "--format", "ctranslate2", "--out", peer],
        ):
            subprocess.run([binary, "--quiet", *command], check=True)
        cores = os.cpu_count()
        ours = attentive.Translator(int8)
        pieces = sentencepiece.SentencePieceProcessor(model_file=os.path.join(marian, "vocab.spm"))
        print("| | attentive, sentences/s | CTranslate2 + sentencepiece | its best | ratio | same text |\n| --- | --- | --- | --- | --- | --- |")
        for beam in (1, 4):
            def theirs(translator, batch):
                tokens = pieces.encode(lines, out_type=str)
                found = translator.translate_batch(tokens, beam_size=beam, max_batch_size=batch, max_decoding_length=200)
                return pieces.decode([one.hypotheses[0] for one in found])

            best = None
            for inter, intra in {(1, cores), (cores, 1)}:
                translator = ctranslate2.Translator(peer, compute_type="int8", inter_threads=inter, intra_threads=intra)
                for batch in (16, 32) if quick else (8, 16, 32, 64, 128):
                    took = min(seconds(lambda: theirs(translator, batch)) for _ in range(2))
                    if best is None or took < best[0]:
                        best = (took, translator, batch, f"{inter}x{intra}, batches of {batch}")
            _, translator, batch, how = best
            options = {"beam": beam, "allow_repetition": True}
            times = in_turn(
                {"ours": lambda: ours.translate(lines, **options), "theirs": lambda: theirs(translator, batch)}, rounds
            )
            same = sum(a.text == b for a, b in zip(ours.translate(lines, **options), theirs(translator, batch)))
            name = "greedy" if beam == 1 else f"beam {beam}"
            speed = {who: len(lines) / took for who, took in times.items()}
            print(
                f"| {name} | {speed['ours']:.0f} | {speed['theirs']:.0f} | {how} | {speed['ours'] / speed['theirs']:.2f} "
                f"| {100 * same / len(lines):.0f}% |"
            )


def long(binary, data, count):
    lines = lines_of(os.path.join(data, "tatoeba", "train.de.gz"), count)
    print(f"\n### {len(lines):,} sentences (Tatoeba), greedy\n")
    command = [binary, "--quiet", "translate", "--model", "de-en", "--beam", "1"]
    expected = subprocess.run(command, input="\n".join(lines) + "\n", stdout=subprocess.PIPE, text=True, check=True).stdout
    expected = expected.split("\n")[:-1]
    assert len(expected) == len(lines)
    translator = attentive.Translator("de-en")
    translator.translate(lines[:8192], beam=1)

    def compare(name, found, memory):
        same = sum(a == b for a, b in zip(found, expected))
        grown = ", ".join(f"{mib:.0f}" for mib in memory)
        print(f"- {name}: {same:,} of {len(expected):,} as the command line; memory after each tenth, MiB: {grown}", flush=True)

    # Eight threads with calls of 1 to 40 sentences each. Texts alone are kept, so that memory shows what a call leaves behind.
    def part(begin):
        return [one.text for one in translator.translate(lines[begin : begin + size], beam=1)]

    size, found, memory = 40, [], []
    with ThreadPoolExecutor(8) as pool:
        tenth = len(lines) // 10
        for begin in range(0, len(lines), tenth):
            for texts in pool.map(part, range(begin, min(begin + tenth, len(lines)), size)):
                found += texts
            memory.append(memory_mib())
    compare("8 threads", found, memory)

    async def main():
        found, memory = [], []
        for begin in range(0, len(lines), tenth):
            gathered = await asyncio.gather(
                *(translator.atranslate(line, beam=1) for line in lines[begin : begin + tenth])
            )
            found += [one.text for one in gathered]
            del gathered
            memory.append(memory_mib())
        return found, memory

    compare("asyncio, one request for each", *asyncio.run(main()))
    found, memory = [], []
    for number, one in enumerate(translator.translate_stream(iter(lines), beam=1), 1):
        found.append(one.text)
        if number % tenth == 0:
            memory.append(memory_mib())
    compare("a stream", found, memory)


if __name__ == "__main__":
    what, arguments = sys.argv[1], sys.argv[2:]
    if what == "long":
        long(arguments[0], arguments[1], int(arguments[3]) if "--lines" in arguments else 100_000)
    else:
        binary, data, marian = arguments[:3]
        quick = "--quick" in arguments
        captions = lines_of(os.path.join(data, "multi30k", "test_2016_flickr.de.gz"), 1000)
        beside_the_command_line(binary, captions, 3 if quick else ROUNDS)
        overhead(3 if quick else ROUNDS)
        interrupts(captions)
        beside_ctranslate2(binary, marian, captions, 3 if quick else ROUNDS, quick)
