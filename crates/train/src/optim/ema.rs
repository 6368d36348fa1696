//! The exponential moving average of the weights: a smoother model than the last step's.
//!
//! Neighbours: [`crate::trainer`] updates it after each step, validates and saves it instead of the
//! raw weights when the recipe asks for it.

use std::collections::BTreeMap;

use attentive_nn::{models::transformer::Transformer, ops::blend, parameters};
use burn::tensor::Tensor;

/// Averaged parameters by name.
#[derive(Debug, Clone)]
pub struct Ema {
    decay: f64,
    values: BTreeMap<String, Tensor<1>>,
}

impl Ema {
    /// Starts at the model's own weights.
    pub fn new(decay: f64, model: &Transformer) -> Self {
        let values = parameters::named(model)
            .into_iter()
            .map(|p| (p.name, p.values))
            .collect();
        Self { decay, values }
    }

    /// Continues from a checkpoint.
    pub fn from_state(decay: f64, values: BTreeMap<String, Tensor<1>>) -> Self {
        Self { decay, values }
    }

    /// Moves the average towards the model. Early steps count more (`(1 + t) / (10 + t)` at most), so
    /// that the random start is soon forgotten.
    pub fn update(&mut self, model: &Transformer, step: u64) {
        let decay = self.decay.min((1.0 + step as f64) / (10.0 + step as f64));
        for parameter in parameters::named(model) {
            if let Some(old) = self.values.remove(&parameter.name) {
                let new = blend(old, decay, parameter.values, 1.0 - decay);
                self.values.insert(parameter.name, new);
            }
        }
    }

    /// `model` with the averaged weights.
    pub fn apply(&self, model: Transformer) -> Transformer {
        parameters::replace(model, |name, old| {
            self.values.get(name).cloned().unwrap_or(old)
        })
    }
}
