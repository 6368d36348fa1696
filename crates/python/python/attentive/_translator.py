"""Translators: the class that people use, on top of the model that Rust has."""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Optional, TypedDict, Union, overload

from attentive import _attentive, _batching
from attentive._attentive import Attention, FileReport, Model, Tokenizer, Translation
from attentive._progress import Bar

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Glossary", "Translator"]

Path = Union[str, "os.PathLike[str]"]
Terms = Union[Mapping[str, Union[str, Sequence[str]]], Iterable[tuple[str, Union[str, Sequence[str]]]]]

#: So many different sets of options are kept ready.
_KEPT = 16


class Glossary:
    """Terms that must be translated in a certain way.

    The translation of a text that has one of the terms contains its target, where the model places it. Several targets
    mean that any of them will do.

    >>> import attentive
    >>> terms = attentive.Glossary({"Bahnhof": "depot"})
    >>> "depot" in attentive.Translator("de-en").translate("Wo ist der Bahnhof?", glossary=terms).text
    True
    """

    def __init__(self, terms: Terms, *, exact: bool = False, case_sensitive: bool = False) -> None:
        """From a dict, or from pairs. With ``exact`` other forms of a term (Hund, Hunde) are not matched, with
        ``case_sensitive`` capital letters count."""
        pairs = terms.items() if isinstance(terms, Mapping) else terms
        listed = [(source, [targets] if isinstance(targets, str) else list(targets)) for source, targets in pairs]
        self._native = _attentive.Glossary(listed, exact=exact, case_sensitive=case_sensitive)

    @classmethod
    def open(cls, path: Path) -> "Glossary":
        """From a file: a source term, a tab and a target term in each line; with commas, if its name ends in .csv."""
        glossary = cls.__new__(cls)
        glossary._native = _attentive.Glossary.open(path)
        return glossary

    def __len__(self) -> int:
        return len(self._native)


class Options(TypedDict, total=False):
    """How to translate: what :meth:`Translator.translate` describes. What is None is what is usual for the model."""

    beam: Optional[int]
    n_best: Optional[int]
    glossary: Union[Glossary, Terms, None]
    alignments: Optional[bool]
    tokens: Optional[bool]
    sentences: Optional[bool]
    length_penalty: Optional[float]
    max_length: Optional[int]
    max_source_length: Optional[int]
    allow_repetition: Optional[bool]
    sample: Optional[bool]
    temperature: Optional[float]
    top_k: Optional[int]
    top_p: Optional[float]
    seed: Optional[int]


class Translator:
    """A model that translates.

    >>> import attentive
    >>> translator = attentive.Translator("de-en")
    >>> translator.translate("Guten Morgen!").text
    'Good morning!'
    >>> [str(translation) for translation in translator.translate(["Guten Morgen!", "Danke."])]
    ['Good morning!', 'Thanks.']

    It can be used from any number of threads, and after a fork. While it works, other threads of Python run, and Ctrl-C
    interrupts it.
    """

    def __init__(
        self,
        model: Path,
        *,
        to: Optional[str] = None,
        threads: Optional[int] = None,
        compute: str = "auto",
        shortlist: Optional[Path] = None,
    ) -> None:
        """Opens a model.

        :param model: A built-in model (``"de-en"``, ``"en-de"``), one that ``attentive pull`` has fetched, a model
            directory or training run, or a model of another program: Hugging Face (Marian/OPUS-MT, BART, M2M100), Marian,
            Bergamot, CTranslate2, Argos, fairseq. The latter are imported into the cache the first time.
        :param to: The language to translate into, for models of several.
        :param threads: How many threads translate; one for each core if it is not given.
        :param compute: Numbers to compute with: ``"f32"``, ``"int8"``, ``"f32-int8-output"``, or ``"auto"``, those of the
            model's file.
        :param shortlist: A file of ``attentive shortlist``: the words that may translate a sentence's words.
        """
        self._model = Model(
            model, to=to, threads=threads, compute=compute, shortlist=shortlist, say=_warn
        )
        self._configured: dict[tuple[Any, ...], tuple[Model, Any]] = {}

    @overload
    def translate(  # type: ignore[overload-overlap]
        self,
        text: str,
        *,
        prefix: Optional[str] = None,
        html: bool = False,
        progress: Optional[bool] = None,
        **options: "Unpack[Options]",
    ) -> Translation: ...

    @overload
    def translate(
        self,
        text: Sequence[str],
        *,
        prefix: Union[str, Sequence[str], None] = None,
        html: bool = False,
        progress: Optional[bool] = None,
        **options: "Unpack[Options]",
    ) -> list[Translation]: ...

    def translate(
        self,
        text: Union[str, Sequence[str]],
        *,
        prefix: Union[str, Sequence[str], None] = None,
        html: bool = False,
        progress: Optional[bool] = None,
        **options: "Unpack[Options]",
    ) -> Union[Translation, list[Translation]]:
        """Translates a text, or each text of a list: as many translations, in the same order.

        >>> import attentive
        >>> translator = attentive.Translator("de-en")
        >>> translator.translate("<b>Guten</b> Morgen!", html=True).text
        '<b>Good</b> morning!'

        :param beam: Beam size; 1 is greedy search. What is usual for the model if it is not given (often 4).
        :param n_best: How many translations of each text; the others are its ``alternatives``.
        :param prefix: What translations must start with: one for all, or a list with one for each text.
        :param glossary: Terms that must be translated in a certain way: a dict, pairs, or a :class:`Glossary`.
        :param html: The texts are HTML; tags stay around the words that they belong to.
        :param alignments: Whether translations have word alignments.
        :param tokens: Whether translations list their tokens.
        :param sentences: Whether texts are split into sentences, and web addresses, emoji and CAPITALS kept. What is usual
            for the model if it is not given: yes for built-in models, no for directories.
        :param length_penalty: alpha in score = log-probability / length**alpha.
        :param max_length: The longest translation of a sentence in tokens.
        :param max_source_length: Longer sentences are translated in pieces.
        :param allow_repetition: Leave translations that repeat themselves as they are.
        :param sample: Sample each token by its probability instead of searching for the best, with ``temperature``,
            ``top_k``, ``top_p`` and ``seed``.
        :param progress: Whether long lists show a progress bar (of tqdm, if it is installed); by default on terminals and in
            notebooks.
        """
        model = self._with(options)
        if isinstance(text, str):
            prefixes = None if prefix is None else [_one_prefix(prefix)]
            return model.translate([text], prefixes=prefixes, html=html)[0]
        texts = _listed(text)
        prefixes = _prefixes(prefix, len(texts))
        window = model.window
        if len(texts) <= window:
            return model.translate(texts, prefixes=prefixes, html=html)
        found: list[Translation] = []
        with Bar(len(texts), "text", progress) as bar:
            for begin in range(0, len(texts), window):
                part = slice(begin, begin + window)
                found += model.translate(texts[part], prefixes=prefixes and prefixes[part], html=html)
                bar.add(len(texts[part]))
        return found

    def translate_stream(
        self,
        texts: Iterable[str],
        *,
        prefix: Optional[str] = None,
        html: bool = False,
        progress: Optional[bool] = False,
        window: Optional[int] = None,
        **options: "Unpack[Options]",
    ) -> Iterator[Translation]:
        """Translates texts as they come, any number of them in bounded memory.

        >>> import attentive
        >>> lines = (line for line in ["Guten Morgen!", "Danke."])
        >>> for translation in attentive.Translator("de-en").translate_stream(lines):
        ...     print(translation)
        Good morning!
        Thanks.

        :param window: How many texts are read before they are translated together: few answer sooner, many are faster.
            With 1 each is answered before the next is read. Without it, the first windows are small.

        The other options are those of :meth:`translate`.
        """
        model = self._with(options)  # Options that make no sense are told here, not at the first text.
        if isinstance(texts, str):
            raise TypeError("texts must be an iterable of strings, not a string; translate() takes one string")
        return _stream(model, iter(texts), prefix, html, progress, window)

    def translate_file(
        self,
        input: Path,
        output: Path,
        *,
        format: Optional[str] = None,
        wrapped: str = "auto",
        progress: Optional[bool] = None,
        **options: "Unpack[Options]",
    ) -> FileReport:
        """Translates a file. It is there when it is complete, or not at all.

        Markdown, HTML, XML, SRT, VTT, PO, JSON, YAML, XLIFF, DOCX and ODT keep their layout. Plain text (also gzip'd) is
        translated line by line, in constant memory.

        :param format: The format, if the file's name and content do not say it.
        :param wrapped: Which lines of plain text are joined to paragraphs: ``"auto"`` (those of .txt files that were broken at
            a width), ``"join"`` or ``"lines"`` (none).

        The other options are those of :meth:`translate`, but for ``prefix`` and ``html``.
        """
        model = self._with(options)
        with Bar(None, "B", progress) as bar:
            show = bar.show if bar else None
            return model.translate_file(input, output, format=format, wrapped=wrapped, progress=show)

    @overload
    async def atranslate(  # type: ignore[overload-overlap]
        self, text: str, *, prefix: Optional[str] = None, html: bool = False, **options: "Unpack[Options]"
    ) -> Translation: ...

    @overload
    async def atranslate(
        self,
        text: Sequence[str],
        *,
        prefix: Union[str, Sequence[str], None] = None,
        html: bool = False,
        **options: "Unpack[Options]",
    ) -> list[Translation]: ...

    async def atranslate(
        self,
        text: Union[str, Sequence[str]],
        *,
        prefix: Union[str, Sequence[str], None] = None,
        html: bool = False,
        **options: "Unpack[Options]",
    ) -> Union[Translation, list[Translation]]:
        """As :meth:`translate`, for asyncio: ``await translator.atranslate("Guten Morgen!")``.

        Requests that come together are translated together, so a thousand of single texts are as fast as a list. One that is
        cancelled is not translated, if nobody else waits for its batch.

        >>> import asyncio, attentive
        >>> translator = attentive.Translator("de-en")
        >>> async def main():
        ...     return await asyncio.gather(*map(translator.atranslate, ["Guten Morgen!", "Danke."]))
        >>> [translation.text for translation in asyncio.run(main())]
        ['Good morning!', 'Thanks.']
        """
        model = self._with(options)
        if isinstance(text, str):
            prefixes = None if prefix is None else [_one_prefix(prefix)]
            return (await _batching.translate(model, [text], prefixes, html))[0]
        texts = _listed(text)
        prefixes = _prefixes(prefix, len(texts))
        found: list[Translation] = []
        for begin in range(0, len(texts), _batching.MOST_TEXTS):
            part = slice(begin, begin + _batching.MOST_TEXTS)
            found += await _batching.translate(model, texts[part], prefixes and prefixes[part], html)
        return found

    def attention(self, sentence: str, target: Optional[str] = None, *, beam: Optional[int] = None) -> Attention:
        """The attention weights of a sentence and its translation, or of a target that is given.

        A notebook shows it as a page to look around in; ``numpy.asarray(attention.cross)`` is an array
        ``[layer, head, target token, source token]`` that is not copied.

        >>> import attentive
        >>> attention = attentive.Translator("de-en").attention("Ein Hund rennt.")
        >>> attention.source_tokens[-1]
        '</s>'
        """
        return self._with({"beam": beam}).attention(sentence, target)

    @property
    def name(self) -> str:
        """The model's name, or its directory."""
        return self._model.name

    @property
    def languages(self) -> tuple[Optional[str], Optional[str]]:
        """The codes of the languages that it reads and writes, where they are known."""
        return self._model.languages

    @property
    def threads(self) -> int:
        """How many threads translate."""
        return self._model.threads

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the source; most models have one for both sides."""
        return self._model.tokenizers[0]

    @property
    def target_tokenizer(self) -> Tokenizer:
        """The tokenizer of the target."""
        return self._model.tokenizers[1]

    def __repr__(self) -> str:
        return f"Translator({self.name!r})"

    def _with(self, options: Options) -> Model:
        """The model with these options; those that were used last are kept."""
        if not options:
            return self._model
        given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        if not given:
            return self._model
        glossary = given.get("glossary")
        if glossary is not None:
            glossary = glossary if isinstance(glossary, Glossary) else Glossary(glossary)
            given["glossary"] = glossary._native
        # A glossary is known by its identity, so it is kept beside the model that has it.
        key = tuple((name, id(value) if name == "glossary" else value) for name, value in sorted(given.items()))
        known = self._configured.get(key)
        if known is not None:
            return known[0]
        model = self._model.configured(given)
        if len(self._configured) >= _KEPT:
            self._configured.clear()
        self._configured[key] = (model, given.get("glossary"))
        return model


def _stream(
    model: Model,
    texts: Iterator[str],
    prefix: Optional[str],
    html: bool,
    progress: Optional[bool],
    window: Optional[int],
) -> Iterator[Translation]:
    size = window or 64
    with Bar(None, "text", progress) as bar:
        while True:
            part = list(islice(texts, size))
            if not part:
                return
            yield from model.translate(part, prefixes=_prefixes(prefix, len(part)), html=html)
            bar.add(len(part))
            if window is None:
                size = min(4 * size, model.window)


def _listed(texts: Sequence[str]) -> list[str]:
    return texts if isinstance(texts, list) else list(texts)


def _one_prefix(prefix: Union[str, Sequence[str]]) -> str:
    if isinstance(prefix, str):
        return prefix
    raise TypeError("prefix must be a string where the text is one")


def _prefixes(prefix: Union[str, Sequence[str], None], count: int) -> Optional[list[str]]:
    if prefix is None or isinstance(prefix, str):
        return None if prefix is None else [prefix] * count
    if len(prefix) != count:
        raise ValueError(f"there are {len(prefix)} prefixes for {count} texts; give one for each, or one string for all")
    return list(prefix)


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=3)
