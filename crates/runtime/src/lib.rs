//! From a model directory to translations, without a tensor library.
//!
//! `attentive-text` stands before this crate on the data path (text -> tokens), `attentive-nn`
//! behind it (it implements [`search::SearchModel`] for the Transformer of [`config::ModelConfig`]).

pub mod config;
pub mod error;
pub mod search;
pub mod weights;
