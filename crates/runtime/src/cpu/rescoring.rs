//! The output layer of an f32 model in int8, with exact re-scoring: the logits that may be the largest of a row
//! are computed again in f32.
//!
//! The output layer is a third to a half of the work of an f32 model, and all but a few of its logits only tell that a
//! token is improbable. So it is computed in int8, in a quarter of the time. How far such a logit may be from the
//! f32 one is bounded: with `x'` and `w'` for what the bytes stand for, `x w - x' w' = (x - x') w + x' (w - w')`, and by the
//! Cauchy-Schwarz inequality this is at most `|x - x'| |w| + |x'| |w - w'|`. Each number of `x'` is at most half a step from
//! its own. Whatever could be the largest logit by this bound is computed in f32, and so are the [`BEST`] largest ones in
//! int8: by the panel of 16 tokens that they lie in, with the bits of the whole f32 product.
//!
//! So the most probable token is that of f32, and greedy search finds the same tokens. The other logits still count in the sum
//! of the softmax, in int8, which changes log-probabilities by about 1e-4 and may, rarely, decide between hypotheses
//! of a beam otherwise. (To prove the order of the eight best for a beam took a window that held hundreds of tokens, and more
//! time than the whole layer in f32.) Neighbors: [`super::layers`] calls this in place of the f32 product where
//! [`super::Compute::F32Int8Output`] is asked for.

use super::matrix::{Input, Matrix, Quantized};
use super::product::Then;
use super::simd::{Isa, LANES};
use super::team::Team;
use crate::search::each_above;

/// So many of the largest int8 logits of a row are computed again, whatever the bound says: those a beam looks at.
const BEST: usize = 8;

/// The int8 copy of an f32 output layer, and what bounds its errors.
#[derive(Debug)]
pub(crate) struct Rescoring {
    int8: Matrix,
    /// The largest norm of a token's weights.
    norm: f32,
    /// The largest norm of what rounding changed of a token's weights.
    rounding: f32,
}

/// A matrix of numbers, and rows that go into it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layer<'a> {
    pub exact: &'a Matrix,
    pub x: &'a [f32],
    pub stride: usize,
    pub rows: usize,
}

impl Rescoring {
    /// For an f32 output layer.
    pub fn new(exact: &Matrix, isa: Isa) -> Self {
        let (int8, norms, rounding) = exact.to_int8(isa);
        let largest = |values: Vec<f32>| values.into_iter().fold(0.0, f32::max);
        Self {
            int8,
            norm: largest(norms),
            rounding: largest(rounding),
        }
    }

    /// Logits `[rows, vocab]` of the layer's rows.
    pub fn logits(
        &self,
        isa: Isa,
        team: &Team,
        layer: Layer<'_>,
        buffer: &mut Quantized,
        out: &mut [f32],
    ) {
        let Layer {
            exact,
            x,
            stride,
            rows,
        } = layer;
        let vocab = exact.outputs();
        let input: Input<'_> = self.int8.prepare(isa, x, stride, rows, buffer);
        self.int8.apply(isa, team, input, out, vocab, Then::Store);
        let (_, scales) = input.quantized.parts();
        for (row, out) in out.chunks_exact_mut(vocab).enumerate() {
            let x = &x[row * stride..][..exact.inputs()];
            let bound = self.bound(x, scales[row]);
            rescore(isa, exact, x, bound, out);
        }
    }

    /// How far an int8 logit of this row may be from the f32 one.
    fn bound(&self, x: &[f32], step: f32) -> f32 {
        let norm = x.iter().map(|value| value * value).sum::<f32>().sqrt();
        let rounded = 0.5 * step * (x.len() as f32).sqrt();
        // Sums of f32 are rounded as well, this one included.
        let sums = x.len() as f32 * f32::EPSILON * norm * self.norm;
        1.001 * (rounded * self.norm + (norm + rounded) * self.rounding + 2.0 * sums)
    }
}

/// Computes again what may be the largest, and the [`BEST`] largest in int8.
fn rescore(isa: Isa, exact: &Matrix, x: &[f32], bound: f32, out: &mut [f32]) {
    let mut best = [f32::NEG_INFINITY; BEST];
    each_above(out, f64::NEG_INFINITY, |_, logit| {
        let place = best.partition_point(|&other| other >= logit);
        if place < BEST {
            best[place..].rotate_right(1);
            best[place] = logit;
        }
        f64::from(best[BEST - 1])
    });
    // In f32 some logit is at least the largest less the bound. What is below that even with the bound added is
    // not the largest.
    let may_be_largest = best[0] - 2.0 * bound;
    let floor = may_be_largest.min(best[BEST - 1]);
    let mut panels = Vec::new();
    each_above(out, f64::from(floor.next_down()), |token, logit| {
        let panel = token as usize / LANES;
        if logit >= floor && panels.last() != Some(&panel) {
            panels.push(panel);
        }
        f64::from(floor.next_down())
    });
    for panel in panels {
        let first = panel * LANES;
        let last = (first + LANES).min(out.len());
        exact.apply_panel(isa, x, panel, &mut out[first..last]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cpu::matrix::from_plain;
    use crate::cpu::packing::Plain;

    const K: usize = 64;

    fn matrix(weights: &[f32], n: usize) -> Matrix {
        let bytes: Vec<[u8; 4]> = weights.iter().map(|weight| weight.to_le_bytes()).collect();
        let bias: Vec<f32> = (0..n).map(|i| (i % 7) as f32 * 0.05).collect();
        from_plain(
            Plain {
                values: &bytes,
                k: K,
                n,
                transposed: true,
            },
            &bias,
        )
    }

    fn numbers(seed: u64, count: usize) -> Vec<f32> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        (0..count)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 40) as f32 / 8_388_608.0 - 1.0
            })
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Few tokens that differ little, so that int8 alone would often choose another one.
        #[test]
        fn the_most_probable_token_is_that_of_f32_bit_by_bit(
            seed in any::<u64>(),
            n in 9usize..70,
            rows in 1usize..5,
        ) {
            let isa = Isa::detect().expect("an instruction set");
            let base = numbers(seed, K);
            let noise = numbers(seed ^ 0xABCD, n * K);
            let weights: Vec<f32> = noise
                .iter()
                .enumerate()
                .map(|(i, noise)| base[i % K] + 0.02 * noise)
                .collect();
            let exact = matrix(&weights, n);
            let x = numbers(seed ^ 0x77, rows * K);
            let mut buffer = Quantized::default();
            let mut expected = vec![0.0; rows * n];
            let input = exact.prepare(isa, &x, K, rows, &mut buffer);
            exact.apply(isa, &Team::default(), input, &mut expected, n, Then::Store);
            let mut found = vec![0.0; rows * n];
            let layer = Layer { exact: &exact, x: &x, stride: K, rows };
            Rescoring::new(&exact, isa).logits(isa, &Team::default(), layer, &mut buffer, &mut found);
            for (expected, found) in expected.chunks(n).zip(found.chunks(n)) {
                let first = |row: &[f32]| {
                    let best = (0..n).min_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
                    best.map(|best| (best, row[best].to_bits()))
                };
                prop_assert_eq!(first(expected), first(found));
                let exact = expected.iter().zip(found).filter(|(a, b)| a == b).count();
                prop_assert!(exact >= BEST, "{} logits are exact", exact);
            }
        }
    }

    #[test]
    fn no_logit_is_farther_from_f32_than_the_bound() {
        let isa = Isa::detect().expect("an instruction set");
        let n = 48;
        let exact = matrix(&numbers(5, n * K), n);
        let rescoring = Rescoring::new(&exact, isa);
        let x = numbers(6, K);
        let mut buffer = Quantized::default();
        let (mut f32s, mut int8s) = (vec![0.0; n], vec![0.0; n]);
        let input = exact.prepare(isa, &x, K, 1, &mut buffer);
        exact.apply(isa, &Team::default(), input, &mut f32s, n, Then::Store);
        let input = rescoring.int8.prepare(isa, &x, K, 1, &mut buffer);
        rescoring
            .int8
            .apply(isa, &Team::default(), input, &mut int8s, n, Then::Store);
        let bound = rescoring.bound(&x, input.quantized.parts().1[0]);
        let farthest = f32s.iter().zip(&int8s).map(|(a, b)| (a - b).abs());
        let farthest = farthest.fold(0.0, f32::max);
        assert!(farthest > 0.0 && farthest <= bound, "{farthest} {bound}");
        assert!(bound < 1.0, "a bound that says something: {bound}");
    }
}
