//! From a model directory to translations, without a tensor library.
//!
//! `attentive-text` stands before this crate on the data path (text -> tokens), `attentive-nn`
//! behind it (it implements [`search::SearchModel`] for the Transformer of [`config::ModelConfig`]).
//! Newcomers start at [`translator`]: the whole way text -> text on one page.

pub mod config;
pub mod search;
