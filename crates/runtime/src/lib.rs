//! From a model directory to translations, without a tensor library.
//!
//! ```text
//! model directory --model_dir--> config, tokenizers, weights --> a SearchModel --translator--> text
//! ```
//!
//! - [`translator`] is the whole way text -> text on one page: start there.
//! - [`search`] finds sentences through one small trait, [`search::SearchModel`]; the Transformer
//!   of `attentive-nn` implements it.
//! - [`cpu`] is the Transformer for the CPU in f32 and int8, the fast way to translate.
//! - [`inspection`] shows a model's attention weights and next-token predictions.
//! - [`error`] holds the one error type; each message names the file and the remedy.

pub mod cpu;
pub mod engine;
pub mod error;
pub mod inspection;
pub mod search;
pub mod translator;

pub use error::{Result, RuntimeError};
pub use translator::{Lines, Translation, Translator, TranslatorOptions};
