//! Bias, a smooth activation (GELU, swish) and dropout in one pass over memory, as [`super::elementwise`] does for ReLU.
//!
//! Every smooth activation is `x gate(x)`: the gate of swish is a sigmoid, that of GELU the normal distribution's
//! `Phi`. So `d/dx = gate + x gate'`, and one function for each gives both. Neighbor: the feed-forward layer.

use std::f32::consts::{FRAC_2_SQRT_PI, SQRT_2};

use attentive_model::config::Activation;
use burn::{backend::flex::FlexTensor, tensor::Tensor};
use rayon::prelude::*;

use super::{
    dropout::{Pattern, dropout},
    elementwise::bias_relu_dropout,
    fused::{CpuOp, apply, contiguous, on_cpu, tensor_like, total},
    simd::{exp, simd},
};
use crate::{layers::activation::Elementwise, random::Keys};

/// `dropout(f(x + bias))` for an activation `f`, `x` `[batch, len, width]`, `bias` `[width]`.
pub fn bias_activation_dropout(
    x: Tensor<3>,
    bias: Tensor<1>,
    activation: Activation,
    rate: f64,
    keys: &mut Option<Keys>,
) -> Tensor<3> {
    if activation == Activation::Relu {
        return bias_relu_dropout(x, bias, rate, keys);
    }
    if !on_cpu(&x.device()) {
        return dropout(composed(x + bias.unsqueeze(), activation), rate, keys);
    }
    let op = BiasActivation {
        activation,
        pattern: Pattern::draw(rate, keys),
    };
    let tracked = x.is_autodiff();
    apply(op, tracked, [x.into_dispatch(), bias.into_dispatch()])
}

/// The activation as plain tensor operations.
fn composed(x: Tensor<3>, activation: Activation) -> Tensor<3> {
    Elementwise::from(activation).apply(x)
}

/// Rows per task; fixed, so that sums over rows do not depend on the number of threads.
const ROWS: usize = 32;

#[derive(Debug, Clone)]
struct BiasActivation {
    activation: Activation,
    pattern: Option<Pattern>,
}

impl CpuOp<2> for BiasActivation {
    /// Both inputs.
    type Saved = (FlexTensor, FlexTensor);

    fn forward(&self, [x, bias]: [FlexTensor; 2]) -> (FlexTensor, Self::Saved) {
        let (x, bias) = (contiguous(x), contiguous(bias));
        let (input, shift) = (x.storage::<f32>(), bias.storage::<f32>());
        let size = ROWS * shift.len();
        let mut output = vec![0.0; input.len()];
        output
            .par_chunks_mut(size)
            .zip(input.par_chunks(size))
            .enumerate()
            .for_each(|(chunk, (output, x))| {
                activate(output, x, shift, self.activation);
                drop_from(output, self.pattern, (chunk * size) as u32);
            });
        let output = tensor_like(&x, output);
        (output, (x, bias))
    }

    fn backward(&self, (x, bias): Self::Saved, gradient: FlexTensor) -> [FlexTensor; 2] {
        let mut gradient = contiguous(gradient);
        let shift = bias.storage::<f32>();
        let width = shift.len();
        let partial: Vec<Vec<f32>> = gradient
            .storage_mut::<f32>()
            .par_chunks_mut(ROWS * width)
            .zip(x.storage::<f32>().par_chunks(ROWS * width))
            .enumerate()
            .map(|(chunk, (gradient, x))| {
                drop_from(gradient, self.pattern, (chunk * ROWS * width) as u32);
                let mut sums = vec![0.0; width];
                differentiate(gradient, x, shift, self.activation, &mut sums);
                sums
            })
            .collect();
        let totals = total(partial, width);
        [gradient, tensor_like(&bias, totals)]
    }
}

simd! {
    fn activate(output: &mut [f32], x: &[f32], bias: &[f32], activation: Activation) {
        match activation {
            Activation::Relu => unreachable!("ReLU has an operation of its own"),
            Activation::Swish => activate_rows(output, x, bias, swish_gate),
            Activation::Gelu => activate_rows(output, x, bias, gelu_gate),
            Activation::GeluTanh => activate_rows(output, x, bias, gelu_tanh_gate),
            Activation::GeluSigmoid => activate_rows(output, x, bias, gelu_sigmoid_gate),
        }
    }

    /// The gradient of the output becomes that of `x`; its sums over the rows are those of the bias.
    fn differentiate(gradient: &mut [f32], x: &[f32], bias: &[f32], activation: Activation, sums: &mut [f32]) {
        match activation {
            Activation::Relu => unreachable!("ReLU has an operation of its own"),
            Activation::Swish => differentiate_rows(gradient, x, bias, sums, swish_gate),
            Activation::Gelu => differentiate_rows(gradient, x, bias, sums, gelu_gate),
            Activation::GeluTanh => differentiate_rows(gradient, x, bias, sums, gelu_tanh_gate),
            Activation::GeluSigmoid => differentiate_rows(gradient, x, bias, sums, gelu_sigmoid_gate),
        }
    }

    fn drop_from(values: &mut [f32], pattern: Option<Pattern>, first: u32) {
        if let Some(pattern) = pattern {
            for (i, value) in values.iter_mut().enumerate() {
                *value *= pattern.factor(first.wrapping_add(i as u32));
            }
        }
    }
}

#[inline(always)]
fn activate_rows(
    output: &mut [f32],
    x: &[f32],
    bias: &[f32],
    gate: impl Fn(f32) -> (f32, f32) + Copy,
) {
    let width = bias.len();
    for (output, x) in output.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
        for ((output, x), bias) in output.iter_mut().zip(x).zip(bias) {
            let x = x + bias;
            *output = x * gate(x).0;
        }
    }
}

#[inline(always)]
fn differentiate_rows(
    gradient: &mut [f32],
    x: &[f32],
    bias: &[f32],
    sums: &mut [f32],
    gate: impl Fn(f32) -> (f32, f32) + Copy,
) {
    let width = bias.len();
    for (gradient, x) in gradient.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
        for (((gradient, x), bias), sum) in
            gradient.iter_mut().zip(x).zip(bias).zip(sums.iter_mut())
        {
            let x = x + bias;
            let (value, slope) = gate(x);
            *gradient *= value + x * slope;
            *sum += *gradient;
        }
    }
}

/// The sigmoid, and its derivative.
#[inline(always)]
fn swish_gate(x: f32) -> (f32, f32) {
    let value = 1.0 / (1.0 + exp(-x));
    (value, value * (1.0 - value))
}

#[inline(always)]
fn gelu_sigmoid_gate(x: f32) -> (f32, f32) {
    let (value, slope) = swish_gate(1.702 * x);
    (value, 1.702 * slope)
}

/// `(1 + tanh(u)) / 2` is `sigmoid(2u)`.
#[inline(always)]
fn gelu_tanh_gate(x: f32) -> (f32, f32) {
    /// `2 sqrt(2 / pi)`, and that times 0.044715.
    const LINEAR: f32 = (std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::SQRT_2) as f32;
    const CUBIC: f32 = 0.071_354_814;
    let (value, slope) = swish_gate(x * (LINEAR + CUBIC * x * x));
    (value, slope * (LINEAR + 3.0 * CUBIC * x * x))
}

/// `Phi`, and the density of the normal distribution.
///
/// The tail `1 - Phi(|x|)` is `exp(-x^2 / 2)` times a polynomial in `t = 1 / (1 + 0.35 |x|)`, that of the CPU
/// runtime (`cpu/activation.rs`), with a relative error of 3.2e-8.
#[inline(always)]
fn gelu_gate(x: f32) -> (f32, f32) {
    const TAIL: [f32; 9] = [
        -0.029_126_084,
        0.143_873_26,
        -0.255_506_6,
        0.158_931_5,
        -0.022_938_566,
        0.105_433_495,
        0.119_852_31,
        0.139_859_1,
        0.139_621_57,
    ];
    let t = 1.0 / (1.0 + 0.35 * x.abs());
    let mut sum = TAIL[0];
    for coefficient in &TAIL[1..] {
        sum = sum * t + coefficient;
    }
    // Beyond this everything is 0, and the square must not overflow.
    let size = x.abs().min(13.0);
    let bell = exp(-0.5 * size * size);
    let tail = sum * t * bell;
    let value = if x > 0.0 { 1.0 - tail } else { tail };
    (value, bell * (0.5 * FRAC_2_SQRT_PI / SQRT_2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::{assert_same_gradients, random};
    use proptest::prelude::*;

    const SMOOTH: [Activation; 4] = [
        Activation::Swish,
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::GeluSigmoid,
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn fused_activations_equal_the_composed_ones(
            rows in 1usize..80, width in 1usize..70, seed in 0u64..1000, dropped in proptest::bool::ANY,
            scale in prop_oneof![Just(1.0f32), Just(6.0)], which in 0usize..SMOOTH.len(),
        ) {
            let (rate, activation) = (if dropped { 0.3 } else { 0.0 }, SMOOTH[which]);
            let keys = || Some(Keys::new(seed, 3));
            let x = random([rows, width], seed).iter().map(|x| x * scale).collect();
            assert_same_gradients(
                [x, random([width], seed + 1)],
                |[x, b]| {
                    let x = x.reshape([1, rows, width]);
                    bias_activation_dropout(x, b.reshape([width]), activation, rate, &mut keys())
                },
                |[x, b]| {
                    let sum = x.reshape([1, rows, width]) + b.reshape([1, 1, width]);
                    dropout(composed(sum, activation), rate, &mut keys())
                },
            );
        }
    }

    #[test]
    fn far_from_zero_nothing_overflows() {
        for gate in [swish_gate, gelu_gate, gelu_tanh_gate, gelu_sigmoid_gate] {
            for x in [-1e4f32, -100.0, 100.0, 1e4] {
                let (value, slope) = gate(x);
                let expected = if x > 0.0 { 1.0 } else { 0.0 };
                assert!((value - expected).abs() < 1e-6, "{x}: {value}");
                assert!((x * slope).abs() < 1e-3, "{x}: {slope}");
            }
        }
    }
}
