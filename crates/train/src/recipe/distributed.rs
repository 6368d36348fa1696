//! `[distributed]`, the section of processes that train together: what can be set, what it means, what it is by default.
//!
//! Neighbors: [`super::sections`] has the other sections, [`crate::distributed`] does what it says.

use serde::{Deserialize, Serialize};

/// `[distributed]`: how processes that train together (`mpirun`) share the work; one process alone ignores it, but
/// for `wire`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Distributed {
    /// In which order gradients are added.
    pub reduction: Reduction,
    /// The numbers that gradients travel as.
    pub wire: Wire,
    /// ZeRO-1: the optimizer's state of each parameter is kept by one process only.
    pub shard_optimizer: bool,
    /// Gradients travel while the rest of the backward pass is computed, and not after it.
    pub overlap: bool,
}

/// In which order the gradients of a step's batches are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// Each process adds up its own batches, and the sums are added in the order of the processes: reproducible with
    /// a given number of processes.
    Fast,
    /// In the order of the batches: the same bits with any number of processes, for more traffic if a process has
    /// several batches of a step.
    Exact,
}

/// The numbers that gradients travel as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// As they are.
    F32,
    /// Rounded to half as many bytes; sums are still made in f32. One process rounds as several do.
    Bf16,
}

/// Whether the optimizer's state is divided among the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharding {
    /// Every process has all of it.
    None,
    /// Each process has that of some parameters (ZeRO-1).
    Optimizer,
}

impl Distributed {
    /// What `shard_optimizer` says.
    pub fn sharding(&self) -> Sharding {
        if self.shard_optimizer {
            Sharding::Optimizer
        } else {
            Sharding::None
        }
    }
}

impl Default for Distributed {
    fn default() -> Self {
        Distributed {
            reduction: Reduction::Fast,
            wire: Wire::F32,
            shard_optimizer: false,
            overlap: true,
        }
    }
}
