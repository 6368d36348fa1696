"""Tokenizers: text to tokens and back.

>>> from attentive.tokenizer import Tokenizer
>>> tokenizer = Tokenizer.train(["ein Haus am See", "zwei Häuser am See"] * 9, kind="bpe", vocab_size=280)
>>> tokenizer.decode(tokenizer.encode("drei Häuser 👍"))
'drei Häuser 👍'
"""

from attentive._attentive import Tokenizer

__all__ = ["Tokenizer"]
