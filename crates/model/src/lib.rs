//! What a model *is*, without computing it.
//!
//! ```text
//! recipe or importer --> config --tensors--> names, shapes, roles --> weights file
//!                          |                                              |
//!                          +------------ model directory -----------------+--> runtime, nn
//! ```
//!
//! - [`config`]: the configuration of each model family, checked before any tensor exists.
//! - [`tensors`]: the schema: which tensors a configuration has, of what shape and in what role.
//! - [`weights`]: the weights file (safetensors), mapped into memory.
//! - [`int8`]: how int8 weights lie in it.
//! - [`directory`]: a model directory: configuration, tokenizers and weights together.
//! - [`generation`]: how text is framed for a model, and how it is usually searched, in an optional file.
//! - [`shortlist`]: which target tokens may translate which source tokens, in a file of its own.
//! - [`average`]: the mean of the weights of several models.
//! - [`durable`]: the one way in which files are written so that they are whole or absent.
//! - [`fake_dir`]: a model directory with arbitrary weights, for tests.
//! - [`error`]: the one error type; each message names the file and the remedy.

pub mod average;
pub mod config;
pub mod directory;
pub mod durable;
pub mod error;
pub mod fake_dir;
pub mod generation;
pub mod int8;
pub mod shortlist;
pub mod tensors;
pub mod weights;

pub use config::{AnyConfig, BertConfig, Family, GptConfig, ModelConfig, TransformerConfig};
pub use directory::{AnyModelDir, EmbeddedModel, ModelDir, Tokenizers};
pub use error::{ModelError, Result};
pub use generation::Generation;
pub use shortlist::Shortlist;
