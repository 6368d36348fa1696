//! Text to tokens and back: the first and the last room on the data path, with no tensors in it.
//!
//! ```text
//! files --lines--> lines --parallel--> sentence pairs --tokenizer--> ids --> (models) --> ids --tokenizer--> text
//! ```
//!
//! - [`lines`] reads plain and gzip'd UTF-8 line by line, [`parallel`] pairs two sides of a corpus.
//! - [`tokenizer`] turns a line into token ids and ids into a line, with words or with subwords.
//! - [`metrics`] scores translations: BLEU, chrF and TER as sacreBLEU computes them.
//! - [`special`] holds the four ids that every vocabulary starts with.
//! - [`error`] holds the one error type; each message names the file, the line and the remedy.

pub mod error;
pub mod lines;
pub mod metrics;
pub mod parallel;
pub mod special;
pub mod tokenizer;

pub use error::{Result, TextError};
pub use parallel::ParallelCorpus;
pub use tokenizer::{Tokenizer, TokenizerKind, TokenizerOptions};
