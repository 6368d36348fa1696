//! From a model directory to translations, without a tensor library.
//!
//! ```text
//! model directory --model_dir--> config, tokenizers, weights --> a SearchModel --translator--> text
//! ```
//!
//! - [`translator`] is the whole way text -> text on one page: start there.
//! - [`search`] finds sentences through one small trait, [`search::SearchModel`]; the Transformer
//!   of `attentive-nn` implements it.
//! - [`model_dir`] reads and writes model directories, [`weights`] the tensors in them.
//! - [`cpu`] is the Transformer for the CPU in f32 and int8, the fast way to translate.
//! - [`fake_dir`] writes a model directory that makes no sense, for tests.
//! - [`config`] is the architecture as plain numbers, checked before any tensor exists.
//! - [`error`] holds the one error type; each message names the file and the remedy.

pub mod config;
pub mod cpu;
pub mod error;
pub mod fake_dir;
pub mod model_dir;
pub mod search;
pub mod translator;
pub mod weights;

pub use config::ModelConfig;
pub use error::{Result, RuntimeError};
pub use model_dir::{EmbeddedModel, ModelDir, Tokenizers};
pub use translator::{Lines, Translation, Translator, TranslatorOptions};
