//! What the loop does with the other processes: batches side by side, gradients that travel meanwhile, decisions
//! that all of them take together. With one process alone, nothing of it costs anything.

use std::{collections::HashSet, sync::atomic::Ordering, time::Instant};

use attentive_model::tensors::{Role, TensorSpec};
use attentive_nn::{ops::handover::handing_over, parameters, pass::Pass};
use burn::tensor::Tensor;

use super::{Ready, Trainer};
use crate::{
    Result,
    data::batches::Round,
    distributed::{
        gradients,
        round::{Report, Votes, report as tell},
        shard,
    },
    optim::optimizer::{Gradients, accumulate, global_norm},
    recipe::{Reduction, Sharding},
    task::{Epoch, Task},
};

impl<T: Task> Trainer<'_, T> {
    /// The forward and the backward pass of this process's batch, if it has one; its gradients are on their way to
    /// the other processes meanwhile. What all processes report comes back.
    pub(super) fn compute(
        &mut self,
        number: u64,
        epoch: &Epoch<T::Examples>,
        round: &Round,
    ) -> Result<Vec<Report>> {
        let votes = self.own_votes();
        let Self {
            session,
            communicator,
            ready,
            sums,
            early,
            tried,
            seconds,
            ..
        } = self;
        let training = &session.recipe.training;
        let Ready {
            task,
            snapshot,
            precision,
            ..
        } = ready;
        if let Some(sums) = sums {
            let batches = round.batches.len();
            let done = snapshot.state.micro_step as usize + batches;
            sums.begin(gradients::Round {
                batches,
                ends_step: done == training.accumulate,
            });
        }
        let mut report = Report {
            seconds: *seconds,
            votes,
            ..Report::default()
        };
        *seconds = 0.0;
        let Some(own) = round.own else {
            let reports = tell(*communicator, report);
            if let Some(sums) = sums {
                sums.end();
            }
            return Ok(reports.wait());
        };
        let indices = epoch.plan.batch(own)?;
        let batch = task.batch(&epoch.examples, &indices)?;
        let pass = &mut Pass::training(training.seed, number << 32 | own as u64, *precision);
        let began = Instant::now();
        let mut work = || {
            let loss = task.loss(&snapshot.model, &batch, number, pass);
            report.loss = loss.clone().into_scalar::<f32>().into();
            report.targets = T::targets(&batch) as f64;
            report.examples = indices.len() as f64;
            let reports = tell(*communicator, report);
            let gradients = report.loss.is_finite().then(|| loss.backward());
            (reports, gradients)
        };
        let reports = match sums {
            None => {
                let (reports, found) = work();
                if let Some(found) = found {
                    let gradients = parameters::gradients(&snapshot.model, found);
                    accumulate(&mut snapshot.gradients, gradients);
                }
                reports
            }
            Some(sums) => {
                // The first batch of an epoch shows which of them were really complete.
                let trial = *tried != Some(number);
                let mut taken = Gradients::new();
                let mut take = |name: &str, gradient: Tensor<1>| {
                    if !trial {
                        sums.put(name, gradient.clone());
                    }
                    taken.insert(name.to_owned(), gradient);
                };
                let wanted = |name: &str| early.contains(name);
                let (reports, found) = handing_over(&snapshot.model, wanted, &mut take, &mut work);
                if let Some(found) = found {
                    for (name, gradient) in parameters::gradients(&snapshot.model, found) {
                        let before = taken.get(&name);
                        if trial && before.is_some_and(|before| !same(before, &gradient)) {
                            early.remove(&name);
                        }
                        if trial || before.is_none() {
                            sums.put(&name, gradient);
                        }
                    }
                    *tried = Some(number);
                }
                *seconds = began.elapsed().as_secs_f64();
                sums.end();
                reports
            }
        };
        Ok(reports.wait())
    }

    /// The gradients of the step in the snapshot, summed over all processes, and their norm.
    pub(super) fn sum_gradients(&mut self) -> f64 {
        let gradients = &mut self.ready.snapshot.gradients;
        if let Some(sums) = &mut self.sums {
            *gradients = sums.finish();
        }
        match self.session.recipe.distributed.sharding() {
            Sharding::Optimizer if self.sums.is_some() => {
                shard::global_norm(self.communicator, gradients)
            }
            _ => global_norm(gradients),
        }
    }

    /// What this process would do; with several, all of them hear of it in the next round.
    pub(super) fn own_votes(&self) -> Votes {
        let recipe = self.session.recipe;
        let (limit, every) = (
            recipe.training.max_minutes,
            recipe.checkpoints.every_minutes,
        );
        Votes {
            stop: self.session.stop.load(Ordering::Relaxed),
            late: limit > 0.0 && self.seconds() >= limit * 60.0,
            save: every > 0.0 && self.saved.elapsed().as_secs_f64() >= every * 60.0,
        }
    }

    /// What all processes have agreed on.
    pub(super) fn votes(&self) -> Votes {
        if self.communicator.size() == 1 {
            self.own_votes()
        } else {
            self.votes
        }
    }

    /// Whether the run can be continued from here as if it had never stopped. In the fast order, sums of gradients
    /// depend on where they are put together, so a step is completed first.
    pub(super) fn can_stop(&self) -> bool {
        let exact = self.session.recipe.distributed.reduction == Reduction::Exact;
        let complete = self.ready.snapshot.state.micro_step == 0;
        complete || exact || self.communicator.size() == 1
    }

    /// Brings what only single processes have to process 0: gradients that wait for the rest of their accumulation,
    /// moments of a sharded optimizer.
    pub(super) fn complete_snapshot(&mut self) {
        let Some(sums) = &mut self.sums else {
            return;
        };
        let snapshot = &mut self.ready.snapshot;
        if snapshot.state.micro_step > 0 {
            snapshot.gradients = sums.so_far();
        }
        if self.session.recipe.distributed.sharding() == Sharding::Optimizer {
            let device = &self.session.device;
            shard::gather_moments(self.communicator, &mut snapshot.optimizer, device);
        }
    }
}

/// Whether two flat tensors hold the same bits.
fn same(left: &Tensor<1>, right: &Tensor<1>) -> bool {
    let bits = |tensor| parameters::to_vec(tensor).into_iter().map(f32::to_bits);
    bits(left).eq(bits(right))
}

/// Parameters that only operations of ours read: those of embeddings Burn reads too, and their gradients are complete
/// at the very end of the backward pass anyway.
pub(super) fn found_early(tensors: &[TensorSpec]) -> HashSet<String> {
    let layers = tensors.iter().filter(|tensor| {
        matches!(
            tensor.role,
            Role::Linear | Role::Norm | Role::Bias | Role::Projection
        )
    });
    layers.map(|tensor| tensor.name.clone()).collect()
}
