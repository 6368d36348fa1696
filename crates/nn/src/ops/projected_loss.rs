//! The output projection and the label-smoothed loss together, some rows at a time.
//!
//! The logits of a batch are the largest tensor of a training step, by far in a small model. Here those of
//! [`ROWS`] rows are computed, read for the loss, overwritten by their gradient and multiplied into the
//! gradients of all inputs while they are in the cache, so that the backward pass has nothing left to do.
//! Neighbors: [`super::label_smoothing`] defines the loss, [`super::linear`] the projection.

use burn::{
    backend::flex::FlexTensor,
    tensor::{Tensor, TensorData},
};
use rayon::prelude::*;

use super::{
    fused::{CpuOp, apply, contiguous, on_cpu, tensor_like},
    label_smoothing::{SmoothedLoss, Smoothing, smoothed_loss},
    linear::{affine, column_sums},
    matrix::{Destination, Matrix, Precision, add_product, dense, write_product},
    simd::simd,
};

/// The loss of logits `x W + b`, see [`smoothed_loss`]: `x` `[rows, d_model]`, `weight` `[d_model, vocab]`, one
/// target per row.
pub fn projected_loss(
    x: Tensor<2>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    targets: &[u32],
    epsilon: f64,
    precision: Precision,
) -> SmoothedLoss {
    if !on_cpu(&x.device()) {
        return smoothed_loss(affine(x, weight, bias, precision), targets, epsilon);
    }
    let tracked = x.is_autodiff();
    let op = ProjectedLoss {
        smoothing: Smoothing::new(epsilon, weight.dims()[1]),
        targets: targets.to_vec(),
        precision,
        tracked,
    };
    let inputs = [
        x.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
    ];
    SmoothedLoss::from_sums(apply(op, tracked, inputs))
}

#[derive(Debug, Clone)]
struct ProjectedLoss {
    smoothing: Smoothing,
    targets: Vec<u32>,
    precision: Precision,
    /// Whether there will be a backward pass.
    tracked: bool,
}

/// Rows whose logits are there at a time; fixed, for the gradients are added up in these portions.
const ROWS: usize = 512;

/// Rows per task of the loss.
const TASK: usize = 16;

impl CpuOp<3> for ProjectedLoss {
    /// The gradients of all inputs, if there will be a backward pass.
    type Saved = Option<[FlexTensor; 3]>;

    fn forward(&self, [x, weight, bias]: [FlexTensor; 3]) -> (FlexTensor, Self::Saved) {
        let (x, weight, bias) = (contiguous(x), dense(weight), contiguous(bias));
        let (input, map) = (Matrix::of(&x), Matrix::of(&weight));
        let (vocab, width) = (map.columns, map.rows);
        let by_rows = weight.is_contiguous();
        let bias_row = Destination::Bias(bias.storage::<f32>());
        let mut sums = [0.0; 2];
        let mut logits = vec![0.0; ROWS.min(input.rows) * vocab];
        let mut gradients = self.tracked.then(|| {
            [
                vec![0.0; input.rows * width],
                vec![0.0; width * vocab],
                vec![0.0; vocab],
            ]
        });
        for (chunk, targets) in self.targets.chunks(ROWS).enumerate() {
            let rows = input.some_rows(chunk * ROWS, targets.len());
            let logits = &mut logits[..targets.len() * vocab];
            write_product(logits, rows, map, bias_row, self.precision);
            let losses = self.read(logits, targets);
            sums = [sums[0] + losses[0], sums[1] + losses[1]];
            let Some([d_x, d_weight, d_bias]) = &mut gradients else {
                continue;
            };
            let output = Matrix::by_rows(logits, vocab);
            let d_x = &mut d_x[chunk * ROWS * width..][..targets.len() * width];
            write_product(
                d_x,
                output,
                map.transposed(),
                Destination::Replace,
                self.precision,
            );
            if by_rows {
                add_product(d_weight, rows.transposed(), output, self.precision);
            } else {
                add_product(d_weight, output.transposed(), rows, self.precision);
            }
            let sums = column_sums(logits, vocab);
            d_bias.iter_mut().zip(sums).for_each(|(d, sum)| *d += sum);
        }
        let saved = gradients.map(|[d_x, d_weight, d_bias]| {
            let d_weight = if by_rows {
                tensor_like(&weight, d_weight)
            } else {
                tensor_like(&weight.transpose(0, 1), d_weight).transpose(0, 1)
            };
            [tensor_like(&x, d_x), d_weight, tensor_like(&bias, d_bias)]
        });
        let output = TensorData::new(sums.map(|sum| sum as f32).to_vec(), [2]);
        (FlexTensor::from_data(output), saved)
    }

    fn backward(&self, saved: Self::Saved, gradient: FlexTensor) -> [FlexTensor; 3] {
        let factor = contiguous(gradient).storage::<f32>()[0];
        let gradients = saved.expect("a backward pass needs a forward pass that was tracked");
        gradients.map(|mut gradient| {
            if factor != 1.0 {
                let values = gradient.storage_mut::<f32>();
                values
                    .par_chunks_mut(1 << 14)
                    .for_each(|values| multiply_all(values, factor));
            }
            gradient
        })
    }
}

impl ProjectedLoss {
    /// Objective and cross-entropy of some rows, whose logits become their gradients.
    fn read(&self, logits: &mut [f32], targets: &[u32]) -> [f64; 2] {
        let vocab = logits.len() / targets.len();
        let entropy = self.smoothing.negative_entropy(vocab);
        let partial: Vec<[f64; 2]> = logits
            .par_chunks_mut(TASK * vocab)
            .zip(targets.par_chunks(TASK))
            .map(|(logits, targets)| {
                let mut sums = [0.0; 2];
                for (row, target) in logits.chunks_mut(vocab).zip(targets) {
                    let (loss, log_sum) = self.smoothing.read(row, *target, entropy);
                    sums = [sums[0] + loss[0], sums[1] + loss[1]];
                    if self.tracked {
                        self.smoothing.differentiate(row, *target, log_sum, 1.0);
                    }
                }
                sums
            })
            .collect();
        let sum = |sums: [f64; 2], part: &[f64; 2]| [sums[0] + part[0], sums[1] + part[1]];
        partial.iter().fold([0.0; 2], sum)
    }
}

simd! {
    fn multiply_all(values: &mut [f32], factor: f32) {
        values.iter_mut().for_each(|value| *value *= factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::{assert_same_gradients, random};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn projection_and_loss_together_equal_one_after_the_other(
            rows in prop_oneof![1usize..40, ROWS - 1..ROWS + 40], vocab in 4usize..90, width in 1usize..40,
            tied in proptest::bool::ANY, factor in prop_oneof![Just(1.0), Just(0.5)], seed in 0u64..1000,
        ) {
            let targets: Vec<u32> = (0..rows).map(|i| ((i * 7 + seed as usize) % vocab) as u32).collect();
            let inputs = |[x, w, b]: [Tensor<1>; 3]| {
                let weight = if tied {
                    w.reshape([vocab, width]).transpose()
                } else {
                    w.reshape([width, vocab])
                };
                (x.reshape([rows, width]), weight, b.reshape([vocab]))
            };
            assert_same_gradients(
                [random([rows, width], seed), random([width, vocab], seed + 1), random([vocab], seed + 2)],
                |tensors| {
                    let (x, w, b) = inputs(tensors);
                    projected_loss(x, w, b, &targets, 0.1, Precision::F32).objective * factor
                },
                |tensors| {
                    let (x, w, b) = inputs(tensors);
                    smoothed_loss(x.matmul(w) + b.unsqueeze(), &targets, 0.1).objective * factor
                },
            );
        }
    }
}
