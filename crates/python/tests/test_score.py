"""`attentive.score` beside sacreBLEU 2.6.0: the same objects with the same numbers, texts and signatures."""

import random
from typing import Any

import pytest
import sacrebleu
from sacrebleu import metrics as theirs

from attentive import AttentiveError, score
from attentive.score import BLEU, CHRF, TER

WORDS = "the a cat dog sat ran on under mat house , . ! big small 3.5 don't e-mail Über groß 日本 语".split()


def corpus(seed: int, lines: int) -> tuple[list[str], list[list[str]]]:
    """Hypotheses and two references that have much in common."""
    chance = random.Random(seed)

    def near(line: list[str]) -> str:
        changed = [chance.choice(WORDS) if chance.random() < 0.25 else word for word in line]
        chance.random() < 0.3 and changed.reverse()
        return " ".join(changed[: chance.randint(0, len(changed) + 3)])

    originals = [[chance.choice(WORDS) for _ in range(chance.randint(1, 14))] for _ in range(lines)]
    references = [[near(line) for line in originals] for _ in range(2)]
    return [near(line) for line in originals], references


def same(ours: Any, their: Any) -> None:
    """Scores with the same public attributes, and the same text in every form."""
    public = {name: value for name, value in vars(their).items() if not name.startswith("_")}
    assert {name: getattr(ours, name) for name in public} == public
    assert [type(getattr(ours, name)) for name in public] == [type(value) for value in public.values()]
    assert str(ours) == str(their) and repr(ours) == repr(their)
    assert ours.format(width=4, score_only=True) == their.format(width=4, score_only=True)


CASES: list[tuple[str, dict[str, Any]]] = [
    ("BLEU", {}),
    ("BLEU", {"lowercase": True, "tokenize": "intl"}),
    ("BLEU", {"tokenize": "zh"}),
    ("BLEU", {"trg_lang": "zh"}),
    ("BLEU", {"tokenize": "char", "max_ngram_order": 6}),
    ("BLEU", {"tokenize": "none", "smooth_method": "floor", "smooth_value": 0.3}),
    ("BLEU", {"smooth_method": "add-k", "smooth_value": 0.5}),
    ("BLEU", {"smooth_method": "add-k"}),
    ("BLEU", {"smooth_method": "none", "effective_order": True}),
    ("CHRF", {}),
    ("CHRF", {"word_order": 2}),
    ("CHRF", {"char_order": 4, "word_order": 1, "beta": 3, "lowercase": True}),
    ("CHRF", {"whitespace": True, "eps_smoothing": True}),
    ("TER", {}),
    ("TER", {"normalized": True, "no_punct": True, "asian_support": True}),
    ("TER", {"case_sensitive": True}),
]


@pytest.mark.parametrize("name, options", CASES)
def test_a_metric_is_sacrebleus(name: str, options: dict[str, Any]) -> None:
    for seed in range(3):
        hypotheses, references = corpus(seed, 40)
        ours, their = getattr(score, name)(**options), getattr(theirs, name)(**options)
        same(ours.corpus_score(hypotheses, references), their.corpus_score(hypotheses, references))
        for short in (False, True):
            assert ours.get_signature().format(short) == their.get_signature().format(short)
        assert ours.get_signature().info == their.get_signature().info
        for hypothesis, *lines in list(zip(hypotheses, *references))[:10]:
            same(ours.sentence_score(hypothesis, lines), their.sentence_score(hypothesis, lines))
        cached = getattr(score, name)(references=references, **options)
        same(cached.corpus_score(hypotheses, None), their.corpus_score(hypotheses, references))


@pytest.mark.parametrize("name, options", CASES[:2] + CASES[9:11] + CASES[13:14])
def test_confidence_intervals_are_sacrebleus(
    name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    hypotheses, references = corpus(7, 30)
    for seed in ["12345", "3", None]:
        if seed is None:
            monkeypatch.delenv("SACREBLEU_SEED")
        else:
            monkeypatch.setenv("SACREBLEU_SEED", seed)
        ours, their = getattr(score, name)(**options), getattr(theirs, name)(**options)
        found = ours.corpus_score(hypotheses, references, n_bootstrap=50)
        same(found, their.corpus_score(hypotheses, references, n_bootstrap=50))
        assert str(ours.get_signature()) == str(their.get_signature())
        line = found.format(signature=str(ours.get_signature()), is_json=True)
        expected = their.corpus_score(hypotheses, references, n_bootstrap=50)
        assert line == expected.format(signature=str(their.get_signature()), is_json=True)


def test_the_functions_are_sacrebleus() -> None:
    hypotheses, references = corpus(11, 20)
    for name in ["corpus_bleu", "raw_corpus_bleu", "corpus_chrf", "corpus_ter"]:
        same(getattr(score, name)(hypotheses, references), getattr(sacrebleu, name)(hypotheses, references))
    for name in ["sentence_bleu", "sentence_chrf", "sentence_ter"]:
        lines = [text[0] for text in references]
        same(getattr(score, name)(hypotheses[0], lines), getattr(sacrebleu, name)(hypotheses[0], lines))
    same(
        BLEU.compute_bleu([3, 2, 0, 0], [5, 4, 3, 2], 5, 6, "exp"),
        theirs.BLEU.compute_bleu([3, 2, 0, 0], [5, 4, 3, 2], 5, 6, "exp"),
    )


def test_references_may_be_missing_and_lengths_may_differ() -> None:
    hypotheses, references = corpus(13, 10)
    varying: list[list[Any]] = [references[0], [None if line % 2 else text for line, text in enumerate(references[1])]]
    for name in ["BLEU", "CHRF", "TER"]:
        ours, their = getattr(score, name)(), getattr(theirs, name)()
        same(ours.corpus_score(hypotheses, varying), their.corpus_score(hypotheses, varying))
        assert str(ours.get_signature()) == str(their.get_signature()) and "nrefs:var" in str(ours.get_signature())
        for few, refs in [(hypotheses[:4], references), (hypotheses, [text[:4] for text in references])]:
            same(ours.corpus_score(few, refs), their.corpus_score(few, refs))


def test_what_is_no_text_is_refused_as_by_sacrebleu() -> None:
    for metric, other in [(BLEU(), theirs.BLEU()), (CHRF(), theirs.CHRF()), (TER(), theirs.TER())]:
        calls: list[tuple[str, tuple[Any, ...]]] = [
            ("sentence_score", (3, ["a"])),
            ("sentence_score", ("a", "a")),
            ("sentence_score", ("a", [3])),
            ("corpus_score", (3, [["a"]])),
            ("corpus_score", ([3], [["a"]])),
            ("corpus_score", (["a"], [3])),
            ("corpus_score", (["a"], ["a", 3][1:])),
        ]
        for name, arguments in calls:
            with pytest.raises(TypeError) as expected:
                getattr(other, name)(*arguments)
            with pytest.raises(TypeError) as found:
                getattr(metric, name)(*arguments)
            assert str(found.value) == str(expected.value)
        with pytest.raises(ValueError, match="Number of references unknown"):
            type(metric)().get_signature()
        with pytest.raises(RuntimeError, match="cache is empty"):
            metric.corpus_score(["a"], None)
    with pytest.raises(AttentiveError, match="ja-mecab"):
        BLEU(trg_lang="ja")
    with pytest.raises(AssertionError, match="Unknown smooth_method"):
        BLEU(smooth_method="more")


def test_a_signature_can_be_extended() -> None:
    bleu = BLEU()
    bleu.corpus_score(["a b c d"], [["a b c d"]])
    signature = bleu.get_signature()
    signature.update("test", "wmt17")
    assert str(signature) == "nrefs:1|test:wmt17|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
    assert score.METRICS["BLEU"] is BLEU
