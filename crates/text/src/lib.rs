//! Text to tokens and back: the first and the last crate on the data path, with no tensors in it.
//!
//! ```text
//! files --lines--> lines --parallel--> sentence pairs --tokenizer--> ids --> (models) --> ids --tokenizer--> text
//! ```
//!
//! - [`lines`] reads plain and gzip'd UTF-8 line by line and says which lines are blank; [`parallel`]
//!   pairs the two sides of a corpus.
//! - [`tokenizer`] turns a line into token ids and ids into a line: [`Tokenizer`] is one type for all
//!   kinds. Inside are `words` (word lists, with `vocabulary` and `spacing`), `subword` (byte-level BPE
//!   and Unigram, learned here), `sentencepiece` ([`SentencePiece`] files of other programs),
//!   `subword_nmt` and `characters` (of other programs, too), and `file`, which tells their files apart.
//!   [`tokenizer::vocabulary_file`] reads the vocabularies of other programs.
//! - [`special`] holds the four ids that every vocabulary starts with, and frames sentences with them.
//! - [`language`] tells German from English, [`sentences`] splits text into sentences and [`clauses`] long ones into pieces; [`keep`]
//!   replaces what is to be copied, such as addresses, before the model sees it: what people type
//!   becomes what models know.
//! - [`wrapped`] joins the lines of a paragraph that was broken at a width, and breaks its translation again.
//! - [`glossary`] knows which terms must be translated in which way, and finds them in a text.
//! - [`documents`] finds the texts in files of many formats and writes others in their places; [`markup`] is text
//!   with inline tags, as documents hold it.
//! - [`lexicon`] learns from a parallel corpus how probable tokens are as translations of each other.
//! - [`quality`] checks and cleans parallel corpora before training.
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

pub mod clauses;
pub mod documents;
pub mod error;
pub mod glossary;
pub mod keep;
pub mod language;
pub mod lexicon;
pub mod lines;
pub mod markup;
pub mod parallel;
pub mod quality;
pub mod sentences;
pub mod special;
pub mod tokenizer;
pub mod wrapped;

pub use error::{Result, TextError};
pub use glossary::Glossary;
pub use lexicon::{Lexicon, PairOptions, TokenPairs};
pub use parallel::ParallelCorpus;
pub use tokenizer::{SentencePiece, Tokenizer, TokenizerKind, TokenizerOptions};
