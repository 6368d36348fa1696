//! What a run says about itself, to its observer and to `metrics.jsonl`.

use attentive_model::tensors::parameter_count;
use serde::Serialize;

use super::{Ready, Trainer};
use crate::{
    Result,
    events::{Started, StepReport},
    task::{Epoch, Task},
};

impl<T: Task> Trainer<'_, T> {
    pub(super) fn step_report(&self, learning_rate: f64, norm: f64) -> StepReport {
        let state = &self.ready.snapshot.state;
        let tokens = state.window_tokens as f64;
        let own = (tokens - self.window_before as f64).max(0.0);
        StepReport {
            step: state.step,
            epoch: state.epoch,
            examples: state.examples,
            tokens: state.tokens,
            loss: state.window_loss / tokens.max(1.0),
            learning_rate,
            gradient_norm: Some(norm),
            tokens_per_second: own / self.window.elapsed().as_secs_f64().max(1e-9),
            seconds: self.seconds(),
        }
    }

    pub(super) fn introduction(&self, epoch: &Epoch<T::Examples>) -> Started {
        let Ready {
            task,
            snapshot,
            precision,
            continued_from,
            ..
        } = &self.ready;
        let training = &self.session.recipe.training;
        let batches = epoch.plan.batches();
        let mut description = task.description();
        if self.communicator.size() > 1 {
            description.push(("ranks", self.pace.ranks()));
        }
        let steps = (batches * training.epochs / training.accumulate.max(1)) as u64;
        Started {
            run: self.session.out.to_owned(),
            continued_from: *continued_from,
            description,
            parameters: parameter_count(&task.tensors()),
            precision: *precision,
            batches,
            padding: epoch.padding,
            total_steps: self.last_step().unwrap_or(steps).min(steps),
            first_step: snapshot.state.step,
        }
    }

    /// Adds a line to the history; process 0 alone has one.
    pub(super) fn log(&mut self, event: &str, fields: &impl Serialize) -> Result<()> {
        let step = self.ready.snapshot.state.step;
        if let Some(files) = &mut self.ready.files {
            files.log.append(event, step, fields)?;
        }
        Ok(())
    }
}
