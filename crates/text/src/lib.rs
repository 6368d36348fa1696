//! Text to tokens and back: the first and the last room on the data path, with no tensors in it.
//!
//! ```text
//! files --lines--> lines --parallel--> sentence pairs --tokenizer--> ids --> (models) --> ids --tokenizer--> text
//! ```
//!
//! - [`lines`] reads plain and gzip'd UTF-8 line by line, [`parallel`] pairs two sides of a corpus.
//! - [`tokenizer`] turns a line into token ids and ids into a line, with words, with subwords or as a
//!   SentencePiece file says.
//! - [`language`] tells German from English, [`sentences`] cuts text into sentences, and [`keep`] hides
//!   from the model what is to be copied: what people type becomes what models know.
//! - [`special`] holds the four ids that every vocabulary starts with.
//! - [`error`] holds the one error type; each message names the file, the line and the remedy.
//!
//! ```
//! use attentive_text::{Tokenizer, TokenizerKind, TokenizerOptions};
//!
//! let corpus = ["ein Haus", "ein Haus am See", "zwei Häuser"];
//! let options = TokenizerOptions { kind: TokenizerKind::Bpe, vocab_size: 270, ..Default::default() };
//! let tokenizer = Tokenizer::train(&options, &mut corpus.into_iter())?;
//! let ids = tokenizer.encode("drei Häuser 👍");
//! assert_eq!(tokenizer.decode(&ids), "drei Häuser 👍"); // bytes it never saw come back too
//! # Ok::<(), attentive_text::TextError>(())
//! ```

pub mod error;
pub mod keep;
pub mod language;
pub mod lines;
pub mod parallel;
pub mod sentences;
pub mod special;
pub mod tokenizer;

pub use error::{Result, TextError};
pub use parallel::ParallelCorpus;
pub use tokenizer::{SentencePiece, Tokenizer, TokenizerKind, TokenizerOptions};
