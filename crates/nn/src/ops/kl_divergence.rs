//! The KL divergence between two predictions of the same tokens: the second half of R-Drop (Liang et al.
//! 2021), which trains a model to predict the same with different dropout.
//!
//! `KL(p || q) + KL(q || p) = sum (p - q) (ln p - ln q)`, summed over all pairs of rows. Fused for the
//! same reason as the loss ([`super::label_smoothing`]): composed, the probabilities of both halves are
//! written and read many times. Neighbor: `attentive-train` adds it to the loss.

use attentive_text::special::PAD;
use burn::{
    backend::flex::FlexTensor,
    tensor::{Int, Tensor, TensorData, activation::log_softmax},
};
use rayon::prelude::*;

use super::{
    fused::{CpuOp, apply, contiguous, on_cpu},
    simd::{exp, log_sum, simd, sum2},
};

/// The symmetric KL divergence between row `i` and row `i + rows / 2` of `logits` `[rows, vocab]`, summed
/// over the first half. `targets` are those of the first half; where they are padding, nothing counts.
///
/// # Panics
/// If there are not twice as many rows as targets.
pub fn kl_divergence(logits: Tensor<2>, targets: &[u32]) -> Tensor<1> {
    assert_eq!(logits.dims()[0], 2 * targets.len(), "two rows for a target");
    if !on_cpu(&logits.device()) {
        return composed(logits, targets);
    }
    let op = FusedDivergence {
        targets: targets.to_vec(),
    };
    apply(op, logits.is_autodiff(), [logits.into_dispatch()])
}

fn composed(logits: Tensor<2>, targets: &[u32]) -> Tensor<1> {
    let rows = targets.len();
    let ids: Vec<i64> = targets.iter().map(|id| i64::from(*id)).collect();
    let targets = Tensor::<1, Int>::from_data(TensorData::new(ids, [rows]), &logits.device());
    let counts = targets.not_equal_elem(i64::from(PAD)).float(); // [rows]
    let log_probs = log_softmax(logits, 1);
    let first = log_probs.clone().narrow(0, 0, rows);
    let second = log_probs.narrow(0, rows, rows);
    let terms = (first.clone().exp() - second.clone().exp()) * (first - second);
    (terms.sum_dim(1).reshape([rows]) * counts).sum()
}

#[derive(Debug, Clone)]
struct FusedDivergence {
    targets: Vec<u32>,
}

/// Pairs of rows per task; fixed, so that sums do not depend on the number of threads.
const ROWS: usize = 16;

impl CpuOp<1> for FusedDivergence {
    /// The logits and, for each pair, what is subtracted from its rows to make log-probabilities.
    type Saved = (FlexTensor, Vec<[f32; 2]>);

    fn forward(&self, [logits]: [FlexTensor; 1]) -> (FlexTensor, Self::Saved) {
        let logits = contiguous(logits);
        let values = logits.storage::<f32>();
        let vocab = values.len() / (2 * self.targets.len());
        let (first, second) = values.split_at(values.len() / 2);
        let mut normalizers = vec![[0.0f32; 2]; self.targets.len()];
        let partial: Vec<f64> = first
            .par_chunks(ROWS * vocab)
            .zip(second.par_chunks(ROWS * vocab))
            .zip(self.targets.par_chunks(ROWS))
            .zip(normalizers.par_chunks_mut(ROWS))
            .map(|(((first, second), targets), normalizers)| {
                let pairs = first.chunks(vocab).zip(second.chunks(vocab));
                let mut total = 0.0;
                for (((a, b), target), normalizer) in pairs.zip(targets).zip(normalizers) {
                    if *target != PAD {
                        *normalizer = log_sums(a, b);
                        total += divergence(a, b, *normalizer);
                    }
                }
                total
            })
            .collect();
        let total = partial.iter().sum::<f64>() as f32;
        let output = FlexTensor::from_data(TensorData::new(vec![total], [1]));
        (output, (logits, normalizers))
    }

    fn backward(
        &self,
        (mut logits, normalizers): Self::Saved,
        gradient: FlexTensor,
    ) -> [FlexTensor; 1] {
        let gradient = contiguous(gradient).storage::<f32>()[0];
        let values = logits.storage_mut::<f32>();
        let vocab = values.len() / (2 * self.targets.len());
        let (first, second) = values.split_at_mut(values.len() / 2);
        first
            .par_chunks_mut(ROWS * vocab)
            .zip(second.par_chunks_mut(ROWS * vocab))
            .zip(self.targets.par_chunks(ROWS))
            .zip(normalizers.par_chunks(ROWS))
            .for_each(|(((first, second), targets), normalizers)| {
                let pairs = first.chunks_mut(vocab).zip(second.chunks_mut(vocab));
                for (((a, b), target), normalizer) in pairs.zip(targets).zip(normalizers) {
                    if *target == PAD {
                        a.fill(0.0);
                        b.fill(0.0);
                    } else {
                        differentiate(a, b, *normalizer, gradient);
                    }
                }
            });
        [logits]
    }
}

simd! {
    fn log_sums(a: &[f32], b: &[f32]) -> [f32; 2] {
        [log_sum(a), log_sum(b)]
    }

    fn divergence(a: &[f32], b: &[f32], normalizer: [f32; 2]) -> f64 {
        f64::from(sum2(a, b, |a, b| {
            let (a, b) = (a - normalizer[0], b - normalizer[1]);
            (exp(a) - exp(b)) * (a - b)
        }))
    }

    /// With `d = ln p - ln q`, the gradient of a logit of `p` is `p (d - sum p d) + p - q`, and that of
    /// `q` the same with both exchanged.
    fn differentiate(a: &mut [f32], b: &mut [f32], normalizer: [f32; 2], gradient: f32) {
        let log = |a: f32, b: f32| (a - normalizer[0], b - normalizer[1]);
        let mean_over_p = sum2(a, b, |a, b| {
            let (a, b) = log(a, b);
            exp(a) * (a - b)
        });
        let mean_over_q = sum2(a, b, |a, b| {
            let (a, b) = log(a, b);
            exp(b) * (b - a)
        });
        for (a, b) in a.iter_mut().zip(b) {
            let (log_p, log_q) = log(*a, *b);
            let (p, q, d) = (exp(log_p), exp(log_q), log_p - log_q);
            *a = gradient * (p * (d - mean_over_p) + p - q);
            *b = gradient * (q * (-d - mean_over_q) + q - p);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::{assert_same_gradients, random};
    use burn::tensor::Device;
    use proptest::prelude::*;

    #[test]
    fn equal_predictions_have_no_divergence_and_others_that_of_the_definition() {
        let rows: [f32; 6] = [0.0, 1.0, -2.0, 1.0, 0.0, -2.0];
        let at = |rows: &[f32]| {
            let data = TensorData::new(rows.to_vec(), [2, 3]);
            let logits = Tensor::<2>::from_data(data, &Device::flex());
            f64::from(kl_divergence(logits, &[0]).into_scalar::<f32>())
        };
        assert_eq!(at(&[rows[..3].to_vec(), rows[..3].to_vec()].concat()), 0.0);
        let sum = 1.0 + 1f64.exp() + (-2f64).exp();
        let expected = 2.0 * (1f64.exp() - 1.0) / sum; // (p - q) (ln p - ln q) of the first two words
        assert!((at(&rows) - expected).abs() < 1e-6, "{}", at(&rows));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn fused_divergence_equals_the_composed_one(
            rows in 1usize..40, vocab in 4usize..300, seed in 0u64..1000,
        ) {
            // Some targets are padding (id 2).
            let targets: Vec<u32> = (0..rows).map(|i| ((i + seed as usize) % 5) as u32).collect();
            let logits: Vec<f32> = random([2 * rows, vocab], seed).iter().map(|v| v * 3.0).collect();
            let fused = |[x]: [Tensor<1>; 1]| {
                let op = FusedDivergence { targets: targets.clone() };
                apply(op, true, [x.reshape([2 * rows, vocab]).into_dispatch()])
            };
            let reference = |[x]: [Tensor<1>; 1]| composed(x.reshape([2 * rows, vocab]), &targets);
            assert_same_gradients([logits], fused, reference);
        }
    }
}
