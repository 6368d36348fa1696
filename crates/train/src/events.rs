//! What training tells its caller while it runs: the command line draws, tests count.
//!
//! The trainer calls an [`Observer`]; it never prints.

use std::path::PathBuf;

use attentive_nn::ops::Precision;
use serde::{Serialize, Serializer};

/// Receives what happens in a run, in order.
pub trait Observer {
    /// Something happened.
    fn event(&mut self, event: &Event);
}

/// Something that happened in a run.
#[derive(Debug, Clone)]
pub enum Event {
    /// A phase before training that takes a while, such as `reading the corpus`.
    Preparing(&'static str),
    /// Data and model are ready and training begins.
    Started(Started),
    /// An optimizer step was made; comes with every step, for a progress bar.
    Step(StepReport),
    /// A line of the log is due (`training.log_every`).
    Logged(StepReport),
    /// An epoch ended.
    Epoch(EpochReport),
    /// The model was evaluated on the validation data.
    Validated(ValidationReport),
    /// A checkpoint was committed.
    Saved(PathBuf),
    /// Something that the user should know and that does not stop the run.
    Warning(String),
}

/// What is about to be trained.
#[derive(Debug, Clone)]
pub struct Started {
    /// The run's folder.
    pub run: PathBuf,
    /// The step that the run continues from, if it was begun before.
    pub continued_from: Option<u64>,
    /// What the task says about its data: a word, and a line.
    pub description: Vec<(&'static str, String)>,
    /// Trainable numbers.
    pub parameters: usize,
    /// Of the factors of matrix products.
    pub precision: Precision,
    /// Batches in an epoch.
    pub batches: usize,
    /// Share of the positions fed to the model that is padding.
    pub padding: f64,
    /// Steps in the whole run, as far as it can be known.
    pub total_steps: u64,
    /// The step at which this process began.
    pub first_step: u64,
}

/// Where training stands after a step.
#[derive(Debug, Clone, Serialize)]
pub struct StepReport {
    /// Optimizer steps done.
    pub step: u64,
    /// The epoch that is going on, from 0.
    pub epoch: u64,
    /// Examples seen, such as sentence pairs, over all epochs.
    pub examples: u64,
    /// Target tokens seen.
    pub tokens: u64,
    /// Loss per target token, since the last log line.
    pub loss: f64,
    /// The rate of this step.
    pub learning_rate: f64,
    /// Norm of the gradients, when it was computed.
    pub gradient_norm: Option<f64>,
    /// Target tokens per second, since the last log line.
    pub tokens_per_second: f64,
    /// Seconds of training over all continuations.
    pub seconds: f64,
}

/// The sums of an epoch.
#[derive(Debug, Clone, Serialize)]
pub struct EpochReport {
    /// From 0.
    pub epoch: u64,
    /// Training loss per token over the epoch.
    pub loss: f64,
    /// Seconds of training over all continuations.
    pub seconds: f64,
}

/// How the model did on the validation data.
#[derive(Debug, Clone, Serialize)]
pub struct ValidationReport {
    /// Epochs finished or going on.
    pub epoch: u64,
    /// The training objective per token.
    pub loss: f64,
    /// The task's own metrics by name, such as `perplexity` and `bleu`.
    #[serde(flatten, serialize_with = "as_map")]
    pub metrics: Vec<(&'static str, f64)>,
    /// Seconds of training over all continuations.
    pub seconds: f64,
    /// Whether this is the best so far.
    pub improved: bool,
    /// A few sentences.
    pub samples: Vec<Sample>,
}

fn as_map<S: Serializer>(
    metrics: &[(&'static str, f64)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(metrics.iter().copied())
}

/// A validation example and what the model makes of it.
#[derive(Debug, Clone, Serialize)]
pub struct Sample {
    /// The source.
    pub source: String,
    /// The reference.
    pub reference: String,
    /// The model's output.
    pub output: String,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All epochs, steps or minutes of the recipe are done.
    Finished,
    /// `validation.patience` validations passed without improvement.
    StoppedEarly,
    /// The caller asked to stop; the run can be continued.
    Interrupted,
}
