"""Translating from Python: what goes in, what comes back, and that it is what the command line says."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import attentive
from attentive import AttentiveError, Glossary, Translation, Translator

CommandLine = Callable[..., str]


def texts(translations: list[Translation]) -> list[str]:
    return [translation.text for translation in translations]


def test_a_string_gives_one_translation_and_a_list_gives_a_list(translator: Translator) -> None:
    one = translator.translate("Guten Morgen!")
    assert isinstance(one, Translation)
    assert one.text == str(one) == "Good morning!"
    assert one.score < 0 and one.log_prob < 0 and one.finished == "end_of_sentence"
    assert repr(one).startswith("Translation('Good morning!', score=-0.")
    assert translator.translate(["Guten Morgen!"]) == [one]
    assert translator.translate(("Guten Morgen!",)) == [one]
    assert translator.translate([]) == []
    assert translator.translate("").text == ""


def test_the_translations_are_those_of_the_command_line(
    translator: Translator, sentences: list[str], command_line: CommandLine
) -> None:
    lines = "\n".join(sentences) + "\n"
    for options, arguments in [
        ({}, []),
        ({"beam": 1}, ["--beam", "1"]),
        ({"beam": 6, "length_penalty": 0.5}, ["--beam", "6", "--length-penalty", "0.5"]),
        ({"prefix": "Well,"}, ["--prefix", "Well,"]),
        ({"sentences": False, "max_length": 7}, ["--whole-lines", "--max-length", "7"]),
        ({"sample": True, "seed": 7, "top_k": 5}, ["--sample", "--seed", "7", "--top-k", "5"]),
    ]:
        expected = command_line("translate", "--model", "de-en", *arguments, text=lines)
        assert texts(translator.translate(sentences, **options)) == expected.splitlines(), options


def test_alternatives_scores_tokens_and_alignments_are_those_of_the_command_line(
    translator: Translator, sentences: list[str], command_line: CommandLine
) -> None:
    arguments = ["--json", "--alternatives", "3", "--alignments"]
    expected = command_line("translate", "--model", "de-en", *arguments, text="\n".join(sentences) + "\n")
    found = translator.translate(sentences, n_best=3, alignments=True, tokens=True)
    for line, translation in zip(expected.splitlines(), found):
        record = json.loads(line)
        assert (translation.text, translation.score) == (record["text"], record["score"])
        links = record.get("alignment")
        assert translation.alignment == (links and [tuple(link) for link in links])
        others = [(other["text"], other["score"], other["finished"]) for other in record["alternatives"]]
        assert [(other.text, other.score, other.finished) for other in translation.alternatives] == others
        assert (translation.unknown, translation.log_prob) == (record["unknown"], record["log_prob"])
    assert translator.translate("Guten Morgen!").alignment is None


def test_a_glossary_is_obeyed_however_it_is_given(translator: Translator, tmp_path: Path) -> None:
    file = tmp_path / "terms.tsv"
    file.write_text("Bahnhof\tdepot\n", encoding="utf-8")
    sentence = "Wo ist der Bahnhof?"
    assert "depot" not in translator.translate(sentence).text
    glossaries = [
        {"Bahnhof": "depot"},
        {"Bahnhof": ["depot", "terminus"]},
        [("Bahnhof", "depot")],
        Glossary({"Bahnhof": "depot"}),
        Glossary.open(file),
    ]
    for glossary in glossaries:
        found = translator.translate(sentence, glossary=glossary).text
        assert "depot" in found.lower() or "erminus" in found
    assert len(Glossary({"a": "b", "c": "d"})) == 2
    exact = Glossary({"Bahnhöfe": "depots"}, exact=True)
    assert "depot" not in translator.translate(sentence, glossary=exact).text
    with pytest.raises(AttentiveError, match="target term is empty"):
        Glossary({"Bahnhof": ""})


def test_prefixes_are_one_for_all_or_one_for_each(translator: Translator) -> None:
    sentences = ["Guten Morgen!", "Ein Hund rennt."]
    found = translator.translate(sentences, prefix=["Hello", ""])
    assert found[0].text.startswith("Hello") and found[1] == translator.translate(sentences[1])
    with pytest.raises(ValueError, match="1 prefixes for 2 texts"):
        translator.translate(sentences, prefix=["Hello"])
    with pytest.raises(AttentiveError, match="a prefix belongs to a sentence"):
        translator.translate("<b>Danke</b>", prefix="Hello", html=True)
    with pytest.raises(TypeError, match="must be a string"):
        translator.translate("Guten Morgen!", prefix=["Hello"])  # type: ignore[call-overload]


def test_html_keeps_its_tags(translator: Translator) -> None:
    page = '<p>Guten <b class="x">Morgen</b>!</p><pre>nicht das</pre>'
    found = translator.translate(page, html=True, n_best=2)
    assert found.text.startswith("<p>") and '<b class="x">' in found.text and "<pre>nicht das</pre>" in found.text
    assert "ood" in found.text and len(found.alternatives) == 1
    assert texts(translator.translate([page, "<i>Danke</i>."], html=True))[1] == "<i>Thanks</i>."


def test_a_stream_is_lazy_and_in_order(translator: Translator, many: list[str]) -> None:
    read = 0

    def lines() -> Iterator[str]:
        nonlocal read
        for line in many:
            read += 1
            yield line

    stream = translator.translate_stream(lines(), beam=1)
    assert read == 0
    first = next(stream)
    assert 0 < read <= 64
    assert texts([first, *stream]) == texts(translator.translate(many, beam=1))
    one_by_one = translator.translate_stream(lines(), window=1)
    read = 0
    next(one_by_one)
    assert read == 1
    with pytest.raises(TypeError, match="not a string"):
        translator.translate_stream("Guten Morgen!")


def test_an_error_of_the_stream_comes_after_what_was_before_it(translator: Translator) -> None:
    def lines() -> Iterator[str]:
        yield "Guten Morgen!"
        raise OSError("the disk is on fire")

    stream = translator.translate_stream(lines(), window=1)
    assert next(stream).text == "Good morning!"
    with pytest.raises(OSError, match="on fire"):
        next(stream)


def test_files_and_documents_are_those_of_the_command_line(
    translator: Translator, sentences: list[str], tmp_path: Path, command_line: CommandLine
) -> None:
    wrapped = "Der Hund rennt über die Wiese und sieht die\nalte Katze, die auf dem warmen Stein schläft und\nträumt.\n"
    for name, content in [
        ("lines.de", "\n".join(sentences) + "\n"),
        ("wrapped.txt", wrapped),
        ("page.md", "# Guten Morgen\n\n- Ein *Hund* rennt.\n- `code` bleibt.\n"),
        ("film.srt", "1\n00:00:01,000 --> 00:00:02,000\nGuten Morgen!\n"),
        ("page.html", "<h1>Guten Morgen</h1><p>Ein <b>Hund</b> rennt.</p>\n"),
        ("app.json", '{"title": "Guten Morgen!", "number": 3}\n'),
    ]:
        source, ours, theirs = tmp_path / name, tmp_path / f"ours-{name}", tmp_path / f"theirs-{name}"
        source.write_text(content, encoding="utf-8")
        report = translator.translate_file(source, ours)
        command_line("translate", "--model", "de-en", "-i", str(source), "-o", str(theirs))
        assert ours.read_bytes() == theirs.read_bytes(), name
        assert report.texts > 0 and report.format == {"de": "text", "txt": "text", "md": "markdown"}.get(
            name.split(".")[1], name.split(".")[1]
        )
    assert "ours-wrapped.txt" in repr(sorted(path.name for path in tmp_path.iterdir()))


def test_a_file_that_cannot_be_translated_leaves_nothing_behind(translator: Translator, tmp_path: Path) -> None:
    broken, output = tmp_path / "broken.docx", tmp_path / "out.docx"
    broken.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(AttentiveError, match=r"broken\.docx"):
        translator.translate_file(broken, output)
    with pytest.raises(AttentiveError, match="known formats are text, markdown"):
        translator.translate_file(broken, output, format="pdf")
    with pytest.raises(AttentiveError, match="expected 'auto', 'join' or 'lines'"):
        translator.translate_file(broken, output, wrapped="maybe")
    assert sorted(tmp_path.iterdir()) == [broken]


def test_errors_carry_the_text_that_the_command_line_has(translator: Translator, tmp_path: Path) -> None:
    with pytest.raises(AttentiveError, match="Built-in models: de-en, en-de"):
        Translator("no/such/model")
    with pytest.raises(AttentiveError, match="does not translate into fr"):
        Translator("de-en", to="fr")
    with pytest.raises(AttentiveError, match="none of f32, int8, f32-int8-output, auto"):
        Translator("de-en", compute="f16")
    with pytest.raises(AttentiveError, match=r"`threads` \(0\) must be at least 1"):
        Translator("de-en", threads=0)
    with pytest.raises(AttentiveError, match="beam"):
        translator.translate("Hallo", beam=0)
    with pytest.raises(TypeError, match="unknown option \"bean\"; the options are beam"):
        translator.translate("Hallo", bean=3)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        translator.translate(["Hallo", 3])  # type: ignore[list-item]
    with pytest.raises(UnicodeEncodeError):
        translator.translate("\ud800")
    assert issubclass(AttentiveError, ValueError)
    assert translator.translate("Danke.").text == "Thanks.", "it lives on"


def test_a_model_of_another_program_is_imported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(os.environ.get("ATTENTIVE_MODELS", "")) / "marian-multi30k-de-en"
    if not folder.is_dir():
        pytest.skip("SKIPPED: ATTENTIVE_MODELS does not name the folder that has marian-multi30k-de-en")
    monkeypatch.setenv("ATTENTIVE_CACHE", str(tmp_path))
    with pytest.warns(UserWarning, match="importing"):
        first = Translator(folder / "model.npz")
    again = Translator(folder / "model.npz")
    sentence = "Ein Hund rennt über die Wiese ."
    assert first.translate(sentence) == again.translate(sentence)
    assert "dog" in first.translate(sentence).text


def test_what_a_translator_is(translator: Translator) -> None:
    assert translator.name == "de-en" and translator.languages == ("de", "en")
    assert Translator("en-de", threads=1).threads == 1
    assert repr(translator) == "Translator('de-en')"
    assert attentive.built_in_models() == ["de-en", "en-de"]
    assert attentive.__version__.count(".") == 2


def test_the_package_needs_no_other(tmp_path: Path) -> None:
    """Neither numpy nor tqdm nor anything else is imported."""
    code = (
        "import sys, attentive; attentive.Translator('de-en').translate(['Hallo'] * 3); "
        "print([name for name in ('numpy', 'tqdm', 'sacrebleu') if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"


def test_long_work_shows_a_progress_bar_of_tqdm(
    translator: Translator, many: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    translator.translate(["", *many[:3]] * 1100, beam=1, progress=True)
    assert "4400/4400" in capsys.readouterr().err
    source = tmp_path / "a.de"
    source.write_text("Guten Morgen!\n", encoding="utf-8")
    translator.translate_file(source, tmp_path / "a.en", progress=True)
    assert "100%" in capsys.readouterr().err
    translator.translate(many[:3], progress=True)
    translator.translate_file(source, tmp_path / "a.en")
    assert capsys.readouterr().err == "", "nobody watches"
