//! The training loop: a whole run, readable in one sitting.
//!
//! batch -> loss -> gradients, summed over `training.accumulate` batches and divided by their tokens ->
//! clipping -> Adam -> (validation, checkpoint) -> next batch. The loop's whole state is a
//! [`Snapshot`]; what it does next depends on nothing else, so a run that was stopped anywhere
//! continues bit by bit. Neighbours: `start.rs` opens or resumes the run, [`crate::evaluation`]
//! judges the model, [`crate::run::snapshot`] stores it.

mod reports;
pub(crate) mod start;
mod validation;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use attentive_nn::{parameters, pass::Pass};
use burn::tensor::Device;

use crate::{
    Recipe, Result, TrainError,
    data::batches::{self, Batch, Budget},
    data::corpus::Pair,
    events::{EpochReport, Event, Observer, Outcome, StepReport},
    optim::optimizer::{Step, accumulate, clip_scale, global_norm},
    optim::schedule::Schedule,
    run::directory::Link,
    run::manifest::CheckpointKind,
    run::snapshot::Snapshot,
    task::translation::{agreement, batch_loss, batch_loss_twice, smoothing},
    trainer::start::{Ready, prepare},
};

/// What to train, where, on what, and how to be stopped.
pub struct Session<'a> {
    /// The whole configuration.
    pub recipe: &'a Recipe,
    /// The run's folder; an existing run is continued.
    pub out: &'a Path,
    /// Without autodiff, as [`attentive_nn::device::parse`] returns it.
    pub device: Device,
    /// Becomes true when the run should save and end.
    pub stop: &'a AtomicBool,
}

/// Batches in a row whose loss or gradient is not finite before the run gives up.
const BAD_STEPS_LIMIT: u64 = 5;

/// Trains until the recipe's end, early stopping or a request to stop.
pub fn train(session: Session<'_>, observer: &mut dyn Observer) -> Result<Outcome> {
    let ready = prepare(&session, observer)?;
    let schedule = Schedule::new(&session.recipe.schedule, ready.config.d_model)
        .accumulating(session.recipe.training.accumulate);
    let now = Instant::now();
    let state = &ready.snapshot.state;
    let mut trainer = Trainer {
        before: state.seconds,
        window_before: state.window_tokens + state.micro_tokens,
        started: now,
        saved: now,
        window: now,
        session,
        schedule,
        ready,
    };
    trainer.run(observer)
}

struct Trainer<'a> {
    session: Session<'a>,
    ready: Ready,
    schedule: Schedule,
    /// Seconds trained before this process.
    before: f64,
    started: Instant,
    /// When the last checkpoint was written.
    saved: Instant,
    /// When the last log line was written, or this process began.
    window: Instant,
    /// Tokens since the last log line that an earlier process trained on.
    window_before: u64,
}

impl Trainer<'_> {
    fn run(&mut self, observer: &mut dyn Observer) -> Result<Outcome> {
        let first = self.planned(0);
        observer.event(&Event::Started(self.introduction(&first.0, &first.1)));
        let mut first = Some(first);
        while let Some(epoch) = self.next_epoch() {
            let (pairs, plan) = first
                .take()
                .filter(|_| epoch == 0)
                .unwrap_or_else(|| self.planned(epoch));
            while (self.ready.snapshot.state.batch as usize) < plan.len() {
                if self.session.stop.load(Ordering::Relaxed) {
                    self.save(CheckpointKind::Interval, observer)?;
                    return Ok(Outcome::Interrupted);
                }
                if self.limit_reached() {
                    return self.finish(observer);
                }
                let batch = self.ready.snapshot.state.batch;
                let batch = Batch::collect(&pairs, &plan[batch as usize]);
                self.batch(epoch, &batch, observer)?;
            }
            self.end_epoch(observer)?;
        }
        self.finish(observer)
    }

    /// The pairs of an epoch and which of them make up each batch.
    fn planned(&self, epoch: u64) -> (Arc<Vec<Pair>>, Vec<Vec<usize>>) {
        let recipe = self.session.recipe;
        let Ready {
            corpus, tokenizers, ..
        } = &self.ready;
        let pairs = corpus.of_epoch(recipe, tokenizers, epoch);
        let budget = Budget::of(&recipe.training);
        let plan = batches::plan(&pairs, budget, recipe.training.seed, epoch as usize);
        (pairs, plan)
    }

    /// The epoch to go on with, if the run is not over.
    fn next_epoch(&self) -> Option<u64> {
        let state = &self.ready.snapshot.state;
        let more = state.epoch < self.session.recipe.training.epochs as u64;
        (more && !state.stopped_early).then_some(state.epoch)
    }

    fn limit_reached(&self) -> bool {
        let minutes = self.session.recipe.training.max_minutes;
        let last = self.last_step();
        last.is_some_and(|last| self.ready.snapshot.state.step >= last)
            || (minutes > 0.0 && self.seconds() >= minutes * 60.0)
    }

    /// The step after which the run ends, whatever epoch it is in: its limit, or where its learning rate
    /// comes to nothing.
    fn last_step(&self) -> Option<u64> {
        let limit = self.session.recipe.training.max_steps;
        let limit = (limit > 0).then_some(limit);
        let last = limit.into_iter().chain(self.schedule.last_step()).min();
        last.map(|step| step as u64)
    }

    /// One batch: its gradients join the others, and every `accumulate` batches there is a step.
    fn batch(&mut self, epoch: u64, batch: &Batch, observer: &mut dyn Observer) -> Result<()> {
        let recipe = self.session.recipe;
        let snapshot = &mut self.ready.snapshot;
        let number = epoch << 32 | snapshot.state.batch;
        let training = &recipe.training;
        let pass = &mut Pass::training(training.seed, number, training.precision);
        let smoothing = smoothing(training);
        let loss = match agreement(training, epoch) {
            0.0 => batch_loss(&snapshot.model, batch, smoothing, pass),
            weight => batch_loss_twice(&snapshot.model, batch, smoothing, weight, pass),
        };
        let value = f64::from(loss.objective.clone().into_scalar::<f32>());
        let state = &mut snapshot.state;
        state.batch += 1;
        state.examples += batch.rows() as u64;
        state.src_tokens += batch.src_tokens() as u64;
        state.tgt_tokens += batch.tgt_tokens() as u64;
        if !value.is_finite() {
            return self.reject(batch, "the loss", value, observer);
        }
        let gradients = parameters::gradients(&snapshot.model, loss.objective.backward());
        accumulate(&mut snapshot.gradients, gradients);
        state.micro_step += 1;
        state.micro_tokens += batch.tgt_tokens() as u64;
        state.micro_loss += value;
        if state.micro_step < recipe.training.accumulate as u64 {
            return Ok(());
        }
        let norm = global_norm(&snapshot.gradients) / state.micro_tokens as f64;
        if !norm.is_finite() {
            return self.reject(batch, "a gradient", norm, observer);
        }
        self.step(norm, observer)
    }

    /// One optimiser step over everything accumulated.
    fn step(&mut self, norm: f64, observer: &mut dyn Observer) -> Result<()> {
        let recipe = self.session.recipe;
        let Snapshot {
            model,
            ema,
            optimizer,
            gradients,
            state,
        } = &mut self.ready.snapshot;
        let step = state.step + 1;
        let learning_rate = self.schedule.rate(step as usize);
        let scale = clip_scale(norm, recipe.training.clip_norm) / state.micro_tokens as f64;
        let taken = std::mem::take(gradients);
        let update = Step {
            number: step,
            learning_rate,
            gradient_scale: scale,
            precision: recipe.training.precision,
        };
        *model = optimizer.step(model.clone(), taken, &recipe.optimizer, &update);
        if let Some(ema) = ema {
            ema.update(model, step);
        }
        state.step = step;
        state.window_loss += state.micro_loss;
        state.window_tokens += state.micro_tokens;
        state.epoch_loss += state.micro_loss;
        state.epoch_tokens += state.micro_tokens;
        (state.micro_step, state.micro_tokens, state.micro_loss) = (0, 0, 0.0);
        state.bad_steps = 0;
        let logs = step.is_multiple_of(recipe.training.log_every.max(1) as u64);
        let report = self.step_report(learning_rate, norm);
        observer.event(&Event::Step(report.clone()));
        if logs {
            self.log_step(report, observer)?;
        }
        let due = |every: usize| every > 0 && step.is_multiple_of(every as u64);
        if due(recipe.validation.every_steps) {
            self.validate(CheckpointKind::Interval, observer)?;
        } else if due(recipe.checkpoints.every_steps) || self.minutes_have_passed() {
            self.save(CheckpointKind::Interval, observer)?;
        }
        Ok(())
    }

    fn end_epoch(&mut self, observer: &mut dyn Observer) -> Result<()> {
        let seconds = self.seconds();
        let state = &mut self.ready.snapshot.state;
        let loss = state.epoch_loss / state.epoch_tokens.max(1) as f64;
        let report = EpochReport {
            epoch: state.epoch,
            loss,
            seconds,
        };
        (state.epoch_loss, state.epoch_tokens) = (0.0, 0);
        state.epoch += 1;
        state.batch = 0;
        let every = self.session.recipe.validation.every_epochs as u64;
        let due = every > 0 && state.epoch.is_multiple_of(every);
        self.ready.log.append("epoch", state.step, &report)?;
        observer.event(&Event::Epoch(report));
        match due && !self.ready.corpus.val.is_empty() {
            true => self.validate(CheckpointKind::Epoch, observer),
            false => self.save(CheckpointKind::Epoch, observer).map(|_| ()),
        }
    }

    /// The run is over: a last checkpoint, and the average of the last epochs if it is asked for.
    fn finish(&mut self, observer: &mut dyn Observer) -> Result<Outcome> {
        let recipe = self.session.recipe;
        let state = &self.ready.snapshot.state;
        let early = state.stopped_early;
        let newest = self
            .ready
            .run
            .checkpoints()?
            .last()
            .map(|(position, _)| *position);
        if newest != Some(state.position()) {
            match self.ready.corpus.val.is_empty() || state.step == 0 {
                true => self.save(CheckpointKind::Interval, observer).map(|_| ())?,
                false => self.validate(CheckpointKind::Interval, observer)?,
            }
        }
        let count = recipe.checkpoints.average_last;
        if count > 0 {
            let epochs = self.ready.run.epoch_checkpoints()?;
            let last = &epochs[epochs.len().saturating_sub(count)..];
            self.keep_average(last, observer)?;
        }
        Ok(if early {
            Outcome::StoppedEarly
        } else {
            Outcome::Finished
        })
    }

    /// A batch that cannot be learnt from: nothing of this step is applied.
    fn reject(
        &mut self,
        batch: &Batch,
        what: &str,
        value: f64,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let snapshot = &mut self.ready.snapshot;
        snapshot.gradients.clear();
        let state = &mut snapshot.state;
        (state.micro_step, state.micro_tokens, state.micro_loss) = (0, 0, 0.0);
        state.bad_steps += 1;
        let pairs: Vec<String> = batch
            .pairs
            .iter()
            .take(8)
            .map(|pair| (pair + 1).to_string())
            .collect();
        let message = format!(
            "{what} is {value} at step {} (epoch {}, batch {}, {} sentence pairs, the first kept pairs {}): the step was not applied",
            state.step + 1,
            state.epoch,
            state.batch - 1,
            batch.rows(),
            pairs.join(", ")
        );
        if state.bad_steps >= BAD_STEPS_LIMIT {
            return Err(TrainError::NotFinite {
                message,
                times: state.bad_steps,
            });
        }
        self.ready.log.append(
            "rejected",
            state.step,
            &serde_json::json!({ "reason": message }),
        )?;
        observer.event(&Event::Warning(message));
        Ok(())
    }

    fn save(&mut self, kind: CheckpointKind, observer: &mut dyn Observer) -> Result<PathBuf> {
        let seconds = self.seconds();
        let recipe = self.session.recipe;
        let Ready {
            run,
            config,
            tokenizers,
            snapshot,
            log,
            ..
        } = &mut self.ready;
        snapshot.state.seconds = seconds;
        snapshot.state.metrics_lines = log.lines();
        let checkpoint = snapshot.save(run, kind, config, tokenizers, &recipe.to_toml())?;
        run.point(Link::Last, &checkpoint)?;
        run.prune(
            recipe.checkpoints.keep_last.max(1),
            recipe.checkpoints.average_last,
        )?;
        self.saved = Instant::now();
        observer.event(&Event::Saved(checkpoint.clone()));
        Ok(checkpoint)
    }

    fn log_step(&mut self, report: StepReport, observer: &mut dyn Observer) -> Result<()> {
        let state = &mut self.ready.snapshot.state;
        (state.window_loss, state.window_tokens) = (0.0, 0);
        state.train_loss = Some(report.loss);
        (self.window, self.window_before) = (Instant::now(), 0);
        self.ready.log.append("step", report.step, &report)?;
        observer.event(&Event::Logged(report));
        Ok(())
    }

    fn minutes_have_passed(&self) -> bool {
        let minutes = self.session.recipe.checkpoints.every_minutes;
        minutes > 0.0 && self.saved.elapsed().as_secs_f64() >= minutes * 60.0
    }

    /// Seconds of training over all continuations.
    fn seconds(&self) -> f64 {
        self.before + self.started.elapsed().as_secs_f64()
    }
}
