//! Files to files, as [`Translator::translate_file`] does it.

use std::path::PathBuf;

use attentive_runtime::translator::{FileOptions, Translator};
use attentive_text::documents::Format;
use attentive_text::wrapped::Wrapping;
use pyo3::prelude::*;

use crate::error::raise;
use crate::interrupt::{Cancel, without_gil};

/// What became of a file.
#[pyclass(frozen, get_all, module = "attentive")]
pub struct FileReport {
    /// Its format: 'text', 'docx', ...
    format: &'static str,
    /// How many texts it has: lines or paragraphs of plain text, blocks of documents.
    texts: usize,
    /// How many of them came back as they were.
    unchanged: usize,
    /// What holds words and was not translated, with its line and the reason.
    skipped: Vec<(usize, String)>,
}

#[pymethods]
impl FileReport {
    fn __repr__(&self) -> String {
        let Self {
            format,
            texts,
            unchanged,
            skipped,
        } = self;
        format!(
            "FileReport(format={format:?}, texts={texts}, unchanged={unchanged}, skipped={skipped:?})"
        )
    }
}

/// How to translate a file.
pub fn options(format: Option<&str>, wrapped: &str) -> PyResult<FileOptions> {
    let named = |name: &str| {
        Format::named(name).ok_or_else(|| {
            let names: Vec<&str> = Format::all().map(Format::name).collect();
            let names = names.join(", ");
            raise(format!(
                "there is no format {name:?}; known formats are {names}"
            ))
        })
    };
    Ok(FileOptions {
        format: format.map(named).transpose()?,
        wrapping: match wrapped {
            "auto" => None,
            "join" => Some(Wrapping::Join),
            "lines" => Some(Wrapping::Lines),
            other => {
                let problem = format!("`wrapped` is {other:?}; expected 'auto', 'join' or 'lines'");
                return Err(raise(problem));
            }
        },
    })
}

/// Translates a file. An exception of `progress` ends it.
pub fn translate(
    py: Python<'_>,
    translator: &Translator,
    (input, output): (PathBuf, PathBuf),
    options: FileOptions,
    progress: Option<Py<PyAny>>,
) -> PyResult<FileReport> {
    let cancel = Cancel::default();
    let mut raised = None;
    let told = |done: u64, all: Option<u64>| {
        let Some(progress) = &progress else { return };
        let called = Python::attach(|py| progress.call1(py, (done, all)));
        if let Err(error) = called {
            raised.get_or_insert(error);
            cancel.cancel();
        }
    };
    let report = without_gil(py, Some(&cancel), |stop| {
        let translator = translator.stopped_by(stop);
        translator.translate_file(&input, &output, options, told)
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let report = report?.map_err(raise)?;
    Ok(FileReport {
        format: report.format.name(),
        texts: report.texts,
        unchanged: report.unchanged,
        skipped: report.skipped,
    })
}
