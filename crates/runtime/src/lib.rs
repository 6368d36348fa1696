//! From a model directory to translations on the CPU, without a tensor library.
//!
//! ```text
//! lines --translator--> requests --engine--> search <--> a SearchModel: cpu, or the Transformer of nn
//!                                               |
//! lines <-----------translator----------- hypotheses
//! ```
//!
//! - [`translator`] is the whole way text -> text: start there.
//! - [`engine`] is a queue of jobs and the worker threads that all callers share.
//! - [`search`] finds hypotheses for a request (greedy, beam, sampling), under constraints, through
//!   one small trait, [`search::SearchModel`].
//! - [`cpu`] is the Transformer for the CPU in f32 and int8: kernels, KV cache, quantization.
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
