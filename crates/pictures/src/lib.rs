//! Pictures of attention and of training, for papers, lectures, browsers and terminals. No tensors.
//!
//! ```text
//! sentence, model -> from_model -> record -> selection -> sheet (SVG) -> png
//!                                     |          +------> terminal, json
//!                                     +-> page (HTML)
//! formulas, metrics.jsonl -> plots -> figure -> SVG, png, terminal
//! ```
//!
//! - [`from_model`] runs a model over a sentence; [`record`] holds its attention weights and next-token
//!   probabilities, [`map`] one matrix of weights. [`words`] says which tokens are one word, [`rollout`]
//!   computes attention rollout, [`sample`] makes up a record for tests.
//! - [`selection`] takes from a record what is to be shown; [`sheet`], [`terminal`], [`json`] and [`page`]
//!   show it.
//! - [`pruned`] shows which tokens leave in which layer.
//! - [`figure`] is a picture with axes, [`plots`] are those that the program draws, [`history`] reads
//!   the `metrics.jsonl` of a training run.
//! - [`color`] has the color maps, [`label`] makes any text safe to show, [`fonts`] measures it, [`svg`]
//!   writes shapes, [`png`] makes pixels of them, [`error`] is what can go wrong.

pub mod color;
pub mod error;
pub mod figure;
pub mod fonts;
pub mod from_model;
pub mod history;
pub mod json;
pub mod label;
pub mod map;
pub mod page;
pub mod plots;
pub mod png;
pub mod pruned;
pub mod record;
pub mod rollout;
pub mod sample;
pub mod selection;
pub mod sheet;
pub mod svg;
pub mod terminal;
pub mod words;

pub use error::{PictureError, Result};
