//! What can go wrong on the way to a picture.

use std::path::PathBuf;

/// The one error type of this crate; each message says what was expected and what to do.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// A sentence without tokens.
    #[error("the sentence is empty: there is nothing to draw")]
    EmptySentence,
    /// More tokens than can be drawn, or than the model has positions for.
    #[error("{what} has {tokens} tokens, and at most {limit} can be drawn: take a part of it")]
    TooLong {
        /// The sentence or its translation.
        what: &'static str,
        /// How many it has.
        tokens: usize,
        /// How many are possible.
        limit: usize,
    },
    /// Weights and tokens do not belong together.
    #[error("{what}: expected {expected}, found {found}")]
    Shape {
        /// Which of them.
        what: String,
        /// What would have fitted.
        expected: String,
        /// What was given.
        found: String,
    },
    /// A layer that the model does not have.
    #[error("there is no layer {asked} in the {kind}: its layers are 1 to {last}")]
    NoSuchLayer {
        /// The part of the model.
        kind: &'static str,
        /// What was asked for.
        asked: usize,
        /// The last one.
        last: usize,
    },
    /// A head that the model does not have.
    #[error("there is no head {asked} in the {kind}: its heads are 1 to {last}")]
    NoSuchHead {
        /// The part of the model.
        kind: &'static str,
        /// What was asked for.
        asked: usize,
        /// The last one.
        last: usize,
    },
    /// A kind of attention that the model does not have.
    #[error("this model has no {asked}; it has {there}")]
    NoSuchAttention {
        /// The kinds asked for.
        asked: String,
        /// The kinds that it has.
        there: String,
    },
    /// A run whose history cannot be read.
    #[error("cannot read the history {}: {source}\n{remedy}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// A line that is not one of a history.
    #[error("{}, line {line}: {problem}\nA history is the file metrics.jsonl of a training run.", path.display())]
    NotAHistory {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A run that has logged nothing that could be drawn.
    #[error("{} holds nothing to draw yet: training writes a line every `training.log_every` steps", path.display())]
    EmptyHistory {
        /// The file.
        path: PathBuf,
    },
    /// The drawing could not become pixels.
    #[error("the picture cannot be drawn as PNG: {0}; `--format svg` has no such limit")]
    Raster(String),
}

/// What every fallible function here returns.
pub type Result<T, E = PictureError> = std::result::Result<T, E>;
