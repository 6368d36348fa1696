//! A model as something that translates: chosen, opened, loaded, ready.
//!
//! Which model a name means is known to `attentive-catalog`; here is what only a command line has to say about it.
//! On the CPU the runtime's own model translates; on other devices, and where more is asked than
//! translating, it is the network of `attentive-nn` (`network.rs`).

use std::path::Path;

use attentive_catalog::Notice;
use attentive_model::directory::ModelDir;
use attentive_runtime::RuntimeError;
use attentive_runtime::translator::{Translator, TranslatorOptions};

use crate::decoding::ComputeKind;
use crate::exit::Ending;
use crate::terminal::Terminal;

pub use attentive_catalog::{Choice, choose_target};

/// What `--model` means: models of other programs are imported into the cache the first time, which is told.
pub fn of_any(given: &Path, terminal: &Terminal) -> anyhow::Result<Choice> {
    let choice = Choice::of_any(given, |notice| match notice {
        Notice::Importing { source, place } => terminal.note(format_args!(
            "importing {} into {}",
            source.display(),
            place.display()
        )),
        Notice::Warning(warning) => terminal.warn(warning),
    });
    Ok(choice?)
}

/// The CPU's translator for a model.
pub fn translator(
    directory: ModelDir,
    compute: ComputeKind,
    options: TranslatorOptions,
) -> anyhow::Result<Translator> {
    Translator::of_model(directory, compute.into(), options).map_err(named_usage)
}

/// An option that makes no sense with `--device`.
pub fn only_for_the_cpu(what: &str) -> anyhow::Error {
    Ending::Usage(format!("{what} for the CPU: leave out --device")).into()
}

/// Options that make no sense are the user's, and so the wrong usage.
pub fn named_usage(error: RuntimeError) -> anyhow::Error {
    match error {
        RuntimeError::Options(problems) => Ending::Usage(problems.join("\n")).into(),
        other => other.into(),
    }
}
