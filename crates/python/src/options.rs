//! Options of a call: keywords of Python's to [`TranslatorOptions`].
//!
//! What is not given is what is usual for the model, as on the command line.

use std::path::PathBuf;
use std::sync::Arc;

use attentive_runtime::search::{Method, Sampling};
use attentive_runtime::translator::{Lines, Repetition, TranslatorOptions};
use attentive_text::glossary::{Case, Entry, Forms};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::raise;

/// Terms that must be translated in a certain way.
///
/// >>> import attentive
/// >>> terms = attentive.Glossary({"Bahnhof": "depot"})
/// >>> attentive.Translator("de-en").translate("Wo ist der Bahnhof?", glossary=terms).text
/// 'Where is the depot?'
#[pyclass(frozen, module = "attentive")]
pub struct Glossary(Arc<attentive_text::Glossary>);

#[pymethods]
impl Glossary {
    /// From pairs of a source term and its translations, of which any will do. With `exact` other forms of a term
    /// (Hund, Hunde) are not matched, with `case_sensitive` capital letters count.
    #[new]
    #[pyo3(signature = (terms, *, exact=false, case_sensitive=false))]
    fn new(terms: Vec<(String, Vec<String>)>, exact: bool, case_sensitive: bool) -> PyResult<Self> {
        let mut glossary = attentive_text::Glossary::default();
        for (source, targets) in terms {
            let mut entry = Entry::new(&source, targets);
            if exact {
                entry.forms = Forms::Exact;
            }
            if case_sensitive {
                entry.case = Case::Kept;
            }
            glossary
                .add(entry)
                .map_err(|reason| raise(format!("{source:?}: {reason}")))?;
        }
        Ok(Self(Arc::new(glossary)))
    }

    /// From a file: a source term, a tab and a target term in each line; with commas, if its name ends in .csv.
    #[staticmethod]
    fn open(path: PathBuf) -> PyResult<Self> {
        let glossary = attentive_text::Glossary::open(path).map_err(raise)?;
        Ok(Self(Arc::new(glossary)))
    }

    fn __len__(&self) -> usize {
        self.0.entries().len()
    }
}

/// The options of a call by their names: how a name becomes an option is what [`asked`] says.
const NAMES: [&str; 15] = [
    "beam",
    "n_best",
    "length_penalty",
    "max_length",
    "max_source_length",
    "sentences",
    "alignments",
    "tokens",
    "allow_repetition",
    "glossary",
    "sample",
    "temperature",
    "top_k",
    "top_p",
    "seed",
];

/// The usual options, and what was asked for in their places.
pub fn asked(usual: &TranslatorOptions, given: &Bound<'_, PyDict>) -> PyResult<TranslatorOptions> {
    let mut options = usual.clone();
    let (mut beam, mut n_best) = (None, None);
    let (mut sample, mut sampling) = (false, Sampling::default());
    for (name, value) in given {
        let name: String = name.extract()?;
        let search = &mut options.search;
        match name.as_str() {
            "beam" => beam = Some(value.extract()?),
            "n_best" => n_best = Some(value.extract()?),
            "length_penalty" => search.length_penalty = value.extract()?,
            "max_length" => search.max_length.cap = Some(value.extract()?),
            "max_source_length" => options.max_source_tokens = value.extract()?,
            "sentences" if value.extract()? => options.lines = Lines::RawText,
            "sentences" => options.lines = Lines::Whole,
            "alignments" => options.alignments = value.extract()?,
            "tokens" => options.tokens = value.extract()?,
            "allow_repetition" if value.extract()? => options.repetition = Repetition::Allow,
            "allow_repetition" => options.repetition = Repetition::Block,
            "glossary" => options.glossary = Some(value.cast::<Glossary>()?.get().0.clone()),
            "sample" => sample = value.extract()?,
            "temperature" => sampling.temperature = value.extract()?,
            "top_k" => sampling.top_k = Some(value.extract()?),
            "top_p" => sampling.top_p = Some(value.extract()?),
            "seed" => sampling.seed = value.extract()?,
            unknown => {
                return Err(PyTypeError::new_err(format!(
                    "unknown option {unknown:?}; the options are {}",
                    NAMES.join(", ")
                )));
            }
        }
    }
    if beam.is_some() || n_best.is_some() {
        let usual = options.search.n_best;
        options.search.ask_for(beam, n_best.unwrap_or(usual));
    }
    if sample {
        options.search.method = Method::Sample(sampling);
    }
    Ok(options)
}
