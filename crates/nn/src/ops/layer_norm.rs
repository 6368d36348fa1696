//! Layer normalization over the last axis in one pass, with a handwritten backward pass.
//!
//! Composed, it would take eight temporaries of the activations' size; here it takes its output.

use burn::{backend::flex::FlexTensor, tensor::Tensor};
use rayon::prelude::*;

use super::{
    fused::{CpuOp, apply, contiguous, joined, on_cpu, tensor_like, total},
    simd::{simd, sum, sum2},
};

/// `(x - mean) / sqrt(var + epsilon) * weight + bias` over the last axis of `[batch, len, d_model]`.
pub fn layer_norm(x: Tensor<3>, weight: Tensor<1>, bias: Tensor<1>, epsilon: f64) -> Tensor<3> {
    if on_cpu(&x.device()) {
        let op = LayerNorm {
            epsilon: epsilon as f32,
        };
        let tracked = x.is_autodiff();
        return apply(
            op,
            tracked,
            [
                x.into_dispatch(),
                weight.into_dispatch(),
                bias.into_dispatch(),
            ],
        );
    }
    composed(x, weight, bias, epsilon)
}

fn composed(x: Tensor<3>, weight: Tensor<1>, bias: Tensor<1>, epsilon: f64) -> Tensor<3> {
    let centered = x.clone() - x.mean_dim(2);
    let variance = centered.clone().square().mean_dim(2);
    centered / variance.add_scalar(epsilon).sqrt() * weight.unsqueeze() + bias.unsqueeze()
}

#[derive(Debug, Clone)]
struct LayerNorm {
    epsilon: f32,
}

/// Input, weight, and per row the mean and one over the deviation.
#[derive(Debug, Clone)]
struct Saved {
    x: FlexTensor,
    weight: FlexTensor,
    moments: Vec<[f32; 2]>,
}

/// Rows per task; fixed, so that sums over rows do not depend on the number of threads.
const ROWS: usize = 64;

impl CpuOp<3> for LayerNorm {
    type Saved = Saved;

    fn forward(&self, [x, weight, bias]: [FlexTensor; 3]) -> (FlexTensor, Saved) {
        let [x, weight, bias] = [x, weight, bias].map(contiguous);
        let width = weight.storage::<f32>().len();
        let input = x.storage::<f32>();
        let mut output = vec![0.0; input.len()];
        let mut moments = vec![[0.0; 2]; input.len() / width];
        output
            .par_chunks_mut(ROWS * width)
            .zip(input.par_chunks(ROWS * width))
            .zip(moments.par_chunks_mut(ROWS))
            .for_each(|((output, input), moments)| {
                let (weight, bias) = (weight.storage::<f32>(), bias.storage::<f32>());
                forward_rows(input, weight, bias, self.epsilon, output, moments);
            });
        let output = tensor_like(&x, output);
        (output, Saved { x, weight, moments })
    }

    fn backward(&self, saved: Saved, gradient: FlexTensor) -> [FlexTensor; 3] {
        self.backward_onto(saved, gradient, [None, None, None])
    }

    /// In a pre-norm block the input's gradient has a share that went around the sub-layer.
    fn backward_onto(
        &self,
        saved: Saved,
        gradient: FlexTensor,
        [known_x, known_weight, known_bias]: [Option<FlexTensor>; 3],
    ) -> [FlexTensor; 3] {
        let Saved { x, weight, moments } = saved;
        let mut gradient = contiguous(gradient);
        let around = known_x.map(contiguous);
        let around = around.as_ref().map(|around| around.storage::<f32>());
        let scale = weight.storage::<f32>();
        let width = scale.len();
        // The input's gradient overwrites the output's, after the parameters' share is taken.
        let partial: Vec<Vec<f32>> = gradient
            .storage_mut::<f32>()
            .par_chunks_mut(ROWS * width)
            .zip(x.storage::<f32>().par_chunks(ROWS * width))
            .zip(moments.par_chunks(ROWS))
            .enumerate()
            .map(|(chunk, ((gradient, input), moments))| {
                let mut parameters = vec![0.0; 2 * width];
                let around = around.map(|all| &all[chunk * ROWS * width..][..gradient.len()]);
                backward_rows(gradient, input, scale, moments, around, &mut parameters);
                parameters
            })
            .collect();
        let mut totals = total(partial, 2 * width);
        let bias = tensor_like(&weight, totals.split_off(width));
        let weight = tensor_like(&weight, totals);
        [
            gradient,
            joined(known_weight, weight),
            joined(known_bias, bias),
        ]
    }
}

simd! {
    fn forward_rows(
        input: &[f32],
        weight: &[f32],
        bias: &[f32],
        epsilon: f32,
        output: &mut [f32],
        moments: &mut [[f32; 2]],
    ) {
        let width = weight.len();
        let rows = input.chunks_exact(width).zip(output.chunks_exact_mut(width)).zip(moments);
        for ((x, y), moments) in rows {
            let mean = sum(x, |v| v) / width as f32;
            let variance = sum(x, |v| (v - mean) * (v - mean)) / width as f32;
            let inverse = 1.0 / (variance + epsilon).sqrt();
            *moments = [mean, inverse];
            for (((y, x), w), b) in y.iter_mut().zip(x).zip(weight).zip(bias) {
                *y = (x - mean) * inverse * w + b;
            }
        }
    }

    fn backward_rows(
        gradient: &mut [f32],
        input: &[f32],
        weight: &[f32],
        moments: &[[f32; 2]],
        around: Option<&[f32]>,
        parameters: &mut [f32],
    ) {
        let width = weight.len();
        let (weight_total, bias_total) = parameters.split_at_mut(width);
        let mut scaled = vec![0.0; width];
        let mut normal = vec![0.0; width];
        let rows = gradient.chunks_exact_mut(width).zip(input.chunks_exact(width)).zip(moments);
        for (row, ((g, x), [mean, inverse])) in rows.enumerate() {
            for i in 0..width {
                normal[i] = (x[i] - mean) * inverse;
                scaled[i] = g[i] * weight[i];
                weight_total[i] += g[i] * normal[i];
                bias_total[i] += g[i];
            }
            let average = sum(&scaled, |v| v) / width as f32;
            let along = sum2(&scaled, &normal, |s, n| s * n) / width as f32;
            for i in 0..width {
                g[i] = inverse * (scaled[i] - average - normal[i] * along);
            }
            if let Some(around) = around {
                let around = &around[row * width..][..width];
                g.iter_mut().zip(around).for_each(|(g, around)| *g += around);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::{assert_same_gradients, random};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn fused_layer_norm_equals_the_composed_one(
            batch in 1usize..4, len in 1usize..90, width in 1usize..70, seed in 0u64..1000,
        ) {
            assert_same_gradients(
                [random([batch, len, width], seed), random([width], seed + 1), random([width], seed + 2)],
                |[x, w, b]| layer_norm(x.reshape([batch, len, width]), w.reshape([width]), b.reshape([width]), 1e-5),
                |[x, w, b]| composed(x.reshape([batch, len, width]), w.reshape([width]), b.reshape([width]), 1e-5),
            );
        }
    }
}
