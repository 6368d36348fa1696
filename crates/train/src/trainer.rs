//! The training loop: a whole run, readable in one sitting, for any [`Task`].
//!
//! batch -> loss -> gradients, summed over `training.accumulate` batches and divided by their targets ->
//! gradient clipping -> optimizer step -> (validation, checkpoint) -> next batch. The loop's whole state is
//! a [`Snapshot`]; what it does next depends on nothing else, so a run that was stopped anywhere
//! continues bit by bit. Several processes share the batches of a step ([`crate::distributed`]); one
//! alone is the same loop. Neighbors: `start` opens or resumes the run, `processes` shares the batches with other processes,
//! `validation` finds the best model.

mod processes;
mod reports;
mod start;
mod validation;

use std::{collections::HashSet, path::Path, sync::atomic::AtomicBool, time::Instant};

use burn::tensor::Device;

use self::{
    processes::found_early,
    start::{Files, Ready, prepare},
};
use crate::{
    Recipe, Result, TrainError,
    data::batches::Round,
    distributed::{self, Communicator, gradients::GradientSums, pace::Pace, round::Votes, shard},
    events::{EpochReport, Event, Observer, Outcome, StepReport},
    optim::{
        optimizer::{Step, clip_scale},
        schedule::Schedule,
    },
    recipe::Sharding,
    run::{directory::Link, manifest::CheckpointKind, snapshot::Snapshot},
    task::{Epoch, Task},
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
pub fn train<T: Task>(
    session: Session<'_>,
    communicator: &dyn Communicator,
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    let (processes, batches) = (communicator.size(), session.recipe.training.accumulate);
    if processes > batches {
        return Err(TrainError::TooManyProcesses { processes, batches });
    }
    let mut ready = prepare::<T>(&session, communicator, observer)?;
    let settings = &session.recipe.distributed;
    let tensors = ready.task.tensors();
    let mut sums = GradientSums::new(communicator, settings, &tensors, &session.device);
    if let Some(sums) = &mut sums {
        let snapshot = &mut ready.snapshot;
        sums.resume(std::mem::take(&mut snapshot.gradients));
        if settings.sharding() == Sharding::Optimizer {
            shard::keep_own_moments(communicator, sums.buckets(), &mut snapshot.optimizer);
        }
    }
    let schedule =
        Schedule::new(&session.recipe.schedule, ready.task.d_model()).accumulating(batches);
    let now = Instant::now();
    let state = &ready.snapshot.state;
    let mut trainer = Trainer {
        before: state.seconds,
        window_before: state.window_tokens + state.micro_tokens,
        started: now,
        saved: now,
        window: now,
        votes: Votes::default(),
        pace: Pace::new(std::mem::take(&mut ready.hosts)),
        seconds: 0.0,
        early: if settings.overlap {
            found_early(&tensors)
        } else {
            HashSet::new()
        },
        tried: None,
        sums,
        session,
        communicator,
        schedule,
        ready,
    };
    trainer.run(observer)
}

struct Trainer<'a, T: Task> {
    session: Session<'a>,
    communicator: &'a dyn Communicator,
    ready: Ready<T>,
    schedule: Schedule,
    /// The gradients of all processes, if there are several.
    sums: Option<GradientSums<'a>>,
    /// Parameters whose gradients can be sent before the backward pass ends.
    early: HashSet<String>,
    /// The epoch in which that was last found to be so.
    tried: Option<u64>,
    /// What the processes agreed on in the last round.
    votes: Votes,
    /// How fast the processes are.
    pace: Pace,
    /// That this process took for the batch of the last round.
    seconds: f64,
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

impl<T: Task> Trainer<'_, T> {
    fn run(&mut self, observer: &mut dyn Observer) -> Result<Outcome> {
        let first = self.ready.task.epoch(0)?;
        observer.event(&Event::Started(self.introduction(&first)));
        let mut first = Some(first);
        while let Some(number) = self.next_epoch() {
            let epoch = first.take().filter(|_| number == 0);
            let epoch = epoch.map_or_else(|| self.ready.task.epoch(number), Ok)?;
            while (self.ready.snapshot.state.batch as usize) < epoch.plan.batches() {
                if self.votes().stop && self.can_stop() {
                    self.save(CheckpointKind::Interval, observer)?;
                    return Ok(Outcome::Interrupted);
                }
                if self.limit_reached() {
                    return self.finish(observer);
                }
                self.batch(number, &epoch, observer)?;
            }
            self.end_epoch(observer)?;
        }
        self.finish(observer)
    }

    /// The epoch to go on with, if the run is not over.
    fn next_epoch(&self) -> Option<u64> {
        let state = &self.ready.snapshot.state;
        let more = state.epoch < self.session.recipe.training.epochs as u64;
        (more && !state.stopped_early).then_some(state.epoch)
    }

    fn limit_reached(&self) -> bool {
        let last = self.last_step();
        let over = last.is_some_and(|last| self.ready.snapshot.state.step >= last);
        over || (self.votes().late && self.can_stop())
    }

    /// The step after which the run ends, whatever epoch it is in: its limit, or where its learning rate
    /// comes to nothing.
    fn last_step(&self) -> Option<u64> {
        let limit = self.session.recipe.training.max_steps;
        let limit = (limit > 0).then_some(limit);
        let last = limit.into_iter().chain(self.schedule.last_step()).min();
        last.map(|step| step as u64)
    }

    /// One batch in each process: its gradients join the others, and every `accumulate` batches there is a
    /// step.
    fn batch(
        &mut self,
        number: u64,
        epoch: &Epoch<T::Examples>,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let accumulate = self.session.recipe.training.accumulate;
        let state = &self.ready.snapshot.state;
        let (rank, size) = (self.communicator.rank(), self.communicator.size());
        let to_step = accumulate - state.micro_step as usize;
        let in_epoch = epoch.plan.batches();
        let round = Round::new(state.batch as usize, in_epoch, to_step, rank, size);

        let mut reports = self.compute(number, epoch, &round)?;
        self.votes = (reports.iter().map(|report| report.votes)).fold(Votes::default(), Votes::or);
        for (rank, report) in reports.iter().enumerate() {
            self.pace.add(rank, report.targets, report.seconds);
        }
        reports.truncate(round.batches.len());
        let state = &mut self.ready.snapshot.state;
        state.batch = round.batches.end as u64;
        for report in &reports {
            state.examples += report.examples as u64;
            state.tokens += report.targets as u64;
        }
        let examples = || -> Result<Vec<_>> {
            let batches = round.batches.clone();
            batches.map(|index| epoch.plan.batch(index)).collect()
        };
        if let Some(bad) = reports.iter().find(|report| !report.loss.is_finite()) {
            return self.reject("the loss", bad.loss, &examples()?, observer);
        }
        state.micro_step += round.batches.len() as u64;
        for report in &reports {
            state.micro_tokens += report.targets as u64;
            state.micro_loss += report.loss;
        }
        if state.micro_step < accumulate as u64 {
            return Ok(());
        }
        let norm = self.sum_gradients() / self.ready.snapshot.state.micro_tokens as f64;
        if !norm.is_finite() {
            return self.reject("a gradient", norm, &examples()?, observer);
        }
        self.step(norm, observer)
    }

    /// One optimizer step over everything accumulated.
    fn step(&mut self, norm: f64, observer: &mut dyn Observer) -> Result<()> {
        let recipe = self.session.recipe;
        let Ready {
            snapshot,
            precision,
            ..
        } = &mut self.ready;
        let Snapshot {
            model,
            ema,
            optimizer,
            gradients,
            state,
        } = snapshot;
        let step = state.step + 1;
        let learning_rate = self.schedule.rate(step as usize);
        let scale = clip_scale(norm, recipe.training.clip_norm) / state.micro_tokens as f64;
        let update = Step {
            number: step,
            learning_rate,
            gradient_scale: scale,
            precision: *precision,
        };
        *model = optimizer.step(model.clone(), std::mem::take(gradients), &update);
        if let Some(sums) = &self.sums
            && recipe.distributed.sharding() == Sharding::Optimizer
        {
            let device = &self.session.device;
            *model =
                shard::share_parameters(self.communicator, sums.buckets(), model.clone(), device);
        }
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
        } else if due(recipe.checkpoints.every_steps) || self.votes().save {
            self.save(CheckpointKind::Interval, observer)?;
        }
        Ok(())
    }

    fn end_epoch(&mut self, observer: &mut dyn Observer) -> Result<()> {
        let seconds = self.seconds();
        let state = &mut self.ready.snapshot.state;
        let report = EpochReport {
            epoch: state.epoch,
            loss: state.epoch_loss / state.epoch_tokens.max(1) as f64,
            seconds,
        };
        (state.epoch_loss, state.epoch_tokens) = (0.0, 0);
        state.epoch += 1;
        state.batch = 0;
        let every = self.session.recipe.validation.every_epochs as u64;
        let due = every > 0 && state.epoch.is_multiple_of(every);
        self.log("epoch", &report)?;
        observer.event(&Event::Epoch(report));
        if due && self.ready.task.validates() {
            self.validate(CheckpointKind::Epoch, observer)
        } else {
            self.save(CheckpointKind::Epoch, observer)
        }
    }

    /// The run is over: a last checkpoint, and the average of the last epochs if it is asked for.
    fn finish(&mut self, observer: &mut dyn Observer) -> Result<Outcome> {
        let Ready {
            task,
            snapshot,
            files,
            ..
        } = &self.ready;
        let mut unsaved = false;
        if let Some(files) = files {
            let newest = files.run.checkpoints()?.pop();
            unsaved = newest.is_none_or(|(newest, _)| newest != snapshot.state.position());
        }
        if distributed::any(self.communicator, unsaved) {
            if task.validates() && snapshot.state.step > 0 {
                self.validate(CheckpointKind::Interval, observer)?;
            } else {
                self.save(CheckpointKind::Interval, observer)?;
            }
        }
        self.complete_snapshot();
        self.keep_average(observer)?;
        // Whoever started the processes may end them all when the first one ends.
        distributed::barrier(self.communicator);
        Ok(if self.ready.snapshot.state.stopped_early {
            Outcome::StoppedEarly
        } else {
            Outcome::Finished
        })
    }

    /// Batches that cannot be learned from: nothing of this step is applied.
    fn reject(
        &mut self,
        what: &str,
        value: f64,
        batches: &[Vec<usize>],
        observer: &mut dyn Observer,
    ) -> Result<()> {
        if let Some(sums) = &mut self.sums {
            sums.clear();
        }
        let snapshot = &mut self.ready.snapshot;
        snapshot.gradients.clear();
        let state = &mut snapshot.state;
        (state.micro_step, state.micro_tokens, state.micro_loss) = (0, 0, 0.0);
        state.bad_steps += 1;
        let examples = batches.concat();
        let first: Vec<String> = examples
            .iter()
            .take(8)
            .map(|example| (example + 1).to_string())
            .collect();
        let message = format!(
            "{what} is {value} at step {} (epoch {}, batch {}, {} examples, the first of those kept {}): the \
             step was not applied",
            state.step + 1,
            state.epoch,
            state.batch - batches.len() as u64,
            examples.len(),
            first.join(", ")
        );
        if state.bad_steps >= BAD_STEPS_LIMIT {
            return Err(TrainError::NotFinite {
                message,
                times: state.bad_steps,
            });
        }
        self.log("rejected", &serde_json::json!({ "reason": message }))?;
        observer.event(&Event::Warning(message));
        Ok(())
    }

    /// Writes a checkpoint; what single processes have of it is gathered in process 0 before.
    fn save(&mut self, kind: CheckpointKind, observer: &mut dyn Observer) -> Result<()> {
        self.complete_snapshot();
        if self.communicator.is_root() {
            self.write_checkpoint(kind, observer)?;
        }
        if let Some(sums) = &self.sums {
            let snapshot = &mut self.ready.snapshot;
            snapshot.gradients.clear();
            if self.session.recipe.distributed.sharding() == Sharding::Optimizer {
                let optimizer = &mut snapshot.optimizer;
                shard::keep_own_moments(self.communicator, sums.buckets(), optimizer);
            }
        }
        self.saved = Instant::now();
        self.votes.save = false;
        Ok(())
    }

    /// The part of [`Trainer::save`] that process 0 does alone.
    fn write_checkpoint(
        &mut self,
        kind: CheckpointKind,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let (recipe, seconds) = (self.session.recipe, self.seconds());
        let Ready {
            task,
            snapshot,
            files: Some(Files { run, log }),
            ..
        } = &mut self.ready
        else {
            return Ok(());
        };
        snapshot.state.seconds = seconds;
        snapshot.state.metrics_lines = log.lines();
        let checkpoint = run.checkpoint_path(snapshot.state.position());
        snapshot.save(&checkpoint, kind, task, recipe)?;
        run.point(Link::Last, &checkpoint)?;
        let keep = &recipe.checkpoints;
        run.prune(keep.keep_last.max(1), keep.average_last)?;
        observer.event(&Event::Saved(checkpoint));
        Ok(())
    }

    fn log_step(&mut self, report: StepReport, observer: &mut dyn Observer) -> Result<()> {
        let state = &mut self.ready.snapshot.state;
        (state.window_loss, state.window_tokens) = (0.0, 0);
        state.train_loss = Some(report.loss);
        (self.window, self.window_before) = (Instant::now(), 0);
        for slow in self.pace.look() {
            observer.event(&Event::Warning(slow));
        }
        self.log("step", &report)?;
        observer.event(&Event::Logged(report));
        Ok(())
    }

    /// Seconds of training over all continuations.
    fn seconds(&self) -> f64 {
        self.before + self.started.elapsed().as_secs_f64()
    }
}
