"""What Rust does for the package."""

import os
from collections.abc import Callable, Sequence
from typing import Any, Optional, Union, final

__all__ = [
    "Alternative",
    "Attention",
    "AttentiveError",
    "Cancel",
    "FileReport",
    "Glossary",
    "Model",
    "SACREBLEU_VERSION",
    "Scorer",
    "Tokenizer",
    "Translation",
    "Weights",
    "__version__",
    "bleu_scorer",
    "built_in_models",
    "chrf_scorer",
    "compute_bleu",
    "detect_language",
    "split_sentences",
    "ter_scorer",
]

__version__: str
SACREBLEU_VERSION: str

_Path = Union[str, "os.PathLike[str]"]

class AttentiveError(ValueError): ...

@final
class Cancel:
    def __new__(cls) -> Cancel: ...
    def cancel(self) -> None: ...

@final
class Translation:
    @property
    def text(self) -> str: ...
    @property
    def score(self) -> float: ...
    @property
    def log_prob(self) -> float: ...
    @property
    def finished(self) -> str: ...
    @property
    def alternatives(self) -> list[Alternative]: ...
    @property
    def alignment(self) -> Optional[list[tuple[int, int]]]: ...
    @property
    def tokens(self) -> Optional[list[str]]: ...
    @property
    def unknown(self) -> int: ...
    @property
    def truncated(self) -> int: ...
    @property
    def missing_terms(self) -> list[str]: ...
    @property
    def repetition_blocked(self) -> bool: ...

@final
class Alternative:
    @property
    def text(self) -> str: ...
    @property
    def score(self) -> float: ...
    @property
    def log_prob(self) -> float: ...
    @property
    def finished(self) -> str: ...
    @property
    def alignment(self) -> Optional[list[tuple[int, int]]]: ...
    @property
    def tokens(self) -> Optional[list[str]]: ...

@final
class Glossary:
    def __new__(
        cls, terms: Sequence[tuple[str, Sequence[str]]], *, exact: bool = False, case_sensitive: bool = False
    ) -> Glossary: ...
    @staticmethod
    def open(path: _Path) -> Glossary: ...
    def __len__(self) -> int: ...

@final
class FileReport:
    @property
    def format(self) -> str: ...
    @property
    def texts(self) -> int: ...
    @property
    def unchanged(self) -> int: ...
    @property
    def skipped(self) -> list[tuple[int, str]]: ...

@final
class Weights:
    @property
    def shape(self) -> tuple[int, int, int, int]: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    def numpy(self) -> Any: ...
    def tolist(self) -> list[list[list[list[float]]]]: ...
    def __len__(self) -> int: ...

@final
class Attention:
    @property
    def source(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def source_tokens(self) -> list[str]: ...
    @property
    def read_tokens(self) -> list[str]: ...
    @property
    def target_tokens(self) -> list[str]: ...
    @property
    def probabilities(self) -> list[float]: ...
    @property
    def encoder(self) -> Weights: ...
    @property
    def decoder(self) -> Weights: ...
    @property
    def cross(self) -> Weights: ...
    def html(self) -> str: ...
    def save(self, path: _Path) -> None: ...
    def _repr_html_(self) -> str: ...

@final
class Model:
    def __new__(
        cls,
        model: _Path,
        *,
        to: Optional[str] = None,
        threads: Optional[int] = None,
        compute: str = "auto",
        shortlist: Optional[_Path] = None,
        say: Optional[Callable[[str], object]] = None,
    ) -> Model: ...
    def configured(self, given: dict[str, Any]) -> Model: ...
    def translate(
        self,
        texts: Sequence[str],
        *,
        prefixes: Optional[Sequence[str]] = None,
        html: bool = False,
        cancel: Optional[Cancel] = None,
    ) -> list[Translation]: ...
    def translate_file(
        self,
        input: _Path,
        output: _Path,
        *,
        format: Optional[str] = None,
        wrapped: str = "auto",
        progress: Optional[Callable[[int, Optional[int]], object]] = None,
    ) -> FileReport: ...
    def attention(self, sentence: str, target: Optional[str] = None) -> Attention: ...
    @property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]: ...
    @property
    def name(self) -> str: ...
    @property
    def languages(self) -> tuple[Optional[str], Optional[str]]: ...
    @property
    def threads(self) -> int: ...
    @property
    def window(self) -> int: ...

@final
class Tokenizer:
    @staticmethod
    def load(path: _Path) -> Tokenizer: ...
    @staticmethod
    def train(
        lines: Sequence[str],
        *,
        kind: Optional[str] = None,
        vocab_size: Optional[int] = None,
        min_frequency: Optional[int] = None,
        lowercase: bool = False,
    ) -> Tokenizer: ...
    @staticmethod
    def train_files(
        files: Sequence[_Path],
        *,
        kind: Optional[str] = None,
        vocab_size: Optional[int] = None,
        min_frequency: Optional[int] = None,
        lowercase: bool = False,
    ) -> Tokenizer: ...
    def encode(self, text: str) -> list[int]: ...
    def pieces(self, text: str) -> list[str]: ...
    def decode(self, ids: Sequence[int]) -> str: ...
    def id(self, token: str) -> Optional[int]: ...
    def save(self, path: _Path) -> None: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def kind(self) -> str: ...
    def __len__(self) -> int: ...

@final
class Scorer:
    def statistics(self, hypotheses: Sequence[str]) -> list[list[float]]: ...
    def totals(self, hypotheses: Sequence[str]) -> list[float]: ...
    def score(self, totals: Sequence[float]) -> float: ...
    def confidence(
        self, hypotheses: Sequence[str], samples: int, seed: Optional[int]
    ) -> Optional[tuple[float, float]]: ...

def bleu_scorer(
    references: Sequence[Sequence[str]],
    *,
    tokenize: str,
    lowercase: bool,
    smooth_method: str,
    smooth_value: Optional[float],
    effective_order: bool,
    max_order: int,
) -> Scorer: ...
def compute_bleu(
    totals: Sequence[float],
    *,
    smooth_method: str,
    smooth_value: Optional[float],
    effective_order: bool,
    max_order: int,
) -> tuple[float, list[float], list[float], list[float], float]: ...
def chrf_scorer(
    references: Sequence[Sequence[str]],
    *,
    char_order: int,
    word_order: int,
    beta: int,
    lowercase: bool,
    whitespace: bool,
    eps_smoothing: bool,
) -> Scorer: ...
def ter_scorer(
    references: Sequence[Sequence[str]],
    *,
    normalized: bool,
    no_punct: bool,
    asian_support: bool,
    case_sensitive: bool,
) -> Scorer: ...
def built_in_models() -> list[str]: ...
def split_sentences(text: str, language: Optional[str] = None) -> list[str]: ...
def detect_language(text: str, languages: Sequence[str]) -> Optional[tuple[str, float]]: ...
