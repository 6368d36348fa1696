//! The softmax of a block of attention scores, and its gradient, for 16 queries at a time: one per lane.
//!
//! Scores lie transposed, `[keys, queries]`, so that maxima and sums need no step across lanes. Inlined into
//! `simd!` bodies, which decide the instruction set. Neighbor: [`super::attention_blocks`] makes the scores.

use std::ops::Range;

use super::{
    attention::Call,
    attention_blocks::{Place, QUERIES},
    simd::{LANES, exp},
};

/// Scores to weights before they are normalized, for 16 queries: the running maximum and the running sum go on,
/// and what was summed up before is to be multiplied with the result.
#[inline(always)]
pub(super) fn soften(
    call: &Call,
    at: Place,
    keys: &Range<usize>,
    lane: usize,
    scores: &mut [f32],
    largest: &mut [f32],
    sums: &mut [f32],
) -> [f32; LANES] {
    let before = *lanes(largest, lane);
    let (mut top, mut total, mut factors) = (before, [0.0; LANES], [0.0; LANES]);
    for key in 0..keys.len() {
        let scores = lanes(scores, key * QUERIES + lane);
        for i in 0..LANES {
            top[i] = if scores[i] > top[i] {
                scores[i]
            } else {
                top[i]
            };
        }
    }
    let indices = at.weights(call, lane, keys);
    for key in 0..keys.len() {
        let scores = lanes(scores, key * QUERIES + lane);
        for i in 0..LANES {
            let hidden = scores[i] == f32::NEG_INFINITY;
            scores[i] = if hidden { 0.0 } else { exp(scores[i] - top[i]) };
            total[i] += scores[i];
        }
        if let Some(pattern) = call.dropout {
            for i in 0..LANES {
                scores[i] *= pattern.factor(indices[i].wrapping_add(key as u32));
            }
        }
    }
    let sums = lanes(sums, lane);
    for i in 0..LANES {
        factors[i] = exp(before[i] - top[i]);
        sums[i] = sums[i] * factors[i] + total[i];
    }
    *lanes(largest, lane) = top;
    factors
}

/// Scores to weights after dropout, and the gradients of these weights to those of the scores, for 16 queries.
/// `sums` are the logarithms of the sums, and the sums of output times gradient.
#[inline(always)]
pub(super) fn soften_backward(
    call: &Call,
    at: Place,
    keys: &Range<usize>,
    lane: usize,
    sums: [&[f32]; 2],
    scores: &mut [f32],
    d_scores: &mut [f32],
) {
    let [log_sum, along] = sums.map(|sums| {
        let sums: &[f32; LANES] = sums[lane..lane + LANES].try_into().expect("LANES values");
        *sums
    });
    let indices = at.weights(call, lane, keys);
    for key in 0..keys.len() {
        let scores = lanes(scores, key * QUERIES + lane);
        let d_scores = lanes(d_scores, key * QUERIES + lane);
        for i in 0..LANES {
            let hidden = scores[i] == f32::NEG_INFINITY;
            scores[i] = if hidden {
                0.0
            } else {
                exp(scores[i] - log_sum[i])
            };
        }
        // Softmax: d_score = weight * (d_weight - sum of weight * d_weight), and that sum is output * gradient.
        match call.dropout {
            None => {
                for i in 0..LANES {
                    d_scores[i] = scores[i] * (d_scores[i] - along[i]);
                }
            }
            Some(pattern) => {
                for i in 0..LANES {
                    let factor = pattern.factor(indices[i].wrapping_add(key as u32));
                    d_scores[i] = scores[i] * (d_scores[i] * factor - along[i]);
                    scores[i] *= factor;
                }
            }
        }
    }
}

/// One vector; in this form the compiler sees that it is one.
#[inline(always)]
fn lanes(values: &mut [f32], at: usize) -> &mut [f32; LANES] {
    (&mut values[at..at + LANES])
        .try_into()
        .expect("LANES values")
}
