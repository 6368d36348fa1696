//! The exponential moving average of the weights: a smoother model than the last step's.
//!
//! Neighbors: [`crate::trainer`] updates it after each step; where the recipe asks for it, it is validated
//! and saved instead of the raw weights.

use std::collections::BTreeMap;

use attentive_nn::{ops::blend, parameters};
use burn::{module::Module, tensor::Tensor};

/// Averaged parameters by name.
#[derive(Debug, Clone)]
pub struct Ema {
    decay: f64,
    values: BTreeMap<String, Tensor<1>>,
}

impl Ema {
    /// Starts at the model's own weights: random ones, or the average of a checkpoint.
    pub fn new(decay: f64, model: &impl Module) -> Self {
        let values = parameters::named(model)
            .into_iter()
            .map(|p| (p.name, p.values))
            .collect();
        Self { decay, values }
    }

    /// Moves the average towards the model. Early steps count more (`(1 + t) / (10 + t)` at most), so
    /// that the random start is soon forgotten.
    pub fn update(&mut self, model: &impl Module, step: u64) {
        let decay = self.decay.min((1.0 + step as f64) / (10.0 + step as f64));
        for parameter in parameters::named(model) {
            if let Some(old) = self.values.remove(&parameter.name) {
                let new = blend(old, decay, parameter.values, 1.0 - decay);
                self.values.insert(parameter.name, new);
            }
        }
    }

    /// `model` with the averaged weights.
    pub fn apply<M: Module>(&self, model: M) -> M {
        parameters::replace(model, |name, old| {
            self.values.get(name).cloned().unwrap_or(old)
        })
    }
}
