//! Attention weights for Python: arrays that numpy takes as they are, and the page to look around in.
//!
//! `attentive-pictures` runs the model and writes the page.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use attentive_pictures::from_model::Target;
use attentive_pictures::map::Map;
use attentive_pictures::page;
use attentive_pictures::record::{Kind, Record, Side};
use attentive_pictures::selection::{Heads, Selection, Unit};
use attentive_pictures::sheet::Heading;
use attentive_runtime::translator::Translator;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::raise;

/// All attention weights of a sentence and its translation. In a notebook it shows itself as a page to look around in.
///
/// >>> import attentive
/// >>> attention = attentive.Translator("de-en").attention("Ein Hund rennt.")
/// >>> attention.text
/// 'A dog is running.'
/// >>> layers, heads, written, source = attention.cross.shape
#[pyclass(frozen, module = "attentive")]
pub struct Attention {
    record: Record,
    model: String,
    encoder: Py<Weights>,
    decoder: Py<Weights>,
    cross: Py<Weights>,
}

/// Attention weights `[layer, head, query, key]`. `numpy.asarray` shows them without a copy.
#[pyclass(frozen, module = "attentive")]
pub struct Weights {
    shape: [usize; 4],
    numbers: Arc<[f32]>,
}

impl Attention {
    pub fn of(
        translator: &Translator,
        model: String,
        sentence: &str,
        target: Option<&str>,
    ) -> PyResult<Self> {
        let mut search = translator.options().search.clone();
        search.n_best = 1;
        let target = match target {
            Some(text) => Target::Given(text),
            None => Target::Translation(&search, translator.options().shortlist.as_deref()),
        };
        let (model_here, tokenizers) = (translator.model(), translator.tokenizers());
        let record = Record::of(model_here, tokenizers, sentence, target).map_err(raise)?;
        let weights = |layers: &[Vec<Map>]| Python::attach(|py| Py::new(py, Weights::of(layers)));
        Ok(Self {
            encoder: weights(&record.encoder)?,
            decoder: weights(&record.decoder)?,
            cross: weights(&record.cross)?,
            record,
            model,
        })
    }

    fn tokens(side: &Side) -> Vec<String> {
        side.tokens.iter().map(|token| token.text.clone()).collect()
    }
}

#[pymethods]
impl Attention {
    /// The sentence.
    #[getter]
    fn source(&self) -> &str {
        &self.record.source_text
    }

    /// Its translation.
    #[getter]
    fn text(&self) -> &str {
        &self.record.target_text
    }

    /// The tokens that the encoder read, `</s>` last: the keys of `encoder` and `cross`.
    #[getter]
    fn source_tokens(&self) -> Vec<String> {
        Self::tokens(&self.record.source)
    }

    /// The tokens that the decoder read, `<s>` first: queries and keys of `decoder`.
    #[getter]
    fn read_tokens(&self) -> Vec<String> {
        Self::tokens(&self.record.read)
    }

    /// The tokens that the decoder wrote, `</s>` last: the queries of `cross`.
    #[getter]
    fn target_tokens(&self) -> Vec<String> {
        Self::tokens(&self.record.written)
    }

    /// The probability that the model gave to each token that it wrote.
    #[getter]
    fn probabilities(&self) -> Vec<f32> {
        self.record
            .steps
            .iter()
            .map(|step| step.probability)
            .collect()
    }

    /// Encoder self-attention.
    #[getter]
    fn encoder(&self, py: Python<'_>) -> Py<Weights> {
        self.encoder.clone_ref(py)
    }

    /// Decoder self-attention; no layers where the decoder is recurrent.
    #[getter]
    fn decoder(&self, py: Python<'_>) -> Py<Weights> {
        self.decoder.clone_ref(py)
    }

    /// Cross-attention, from the tokens that were written to those of the source.
    #[getter]
    fn cross(&self, py: Python<'_>) -> Py<Weights> {
        self.cross.clone_ref(py)
    }

    /// The page to look around in: one HTML document that needs no network.
    fn html(&self) -> PyResult<String> {
        let heading = Heading {
            source: self.record.source_text.clone(),
            target: self.record.target_text.clone(),
            model: self.model.clone(),
        };
        let selection = Selection {
            kinds: Kind::ALL.to_vec(),
            layer: None,
            heads: Heads::All,
            unit: Unit::Tokens,
        };
        page::write(&self.record, &heading, &selection).map_err(raise)
    }

    /// Writes the page to a file.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        Ok(fs::write(path, self.html()?)?)
    }

    /// The page in a frame, which notebooks show.
    fn _repr_html_(&self) -> PyResult<String> {
        let page = self.html()?.replace('&', "&amp;").replace('"', "&quot;");
        Ok(format!(
            "<iframe title=\"Attention\" sandbox=\"allow-scripts\" srcdoc=\"{page}\" \
             style=\"width: 100%; height: 720px; border: 0\"></iframe>"
        ))
    }

    fn __repr__(&self) -> String {
        let [layers, heads, ..] = self.cross.get().shape;
        format!(
            "Attention({:?} -> {:?}, {layers} layers, {heads} heads)",
            self.record.source_text, self.record.target_text
        )
    }
}

impl Weights {
    fn of(layers: &[Vec<Map>]) -> Self {
        let heads = || layers.iter().flatten();
        let (rows, cols) = heads()
            .next()
            .map_or((0, 0), |map| (map.rows(), map.cols()));
        let numbers = heads().flat_map(|map| map.weights()).copied();
        Self {
            shape: [layers.len(), layers.first().map_or(0, Vec::len), rows, cols],
            numbers: numbers.collect(),
        }
    }
}

#[pymethods]
impl Weights {
    /// Layers, heads, queries, keys.
    #[getter]
    fn shape(&self) -> (usize, usize, usize, usize) {
        self.shape.into()
    }

    /// What numpy asks for: where the numbers are. They stay there as long as the array exists.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", self.shape())?;
        let order = if cfg!(target_endian = "little") {
            '<'
        } else {
            '>'
        };
        interface.set_item("typestr", format!("{order}f4"))?;
        interface.set_item("data", (self.numbers.as_ptr().addr(), true))?;
        Ok(interface)
    }

    /// The same numbers as a numpy array, without a copy.
    fn numpy<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("numpy")?.call_method1("asarray", (slf,))
    }

    /// The numbers as lists of lists of lists of lists.
    fn tolist(&self) -> Vec<Vec<Vec<Vec<f32>>>> {
        let [_, heads, rows, cols] = self.shape;
        let grid = |numbers: &[f32]| numbers.chunks(cols.max(1)).map(<[f32]>::to_vec).collect();
        let layer = |numbers: &[f32]| numbers.chunks((rows * cols).max(1)).map(grid).collect();
        let layers = self.numbers.chunks((heads * rows * cols).max(1));
        layers.map(layer).collect()
    }

    fn __len__(&self) -> usize {
        self.shape[0]
    }

    fn __repr__(&self) -> String {
        let [layers, heads, queries, keys] = self.shape;
        format!("Weights({layers} layers, {heads} heads, {queries} queries, {keys} keys)")
    }
}
