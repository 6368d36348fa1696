//! A model that translates lists of texts: the native half of `attentive.Translator`.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use attentive_catalog::{Choice, Notice};
use attentive_model::Shortlist;
use attentive_runtime::cpu::Compute;
use attentive_runtime::translator::{Translator, WithPrefix};
use attentive_text::markup::{Page, Syntax};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::attention::Attention;
use crate::error::raise;
use crate::files::{self, FileReport};
use crate::interrupt::{Cancel, Process, is_in_call, without_gil};
use crate::options::asked;
use crate::text::Tokenizer;
use crate::translation::Translation;

/// A model and how it is used. Models with other options share its weights and threads.
#[pyclass(frozen, module = "attentive._attentive")]
pub struct Model {
    name: String,
    translator: Mutex<Arc<Translator>>,
    process: Process,
}

/// The names of the models that are part of the package.
#[pyfunction]
pub fn built_in_models() -> Vec<&'static str> {
    attentive_models::ALL
        .iter()
        .map(|model| model.name)
        .collect()
}

#[pymethods]
impl Model {
    /// Opens a model: a name, a directory, or what another program wrote. Notices of an import go to `say`.
    #[new]
    #[pyo3(signature = (model, *, to=None, threads=None, compute="auto", shortlist=None, say=None))]
    fn new(
        py: Python<'_>,
        model: PathBuf,
        to: Option<String>,
        threads: Option<usize>,
        compute: &str,
        shortlist: Option<PathBuf>,
        say: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let compute: Compute = compute
            .parse()
            .map_err(|problem| raise(format!("`compute`: {problem}")))?;
        let opened = without_gil(py, None, |_| open(model, to, threads, compute, shortlist))?;
        let (name, translator, notices) = opened.map_err(raise)?;
        if let Some(say) = say {
            for notice in notices {
                say.call1(py, (notice,))?;
            }
        }
        Ok(Self::of(name, translator))
    }

    /// The same model with other options.
    fn configured(&self, given: &Bound<'_, PyDict>) -> PyResult<Self> {
        let translator = self.translator();
        let options = asked(translator.options(), given)?;
        let translator = translator.with_options(options).map_err(raise)?;
        Ok(Self::of(self.name.clone(), translator))
    }

    /// One translation for each text. `prefixes` are what they must start with, `html` says that they are HTML.
    #[pyo3(signature = (texts, *, prefixes=None, html=false, cancel=None))]
    fn translate(
        &self,
        py: Python<'_>,
        texts: Vec<String>,
        prefixes: Option<Vec<String>>,
        html: bool,
        cancel: Option<&Cancel>,
    ) -> PyResult<Vec<Translation>> {
        let translator = self.translator();
        if html && prefixes.is_some() {
            return Err(raise(
                "a prefix belongs to a sentence, and a page has many: leave out `prefix` or `html`",
            ));
        }
        let found = without_gil(py, cancel, move |stop| {
            let translator = translator.stopped_by(stop);
            if html {
                let page = |text: String| Page::read(text, &Syntax::Html);
                let pages: Vec<Page> = texts.into_iter().map(page).collect();
                return translator.translate_pages(&pages);
            }
            let Some(prefixes) = prefixes else {
                return translator.translate(&texts);
            };
            let lines = texts.into_iter().zip(prefixes);
            let lines: Vec<WithPrefix> = lines
                .map(|(text, prefix)| WithPrefix { text, prefix })
                .collect();
            translator.translate(&lines)
        })?;
        Ok(found.into_iter().map(Translation).collect())
    }

    /// Translates a file; `progress` is called with the bytes that were read and those that there are.
    #[pyo3(signature = (input, output, *, format=None, wrapped="auto", progress=None))]
    fn translate_file(
        &self,
        py: Python<'_>,
        input: PathBuf,
        output: PathBuf,
        format: Option<&str>,
        wrapped: &str,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<FileReport> {
        let options = files::options(format, wrapped)?;
        files::translate(py, &self.translator(), (input, output), options, progress)
    }

    /// The attention weights of a sentence and its translation, or of a given one.
    #[pyo3(signature = (sentence, target=None))]
    fn attention(
        &self,
        py: Python<'_>,
        sentence: String,
        target: Option<String>,
    ) -> PyResult<Attention> {
        let (translator, name) = (self.translator(), self.name.clone());
        let work = move |_| Attention::of(&translator, name, &sentence, target.as_deref());
        without_gil(py, None, work)?
    }

    /// The tokenizers of the source and of the target.
    #[getter]
    fn tokenizers(&self) -> (Tokenizer, Tokenizer) {
        let tokenizers = self.translator().tokenizers().clone();
        (Tokenizer(tokenizers.src), Tokenizer(tokenizers.tgt))
    }

    /// Its name, or its directory.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The codes of the languages that it reads and writes, where they are known.
    #[getter]
    fn languages(&self) -> (Option<String>, Option<String>) {
        let translator = self.translator();
        let options = translator.options();
        (
            options.source_language.clone(),
            options.target_language.clone(),
        )
    }

    /// How many threads translate.
    #[getter]
    fn threads(&self) -> usize {
        self.translator().engine().threads()
    }

    /// How many texts of a stream are translated together.
    #[getter]
    fn window(&self) -> usize {
        self.translator().options().window
    }
}

impl Model {
    fn of(name: String, translator: Translator) -> Self {
        Self {
            name,
            translator: Mutex::new(Arc::new(translator)),
            process: Process::here(),
        }
    }

    /// The translator, with threads of this process that wait for nobody else here. Called with the GIL, as are all who
    /// fork, so that no child finds the mutex locked.
    fn translator(&self) -> Arc<Translator> {
        let mut translator = self
            .translator
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.process.has_changed() {
            let old = translator.clone();
            *translator = Arc::new(old.after_fork());
        }
        if is_in_call() {
            return Arc::new(translator.after_fork());
        }
        translator.clone()
    }
}

type Opened = (String, Translator, Vec<String>);

fn open(
    model: PathBuf,
    to: Option<String>,
    threads: Option<usize>,
    compute: Compute,
    shortlist: Option<PathBuf>,
) -> attentive_catalog::Result<Opened> {
    let mut notices = Vec::new();
    let mut choice = Choice::of_any(&model, |notice| {
        notices.push(match notice {
            Notice::Importing { source, place } => {
                format!("importing {} into {}", source.display(), place.display())
            }
            Notice::Warning(warning) => warning,
        });
    })?;
    let name = choice.name();
    if let Some(to) = to {
        choice = Choice::Into(Box::new(choice), to);
    }
    let directory = choice.open()?;
    let mut options = choice.options(&directory)?;
    options.threads = threads;
    if let Some(path) = shortlist {
        options.shortlist = Some(Arc::new(Shortlist::open(path)?));
    }
    let translator = Translator::of_model(directory, compute, options)?;
    Ok((name, translator, notices))
}
