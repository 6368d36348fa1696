//! attentive for Python programs: what Rust does for the package `attentive`.
//!
//! ```text
//! python/attentive/*.py  --->  _attentive (this crate)  --->  runtime, metrics, text, pictures
//! ```
//!
//! Python's side (`python/attentive`) has the documented classes, takes single strings and long lists, and knows asyncio
//! and progress bars; this side has what must be fast. Whoever translates lets go of the GIL and looks for
//! signals every now and then, so that other threads run and Ctrl-C works.
//!
//! - `model`: a model that translates lists, with `options` that come as keywords; `translation` is what comes back.
//! - `files`: files and documents.
//! - `attention`: attention weights, as arrays that are not copied.
//! - `metrics`: the numbers behind `attentive.score`.
//! - `text`: tokenizers, sentence splitting, language detection.
//! - `interrupt`: Ctrl-C, and threads after a fork. `error`: Rust's errors as Python's exceptions.

mod attention;
mod error;
mod files;
mod interrupt;
mod metrics;
mod model;
mod options;
mod text;
mod translation;

use pyo3::prelude::*;

/// As in the binary: a translation needs much memory in small pieces for a short time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule]
mod _attentive {
    #[pymodule_export]
    use crate::attention::{Attention, Weights};
    #[pymodule_export]
    use crate::error::AttentiveError;
    #[pymodule_export]
    use crate::files::FileReport;
    #[pymodule_export]
    use crate::interrupt::Cancel;
    #[pymodule_export]
    use crate::metrics::{Scorer, bleu_scorer, chrf_scorer, compute_bleu, ter_scorer};
    #[pymodule_export]
    use crate::model::{Model, built_in_models};
    #[pymodule_export]
    use crate::options::Glossary;
    #[pymodule_export]
    use crate::text::{Tokenizer, detect_language, split_sentences};
    #[pymodule_export]
    use crate::translation::{Alternative, Translation};

    use pyo3::prelude::*;

    /// The version of the package.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add(
            "SACREBLEU_VERSION",
            attentive_metrics::signature::SACREBLEU_VERSION,
        )
    }
}
