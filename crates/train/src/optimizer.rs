//! Adam and AdamW over named parameters, with clipping by the global norm.
//!
//! Our own instead of burn-optim's: its clipping works per tensor, its state is filed under random ids
//! that change with every start, and ours must continue bit by bit from a checkpoint.
//! Neighbours: [`crate::trainer`] hands in summed gradients, [`crate::checkpoint`] stores the moments.

use std::collections::BTreeMap;

use attentive_nn::{
    models::transformer::Transformer,
    ops::{AdamStep, adam_update, blend, sum_of_squares},
    parameters,
};
use burn::tensor::Tensor;

use crate::recipe::{Optimizer, OptimizerKind};

/// Gradients by parameter name, flattened.
pub type Gradients = BTreeMap<String, Tensor<1>>;

/// First and second moments by parameter name.
#[derive(Debug, Clone, Default)]
pub struct Adam {
    moments: BTreeMap<String, (Tensor<1>, Tensor<1>)>,
}

impl Adam {
    /// One step: `scale` multiplies every gradient first (one over the tokens, and clipping).
    pub fn step(
        &mut self,
        model: Transformer,
        mut gradients: Gradients,
        recipe: &Optimizer,
        step: u64,
        learning_rate: f64,
        scale: f64,
    ) -> Transformer {
        let rule = AdamStep {
            learning_rate,
            beta1: recipe.beta1,
            beta2: recipe.beta2,
            epsilon: recipe.epsilon,
            weight_decay: match recipe.kind {
                OptimizerKind::Adam => 0.0,
                OptimizerKind::AdamW => recipe.weight_decay,
            },
            step,
            gradient_scale: scale,
        };
        parameters::replace(model, |name, values| {
            let Some(gradient) = gradients.remove(name) else {
                return values;
            };
            let (first, second) = self
                .moments
                .remove(name)
                .unwrap_or_else(|| (values.zeros_like(), values.zeros_like()));
            let [values, first, second] = adam_update(values, gradient, first, second, &rule);
            self.moments.insert(name.to_string(), (first, second));
            values
        })
    }

    /// The moments for a checkpoint: `first.NAME` and `second.NAME`.
    pub fn state(&self) -> impl Iterator<Item = (String, &Tensor<1>)> {
        self.moments.iter().flat_map(|(name, (first, second))| {
            [
                (format!("first.{name}"), first),
                (format!("second.{name}"), second),
            ]
        })
    }

    /// The reverse of [`Adam::state`].
    pub fn from_state(mut state: BTreeMap<String, Tensor<1>>) -> Self {
        let names: Vec<String> = state
            .keys()
            .filter_map(|key| key.strip_prefix("first.").map(str::to_string))
            .collect();
        let mut moments = BTreeMap::new();
        for name in names {
            let first = state.remove(&format!("first.{name}"));
            let second = state.remove(&format!("second.{name}"));
            if let (Some(first), Some(second)) = (first, second) {
                moments.insert(name, (first, second));
            }
        }
        Self { moments }
    }
}

/// Adds `new` to what has been accumulated.
pub fn accumulate(total: &mut Gradients, new: Gradients) {
    for (name, gradient) in new {
        let sum = match total.remove(&name) {
            Some(old) => blend(old, 1.0, gradient, 1.0),
            None => gradient,
        };
        total.insert(name, sum);
    }
}

/// The norm of all gradients taken as one vector.
pub fn global_norm(gradients: &Gradients) -> f64 {
    gradients.values().map(sum_of_squares).sum::<f64>().sqrt()
}

/// What to multiply gradients with so that their norm is at most `limit` (0: no limit), as
/// `torch.nn.utils.clip_grad_norm_` does.
pub fn clip_scale(norm: f64, limit: f64) -> f64 {
    if limit > 0.0 {
        (limit / (norm + 1e-6)).min(1.0)
    } else {
        1.0
    }
}
