//! Everything that can go wrong between a name and an open model.

use std::io;
use std::path::PathBuf;

use attentive_convert::ConvertError;
use attentive_hub::HubError;
use attentive_model::ModelError;
use attentive_runtime::RuntimeError;
use thiserror::Error;

/// A [`std::result::Result`] with a [`CatalogError`].
pub type Result<T> = std::result::Result<T, CatalogError>;

/// What can go wrong between a name and an open model.
#[derive(Debug, Error)]
pub enum CatalogError {
    /// The models that were pulled cannot be read.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// The model directory cannot be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model cannot be used with these options.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// Another program's model cannot be imported.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// There is nothing of this name.
    #[error(
        "{error} Built-in models: {built_in}. `attentive pull` fetches others, `attentive models` lists them."
    )]
    NoSuchModel {
        /// Why it is no model directory.
        error: Box<ModelError>,
        /// The names of the built-in models.
        built_in: String,
    },
    /// The model writes other languages than the one that was asked for.
    #[error("{} does not translate into {target}; it writes {known}", path.display())]
    Target {
        /// The model's directory.
        path: PathBuf,
        /// What was asked for.
        target: String,
        /// What it writes.
        known: String,
    },
    /// Nowhere to import a model into.
    #[error(
        "there is no cache folder to import the model into (ATTENTIVE_CACHE is empty): use `attentive import`"
    )]
    NoCache,
    /// Reading or writing failed below us.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}
