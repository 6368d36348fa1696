//! How good the model is while it trains, and which model is the best.

use std::time::Instant;

use super::{Files, Ready, Trainer};
use crate::{
    Result,
    distributed::{Communicator, SingleProcess, broadcast},
    error::StorageError,
    events::{Event, Observer, ValidationReport},
    optim::average::average,
    run::{
        checkpoint,
        directory::Link,
        manifest::{CheckpointKind, Manifest},
        snapshot::write_recipe,
        state::TrainState,
    },
    task::Task,
};

impl<T: Task> Trainer<'_, T> {
    /// Validates the model, keeps a checkpoint of it, and notes whether it is the best.
    pub(super) fn validate(
        &mut self,
        kind: CheckpointKind,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let began = Instant::now();
        let mut improved = false;
        let model = self.ready.snapshot.model_to_use();
        let (report, score) = self.evaluate(&model, self.communicator)?;
        if self.communicator.is_root() {
            improved = report.improved;
            let state = &mut self.ready.snapshot.state;
            state.val_loss = Some(report.loss);
            let finite = report.metrics.iter().filter(|(_, value)| value.is_finite());
            state.val_metrics = finite
                .map(|(name, value)| (name.to_string(), *value))
                .collect();
            if improved {
                state.best_score = Some(score);
                state.best_step = Some(state.step);
                state.best_is_average = false;
                state.validations_without_improvement = 0;
            } else {
                state.validations_without_improvement += 1;
                let patience = self.session.recipe.validation.patience as u64;
                state.stopped_early =
                    patience > 0 && state.validations_without_improvement >= patience;
            }
            self.log("validation", &report)?;
            observer.event(&Event::Validated(report));
        }
        self.share_state()?;
        self.save(kind, observer)?;
        if improved && let Some(Files { run, .. }) = &self.ready.files {
            let position = self.ready.snapshot.state.position();
            run.point(Link::Best, &run.checkpoint_path(position))?;
        }
        // Tokens per second are those of training.
        self.window += began.elapsed();
        Ok(())
    }

    /// Every process goes on with the state of process 0.
    fn share_state(&mut self) -> Result<()> {
        let state = &mut self.ready.snapshot.state;
        let json = broadcast(self.communicator, state.to_json().into_bytes());
        if !self.communicator.is_root() {
            let text = String::from_utf8_lossy(&json);
            *state = TrainState::from_json(&text)
                .map_err(|error| StorageError::io("read", self.session.out)(error.into()))?;
        }
        Ok(())
    }

    /// What the task says about a model, and its score; the processes share the work.
    fn evaluate(
        &self,
        model: &T::Model,
        processes: &dyn Communicator,
    ) -> Result<(ValidationReport, f64)> {
        let scores = self.ready.task.validate(model, processes)?;
        let state = &self.ready.snapshot.state;
        let report = ValidationReport {
            epoch: state.epoch,
            loss: scores.loss,
            metrics: scores.metrics,
            seconds: self.seconds(),
            improved: state.best_score.is_none_or(|best| scores.score > best),
            samples: scores.samples,
        };
        Ok((report, scores.score))
    }

    /// Keeps the average of the last epochs' checkpoints as `RUN/average` if the recipe asks for it, and as
    /// the best model if it is. Process 0 does this alone.
    pub(super) fn keep_average(&mut self, observer: &mut dyn Observer) -> Result<()> {
        let count = self.session.recipe.checkpoints.average_last;
        let Ready {
            task,
            snapshot,
            files: Some(Files { run, .. }),
            ..
        } = &self.ready
        else {
            return Ok(());
        };
        let was_best = snapshot.state.best_is_average;
        let done = was_best && snapshot.state.best_step == Some(snapshot.state.step);
        if count == 0 || done {
            return Ok(());
        }
        let epochs = run.epoch_checkpoints()?;
        let last = &epochs[epochs.len().saturating_sub(count)..];
        let Some(model) = average(task, last, &self.session.device)? else {
            return Ok(());
        };
        let evaluated = if task.validates() {
            Some(self.evaluate(&model, &SingleProcess)?)
        } else {
            None
        };
        let improved = evaluated
            .as_ref()
            .is_some_and(|(report, _)| report.improved);
        let folder = run.average_path();
        // An earlier average that is still the best model stays.
        if improved || !was_best {
            checkpoint::write(&folder, CheckpointKind::Model, |folder| {
                task.save_model(folder, &model)?;
                write_recipe(folder, self.session.recipe)
            })?;
            observer.event(&Event::Saved(folder.clone()));
        }
        let Some((report, score)) = evaluated else {
            return Ok(());
        };
        self.log("average", &report)?;
        if improved {
            self.best_is_average(score, observer)?;
        }
        observer.event(&Event::Validated(report));
        Ok(())
    }

    /// Notes in the newest checkpoint that the average is the best model, so that a run that is continued
    /// compares with its score.
    fn best_is_average(&mut self, score: f64, observer: &mut dyn Observer) -> Result<()> {
        let state = &mut self.ready.snapshot.state;
        state.best_score = Some(score);
        state.best_step = Some(state.step);
        state.best_is_average = true;
        let position = state.position();
        let Some(Files { run, .. }) = &self.ready.files else {
            return Ok(());
        };
        let newest = Manifest::read(&run.checkpoint_path(position));
        let kind = newest.map_or(CheckpointKind::Interval, |manifest| manifest.kind);
        self.write_checkpoint(kind, observer)?;
        if let Some(Files { run, .. }) = &self.ready.files {
            run.point(Link::Best, &run.average_path())?;
        }
        Ok(())
    }
}
