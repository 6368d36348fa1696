//! Everything that can go wrong with another program's model.
//!
//! Each message names the file, the place in it, what was expected, what was found and what to do about it.

use std::path::{Path, PathBuf};

use attentive_model::ModelError;
use attentive_text::error::TextError;
use thiserror::Error;

/// A [`std::result::Result`] with a [`ConvertError`].
pub type Result<T> = std::result::Result<T, ConvertError>;

/// What can go wrong with another program's model.
#[derive(Debug, Error)]
pub enum ConvertError {
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

    /// A file is truncated, changed or of another format than its name says.
    #[error(
        "{} is not a whole {format} file: {place}: expected {expected}, found {found}; \
         copy or download the file again",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The format that it was read as.
        format: &'static str,
        /// Where: a byte offset or the name of a tensor.
        place: String,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },

    /// A file is what it says it is, but holds something that this program does not read.
    #[error("{}: {place}: {found} cannot be read; {remedy}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Where: a byte offset or the name of a tensor.
        place: String,
        /// What is there.
        found: String,
        /// What is read instead, and how to get there.
        remedy: String,
    },

    /// A pickle asks for something other than plain weights. Nothing in a pickle is ever executed.
    #[error(
        "{}: {place}: the pickle asks for `{global}`, which this program never executes; \
         save the plain state dict of the model, best as safetensors",
        path.display()
    )]
    ForbiddenGlobal {
        /// The file.
        path: PathBuf,
        /// Where it is asked for: a byte offset.
        place: String,
        /// Module and name of the Python object.
        global: String,
    },

    /// Reading the file would take more memory than a file of this size may take.
    #[error(
        "{}: {place} would need {needed} more bytes, but {left} are left of the {limit} that reading a file \
         of this size may take; the file is damaged or made to fill the memory",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Where: a byte offset or the name of a tensor.
        place: String,
        /// How many bytes are needed.
        needed: usize,
        /// How many are left.
        left: usize,
        /// How many there were at the beginning.
        limit: usize,
    },

    /// The file lacks a tensor of the model.
    #[error(
        "{} has no tensor `{name}` among its {count}; the file belongs to another architecture or is not complete",
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

    /// A tensor does not fit the architecture.
    #[error(
        "{}: tensor `{name}` has shape {found:?}, expected {expected:?}; the weights and the configuration \
         beside them belong to different models",
        path.display()
    )]
    WrongShape {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// The shape that the architecture asks for.
        expected: Vec<usize>,
        /// The shape it has.
        found: Vec<usize>,
    },

    /// Nothing is known about how to read this.
    #[error(
        "{} is not a model that can be imported: {found}\n\
         Known are: Hugging Face (config.json with model.safetensors or pytorch_model.bin), Marian and Bergamot \
         (.npz or .bin, with a .spm or vocab.yml beside it), CTranslate2 (model.bin with its vocabularies), Argos \
         packages (.argosmodel), and fairseq (a checkpoint with dict.*.txt); other state dicts need --mapping.",
        path.display()
    )]
    Unrecognized {
        /// The folder or file.
        path: PathBuf,
        /// What is there.
        found: String,
    },

    /// The place to write to is taken.
    #[error("{} exists already; choose another place or remove it", path.display())]
    AlreadyThere {
        /// The folder.
        path: PathBuf,
    },

    /// Another program's format has no way to say something that the model needs.
    #[error(
        "the model {} cannot be exported for {format}, which cannot express {what}",
        model.display()
    )]
    CannotExpress {
        /// The model directory.
        model: PathBuf,
        /// The format.
        format: &'static str,
        /// What the format lacks.
        what: String,
    },

    /// Files of a tokenizer do not belong together.
    #[error("{}: {source}", path.display())]
    Tokenizer {
        /// The file of the tokenizer, or the vocabulary.
        path: PathBuf,
        /// What is wrong.
        source: TextError,
    },

    /// A model directory could not be written or read; the model crate names the file.
    #[error(transparent)]
    Model(#[from] ModelError),

    /// A tokenizer file could not be read or written; the text crate names the file.
    #[error(transparent)]
    Text(#[from] TextError),
}

impl ConvertError {
    /// As [`ConvertError::io`], for more than one error.
    pub fn io_at(action: &'static str, path: &Path) -> impl Fn(std::io::Error) -> ConvertError {
        let path = path.to_path_buf();
        move |source| ConvertError::Io {
            action,
            path: path.clone(),
            source,
        }
    }

    /// Wraps what is wrong with a tokenizer that was made of a file.
    pub(crate) fn tokenizer(path: &Path) -> impl FnOnce(TextError) -> ConvertError {
        let path = path.to_path_buf();
        move |source| ConvertError::Tokenizer { path, source }
    }

    /// Wraps what the operating system said about a file.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ConvertError {
        let path = path.to_path_buf();
        move |source| ConvertError::Io {
            action,
            path,
            source,
        }
    }
}
