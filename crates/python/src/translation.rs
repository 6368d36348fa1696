//! What comes back: a translation, its alternatives, and what there is to say about them.

use attentive_runtime::search::Finish;
use attentive_runtime::translator;
use pyo3::prelude::*;

/// The translation of one text.
///
/// ``str()`` of it is its text.
///
/// >>> import attentive
/// >>> translation = attentive.Translator("de-en").translate("Guten Morgen!", n_best=3)
/// >>> translation.text
/// 'Good morning!'
/// >>> len(translation.alternatives)
/// 2
#[pyclass(frozen, module = "attentive")]
pub struct Translation(pub translator::Translation);

/// Another translation of the same text, less probable than the best.
#[pyclass(frozen, module = "attentive")]
pub struct Alternative(translator::Alternative);

/// Pairs of source word and target word.
type Links = Vec<(usize, usize)>;

fn finish(finished: Finish) -> &'static str {
    match finished {
        Finish::EndOfSentence => "end_of_sentence",
        Finish::LengthLimit => "length_limit",
        Finish::DeadEnd => "dead_end",
    }
}

fn shown(kind: &str, text: &str, score: f64) -> PyResult<String> {
    let text = Python::attach(|py| text.into_pyobject(py)?.repr()?.extract::<String>())?;
    Ok(format!("{kind}({text}, score={score:.4})"))
}

#[pymethods]
impl Translation {
    /// The translation; empty for an empty text.
    #[getter]
    fn text(&self) -> &str {
        &self.0.text
    }

    /// The log-probability divided by length**length_penalty: nearer to 0 is better. Of several sentences the mean.
    #[getter]
    fn score(&self) -> f64 {
        self.0.score
    }

    /// The log-probability, of all sentences together.
    #[getter]
    fn log_prob(&self) -> f64 {
        self.0.log_prob
    }

    /// Why it ends: 'end_of_sentence', 'length_limit', or 'dead_end' (a damaged model).
    #[getter]
    fn finished(&self) -> &'static str {
        finish(self.0.finished)
    }

    /// The next best ones, best first, if `n_best` asked for more than one.
    #[getter]
    fn alternatives(&self) -> Vec<Alternative> {
        self.0
            .alternatives
            .iter()
            .cloned()
            .map(Alternative)
            .collect()
    }

    /// The word alignment: pairs of source word and target word, from 0; None unless `alignments=True`.
    #[getter]
    fn alignment(&self) -> Option<Links> {
        self.0.alignment.clone()
    }

    /// The tokens that the model wrote; None unless `tokens=True`.
    #[getter]
    fn tokens(&self) -> Option<Vec<String>> {
        self.0.tokens.clone()
    }

    /// How many source tokens the vocabulary does not know.
    #[getter]
    fn unknown(&self) -> usize {
        self.0.unknown
    }

    /// How many source tokens were cut off, because not even a character fits into the model.
    #[getter]
    fn truncated(&self) -> usize {
        self.0.truncated.unwrap_or(0)
    }

    /// Terms of the glossary that it should contain and does not.
    #[getter]
    fn missing_terms(&self) -> Vec<String> {
        self.0.missing_terms.clone()
    }

    /// Whether the first search repeated itself, so that this is from a second, without repeated 3-grams.
    #[getter]
    fn repetition_blocked(&self) -> bool {
        self.0.repetition_blocked
    }

    fn __str__(&self) -> &str {
        &self.0.text
    }

    fn __repr__(&self) -> PyResult<String> {
        shown("Translation", &self.0.text, self.0.score)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

#[pymethods]
impl Alternative {
    /// The translation.
    #[getter]
    fn text(&self) -> &str {
        &self.0.text
    }

    /// As that of the best.
    #[getter]
    fn score(&self) -> f64 {
        self.0.score
    }

    /// The log-probability, of all sentences together.
    #[getter]
    fn log_prob(&self) -> f64 {
        self.0.log_prob
    }

    /// Why it ends: 'end_of_sentence', 'length_limit', or 'dead_end'.
    #[getter]
    fn finished(&self) -> &'static str {
        finish(self.0.finished)
    }

    /// The word alignment; None unless `alignments=True`.
    #[getter]
    fn alignment(&self) -> Option<Links> {
        self.0.alignment.clone()
    }

    /// The tokens that the model wrote; None unless `tokens=True`.
    #[getter]
    fn tokens(&self) -> Option<Vec<String>> {
        self.0.tokens.clone()
    }

    fn __str__(&self) -> &str {
        &self.0.text
    }

    fn __repr__(&self) -> PyResult<String> {
        shown("Alternative", &self.0.text, self.0.score)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
