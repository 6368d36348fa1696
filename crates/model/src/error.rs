//! Everything that can go wrong with a model directory.
//!
//! Each message names the file, what was expected, what was found and what to do about it.

use std::path::{Path, PathBuf};

use attentive_text::error::TextError;
use thiserror::Error;

use crate::config::Family;

/// A [`std::result::Result`] with a [`ModelError`].
pub type Result<T> = std::result::Result<T, ModelError>;

/// What can go wrong with a model directory.
#[derive(Debug, Error)]
pub enum ModelError {
    /// Reading or writing failed below us: permissions, a full disk, a missing file.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried: `read`, `write`, ...
        action: &'static str,
        /// The file it was tried on.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },

    /// The directory holds neither a model nor a training run.
    #[error(
        "{} is not a model directory: {found}\n\
         A model directory holds config.json, model.safetensors and tokenizer.json (or \
         src.tokenizer.json and tgt.tokenizer.json); a training run holds such a directory as \
         `best` or `last`. Train one, or give the path of one.",
        path.display()
    )]
    NotAModel {
        /// The directory that was asked for.
        path: PathBuf,
        /// What is there instead.
        found: String,
    },

    /// `config.json` is not JSON of the kind we write.
    #[error("{}: {reason}\nRestore the file from the training run that made it.", path.display())]
    BadConfigFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, with the line where JSON knows one.
        reason: String,
    },

    /// `config.json` comes from another generation of this program.
    #[error(
        "{} has format {found}, but this program reads format {expected}; \
         use the version of the program that wrote it, or train the model again",
        path.display()
    )]
    ConfigFormat {
        /// The file.
        path: PathBuf,
        /// The format it states.
        found: String,
        /// The format we read.
        expected: u64,
    },

    /// `generation.json` says something that cannot be.
    #[error(
        "{} cannot be used:\n  {}\nCorrect it, or remove it to translate without it.",
        path.display(),
        problems.join("\n  ")
    )]
    BadGeneration {
        /// The file.
        path: PathBuf,
        /// Every problem found.
        problems: Vec<String>,
    },

    /// The model is of another family than the one that is needed.
    #[error(
        "{} describes a model of the family `{found}`, but `{expected}` is needed here{}",
        path.display(),
        usage(found)
    )]
    WrongFamily {
        /// The file.
        path: PathBuf,
        /// The family it states.
        found: String,
        /// The family that is needed.
        expected: &'static str,
    },

    /// The architecture contradicts itself.
    #[error("{} describes an impossible model:\n  {}", path.display(), problems.join("\n  "))]
    ImpossibleModel {
        /// The file that describes it.
        path: PathBuf,
        /// Every problem found.
        problems: Vec<String>,
    },

    /// The tokenizer and the model disagree about the number of tokens.
    #[error(
        "{side} tokenizer{} has {tokenizer} tokens, but the model expects {model}; \
         use the tokenizer the model was trained with",
        path.as_ref().map(|path| format!(" of {}", path.display())).unwrap_or_default()
    )]
    VocabularyMismatch {
        /// `the source` or `the target`.
        side: &'static str,
        /// The model directory, where there is one.
        path: Option<PathBuf>,
        /// Tokens in the tokenizer.
        tokenizer: usize,
        /// Tokens in the model.
        model: usize,
    },

    /// A tokenizer file could not be read or written; the text crate names the file.
    #[error(transparent)]
    Tokenizer(#[from] TextError),

    /// The weights file is truncated or not safetensors.
    #[error(
        "{} is damaged ({reason}); copy it again or go back to an earlier checkpoint",
        path.display()
    )]
    DamagedWeights {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },

    /// The weights file lacks a tensor of the model.
    #[error(
        "{} has no tensor `{name}` among its {count}; it belongs to another architecture: \
         keep config.json and the weights of one model together",
        path.display()
    )]
    MissingTensor {
        /// The file.
        path: PathBuf,
        /// The tensor that was asked for.
        name: String,
        /// How many tensors the file has.
        count: usize,
    },

    /// A tensor is stored in a number format that we do not read.
    #[error(
        "{}: tensor `{name}` is stored as {found}, expected {expected}; convert the file to {expected}",
        path.display()
    )]
    WrongNumberFormat {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Its number format.
        found: String,
        /// The one that we can use there.
        expected: String,
    },

    /// A tensor does not fit the architecture.
    #[error(
        "{}: tensor `{name}` has shape {found:?}, expected {expected:?}; it belongs to another \
         architecture: keep config.json and the weights of one model together",
        path.display()
    )]
    WrongShape {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// The shape that config.json asks for.
        expected: Vec<usize>,
        /// The shape it has.
        found: Vec<usize>,
    },

    /// The weights cannot be computed with in the way asked for.
    #[error("{}: {reason}", path.display())]
    WrongCompute {
        /// The weights file.
        path: PathBuf,
        /// What stands against it, and what to do.
        reason: String,
    },

    /// A file is not a shortlist, or not a whole one.
    #[error(
        "{} is not a shortlist that this program can use: {reason}; \
         learn it again with `attentive shortlist`",
        path.display()
    )]
    BadShortlist {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },

    /// A shortlist was learned with other tokenizers than the model's.
    #[error(
        "{} belongs to another model: {reason}; \
         learn one for this model with `attentive shortlist`",
        path.display()
    )]
    ForeignShortlist {
        /// The file.
        path: PathBuf,
        /// In what it differs.
        reason: String,
    },

    /// A tensor that should be written has a shape that does not fit its values, or a name twice.
    #[error("cannot write tensor `{name}` to {}: {reason}", path.display())]
    UnwritableTensor {
        /// The file that was to be written.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// What does not fit.
        reason: String,
    },
}

impl ModelError {
    /// Wraps what the operating system said about a file.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ModelError {
        let path = path.to_path_buf();
        move |source| ModelError::Io {
            action,
            path,
            source,
        }
    }
}

/// What a model of this family is for, if this program knows the family.
fn usage(family: &str) -> String {
    let known = Family::ALL.into_iter().find(|known| known.name() == family);
    known.map_or_else(String::new, |known| format!("; {}", known.usage()))
}
