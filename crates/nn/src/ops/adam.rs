//! What the optimizer does to one parameter: a step of Adam or AdamW (§5.3) as PyTorch computes it, the step of RMSprop
//! and Adagrad, the gradient's norm, sums of gradients and averages of weights.
//!
//! On the CPU each is one pass over memory, in place; elsewhere it is composed.

use burn::{
    backend::{Flex, flex::FlexTensor},
    tensor::Tensor,
};
use rayon::prelude::*;

use super::{
    fused::{contiguous, on_cpu},
    simd::{simd, sum},
};

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
    let numbers = Numbers::of(rule);
    if !on_cpu(&values.device()) {
        return composed(values, gradient, first, second, &numbers);
    }
    // Whoever is the only owner of a storage changes it in place.
    let [mut p, g, mut m, mut v] = [values, gradient, first, second].map(primitive);
    p.storage_mut::<f32>()
        .par_chunks_mut(CHUNK)
        .zip(m.storage_mut::<f32>().par_chunks_mut(CHUNK))
        .zip(v.storage_mut::<f32>().par_chunks_mut(CHUNK))
        .zip(g.storage::<f32>().par_chunks(CHUNK))
        .for_each(|(((p, m), v), g)| adam_chunk(p, m, v, g, numbers));
    [p, m, v].map(Tensor::from_primitive::<Flex>)
}

/// The gradient divided by the root of a mean or sum of its squares, and that mean: what RMSprop and Adagrad have in
/// common. `squares = squares * kept + (gradient * scale)^2 * added`.
pub fn by_root_of_squares(
    gradient: Tensor<1>,
    squares: Tensor<1>,
    scale: f64,
    [kept, added]: [f64; 2],
    epsilon: f64,
) -> [Tensor<1>; 2] {
    if !on_cpu(&gradient.device()) {
        let gradient = gradient.mul_scalar(scale);
        let squares = squares.mul_scalar(kept) + gradient.clone().square().mul_scalar(added);
        let root = squares.clone().sqrt().add_scalar(epsilon);
        return [gradient / root, squares];
    }
    let [mut g, mut v] = [gradient, squares].map(primitive);
    let numbers = [scale, kept, added, epsilon].map(|number| number as f32);
    g.storage_mut::<f32>()
        .par_chunks_mut(CHUNK)
        .zip(v.storage_mut::<f32>().par_chunks_mut(CHUNK))
        .for_each(|(g, v)| root_chunk(g, v, numbers));
    [g, v].map(Tensor::from_primitive::<Flex>)
}

/// `left * a + right * b` of two flat tensors of one length: gradients that accumulate, weights that
/// are averaged.
pub fn blend(left: Tensor<1>, a: f64, right: Tensor<1>, b: f64) -> Tensor<1> {
    if !on_cpu(&left.device()) {
        return left.mul_scalar(a) + right.mul_scalar(b);
    }
    let [mut left, right] = [left, right].map(primitive);
    left.storage_mut::<f32>()
        .par_chunks_mut(CHUNK)
        .zip(right.storage::<f32>().par_chunks(CHUNK))
        .for_each(|(left, right)| blend_chunk(left, a as f32, right, b as f32));
    Tensor::from_primitive::<Flex>(left)
}

/// The sum of squares of a flat tensor, in double precision and in a fixed order.
pub fn sum_of_squares(values: &Tensor<1>) -> f64 {
    if !on_cpu(&values.device()) {
        return f64::from(values.clone().square().sum().into_scalar::<f32>());
    }
    let parts: Vec<f64> = primitive(values.clone())
        .storage::<f32>()
        .par_chunks(CHUNK)
        .map(squares_of_chunk)
        .collect();
    parts.iter().sum()
}

/// Elements per task; fixed, so that sums do not depend on the number of threads.
const CHUNK: usize = 1 << 14;

/// The values in order. Callers have asked [`on_cpu`].
pub(super) fn primitive(tensor: Tensor<1>) -> FlexTensor {
    match tensor.try_into_primitive::<Flex>() {
        Ok(primitive) => contiguous(primitive),
        Err(_) => unreachable!("callers check the device with on_cpu"),
    }
}

/// An [`AdamStep`] as the inner loop needs it.
#[derive(Clone, Copy)]
struct Numbers {
    beta1: f32,
    beta2: f32,
    epsilon: f32,
    scale: f32,
    /// What remains of the values after weight decay.
    decay: f32,
    /// The learning rate, corrected for the first moment's start at zero.
    step_size: f32,
    /// The root of the second moment's correction.
    root2: f32,
}

impl Numbers {
    fn of(rule: &AdamStep) -> Self {
        let correction = |beta: f64| 1.0 - beta.powf(rule.step as f64);
        Self {
            beta1: rule.beta1 as f32,
            beta2: rule.beta2 as f32,
            epsilon: rule.epsilon as f32,
            scale: rule.gradient_scale as f32,
            decay: (1.0 - rule.learning_rate * rule.weight_decay) as f32,
            step_size: (rule.learning_rate / correction(rule.beta1)) as f32,
            root2: correction(rule.beta2).sqrt() as f32,
        }
    }
}

fn composed(
    values: Tensor<1>,
    gradient: Tensor<1>,
    first: Tensor<1>,
    second: Tensor<1>,
    n: &Numbers,
) -> [Tensor<1>; 3] {
    let gradient = gradient.mul_scalar(n.scale);
    let first = first.mul_scalar(n.beta1) + gradient.clone().mul_scalar(1.0 - n.beta1);
    let second = second.mul_scalar(n.beta2) + gradient.square().mul_scalar(1.0 - n.beta2);
    let root = second
        .clone()
        .sqrt()
        .div_scalar(n.root2)
        .add_scalar(n.epsilon);
    let values = values.mul_scalar(n.decay) - (first.clone() / root).mul_scalar(n.step_size);
    [values, first, second]
}

simd! {
    fn adam_chunk(p: &mut [f32], m: &mut [f32], v: &mut [f32], g: &[f32], n: Numbers) {
        for (((p, m), v), g) in p.iter_mut().zip(m).zip(v).zip(g) {
            let g = g * n.scale;
            *m = *m * n.beta1 + g * (1.0 - n.beta1);
            *v = *v * n.beta2 + g * g * (1.0 - n.beta2);
            *p = *p * n.decay - n.step_size * *m / (v.sqrt() / n.root2 + n.epsilon);
        }
    }

    fn root_chunk(g: &mut [f32], v: &mut [f32], numbers: [f32; 4]) {
        let [scale, kept, added, epsilon] = numbers;
        for (g, v) in g.iter_mut().zip(v) {
            let scaled = *g * scale;
            *v = *v * kept + scaled * scaled * added;
            *g = scaled / (v.sqrt() + epsilon);
        }
    }

    fn blend_chunk(left: &mut [f32], a: f32, right: &[f32], b: f32) {
        for (left, right) in left.iter_mut().zip(right) {
            *left = *left * a + *right * b;
        }
    }

    /// Short runs in single precision, their sums in double.
    fn squares_of_chunk(values: &[f32]) -> f64 {
        values.chunks(256).map(|run| f64::from(sum(run, |v| v * v))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::{floats, random, with_composed_forms};
    use burn::tensor::{Device, TensorData};
    use proptest::prelude::*;

    fn tensor(values: Vec<f32>) -> Tensor<1> {
        let count = values.len();
        Tensor::from_data(TensorData::new(values, [count]), &Device::flex())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn fused_adam_equals_the_composed_one(
            count in 1usize..40_000, step in 1u64..50, weight_decay in 0.0f64..0.1, seed in 0u64..1000,
        ) {
            let rule = AdamStep {
                learning_rate: 0.01, beta1: 0.9, beta2: 0.98, epsilon: 1e-9, weight_decay, step,
                gradient_scale: 0.25,
            };
            let inputs = || {
                let second = random([count], seed + 3).iter().map(|v| v.abs() + 1e-3).collect();
                let [p, g, m] = [0, 1, 2].map(|i| tensor(random([count], seed + i)));
                (p, g, m, tensor(second))
            };
            let (p, g, m, v) = inputs();
            let fused = adam_update(p, g, m, v, &rule);
            let (p, g, m, v) = inputs();
            let plain = composed(p, g, m, v, &Numbers::of(&rule));
            for (fused, plain) in fused.into_iter().zip(plain) {
                for (f, c) in floats(fused).into_iter().zip(floats(plain)) {
                    prop_assert!((f - c).abs() <= 1e-5 * c.abs().max(1.0), "fused {f}, composed {c}");
                }
            }
        }
    }

    #[test]
    fn the_fused_root_of_squares_equals_the_composed_one() {
        let squares: Vec<f32> = random([20_001], 2).iter().map(|v| v.abs()).collect();
        let run = || {
            let (g, v) = (tensor(random([20_001], 1)), tensor(squares.clone()));
            by_root_of_squares(g, v, 0.5, [0.9, 0.1], 1e-8)
        };
        let (fused, plain) = (run(), with_composed_forms(run));
        for (fused, plain) in fused.into_iter().zip(plain) {
            for (f, c) in floats(fused).into_iter().zip(floats(plain)) {
                assert!((f - c).abs() <= 1e-5 * c.abs().max(1.0), "{f} and {c}");
            }
        }
    }

    #[test]
    fn blending_and_norms_are_right_and_leave_shared_tensors_alone() {
        let (left, right) = (random([20_001], 1), random([20_001], 2));
        let shared = tensor(left.clone());
        let blended = floats(blend(shared.clone(), 0.25, tensor(right.clone()), 0.75));
        for ((l, r), got) in left.iter().zip(&right).zip(blended) {
            assert!((l * 0.25 + r * 0.75 - got).abs() < 1e-6);
        }
        assert_eq!(floats(shared.clone()), left);
        let exact: f64 = left.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
        assert!((sum_of_squares(&shared) / exact - 1.0).abs() < 1e-6);
    }
}
