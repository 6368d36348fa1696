//! Label-smoothed loss straight from logits (§5.4).
//!
//! The smoothed target puts `1 - epsilon` on the true word, `epsilon / (V - 2)` on every other word and
//! nothing on padding; rows whose true word is padding count nothing. The objective is the KL
//! divergence to that target, summed; `epsilon = 0` is plain cross-entropy.
//! Composed, the log-probabilities of a batch (a hundred megabytes) are written and read several times;
//! fused, each row is read twice and its gradient overwrites it.
//! Neighbors: the trainer divides by the number of tokens; [`super::projected_loss`] never has all logits.

use attentive_text::special::PAD;
use burn::{
    backend::flex::FlexTensor,
    tensor::{Int, Tensor, TensorData, activation::log_softmax},
};
use rayon::prelude::*;

use super::{
    fused::{CpuOp, apply, contiguous, on_cpu},
    simd::{exp, log_sum, simd, sum},
};

/// Sums over all rows that are not padding.
#[derive(Debug, Clone)]
pub struct SmoothedLoss {
    /// KL divergence to the smoothed target: what training lowers. `[1]`
    pub objective: Tensor<1>,
    /// Negative log-probability of the true words, for perplexity. `[1]`
    pub cross_entropy: Tensor<1>,
}

/// `logits` `[rows, vocab]`, one target per row.
pub fn smoothed_loss(logits: Tensor<2>, targets: &[u32], epsilon: f64) -> SmoothedLoss {
    let smoothing = Smoothing::new(epsilon, logits.dims()[1]);
    let sums: Tensor<1> = if on_cpu(&logits.device()) {
        let op = FusedLoss {
            smoothing,
            targets: targets.to_vec(),
        };
        apply(op, logits.is_autodiff(), [logits.into_dispatch()])
    } else {
        composed(logits, targets, smoothing)
    };
    SmoothedLoss::from_sums(sums)
}

impl SmoothedLoss {
    /// From `[objective, cross-entropy]`.
    pub(super) fn from_sums(sums: Tensor<1>) -> Self {
        Self {
            objective: sums.clone().narrow(0, 0, 1),
            cross_entropy: sums.detach().narrow(0, 1, 1),
        }
    }
}

/// The smoothed target of one row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Smoothing {
    /// On the true word.
    truth: f64,
    /// On each other word but padding.
    others: f64,
}

impl Smoothing {
    pub(super) fn new(epsilon: f64, vocab: usize) -> Self {
        Self {
            truth: 1.0 - epsilon,
            others: epsilon / (vocab - 2) as f64,
        }
    }

    /// `sum t ln t` over the target, with `0 ln 0 = 0`.
    pub(super) fn negative_entropy(self, vocab: usize) -> f64 {
        let term = |t: f64| if t > 0.0 { t * t.ln() } else { 0.0 };
        term(self.truth) + (vocab - 2) as f64 * term(self.others)
    }

    /// Objective and cross-entropy of a row of logits, and the log of the sum of their exponentials. `entropy` is
    /// that of [`Smoothing::negative_entropy`].
    pub(super) fn read(self, row: &[f32], target: u32, entropy: f64) -> ([f64; 2], f32) {
        if target == PAD {
            return ([0.0; 2], 0.0);
        }
        let (log_sum, total) = read_row(row);
        let normalizer = f64::from(log_sum);
        let truth = f64::from(row[target as usize]) - normalizer;
        let pad = f64::from(row[PAD as usize]) - normalizer;
        let all = total - row.len() as f64 * normalizer;
        let divergence = entropy - (self.truth - self.others) * truth - self.others * (all - pad);
        ([divergence, -truth], log_sum)
    }

    /// Overwrites a row of logits with `gradient` times the gradient of its objective: softmax minus target, which
    /// sums to 1.
    pub(super) fn differentiate(self, row: &mut [f32], target: u32, log_sum: f32, gradient: f32) {
        if target == PAD {
            return row.fill(0.0);
        }
        let [truth, others] = [self.truth, self.others].map(|t| t as f32 * gradient);
        differentiate_row(row, log_sum, gradient, others);
        row[target as usize] -= truth - others;
        row[PAD as usize] += others;
    }
}

/// `[objective, cross-entropy]` out of plain tensor operations.
fn composed(logits: Tensor<2>, targets: &[u32], smoothing: Smoothing) -> Tensor<1> {
    let [rows, vocab] = logits.dims();
    let ids: Vec<i64> = targets.iter().map(|id| i64::from(*id)).collect();
    let targets = Tensor::<1, Int>::from_data(TensorData::new(ids, [rows]), &logits.device());
    let counts = targets.clone().not_equal_elem(i64::from(PAD)).float(); // [rows]
    let log_probs = log_softmax(logits, 1);
    let truth = log_probs
        .clone()
        .gather(1, targets.reshape([rows, 1]))
        .reshape([rows]);
    let cross_entropy = (truth.clone() * counts.clone()).sum().neg();
    let all = log_probs.clone().sum_dim(1).reshape([rows]);
    let pad = log_probs.narrow(1, PAD as usize, 1).reshape([rows]);
    let expected = truth.mul_scalar(smoothing.truth - smoothing.others)
        + (all - pad).mul_scalar(smoothing.others);
    let divergence = expected.neg().add_scalar(smoothing.negative_entropy(vocab));
    Tensor::cat(vec![(divergence * counts).sum(), cross_entropy], 0)
}

#[derive(Debug, Clone)]
struct FusedLoss {
    smoothing: Smoothing,
    targets: Vec<u32>,
}

/// Rows per task; fixed, so that sums do not depend on the number of threads.
const ROWS: usize = 32;

impl CpuOp<1> for FusedLoss {
    /// The logits and each row's log of the sum of exponentials.
    type Saved = (FlexTensor, Vec<f32>);

    fn forward(&self, [logits]: [FlexTensor; 1]) -> (FlexTensor, Self::Saved) {
        let logits = contiguous(logits);
        let rows = self.targets.len();
        let vocab = logits.storage::<f32>().len() / rows;
        let entropy = self.smoothing.negative_entropy(vocab);
        let mut normalizers = vec![0.0f32; rows];
        let partial: Vec<[f64; 2]> = logits
            .storage::<f32>()
            .par_chunks(ROWS * vocab)
            .zip(self.targets.par_chunks(ROWS))
            .zip(normalizers.par_chunks_mut(ROWS))
            .map(|((logits, targets), normalizers)| {
                let mut sums = [0.0f64; 2];
                for ((row, target), normalizer) in
                    logits.chunks(vocab).zip(targets).zip(normalizers)
                {
                    let (loss, log_sum) = self.smoothing.read(row, *target, entropy);
                    *normalizer = log_sum;
                    sums = [sums[0] + loss[0], sums[1] + loss[1]];
                }
                sums
            })
            .collect();
        let sums = partial
            .iter()
            .fold([0.0; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
        let output = TensorData::new(sums.map(|sum| sum as f32).to_vec(), [2]);
        (FlexTensor::from_data(output), (logits, normalizers))
    }

    fn backward(
        &self,
        (mut logits, normalizers): Self::Saved,
        gradient: FlexTensor,
    ) -> [FlexTensor; 1] {
        let gradient = contiguous(gradient).storage::<f32>()[0];
        let vocab = logits.storage::<f32>().len() / self.targets.len();
        logits
            .storage_mut::<f32>()
            .par_chunks_mut(ROWS * vocab)
            .zip(self.targets.par_chunks(ROWS))
            .zip(normalizers.par_chunks(ROWS))
            .for_each(|((logits, targets), normalizers)| {
                for ((row, target), log_sum) in
                    logits.chunks_mut(vocab).zip(targets).zip(normalizers)
                {
                    self.smoothing
                        .differentiate(row, *target, *log_sum, gradient);
                }
            });
        [logits]
    }
}

simd! {
    /// The log of the sum of exponentials, and the plain sum in double precision.
    fn read_row(row: &[f32]) -> (f32, f64) {
        let total: f64 = row.chunks(256).map(|chunk| f64::from(sum(chunk, |v| v))).sum();
        (log_sum(row), total)
    }

    fn differentiate_row(row: &mut [f32], log_sum: f32, gradient: f32, others: f32) {
        for value in row {
            *value = exp(*value - log_sum) * gradient - others;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::{assert_same_gradients, random};
    use burn::tensor::Device;
    use proptest::prelude::*;

    /// The whole smoothed target, written out, for a vocabulary of five (the Annotated Transformer's
    /// example: 0.4 smoothing).
    #[test]
    fn the_loss_is_the_divergence_from_the_smoothed_target() {
        let logits = [0.3f64, -1.0, 0.7, 2.0, 0.1];
        let target = [0.4f64 / 3.0, 0.6, 0.0, 0.4 / 3.0, 0.4 / 3.0]; // true word 1, padding 2
        let normalizer = logits.iter().map(|l| l.exp()).sum::<f64>().ln();
        let expected: f64 = target
            .iter()
            .zip(&logits)
            .filter(|(t, _)| **t > 0.0)
            .map(|(t, l)| t * (t.ln() - (l - normalizer)))
            .sum();
        let rows: Vec<f32> = logits.iter().chain(&logits).map(|l| *l as f32).collect();
        let logits = Tensor::<2>::from_data(TensorData::new(rows, [2, 5]), &Device::flex());
        // The second row's true word is padding: it adds nothing.
        let loss = smoothed_loss(logits, &[1, PAD], 0.4);
        assert!((f64::from(loss.objective.into_scalar::<f32>()) - expected).abs() < 1e-5);
        let cross_entropy = f64::from(loss.cross_entropy.into_scalar::<f32>());
        assert!((cross_entropy - (normalizer + 1.0)).abs() < 1e-5);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn fused_loss_equals_the_composed_one(
            rows in 1usize..80, vocab in 4usize..300, seed in 0u64..1000, smooth in proptest::bool::ANY,
        ) {
            let smoothing = Smoothing::new(if smooth { 0.1 } else { 0.0 }, vocab);
            // Every fourth row or so is padding (id 2).
            let targets: Vec<u32> = (0..rows).map(|i| ((i * 7 + seed as usize) % vocab) as u32).collect();
            let logits: Vec<f32> = random([rows, vocab], seed).iter().map(|v| v * 8.0).collect();
            let fused = |[x]: [Tensor<1>; 1]| {
                let op = FusedLoss { smoothing, targets: targets.clone() };
                let first: Tensor<1> = apply(op, true, [x.reshape([rows, vocab]).into_dispatch()]);
                first.narrow(0, 0, 1)
            };
            let reference = |[x]: [Tensor<1>; 1]| {
                composed(x.reshape([rows, vocab]), &targets, smoothing).narrow(0, 0, 1)
            };
            assert_same_gradients([logits], fused, reference);
        }
    }
}
