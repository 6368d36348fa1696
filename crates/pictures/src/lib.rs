//! Pictures of attention and of training, for papers, lectures, browsers and terminals. No tensors.
//!
//! ```text
//! forward pass -> record -> selection -> sheet (SVG) -> png
//!                    |          +------> terminal, json
//!                    +-> page (HTML)
//! formulas, metrics.jsonl -> figure -> SVG, png, terminal
//! ```
//!
//! - [`record`] holds what a model's attention did with a sentence; [`words`] says which tokens are one
//!   word, [`rollout`] follows attention over layers, [`map`] is one matrix of weights.
//! - [`selection`] takes from it what is to be seen; [`sheet`], [`terminal`], [`json`] and [`page`] show
//!   it.
//! - [`figure`] is a picture with axes, [`plots`] are those that the program draws, [`history`] reads
//!   the history of a training run.
//! - [`colour`], [`label`], [`fonts`], [`svg`] and [`png`] are what all pictures are made with.

pub mod colour;
pub mod error;
pub mod figure;
pub mod fonts;
pub mod history;
pub mod json;
pub mod label;
pub mod map;
pub mod page;
pub mod plots;
pub mod png;
pub mod record;
pub mod rollout;
pub mod sample;
pub mod selection;
pub mod sheet;
pub mod svg;
pub mod terminal;
pub mod words;

pub use error::{PictureError, Result};
