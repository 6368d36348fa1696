"""Attention weights as arrays that are not copied, and as a page."""

import gc
from pathlib import Path

import numpy
import pytest

from attentive import AttentiveError, Translator


def test_weights_are_arrays_of_probabilities(translator: Translator) -> None:
    attention = translator.attention("Ein Hund rennt.")
    assert attention.source == "Ein Hund rennt." and "dog" in attention.text
    source, read, written = attention.source_tokens, attention.read_tokens, attention.target_tokens
    assert source[-1] == written[-1] == "</s>" and read[0] == "<s>" and read[1:] == written[:-1]
    cross = numpy.asarray(attention.cross)
    assert cross.dtype == numpy.float32 and cross.shape == attention.cross.shape
    assert cross.shape[2:] == (len(written), len(source))
    assert numpy.allclose(cross.sum(axis=-1), 1, atol=1e-4)
    encoder, decoder = numpy.asarray(attention.encoder), numpy.asarray(attention.decoder)
    assert encoder.shape[2:] == (len(source),) * 2 and decoder.shape[2:] == (len(read),) * 2
    assert numpy.allclose(numpy.triu(decoder[0, 0], 1), 0), "nobody sees the future"
    assert len(attention.probabilities) == len(written) and max(attention.probabilities) <= 1
    assert attention.cross.tolist() == cross.tolist()
    assert len(attention.cross) == cross.shape[0] and "heads" in repr(attention)


def test_arrays_are_not_copied_and_outlive_the_object(translator: Translator) -> None:
    weights = translator.attention("Ein Hund rennt.").cross
    address = weights.__array_interface__["data"][0]
    array = numpy.asarray(weights)
    assert array.__array_interface__["data"][0] == address == weights.numpy().__array_interface__["data"][0]
    assert not array.flags.writeable and not array.flags.owndata
    expected = array.copy()
    del weights
    gc.collect()
    assert (array == expected).all()


def test_a_given_target_is_written_whatever_the_model_thinks(translator: Translator) -> None:
    attention = translator.attention("Ein Hund rennt.", "A cat sleeps.", beam=1)
    assert attention.text == "A cat sleeps." and min(attention.probabilities) < 0.5


def test_a_notebook_shows_the_page(translator: Translator, tmp_path: Path) -> None:
    attention = translator.attention("Ein Hund rennt.")
    frame, page = attention._repr_html_(), attention.html()
    assert frame.startswith("<iframe") and frame.endswith("</iframe>") and 'srcdoc="<!' in frame.replace("&lt;", "<")
    assert page.startswith("<!") and "default-src 'none'" in page
    inside = frame.split('srcdoc="')[1].split('"')[0]
    assert inside.replace("&quot;", '"').replace("&amp;", "&") == page
    attention.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page


def test_a_sentence_that_cannot_be_shown_is_refused(translator: Translator) -> None:
    with pytest.raises(AttentiveError, match="the sentence is empty"):
        translator.attention(" ")
    with pytest.raises(AttentiveError, match="tokens"):
        translator.attention("Hund " * 400)
