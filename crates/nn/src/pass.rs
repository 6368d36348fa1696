//! How a forward pass is to be done: with which noise, and whether attention weights are wanted.
//!
//! A value of the caller's, handed down through the model; no layer has a mode of its own.

use crate::noise::Noise;

/// One forward pass.
#[derive(Debug, Clone)]
pub struct Pass {
    /// What dropout draws from.
    pub noise: Noise,
    /// Whether attention weights come back.
    pub weights: Weights,
}

/// Whether attention weights come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weights {
    /// They are never put together, which is faster.
    Discard,
    /// They come back in the output, of every layer and head.
    Return,
}

impl Pass {
    /// Translating and judging: no noise, no weights.
    pub fn evaluation() -> Self {
        Self {
            noise: Noise::off(),
            weights: Weights::Discard,
        }
    }

    /// Looking inside: no noise, all attention weights.
    pub fn inspection() -> Self {
        Self {
            noise: Noise::off(),
            weights: Weights::Return,
        }
    }

    /// Batch number `batch` of a run with this seed.
    pub fn training(seed: u64, batch: u64) -> Self {
        Self {
            noise: Noise::for_batch(seed, batch),
            weights: Weights::Discard,
        }
    }
}
