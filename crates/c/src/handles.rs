//! What is behind the opaque types of the header.

use std::ffi::CString;
use std::path::Path;

use attentive_catalog::Choice;
use attentive_runtime::cpu::Compute;
use attentive_runtime::translator::{Translation, Translator};

/// A model that translates.
pub struct AttentiveTranslator(Translator);

/// Translations of several texts.
pub struct AttentiveTranslations(Vec<Vec<(CString, f64)>>);

impl AttentiveTranslator {
    pub(crate) fn open(model: &Path, threads: Option<usize>) -> Result<Self, String> {
        let open = || -> attentive_catalog::Result<Translator> {
            let choice = Choice::of_any(model, |_| {})?;
            let directory = choice.open()?;
            let mut options = choice.options(&directory)?;
            options.threads = threads;
            Ok(Translator::of_model(directory, Compute::Auto, options)?)
        };
        open().map(Self).map_err(|error| error.to_string())
    }

    /// With the options that are usual for it.
    pub(crate) fn usual(&self) -> &Translator {
        &self.0
    }

    /// With this beam size and number of hypotheses.
    pub(crate) fn with(&self, beam: Option<usize>, n_best: usize) -> Result<Translator, String> {
        let mut options = self.0.options().clone();
        options.search.ask_for(beam, n_best);
        let translator = self.0.with_options(options);
        translator.map_err(|error| error.to_string())
    }
}

impl AttentiveTranslations {
    pub(crate) fn new(found: Vec<Translation>) -> Self {
        // A text of C's cannot hold a NUL, which a model of bytes may write.
        let text = |text: String| CString::new(text.replace('\0', " ")).unwrap_or_default();
        let hypotheses = |one: Translation| {
            let others = one.alternatives.into_iter();
            let others = others.map(|other| (text(other.text), other.score));
            std::iter::once((text(one.text), one.score))
                .chain(others)
                .collect()
        };
        Self(found.into_iter().map(hypotheses).collect())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The translations of a text with their scores, best first; none if there is no such text.
    pub(crate) fn hypotheses(&self, number: usize) -> &[(CString, f64)] {
        self.0.get(number).map_or(&[], Vec::as_slice)
    }
}
