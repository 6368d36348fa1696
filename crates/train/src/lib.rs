//! From corpora to trained checkpoints.
//!
//! ```text
//! recipe -> corpus -> batches -> loss -> optimizer -> checkpoint
//!                        ^                   ^
//!                      random             schedule
//! ```
//!
//! - [`recipe`] reads and checks the TOML file that says everything about a run.
//! - [`corpus`] turns text files, or a [`synthetic`] task, into encoded pairs, and takes their
//!   [`fingerprint`]; [`augmentation`] gives lines other forms, [`batches`] puts pairs of similar
//!   length together, shuffled by [`random`].
//! - [`schedule`] is the learning rate as a function of the step.
//! - [`checkpoint`] (with [`manifest`] and [`state`]) and [`run_dir`] keep the run on the disk,
//!   [`metrics_log`] its history; all of them write through [`durable`]. [`tensorboard`] writes the
//!   history for TensorBoard too.
//! - [`error`] holds the one error type.

pub mod augmentation;
pub mod average;
pub mod batches;
pub mod checkpoint;
pub mod corpus;
pub mod durable;
pub mod ema;
pub mod error;
pub mod evaluation;
pub mod events;
pub mod fingerprint;
pub mod forward;
pub mod manifest;
pub mod metrics_log;
pub mod optimizer;
pub mod random;
pub mod recipe;
pub mod run_dir;
pub mod schedule;
pub mod snapshot;
mod start;
pub mod state;
pub mod synthetic;
pub mod tensorboard;
pub mod trainer;

pub use error::{Result, TrainError};
pub use recipe::Recipe;
