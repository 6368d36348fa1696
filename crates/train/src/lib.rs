//! From corpora to trained checkpoints.
//!
//! ```text
//! recipe -> data -> task -> optim -> run
//!           \______ trainer ______/
//! ```
//!
//! - [`recipe`] reads and checks the TOML file that says everything about a run.
//! - [`data`] turns text files, or a made-up task, into batches.
//! - [`task`] is what is learned: examples -> batch -> loss -> scores and samples. Translation is the first.
//! - [`optim`] holds the optimizer, the learning-rate schedule, the moving average of the weights and
//!   checkpoint averaging.
//! - [`run`] keeps a run on the disk: its folder, checkpoints, state and history.
//! - [`distributed`] is what processes that train together say to each other; one process is the first case.
//! - [`trainer`] is the loop over all of these, for any task and any number of processes.
//! - [`events`] is what the loop tells its caller while it runs; [`tensorboard`] writes that for TensorBoard.
//! - [`evaluation`] measures a translation model: loss, perplexity, BLEU.
//! - [`needs`] says what a run will need, by a trial of its first steps.
//! - [`error`] holds the one error type.

#![cfg(feature = "burn")]

pub mod data;
pub mod distributed;
pub mod error;
pub mod evaluation;
pub mod events;
pub mod needs;
pub mod optim;
pub mod recipe;
pub mod run;
pub mod task;
pub mod tensorboard;
pub mod trainer;

use attentive_model::config::Family;

pub use error::{Result, TrainError};
pub use recipe::Recipe;
pub use trainer::Session;

/// Trains what the recipe describes in this one process, until its end, early stopping or a request to stop. The
/// family of the model decides the task.
pub fn train(session: Session<'_>, observer: &mut dyn events::Observer) -> Result<events::Outcome> {
    train_together(session, &distributed::SingleProcess, observer)
}

/// The same with other processes, each of which calls this.
pub fn train_together(
    session: Session<'_>,
    processes: &dyn distributed::Communicator,
    observer: &mut dyn events::Observer,
) -> Result<events::Outcome> {
    use attentive_nn::models::{recurrent::Recurrent, transformer::Transformer};
    use task::{
        classification::Classification, language_model::LanguageModel,
        masked_language_model::MaskedLanguageModel, translation::Translation,
    };
    match session.recipe.model.family() {
        Family::Transformer => {
            trainer::train::<Translation<Transformer>>(session, processes, observer)
        }
        Family::Recurrent => trainer::train::<Translation<Recurrent>>(session, processes, observer),
        Family::Gpt => trainer::train::<LanguageModel>(session, processes, observer),
        Family::Bert if recipe::classifies(session.recipe) => {
            trainer::train::<Classification>(session, processes, observer)
        }
        Family::Bert => trainer::train::<MaskedLanguageModel>(session, processes, observer),
    }
}
