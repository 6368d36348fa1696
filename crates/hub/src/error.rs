//! Everything that can go wrong between the hub and a model in the store.
//!
//! Each message names what was asked for, what was found and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use attentive_model::ModelError;
use thiserror::Error;

/// A [`std::result::Result`] with a [`HubError`].
pub type Result<T> = std::result::Result<T, HubError>;

/// What can go wrong.
#[derive(Debug, Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum HubError {
    #[error(
        "`{name}` names no model: {reason}\n\
         Use a pair of languages (fr-en) or ORGANIZATION/NAME (Helsinki-NLP/opus-mt-fr-en)."
    )]
    Name { name: String, reason: String },

    #[error("the environment variable {name} is {value:?}: {expected}")]
    Environment {
        name: &'static str,
        value: String,
        expected: &'static str,
    },

    #[error(
        "no folder is known to keep models in: neither HOME nor XDG folders are set; \
         name one in {variable}"
    )]
    NoFolder { variable: &'static str },

    #[error("{endpoint} has no model {}{}", names.join(" and no "), did_you_mean(similar))]
    NotFound {
        endpoint: String,
        names: Vec<String>,
        similar: Vec<String>,
    },

    #[error("{url}: access is denied (HTTP {status}); {remedy}")]
    Denied {
        url: String,
        status: u16,
        remedy: &'static str,
    },

    #[error("{url}: the server answers HTTP {status}{}; try again later", times(*attempts))]
    Status {
        url: String,
        status: u16,
        attempts: u32,
    },

    #[error(
        "cannot reach {url}{}: {reason}\n\
         Check the network and HF_ENDPOINT; what is in the cache can be used with HF_HUB_OFFLINE=1. \
         A download that was interrupted goes on where it ended.",
        times(*attempts)
    )]
    Network {
        url: String,
        reason: String,
        attempts: u32,
    },

    #[error("{url}: {reason}; is HF_ENDPOINT a server with the layout of the Hugging Face hub?")]
    BadAnswer { url: String, reason: String },

    #[error("{url} has {found} bytes, more than the {limit} that such a file may have")]
    TooLarge { url: String, found: u64, limit: u64 },

    #[error("{url}: {expected} bytes were announced, but {found} came; try again later")]
    Length {
        url: String,
        expected: u64,
        found: u64,
    },

    #[error(
        "{url}: the content is damaged: its checksum is {found}, but {expected} was announced\n\
         It was fetched twice; nothing of it is kept. Try again later."
    )]
    Checksum {
        url: String,
        expected: String,
        found: String,
    },

    #[error("{repository} holds no model that can be read here: {reason}")]
    NoModel { repository: String, reason: String },

    #[error(
        "HF_HUB_OFFLINE forbids the network, and {} of {repository} is not in the cache {}\n\
         Pull it once with the network, or name another cache in HF_HUB_CACHE.",
        file, cache.display()
    )]
    Offline {
        repository: String,
        file: String,
        cache: PathBuf,
    },

    #[error(
        "the disk is full: cannot write {}\nFree some space and try again; a download goes on where it ended.",
        path.display()
    )]
    DiskFull { path: PathBuf },

    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },

    #[error("no model `{name}` was pulled{}", did_you_mean(similar))]
    NotStored { name: String, similar: Vec<String> },

    #[error(transparent)]
    Model(#[from] ModelError),
}

impl HubError {
    /// For `map_err`: what was tried on which file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |source| {
            let path = path.clone();
            if source.kind() == io::ErrorKind::StorageFull {
                Self::DiskFull { path }
            } else {
                Self::Io {
                    action,
                    path,
                    source,
                }
            }
        }
    }
}

/// The candidates that are spelled most like `asked`, at most three.
pub(crate) fn similar(asked: &str, candidates: impl IntoIterator<Item = String>) -> Vec<String> {
    let near = |candidate: &str| strsim::jaro_winkler(asked, candidate);
    let mut candidates: Vec<String> = candidates.into_iter().collect();
    candidates.sort_by(|a, b| near(b).total_cmp(&near(a)).then_with(|| a.cmp(b)));
    candidates.dedup();
    candidates.retain(|candidate| near(candidate) > 0.7);
    candidates.truncate(3);
    candidates
}

fn did_you_mean(similar: &[String]) -> String {
    match similar {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}

fn times(attempts: u32) -> String {
    match attempts {
        0 | 1 => String::new(),
        _ => format!(" ({attempts} times)"),
    }
}
