//! Weights into panels: how [`super::matrix`] wants f32 and int8 to lie in memory.
//!
//! Neighbors: [`attentive_model::int8`] has the places of packed bytes, which weights files share.

use super::aligned::Aligned;
use super::simd::LANES;
use attentive_model::int8::{pack_with, packed_len};

/// A matrix of little-endian f32 in a file, in either orientation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain<'a> {
    pub values: &'a [[u8; 4]],
    pub k: usize,
    pub n: usize,
    /// `[n, k]` like an embedding, and not `[k, n]` like a layer.
    pub transposed: bool,
}

/// The panels of an f32 matrix.
///
/// Done in blocks of a panel that are a page of memory, so that one is filled while it is in the nearest cache.
pub(crate) fn pack(plain: Plain<'_>) -> Aligned<f32> {
    const BLOCK: usize = 64;
    let Plain { values, k, n, .. } = plain;
    let mut panels = Aligned::zeros(n.next_multiple_of(LANES) * k);
    if plain.transposed {
        for (out, rows) in panels.chunks_mut(LANES * k).zip(values.chunks(LANES * k)) {
            for (block, out) in out.chunks_mut(BLOCK * LANES).enumerate() {
                for (lane, row) in rows.chunks_exact(k).enumerate() {
                    let row = &row[block * BLOCK..];
                    for (out, value) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(row) {
                        out[lane] = f32::from_le_bytes(*value);
                    }
                }
            }
        }
    } else {
        for (block, rows) in values.chunks(BLOCK * n).enumerate() {
            for (panel, out) in panels.chunks_mut(LANES * k).enumerate() {
                let out = out[block * BLOCK * LANES..].as_chunks_mut::<LANES>().0;
                for (out, row) in out.iter_mut().zip(rows.chunks_exact(n)) {
                    let row = &row[panel * LANES..];
                    match row.first_chunk() {
                        Some(row) => *out = row.map(f32::from_le_bytes),
                        None => {
                            for (out, value) in out.iter_mut().zip(row) {
                                *out = f32::from_le_bytes(*value);
                            }
                        }
                    }
                }
            }
        }
    }
    panels
}

/// Packed bytes and their scales: the largest weight of each output becomes ±127.
pub(crate) fn quantize(plain: Plain<'_>) -> (Aligned<i8>, Vec<f32>) {
    let Plain {
        values,
        k,
        n,
        transposed,
    } = plain;
    let (k_stride, n_stride, along) = if transposed {
        (1, k, Along::Inputs)
    } else {
        (n, 1, Along::Outputs)
    };
    let at = |i: usize, output: usize| f32::from_le_bytes(values[i * k_stride + output * n_stride]);
    quantize_by(k, n, at, along)
}

/// Which way numbers lie one behind the other.
pub(super) enum Along {
    Inputs,
    Outputs,
}

/// As [`quantize`], of numbers that lie anywhere.
pub(super) fn quantize_by(
    k: usize,
    n: usize,
    at: impl Fn(usize, usize) -> f32,
    along: Along,
) -> (Aligned<i8>, Vec<f32>) {
    let mut largest = vec![0.0f32; n];
    let mut note = |i, output: usize| largest[output] = largest[output].max(at(i, output).abs());
    match along {
        Along::Inputs => (0..n).for_each(|output| (0..k).for_each(|i| note(i, output))),
        Along::Outputs => (0..k).for_each(|i| (0..n).for_each(|output| note(i, output))),
    }
    let scales: Vec<f32> = largest.iter().map(|largest| largest / 127.0).collect();
    let steps: Vec<f32> = largest
        .iter()
        .map(|&largest| if largest > 0.0 { 127.0 / largest } else { 0.0 })
        .collect();
    let mut panels = Aligned::zeros(packed_len(k, n));
    pack_with(k, n, &mut panels, |i, output| {
        // Adding this and taking it away rounds to the nearest whole number; the function for that
        // is a slow library call without SSE 4.1.
        const ROUND: f32 = 12_582_912.0;
        (at(i, output) * steps[output] + ROUND - ROUND) as i8
    });
    (panels, scales)
}

/// For each output the sum of its packed weights.
pub(super) fn sums(panels: &[i8], k: usize) -> Vec<i32> {
    let panel = k.div_ceil(4) * 4 * LANES;
    let mut all = Vec::with_capacity(panels.len() / panel * LANES);
    for panel in panels.chunks_exact(panel) {
        let mut lanes = [0i32; LANES];
        for group in panel.as_chunks::<{ 4 * LANES }>().0 {
            for (lane, sum) in lanes.iter_mut().enumerate() {
                let [a, b, c, d] = [0, 1, 2, 3].map(|i| i32::from(group[4 * lane + i]));
                *sum += a + b + c + d;
            }
        }
        all.extend(lanes);
    }
    all
}

/// The same numbers, and zeros up to a whole vector.
pub(crate) fn padded(values: &[f32]) -> Aligned<f32> {
    let mut padded = Aligned::zeros(values.len().next_multiple_of(LANES));
    padded[..values.len()].copy_from_slice(values);
    padded
}
