"""Tokenizers, sentence splitting, language detection, and the examples in the documentation."""

import doctest
import types
from pathlib import Path

import pytest

import attentive
from attentive import AttentiveError, Translator
from attentive.tokenizer import Tokenizer

LINES = ["ein Haus am See", "zwei Häuser am See", "drei Hunde rennen um das Haus"] * 9


def test_a_tokenizer_gives_back_every_string(translator: Translator) -> None:
    own = Tokenizer.train(LINES, kind="bpe", vocab_size=280)
    for tokenizer in [own, translator.tokenizer, translator.target_tokenizer]:
        for text in ["drei Häuser 👍", "", "<s> \t \n", "日本語"]:
            assert tokenizer.decode(tokenizer.encode(text)) == text
    assert own.vocab_size == len(own) == 280 and own.kind == "bpe" and own.id("</s>") == 1
    assert "".join(own.pieces("Haus")).endswith("Haus")


def test_a_tokenizer_is_trained_from_files_and_saved(tmp_path: Path) -> None:
    text, file = tmp_path / "text.de", tmp_path / "tokenizer.json"
    text.write_text("\n".join(LINES), encoding="utf-8")
    trained = Tokenizer.train_files([text], kind="unigram", vocab_size=300)
    trained.save(file)
    loaded = Tokenizer.load(file)
    sentence = "zwei Hunde am Haus"
    assert loaded.encode(sentence) == trained.encode(sentence) == Tokenizer.train(LINES, vocab_size=300).encode(sentence)
    assert repr(loaded) == repr(trained)


def test_a_tokenizer_refuses_what_makes_no_sense(tmp_path: Path) -> None:
    with pytest.raises(AttentiveError, match="syllables"):
        Tokenizer.train(LINES, kind="syllables")
    with pytest.raises(AttentiveError, match="vocab_size"):
        Tokenizer.train(LINES, vocab_size=3)
    with pytest.raises(AttentiveError, match="no-such-file"):
        Tokenizer.load(tmp_path / "no-such-file.json")
    with pytest.raises(IndexError, match="there is no token 999999"):
        Tokenizer.train(LINES, vocab_size=300).decode([999_999])
    with pytest.raises(OverflowError):
        Tokenizer.train(LINES, vocab_size=300).decode([-1])


def test_sentences_and_languages() -> None:
    assert attentive.split_sentences("Wo ist Dr. Weiß? Er ist da.", "de") == ["Wo ist Dr. Weiß?", "Er ist da."]
    assert attentive.split_sentences("") == []
    language = attentive.detect_language("Guten Morgen, wie geht es dir?", ["de", "en"])
    assert language is not None and language[0] == "de" and language[1] > 0.9
    assert attentive.detect_language("42", ["de", "en"]) is None


def test_every_public_name_has_an_example_that_works_or_a_description() -> None:
    finder, runner = doctest.DocTestFinder(recurse=True), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    modules = [attentive, attentive.score, attentive.tokenizer]
    examples = 0
    for module in modules:
        for name in ["", *module.__all__]:
            value = getattr(module, name) if name else module
            if isinstance(value, (str, dict)) or (name and isinstance(value, types.ModuleType)):
                continue
            assert value.__doc__, f"{name} has no description"
            # Classes of Rust's say that they are of another module than the one that made them.
            for test in finder.find(value, name or module.__name__, module=False, globs={}):
                examples += len(test.examples)
                runner.run(test)
    assert runner.failures == 0 and examples > 20
