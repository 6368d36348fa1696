//! Tokenizers, sentence splitting and language detection, as `attentive-text` has them.

use std::path::PathBuf;

use attentive_model::durable;
use attentive_text::language::Detector;
use attentive_text::lines::read_lines;
use attentive_text::{TokenizerOptions, sentences};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::error::raise;
use crate::interrupt::on_all_processors;

/// Text to tokens and back. Unigram and BPE tokenizers give back every string exactly.
///
/// >>> import attentive
/// >>> tokenizer = attentive.Translator("de-en").tokenizer
/// >>> tokenizer.decode(tokenizer.encode("Ein Hund rennt."))
/// 'Ein Hund rennt.'
#[pyclass(frozen, module = "attentive.tokenizer")]
pub struct Tokenizer(pub attentive_text::Tokenizer);

#[pymethods]
impl Tokenizer {
    /// Reads a file: one that was saved here, a model's tokenizer.json, or a SentencePiece model (.model, .spm).
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        attentive_text::Tokenizer::load(path)
            .map(Self)
            .map_err(raise)
    }

    /// Learns a vocabulary from lines of text. The same lines give the same tokenizer, byte by byte.
    #[staticmethod]
    #[pyo3(signature = (lines, *, kind=None, vocab_size=None, min_frequency=None, lowercase=false))]
    fn train(
        py: Python<'_>,
        lines: Vec<String>,
        kind: Option<&str>,
        vocab_size: Option<usize>,
        min_frequency: Option<usize>,
        lowercase: bool,
    ) -> PyResult<Self> {
        let usual = TokenizerOptions::default();
        let options = TokenizerOptions {
            kind: kind.map_or(Ok(usual.kind), str::parse).map_err(raise)?,
            vocab_size: vocab_size.unwrap_or(usual.vocab_size),
            min_frequency: min_frequency.unwrap_or(usual.min_frequency),
            lowercase,
        };
        options.check().map_err(raise)?;
        let learn =
            || attentive_text::Tokenizer::train(&options, &mut lines.iter().map(String::as_str));
        on_all_processors(py, learn)?.map(Self).map_err(raise)
    }

    /// As `train`, from text files, plain or gzip'd.
    #[staticmethod]
    #[pyo3(signature = (files, *, kind=None, vocab_size=None, min_frequency=None, lowercase=false))]
    fn train_files(
        py: Python<'_>,
        files: Vec<PathBuf>,
        kind: Option<&str>,
        vocab_size: Option<usize>,
        min_frequency: Option<usize>,
        lowercase: bool,
    ) -> PyResult<Self> {
        let mut lines = Vec::new();
        for file in files {
            lines.extend(read_lines(&file).map_err(raise)?);
        }
        Self::train(py, lines, kind, vocab_size, min_frequency, lowercase)
    }

    /// The numbers of a text's tokens.
    fn encode(&self, text: &str) -> Vec<u32> {
        self.0.encode(text)
    }

    /// The tokens of a text, as the tokenizer shows them.
    fn pieces(&self, text: &str) -> Vec<String> {
        self.0.pieces(text)
    }

    /// The text of tokens.
    fn decode(&self, ids: Vec<u32>) -> PyResult<String> {
        let size = self.0.vocab_size();
        match ids.iter().find(|&&id| id as usize >= size) {
            Some(id) => Err(PyIndexError::new_err(format!(
                "there is no token {id}: the vocabulary ends at {}",
                size - 1
            ))),
            None => Ok(self.0.decode(&ids)),
        }
    }

    /// The number of a token, or None.
    fn id(&self, token: &str) -> Option<u32> {
        self.0.id(token)
    }

    /// Writes it to a file, whole or not at all.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        let bytes = self.0.to_bytes().map_err(raise)?;
        Ok(durable::write(&path, &bytes)?)
    }

    /// How many tokens there are, the four special ones included.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.0.vocab_size()
    }

    /// 'unigram', 'bpe', 'word', ...
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind().name()
    }

    fn __len__(&self) -> usize {
        self.0.vocab_size()
    }

    fn __repr__(&self) -> String {
        format!("Tokenizer({}, {} tokens)", self.kind(), self.vocab_size())
    }
}

/// The sentences of a text; `language` is a code such as 'de', whose abbreviations count.
///
/// >>> import attentive
/// >>> attentive.split_sentences("Wo ist Dr. Weiß? Er ist da.", "de")
/// ['Wo ist Dr. Weiß?', 'Er ist da.']
#[pyfunction]
#[pyo3(signature = (text, language=None))]
pub fn split_sentences(text: &str, language: Option<&str>) -> Vec<String> {
    let found = sentences::split(text, language).into_iter();
    let texts = found.map(|sentence| sentence.text.to_owned());
    texts.filter(|text| !text.is_empty()).collect()
}

/// The code of a text's language among `languages` and how sure that is, from 0 to 1; None if it has no words.
///
/// >>> import attentive
/// >>> attentive.detect_language("Guten Morgen!", ["de", "en"])[0]
/// 'de'
#[pyfunction]
pub fn detect_language(text: &str, languages: Vec<String>) -> Option<(String, f64)> {
    let detector = Detector::new(languages);
    let best = detector.detect(text).best()?;
    Some((best.language.to_owned(), best.confidence))
}
