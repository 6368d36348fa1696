"""attentive: translation on CPUs, with documents, glossaries, scores, tokenizers and attention.

>>> import attentive
>>> translator = attentive.Translator("de-en")
>>> translator.translate("Guten Morgen!").text
'Good morning!'

- :class:`Translator` translates strings, lists, streams, files and documents, with threads and with asyncio.
- :mod:`attentive.score` has sacreBLEU's metrics (``BLEU``, ``CHRF``, ``TER``) with the same numbers.
- :mod:`attentive.tokenizer` trains and uses tokenizers.
"""

from attentive import score, tokenizer
from attentive._attentive import (
    Alternative,
    Attention,
    AttentiveError,
    FileReport,
    Translation,
    Weights,
    __version__,
    built_in_models,
    detect_language,
    split_sentences,
)
from attentive._translator import Glossary, Translator

__all__ = [
    "Alternative",
    "Attention",
    "AttentiveError",
    "FileReport",
    "Glossary",
    "Translation",
    "Translator",
    "Weights",
    "__version__",
    "built_in_models",
    "detect_language",
    "score",
    "split_sentences",
    "tokenizer",
]
