"""BLEU, chrF and TER: sacreBLEU's objects with sacreBLEU's numbers, computed in Rust on all cores.

>>> from attentive.score import BLEU
>>> bleu = BLEU()
>>> bleu.corpus_score(["The cat sat on a mat."], [["The cat sat on the mat."]])
BLEU = 48.89 85.7/66.7/40.0/25.0 (BP = 1.000 ratio = 1.000 hyp_len = 7 ref_len = 7)
>>> bleu.get_signature()
nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0

Code that says ``from sacrebleu.metrics import BLEU, CHRF, TER`` or ``import sacrebleu`` goes on working with ``attentive.score`` in
its place, as far as it uses constructors, ``corpus_score``, ``sentence_score``, ``get_signature``, the scores' attributes, or
functions such as ``corpus_bleu``. Signatures name the version of sacreBLEU whose scores these are.
"""

import json
import logging
import os
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Optional, TypeVar, Union

from attentive import _attentive
from attentive._attentive import Scorer

__all__ = [
    "BLEU",
    "CHRF",
    "METRICS",
    "TER",
    "BLEUScore",
    "CHRFScore",
    "Score",
    "Signature",
    "TERScore",
    "corpus_bleu",
    "corpus_chrf",
    "corpus_ter",
    "raw_corpus_bleu",
    "sentence_bleu",
    "sentence_chrf",
    "sentence_ter",
]

__version__ = _attentive.SACREBLEU_VERSION

_log = logging.getLogger("attentive")

References = Sequence[Sequence[Optional[str]]]
Number = Union[int, float]


class Score:
    """A score, with what it was computed from."""

    def __init__(self, name: str, score: float) -> None:
        self.name = name
        self.score = score
        self._mean = -1.0
        self._ci = -1.0
        self._verbose = ""

    def format(
        self, width: int = 2, score_only: bool = False, signature: str = "", is_json: bool = False
    ) -> str:
        """The score as text: a line, the number alone, or JSON, with so many decimals."""
        number = f"{self.score:.{width}f}"
        fields: dict[str, Any] = {"name": self.name, "score": float(number), "signature": signature}
        if self._mean > 0:
            mean, half_width = f"{self._mean:.{width}f}", f"{self._ci:.{width}f}"
            interval = f"μ = {mean} ± {half_width}"
            number = f"{number} ({interval})"
            fields.update(confidence_mean=float(mean), confidence_var=float(half_width), confidence=interval)
        if score_only:
            return number
        if self._verbose:
            fields["verbose_score"] = self._verbose
        if is_json:
            fields.update(dict(part.split(":") for part in signature.split("|")))
            return json.dumps(fields, indent=1, ensure_ascii=False)
        name = f"{self.name}|{signature}" if signature else self.name
        return " ".join(filter(None, [f"{name} = {number}", self._verbose]))

    def __repr__(self) -> str:
        return self.format()


class BLEUScore(Score):
    """A BLEU score: ``score``, ``counts`` and ``totals`` of n-grams, ``precisions``, ``bp``, ``sys_len``, ``ref_len``."""

    def __init__(
        self,
        score: float,
        counts: Sequence[Number],
        totals: Sequence[Number],
        precisions: Sequence[float],
        bp: float,
        sys_len: int,
        ref_len: int,
    ) -> None:
        super().__init__("BLEU", score)
        self.counts, self.totals, self.precisions = counts, totals, precisions
        self.bp, self.sys_len, self.ref_len = bp, sys_len, ref_len
        self.ratio = sys_len / ref_len if ref_len else 0
        self.prec_str = "/".join(f"{precision:.1f}" for precision in precisions)
        self._verbose = (
            f"{self.prec_str} (BP = {bp:.3f} ratio = {self.ratio:.3f} hyp_len = {sys_len:d} ref_len = {ref_len:d})"
        )


class CHRFScore(Score):
    """A chrF score: ``score``, ``char_order``, ``word_order``, ``beta``."""

    def __init__(self, score: float, char_order: int, word_order: int, beta: int) -> None:
        super().__init__(f"chrF{beta}{'+' * word_order}", score)
        self.char_order, self.word_order, self.beta = char_order, word_order, beta


class TERScore(Score):
    """A TER score: ``score``, ``num_edits``, ``ref_length``."""

    def __init__(self, score: float, num_edits: float, ref_length: float) -> None:
        super().__init__("TER", score)
        self.num_edits, self.ref_length = int(num_edits), ref_length


class Signature:
    """How a score was made, so that others can make it again."""

    #: Names that all metrics have, with their short forms, in the order in which they are written.
    _SHARED: ClassVar[dict[str, str]] = {
        "nrefs": "#",
        "bs": "bs",
        "ar": "ar",
        "seed": "rs",
        "test": "t",
        "lang": "l",
        "origlang": "o",
        "subset": "S",
    }

    def __init__(self, shared: dict[str, Any], settings: dict[str, tuple[str, Any]]) -> None:
        self._abbr = {**self._SHARED, **{name: short for name, (short, _) in settings.items()}, "version": "v"}
        self.info: dict[str, Any] = {"version": __version__}
        self.info.update({name: shared.get(name) for name in self._SHARED})
        self.info.update({name: value for name, (_, value) in settings.items()})

    def format(self, short: bool = False) -> str:
        """One line of names and values; what is None is left out."""
        last = ["version"]
        names = [name for name in self.info if name not in last] + last

        def pair(name: str) -> str:
            value = self.info[name]
            value = _yes(value) if isinstance(value, bool) else value
            return f"{self._abbr[name] if short else name}:{value}"

        return "|".join(pair(name) for name in names if self.info[name] is not None)

    def update(self, key: str, value: Any) -> None:
        """Adds or changes a value."""
        self.info[key] = value

    def __repr__(self) -> str:
        return self.format()


S = TypeVar("S", bound=Score)


class Metric(Generic[S]):
    """What the metrics have in common: texts to statistics (in Rust), statistics to a score."""

    num_refs: int
    """How many references each line has; -1 if that varies. Known when something was scored."""

    def __init__(self, references: Optional[References]) -> None:
        self.n_bootstrap: Optional[int] = None
        self.seed: Optional[str] = None
        self._cached: Optional[tuple[References, Scorer, int]] = None
        if references is not None:
            self._cached = (references, *self._read(references))

    def corpus_score(
        self, hypotheses: Sequence[str], references: Optional[References], n_bootstrap: int = 1
    ) -> S:
        """The score of a system's output against one or more reference texts (or those of the constructor, with None).

        With ``n_bootstrap`` above 1 it has a 95% confidence interval from so many bootstrap samples; the environment variable
        SACREBLEU_SEED has the seed.
        """
        self._check(hypotheses, references)
        scorer, texts = self._paired(hypotheses, references)
        score = self._compute_score_from_stats(scorer.totals(texts))
        if n_bootstrap > 1:
            self.n_bootstrap = n_bootstrap
            self.seed = os.environ.get("SACREBLEU_SEED", "12345").lower()
            seed = None if self.seed in ("none", "null") else int(self.seed)
            self.seed = "none" if seed is None else str(seed)
            interval = scorer.confidence(texts, n_bootstrap, seed)
            if interval is not None:
                score._mean, score._ci = interval
        return score

    def sentence_score(self, hypothesis: str, references: Sequence[str]) -> S:
        """The score of a single sentence against one or more references."""
        name = type(self).__name__
        if not isinstance(hypothesis, str):
            raise TypeError(f"{name}: The argument `hyp` should be a string.")
        if isinstance(references, str) or not isinstance(references, Sequence):
            raise TypeError(f"{name}: The argument `refs` should be a sequence of strings.")
        if not isinstance(references[0], str) and references[0] is not None:
            raise TypeError(f"{name}: Each element of `refs` should be a string.")
        scorer, _ = self._read([[reference] for reference in references])
        return self._compute_score_from_stats(scorer.totals([hypothesis]))

    def get_signature(self) -> Signature:
        """How the last score was made."""
        if not hasattr(self, "num_refs"):
            raise ValueError("Number of references unknown, please evaluate the metric first.")
        references = "var" if self.num_refs == -1 else self.num_refs
        shared = {"nrefs": references, "bs": self.n_bootstrap, "seed": self.seed}
        return Signature(shared, self._settings())

    # What sacreBLEU's own significance tests call.
    def _extract_corpus_statistics(
        self, hypotheses: Sequence[str], references: Optional[References]
    ) -> list[list[float]]:
        scorer, texts = self._paired(hypotheses, references)
        return scorer.statistics(texts)

    def _aggregate_and_compute(self, stats: Sequence[Sequence[float]]) -> S:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats)])

    def _compute_score_from_stats(self, stats: Sequence[float]) -> S:
        raise NotImplementedError

    def _make(self, segments: list[list[str]]) -> Scorer:
        raise NotImplementedError

    def _settings(self) -> dict[str, tuple[str, Any]]:
        raise NotImplementedError

    def _look_at(self, hypotheses: list[str]) -> None:
        """Warns of texts that should look otherwise."""

    def _paired(self, hypotheses: Sequence[str], references: Optional[References]) -> tuple[Scorer, list[str]]:
        """The scorer and the lines that both sides have, as in sacreBLEU: others are left out, which is told."""
        if references:
            scorer, lines = self._read(references)
        elif self._cached is not None:
            references, scorer, lines = self._cached
        else:
            raise RuntimeError("No references provided and the cache is empty.")
        texts = list(hypotheses)[:lines]
        if len(hypotheses) != lines:
            _log.warning("There are %d hypotheses and %d references; the rest is not scored.", len(hypotheses), lines)
        if len(texts) < lines:
            scorer, _ = self._read([text[: len(texts)] for text in references])
        self._look_at(texts)
        return scorer, texts

    def _read(self, references: References) -> tuple[Scorer, int]:
        """The scorer of these references, and how many lines they have."""
        segments = [[line for line in lines if line is not None] for lines in zip(*references)]
        counts = {len(lines) for lines in segments}
        self.num_refs = counts.pop() if len(counts) == 1 else -1
        return self._make(segments), len(segments)

    def _check(self, hypotheses: Sequence[str], references: Optional[References]) -> None:
        """Refuses what sacreBLEU refuses, in its words."""
        problem = None
        if not isinstance(hypotheses, Sequence):
            problem = "`hyps` should be a sequence of strings."
        elif not isinstance(hypotheses[0], str):
            problem = "Each element of `hyps` should be a string."
        elif any(line is None for line in hypotheses):
            problem = "Undefined line in hypotheses stream!"
        if references is not None:
            if not isinstance(references, Sequence):
                problem = "`refs` should be a sequence of sequence of strings."
            elif not isinstance(references[0], Sequence):
                problem = "Each element of `refs` should be a sequence of strings."
            elif not isinstance(references[0][0], str) and references[0][0] is not None:
                problem = "`refs` should be a sequence of sequence of strings."
        if problem:
            raise TypeError(f"{type(self).__name__}: {problem}")


class BLEU(Metric[BLEUScore]):
    """BLEU (Papineni et al., 2002), with sacreBLEU's arguments.

    :param lowercase: Lowercase the texts.
    :param force: Do not warn of texts that look tokenized.
    :param tokenize: ``"13a"``, ``"intl"``, ``"zh"``, ``"char"`` or ``"none"``; by default ``"zh"`` for ``trg_lang="zh"``, else
        ``"13a"``.
    :param smooth_method: ``"exp"``, ``"floor"``, ``"add-k"`` or ``"none"``, with its ``smooth_value``.
    :param max_ngram_order: The longest n-grams.
    :param effective_order: Leave out n-gram orders that a short output has none of: for single sentences.
    :param references: Reference texts that are read once, for any number of systems (``corpus_score(hypotheses, None)``).
    """

    SMOOTH_DEFAULTS: ClassVar[dict[str, Optional[float]]] = {"none": None, "floor": 0.1, "add-k": 1, "exp": None}
    TOKENIZERS: ClassVar[tuple[str, ...]] = ("none", "zh", "13a", "intl", "char")
    TOKENIZER_DEFAULT: ClassVar[str] = "13a"

    def __init__(
        self,
        lowercase: bool = False,
        force: bool = False,
        tokenize: Optional[str] = None,
        smooth_method: str = "exp",
        smooth_value: Optional[float] = None,
        max_ngram_order: int = 4,
        effective_order: bool = False,
        trg_lang: str = "",
        references: Optional[References] = None,
    ) -> None:
        assert smooth_method in self.SMOOTH_DEFAULTS, f"Unknown smooth_method {smooth_method!r}"
        self._force = force
        self.lowercase = lowercase
        self.smooth_method, self.smooth_value = smooth_method, smooth_value
        self.max_ngram_order, self.effective_order = max_ngram_order, effective_order
        self.trg_lang = trg_lang
        usual = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}.get(trg_lang, self.TOKENIZER_DEFAULT)
        if tokenize not in (None, usual) and trg_lang in ("zh", "ja", "ko"):
            _log.warning("The tokenizer %r is usual for %s.", usual, trg_lang)
        self.tokenizer_signature = tokenize or usual
        self._make([[""]])  # Refuses a tokenizer that is not there.
        super().__init__(references)

    @staticmethod
    def compute_bleu(
        correct: Sequence[Number],
        total: Sequence[Number],
        sys_len: int,
        ref_len: int,
        smooth_method: str = "none",
        smooth_value: Optional[float] = None,
        effective_order: bool = False,
        max_ngram_order: int = 4,
    ) -> BLEUScore:
        """BLEU from matching n-grams, all n-grams, and the lengths of output and references."""
        assert smooth_method in BLEU.SMOOTH_DEFAULTS, f"Unknown smooth_method {smooth_method!r}"
        score, counts, totals, precisions, bp = _attentive.compute_bleu(
            [float(number) for number in (sys_len, ref_len, *correct, *total)],
            smooth_method=smooth_method,
            smooth_value=smooth_value,
            effective_order=effective_order,
            max_order=max_ngram_order,
        )
        return BLEUScore(score, _whole(counts), _whole(totals), precisions, bp, int(sys_len), int(ref_len))

    def sentence_score(self, hypothesis: str, references: Sequence[str]) -> BLEUScore:
        """The score of a single sentence against one or more references; better with ``effective_order``."""
        if not self.effective_order:
            _log.warning("It is recommended to enable `effective_order` for sentence-level BLEU.")
        return super().sentence_score(hypothesis, references)

    def _compute_score_from_stats(self, stats: Sequence[float]) -> BLEUScore:
        order = self.max_ngram_order
        return self.compute_bleu(
            stats[2 : 2 + order],
            stats[2 + order :],
            int(stats[0]),
            int(stats[1]),
            self.smooth_method,
            self.smooth_value,
            self.effective_order,
            order,
        )

    def _make(self, segments: list[list[str]]) -> Scorer:
        return _attentive.bleu_scorer(
            segments,
            tokenize=self.tokenizer_signature,
            lowercase=self.lowercase,
            smooth_method=self.smooth_method,
            smooth_value=self.smooth_value,
            effective_order=self.effective_order,
            max_order=self.max_ngram_order,
        )

    def _settings(self) -> dict[str, tuple[str, Any]]:
        smooth, value = self.smooth_method, self.smooth_value
        usual = self.SMOOTH_DEFAULTS[smooth]
        if usual is not None:
            smooth = f"{smooth}[{usual if value is None else value:.2f}]"
        return {
            "case": ("c", "lc" if self.lowercase else "mixed"),
            "eff": ("e", _yes(self.effective_order)),
            "tok": ("tok", self.tokenizer_signature),
            "smooth": ("s", smooth),
        }

    def _look_at(self, hypotheses: list[str]) -> None:
        if not self._force and sum(line.endswith(" .") for line in hypotheses) >= 100:
            _log.warning(
                "100 lines or more end in a tokenized period (' .'): detokenize the output before scoring, or say force=True."
            )


class CHRF(Metric[CHRFScore]):
    """chrF (Popović, 2015) and chrF++ (``word_order=2``), with sacreBLEU's arguments.

    :param char_order: The longest character n-grams.
    :param word_order: The longest word n-grams; 2 for chrF++.
    :param beta: How much more recall weighs than precision.
    :param lowercase: Lowercase the texts.
    :param whitespace: Whether white space is part of the character n-grams.
    :param eps_smoothing: Smoothing as in chrF++.py, NLTK and Moses.
    :param references: Reference texts that are read once, for any number of systems.
    """

    CHAR_ORDER: ClassVar[int] = 6
    WORD_ORDER: ClassVar[int] = 0
    BETA: ClassVar[int] = 2

    def __init__(
        self,
        char_order: int = CHAR_ORDER,
        word_order: int = WORD_ORDER,
        beta: int = BETA,
        lowercase: bool = False,
        whitespace: bool = False,
        eps_smoothing: bool = False,
        references: Optional[References] = None,
    ) -> None:
        self.char_order, self.word_order, self.beta = char_order, word_order, beta
        self.order = char_order + word_order
        self.lowercase, self.whitespace, self.eps_smoothing = lowercase, whitespace, eps_smoothing
        self._formula = self._make([[""]])
        super().__init__(references)

    def _compute_score_from_stats(self, stats: Sequence[float]) -> CHRFScore:
        score = self._formula.score([float(number) for number in stats])
        return CHRFScore(score, self.char_order, self.word_order, self.beta)

    def _make(self, segments: list[list[str]]) -> Scorer:
        return _attentive.chrf_scorer(
            segments,
            char_order=self.char_order,
            word_order=self.word_order,
            beta=self.beta,
            lowercase=self.lowercase,
            whitespace=self.whitespace,
            eps_smoothing=self.eps_smoothing,
        )

    def _settings(self) -> dict[str, tuple[str, Any]]:
        return {
            "case": ("c", "lc" if self.lowercase else "mixed"),
            "eff": ("e", _yes(not self.eps_smoothing)),
            "nc": ("nc", self.char_order),
            "nw": ("nw", self.word_order),
            "space": ("s", _yes(self.whitespace)),
        }


class TER(Metric[TERScore]):
    """TER (Snover et al., 2006), with sacreBLEU's arguments.

    :param normalized: Split off punctuation and undo escapes first.
    :param no_punct: Remove punctuation.
    :param asian_support: With either of these, treat Chinese and Japanese characters too.
    :param case_sensitive: Whether capital letters count.
    :param references: Reference texts that are read once, for any number of systems.
    """

    def __init__(
        self,
        normalized: bool = False,
        no_punct: bool = False,
        asian_support: bool = False,
        case_sensitive: bool = False,
        references: Optional[References] = None,
    ) -> None:
        self.normalized, self.no_punct = normalized, no_punct
        self.asian_support, self.case_sensitive = asian_support, case_sensitive
        self.tokenizer_signature = "tercom"
        self._formula = self._make([[""]])
        super().__init__(references)

    def _compute_score_from_stats(self, stats: Sequence[float]) -> TERScore:
        edits, length = stats
        return TERScore(self._formula.score([float(edits), float(length)]), edits, length)

    def _make(self, segments: list[list[str]]) -> Scorer:
        return _attentive.ter_scorer(
            segments,
            normalized=self.normalized,
            no_punct=self.no_punct,
            asian_support=self.asian_support,
            case_sensitive=self.case_sensitive,
        )

    def _settings(self) -> dict[str, tuple[str, Any]]:
        return {
            "case": ("c", "mixed" if self.case_sensitive else "lc"),
            "tok": ("t", self.tokenizer_signature),
            "norm": ("nr", self.normalized),
            "punct": ("pn", not self.no_punct),
            "asian": ("as", self.asian_support),
        }


METRICS: dict[str, Any] = {"BLEU": BLEU, "CHRF": CHRF, "TER": TER}


def corpus_bleu(
    hypotheses: Sequence[str],
    references: References,
    smooth_method: str = "exp",
    smooth_value: Optional[float] = None,
    force: bool = False,
    lowercase: bool = False,
    tokenize: str = BLEU.TOKENIZER_DEFAULT,
    use_effective_order: bool = False,
) -> BLEUScore:
    """BLEU of a system's output."""
    metric = BLEU(
        lowercase, force, tokenize, smooth_method, smooth_value, effective_order=use_effective_order
    )
    return metric.corpus_score(hypotheses, references)


def raw_corpus_bleu(
    hypotheses: Sequence[str],
    references: References,
    smooth_value: Optional[float] = BLEU.SMOOTH_DEFAULTS["floor"],
) -> BLEUScore:
    """BLEU of texts that are tokenized already, with ``floor`` smoothing and effective order."""
    return corpus_bleu(hypotheses, references, "floor", smooth_value, True, False, "none", True)


def sentence_bleu(
    hypothesis: str,
    references: Sequence[str],
    smooth_method: str = "exp",
    smooth_value: Optional[float] = None,
    lowercase: bool = False,
    tokenize: str = BLEU.TOKENIZER_DEFAULT,
    use_effective_order: bool = True,
) -> BLEUScore:
    """BLEU of a single sentence."""
    metric = BLEU(
        lowercase, False, tokenize, smooth_method, smooth_value, effective_order=use_effective_order
    )
    return metric.sentence_score(hypothesis, references)


def corpus_chrf(
    hypotheses: Sequence[str],
    references: References,
    char_order: int = CHRF.CHAR_ORDER,
    word_order: int = CHRF.WORD_ORDER,
    beta: int = CHRF.BETA,
    remove_whitespace: bool = True,
    eps_smoothing: bool = False,
) -> CHRFScore:
    """chrF of a system's output; chrF++ with ``word_order=2``."""
    metric = CHRF(char_order, word_order, beta, False, not remove_whitespace, eps_smoothing)
    return metric.corpus_score(hypotheses, references)


def sentence_chrf(
    hypothesis: str,
    references: Sequence[str],
    char_order: int = CHRF.CHAR_ORDER,
    word_order: int = CHRF.WORD_ORDER,
    beta: int = CHRF.BETA,
    remove_whitespace: bool = True,
    eps_smoothing: bool = False,
) -> CHRFScore:
    """chrF of a single sentence."""
    metric = CHRF(char_order, word_order, beta, False, not remove_whitespace, eps_smoothing)
    return metric.sentence_score(hypothesis, references)


def corpus_ter(
    hypotheses: Sequence[str],
    references: References,
    normalized: bool = False,
    no_punct: bool = False,
    asian_support: bool = False,
    case_sensitive: bool = False,
) -> TERScore:
    """TER of a system's output."""
    return TER(normalized, no_punct, asian_support, case_sensitive).corpus_score(hypotheses, references)


def sentence_ter(
    hypothesis: str,
    references: Sequence[str],
    normalized: bool = False,
    no_punct: bool = False,
    asian_support: bool = False,
    case_sensitive: bool = False,
) -> TERScore:
    """TER of a single sentence."""
    return TER(normalized, no_punct, asian_support, case_sensitive).sentence_score(hypothesis, references)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _whole(numbers: list[float]) -> list[Number]:
    """Counts as whole numbers; smoothing may have made fractions of them."""
    return [int(number) if number.is_integer() else number for number in numbers]
