//! `[pruning]`, the section of learned token pruning: what can be set, what it means, what it is by default.
//!
//! Neighbors: [`super::sections`] has the other sections, [`crate::task::classification`] learns the thresholds.

use serde::{Deserialize, Serialize};

/// `[pruning]`: how the thresholds of learned token pruning are learned (`model.pruning` = "learned_thresholds").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PruningSection {
    /// Epochs in which tokens leave by a degree and thresholds are learned. Afterwards they leave for good, thresholds stay,
    /// and the other weights go on learning.
    pub soft_epochs: usize,
    /// Of the sigmoid that says to which degree a token stays: the smaller, the more abrupt.
    pub temperature: f64,
    /// Weight of the share of tokens that are kept, the mean over the layers, in the loss.
    pub regularizer: f64,
    /// The threshold of the last layer at the beginning; those before it are evenly smaller.
    pub initial_threshold: f64,
}

impl Default for PruningSection {
    fn default() -> Self {
        PruningSection {
            soft_epochs: 1,
            temperature: 0.01,
            regularizer: 0.1,
            initial_threshold: 0.02,
        }
    }
}
