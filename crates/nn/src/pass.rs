//! How a forward pass is done: with which dropout, in which precision, and whether attention weights are
//! returned.
//!
//! A value that the caller passes down through the model; no layer has a mode of its own.

use crate::{ops::Precision, random::Keys};

/// One forward pass.
#[derive(Debug, Clone)]
pub struct Pass {
    /// What dropout draws its masks from; none outside of training, where nothing is dropped.
    pub dropout: Option<Keys>,
    /// Whether attention weights are returned.
    pub weights: Weights,
    /// Of matrix products with weights, and of their backward pass.
    pub precision: Precision,
}

/// Whether attention weights are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weights {
    /// They are not, which is faster.
    Discard,
    /// They are, of every layer and head.
    Return,
}

impl Pass {
    /// Translation and evaluation: no dropout, no weights, f32.
    pub fn evaluation() -> Self {
        Self {
            dropout: None,
            weights: Weights::Discard,
            precision: Precision::F32,
        }
    }

    /// Inspection: no dropout, all attention weights, f32.
    pub fn inspection() -> Self {
        Self {
            weights: Weights::Return,
            ..Self::evaluation()
        }
    }

    /// Batch number `batch` of a training run with this seed.
    pub fn training(seed: u64, batch: u64, precision: Precision) -> Self {
        Self {
            dropout: Some(Keys::new(seed, batch)),
            precision,
            ..Self::evaluation()
        }
    }
}
