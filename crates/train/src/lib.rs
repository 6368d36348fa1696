//! From corpora to trained checkpoints.
//!
//! ```text
//! recipe -> data -> task -> optim -> run
//!                \__ trainer __/
//! ```
//!
//! - [`recipe`] reads and checks the TOML file that says everything about a run.
//! - [`data`] turns text files, or a made-up task, into batches.
//! - [`task`] is what is learned.
//! - [`optim`] holds the optimizer, the learning-rate schedule and two averages of weights.
//! - [`run`] keeps the run on the disk: folder, checkpoints, history.
//! - [`trainer`] is the loop over all of these; [`events`] is what it tells while it runs, and
//!   [`tensorboard`] writes that for TensorBoard too.
//! - [`evaluation`] measures how good a model is.
//! - [`error`] holds the one error type.

pub mod data;
pub mod error;
pub mod evaluation;
pub mod events;
pub mod optim;
pub mod recipe;
pub mod run;
pub mod task;
pub mod tensorboard;
pub mod trainer;

pub use error::{Result, TrainError};
pub use recipe::Recipe;
