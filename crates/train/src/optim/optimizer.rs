//! SGD, RMSprop, Adagrad, Adam, AdamW and Muon over named parameters, with gradient clipping by the global norm.
//!
//! Our own instead of burn-optim's: its clipping works per tensor, its state is filed under random ids
//! that change with every start, and ours must continue bit by bit from a checkpoint.
//! Neighbors: [`crate::trainer`] hands in summed gradients, [`crate::run::snapshot`] stores the moments.

use std::collections::{BTreeMap, BTreeSet};

use attentive_model::tensors::{Role, TensorSpec};
use attentive_nn::{
    ops::{
        AdamStep, Precision, adam_update, blend, by_root_of_squares, orthogonalize, sum_of_squares,
    },
    parameters,
};
use burn::{module::Module, tensor::Tensor};

use crate::recipe::{Optimizer as Settings, OptimizerKind};

/// Gradients by parameter name, flattened.
pub type Gradients = BTreeMap<String, Tensor<1>>;

/// The optimizer and its state: moments by `first.NAME` and `second.NAME`, flattened.
#[derive(Debug, Clone)]
pub struct Optimizer {
    settings: Settings,
    /// The shapes of the matrices that Muon takes care of, by name.
    matrices: BTreeMap<String, [usize; 2]>,
    /// The parameters that AdamW and Muon decay.
    decayed: BTreeSet<String>,
    moments: BTreeMap<String, Tensor<1>>,
}

/// The numbers of one step.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// Counts from 1.
    pub number: u64,
    /// From the schedule.
    pub learning_rate: f64,
    /// Multiplies every gradient first: one over the tokens, and clipping.
    pub gradient_scale: f64,
    /// Of Muon's matrix products.
    pub precision: Precision,
}

impl Optimizer {
    /// An optimizer for a model with these tensors.
    ///
    /// Muon is for the weights of linear layers: rows of the embeddings and of the output projection
    /// belong to tokens and are not directions to turn. Decoupled weight decay is for matrices, embeddings among them,
    /// as in nanoGPT: biases and the scales of normalizations have no reason to be small.
    pub fn new(settings: &Settings, tensors: &[TensorSpec]) -> Self {
        let linear = |tensor: &&TensorSpec| {
            settings.kind == OptimizerKind::Muon && tensor.role == Role::Linear
        };
        let matrices = tensors.iter().filter(linear).filter_map(|tensor| {
            let shape = tensor.shape.as_slice().try_into().ok()?;
            Some((tensor.name.clone(), shape))
        });
        let decayed = tensors.iter().filter(|tensor| tensor.shape.len() > 1);
        Self {
            settings: settings.clone(),
            matrices: matrices.collect(),
            decayed: decayed.map(|tensor| tensor.name.clone()).collect(),
            moments: BTreeMap::new(),
        }
    }

    /// The same with the moments of a checkpoint, see [`Optimizer::moments`].
    pub fn with_moments(mut self, moments: BTreeMap<String, Tensor<1>>) -> Self {
        self.moments = moments;
        self
    }

    /// The moments for a checkpoint: `first.NAME` and `second.NAME`.
    pub fn moments(&self) -> &BTreeMap<String, Tensor<1>> {
        &self.moments
    }

    /// Adds moments, of parameters that it has none of.
    pub fn add_moments(&mut self, mut moments: BTreeMap<String, Tensor<1>>) {
        self.moments.append(&mut moments);
    }

    /// Forgets the moments of all other parameters.
    pub fn retain_moments(&mut self, keep: impl Fn(&str) -> bool) {
        self.moments.retain(|name, _| {
            let parameter = name.split_once('.').map_or("", |(_, parameter)| parameter);
            keep(parameter)
        });
    }

    /// The model after one step.
    pub fn step<M: Module>(&mut self, model: M, mut gradients: Gradients, step: &Step) -> M {
        parameters::replace(model, |name, values| match gradients.remove(name) {
            Some(gradient) => self.update(name, values, gradient, step),
            None => values,
        })
    }

    /// The new values of one parameter.
    fn update(
        &mut self,
        name: &str,
        values: Tensor<1>,
        gradient: Tensor<1>,
        step: &Step,
    ) -> Tensor<1> {
        use OptimizerKind as Kind;
        let rule = self.adam_step(name, step);
        match (self.settings.kind, self.matrices.get(name).copied()) {
            (Kind::Sgd | Kind::Rmsprop | Kind::Adagrad, _) => {
                self.descend(name, values, gradient, step)
            }
            (_, Some(shape)) => {
                let first = self.take("first", name, &values);
                let (values, first) =
                    muon_update(values, gradient, first, shape, &rule, step.precision);
                self.keep("first", name, first);
                values
            }
            (_, None) => {
                let [first, second] =
                    ["first", "second"].map(|kind| self.take(kind, name, &values));
                let [values, first, second] = adam_update(values, gradient, first, second, &rule);
                self.keep("first", name, first);
                self.keep("second", name, second);
                values
            }
        }
    }

    /// One step along the gradient (SGD), divided by the root of its mean squares (RMSprop) or of the sum of all of
    /// them (Adagrad), with momentum. Weight decay is part of the gradient, as in PyTorch.
    fn descend(
        &mut self,
        name: &str,
        values: Tensor<1>,
        gradient: Tensor<1>,
        step: &Step,
    ) -> Tensor<1> {
        let Settings {
            kind,
            beta2,
            epsilon,
            momentum,
            weight_decay,
            ..
        } = self.settings;
        let gradient = blend(gradient, step.gradient_scale, values.clone(), weight_decay);
        let blending = match kind {
            OptimizerKind::Rmsprop => Some([beta2, 1.0 - beta2]),
            OptimizerKind::Adagrad => Some([1.0, 1.0]),
            _ => None,
        };
        let mut direction = gradient;
        if let Some(blending) = blending {
            let squares = self.take("second", name, &values);
            let [scaled, squares] = by_root_of_squares(direction, squares, 1.0, blending, epsilon);
            self.keep("second", name, squares);
            direction = scaled;
        }
        if momentum > 0.0 && kind != OptimizerKind::Adagrad {
            let first = self.take("first", name, &values);
            direction = blend(first, momentum, direction, 1.0);
            self.keep("first", name, direction.clone());
        }
        blend(values, 1.0, direction, -step.learning_rate)
    }

    fn adam_step(&self, name: &str, step: &Step) -> AdamStep {
        let settings = &self.settings;
        let decays = settings.kind != OptimizerKind::Adam && self.decayed.contains(name);
        AdamStep {
            learning_rate: step.learning_rate,
            beta1: settings.beta1,
            beta2: settings.beta2,
            epsilon: settings.epsilon,
            weight_decay: if decays { settings.weight_decay } else { 0.0 },
            step: step.number,
            gradient_scale: step.gradient_scale,
        }
    }

    /// A moment of a parameter, `first` or `second`, which starts at zero.
    fn take(&mut self, kind: &str, name: &str, like: &Tensor<1>) -> Tensor<1> {
        let known = self.moments.remove(&format!("{kind}.{name}"));
        known.unwrap_or_else(|| like.zeros_like())
    }

    fn keep(&mut self, kind: &str, name: &str, moment: Tensor<1>) {
        self.moments.insert(format!("{kind}.{name}"), moment);
    }
}

/// Momentum of the gradients that Muon follows; `optimizer.beta1` is Adam's.
const MOMENTUM: f64 = 0.95;

/// Adam's steps have about this size in units of the learning rate. Steps of Muon are made as large
/// (Liu et al. 2025), so that one learning rate serves both.
const ADAM_STEP: f64 = 0.2;

/// One step of Muon on a matrix (`shape`): the new values, and the momentum.
pub fn muon_update(
    values: Tensor<1>,
    gradient: Tensor<1>,
    momentum: Tensor<1>,
    shape: [usize; 2],
    rule: &AdamStep,
    precision: Precision,
) -> (Tensor<1>, Tensor<1>) {
    let momentum = blend(momentum, MOMENTUM, gradient.clone(), rule.gradient_scale);
    // Nesterov: as if the next gradient were this one again.
    let ahead = blend(gradient, rule.gradient_scale, momentum.clone(), MOMENTUM);
    let direction = orthogonalize(ahead, shape, precision);
    let size = rule.learning_rate * ADAM_STEP * (shape[0].max(shape[1]) as f64).sqrt();
    let kept = 1.0 - rule.learning_rate * rule.weight_decay;
    (blend(values, kept, direction, -size), momentum)
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

#[cfg(test)]
mod tests {
    use attentive_model::config::{ModelConfig, Preset};

    use super::*;

    #[test]
    fn muon_turns_the_weights_of_linear_layers_and_nothing_else() {
        let tensors = Preset::Tiny.config(50, 60).tensors();
        let matrices = |kind| {
            let settings = Settings {
                kind,
                ..Settings::default()
            };
            Optimizer::new(&settings, &tensors).matrices
        };
        assert!(matrices(OptimizerKind::AdamW).is_empty());
        let found = matrices(OptimizerKind::Muon);
        // 4 + 4 layers; 4 matrices in each of 12 attentions, 2 in each of 8 feed-forward networks.
        assert_eq!(found.len(), 12 * 4 + 8 * 2);
        assert_eq!(
            found["encoder.layers.0.feed_forward.inner.weight"],
            [128, 256]
        );
        assert!(found.keys().all(|name| !name.contains("embeddings")));
    }

    #[test]
    fn adamw_decays_matrices_and_neither_biases_nor_scales() {
        let tensor = |role, name: &str, shape: &[usize]| TensorSpec {
            name: name.into(),
            shape: shape.into(),
            role,
        };
        let settings = Settings {
            kind: OptimizerKind::AdamW,
            weight_decay: 0.5,
            ..Settings::default()
        };
        let tensors = [
            tensor(Role::Linear, "weight", &[2, 2]),
            tensor(Role::Bias, "bias", &[2]),
        ];
        let mut optimizer = Optimizer::new(&settings, &tensors);
        let step = Step {
            number: 1,
            learning_rate: 0.1,
            gradient_scale: 1.0,
            precision: Precision::F32,
        };
        for (name, expected) in [("weight", 0.95), ("bias", 1.0)] {
            let values = Tensor::<1>::ones([2], &burn::tensor::Device::flex());
            let after = optimizer.update(name, values.clone(), values.zeros_like(), &step);
            for value in parameters::to_vec(&after) {
                assert!((value - expected).abs() < 1e-6, "{name}: {value}");
            }
        }
    }
}
