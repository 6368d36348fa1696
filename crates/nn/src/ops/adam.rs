//! One Adam or AdamW step for one parameter (§5.3), as PyTorch computes it.
//!
//! On the CPU everything happens in one pass over memory, in place; elsewhere it is composed.

use burn::{backend::Flex, tensor::Tensor};
use rayon::prelude::*;

use super::fused::contiguous;

/// The numbers of one step.
#[derive(Debug, Clone, Copy)]
pub struct AdamStep {
    /// From the schedule.
    pub learning_rate: f64,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// Decoupled weight decay (AdamW); 0 is Adam.
    pub weight_decay: f64,
    /// Counts from 1.
    pub step: u64,
    /// Multiplies the gradient first.
    pub gradient_scale: f64,
}

/// Returns the new values and both moments; all four inputs are flat and of one length.
pub fn adam_update(
    values: Tensor<1>,
    gradient: Tensor<1>,
    first: Tensor<1>,
    second: Tensor<1>,
    rule: &AdamStep,
) -> [Tensor<1>; 3] {
    let correction1 = 1.0 - rule.beta1.powf(rule.step as f64);
    let correction2 = 1.0 - rule.beta2.powf(rule.step as f64);
    let step_size = rule.learning_rate / correction1;
    let decay = 1.0 - rule.learning_rate * rule.weight_decay;
    let primitives = [
        values.clone(),
        gradient.clone(),
        first.clone(),
        second.clone(),
    ]
    .map(|tensor| tensor.try_into_primitive::<Flex>());
    let [Ok(mut p), Ok(g), Ok(mut m), Ok(mut v)] = primitives else {
        let gradient = gradient.mul_scalar(rule.gradient_scale);
        let first = first.mul_scalar(rule.beta1) + gradient.clone().mul_scalar(1.0 - rule.beta1);
        let second = second.mul_scalar(rule.beta2) + gradient.square().mul_scalar(1.0 - rule.beta2);
        let root = second
            .clone()
            .sqrt()
            .div_scalar(correction2.sqrt())
            .add_scalar(rule.epsilon);
        let values = values.mul_scalar(decay) - (first.clone() / root).mul_scalar(step_size);
        return [values, first, second];
    };
    // Whoever is the only owner of a storage from here on changes it in place.
    drop((values, gradient, first, second));
    let g = contiguous(g);
    let [beta1, beta2, epsilon, scale] =
        [rule.beta1, rule.beta2, rule.epsilon, rule.gradient_scale].map(|x| x as f32);
    let [decay, step_size, root2] = [decay, step_size, correction2.sqrt()].map(|x| x as f32);
    const CHUNK: usize = 1 << 14;
    p.storage_mut::<f32>()
        .par_chunks_mut(CHUNK)
        .zip(m.storage_mut::<f32>().par_chunks_mut(CHUNK))
        .zip(v.storage_mut::<f32>().par_chunks_mut(CHUNK))
        .zip(g.storage::<f32>().par_chunks(CHUNK))
        .for_each(|(((p, m), v), g)| {
            for (((p, m), v), g) in p.iter_mut().zip(m).zip(v).zip(g) {
                let g = g * scale;
                *m = *m * beta1 + g * (1.0 - beta1);
                *v = *v * beta2 + g * g * (1.0 - beta2);
                *p = *p * decay - step_size * *m / (v.sqrt() / root2 + epsilon);
            }
        });
    [p, m, v].map(Tensor::from_primitive::<Flex>)
}

/// The sum of squares of a flat tensor, in double precision and in a fixed order.
pub fn sum_of_squares(values: &Tensor<1>) -> f64 {
    let Ok(primitive) = values.clone().try_into_primitive::<Flex>() else {
        return f64::from(values.clone().square().sum().into_scalar::<f32>());
    };
    let parts: Vec<f64> = contiguous(primitive)
        .storage::<f32>()
        .par_chunks(1 << 14)
        .map(|chunk| {
            chunk
                .chunks(64)
                .map(|run| f64::from(run.iter().map(|v| v * v).sum::<f32>()))
                .sum()
        })
        .collect();
    parts.iter().sum()
}
