//! Everything that can go wrong between a model directory and a translation.

use std::io;
use std::path::PathBuf;

use attentive_model::ModelError;
use attentive_text::error::TextError;
use thiserror::Error;

/// A [`std::result::Result`] with a [`RuntimeError`].
pub type Result<T> = std::result::Result<T, RuntimeError>;

/// What can go wrong between a model directory and a translation.
#[derive(Debug, Error)]
pub enum RuntimeError {
    /// The model directory cannot be used; the message names the file and the remedy.
    #[error(transparent)]
    Model(#[from] ModelError),

    /// A draft that cuts text in another way than the model that it is for.
    #[error(
        "the draft {} has another tokenizer for {side} than the model; a draft must be trained on the same \
         files with the same [tokenizer] options",
        path.display()
    )]
    Draft {
        /// `the source` or `the target`.
        side: &'static str,
        /// The draft's directory.
        path: PathBuf,
    },

    /// Reading or writing failed below us.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },

    /// Whoever waited for a call asked it to stop.
    #[error("the call was stopped before its end")]
    Stopped,

    /// Search or translator options that make no sense.
    #[error("{}", .0.join("\n"))]
    Options(Vec<String>),
}

impl From<TextError> for RuntimeError {
    fn from(error: TextError) -> Self {
        ModelError::from(error).into()
    }
}
