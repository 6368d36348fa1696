//! The inner loops of attention: products of one vector with many rows, in whole registers.
//!
//! Inlined into `simd!` bodies, which decide the instruction set. Neighbor: [`super::attention`].

use super::simd::LANES;

/// The keys or values of one head transposed, `[head_dim, padded]`, so that products with all of them fill
/// whole vectors.
pub(super) struct Transposed {
    columns: Vec<f32>,
    key_len: usize,
    /// The number of keys, rounded up to whole vectors; the padding is zero.
    pub(super) padded: usize,
}

impl Transposed {
    #[inline(always)]
    pub(super) fn new(key_len: usize, head_dim: usize) -> Self {
        let padded = key_len.next_multiple_of(LANES);
        Self {
            columns: vec![0.0; head_dim * padded],
            key_len,
            padded,
        }
    }

    /// Takes the first columns of `rows`, which lie `step` apart.
    #[inline(always)]
    pub(super) fn load(&mut self, rows: &[f32], step: usize) {
        for (d, column) in self.columns.chunks_exact_mut(self.padded).enumerate() {
            for (j, value) in column[..self.key_len].iter_mut().enumerate() {
                *value = rows[j * step + d];
            }
        }
    }

    /// `results[j] = vector . row j`
    #[inline(always)]
    pub(super) fn dots(&self, vector: &[f32], results: &mut [f32]) {
        for (block, results) in results.chunks_exact_mut(LANES).enumerate() {
            // Four sums side by side: one alone would wait for itself.
            let [mut a, mut b, mut c, mut d] = [[0.0f32; LANES]; 4];
            let columns = &self.columns[block * LANES..];
            let mut quads = vector.chunks_exact(4);
            let mut at = 0;
            for quad in &mut quads {
                add_scaled(&mut a, &columns[at..], quad[0]);
                add_scaled(&mut b, &columns[at + self.padded..], quad[1]);
                add_scaled(&mut c, &columns[at + 2 * self.padded..], quad[2]);
                add_scaled(&mut d, &columns[at + 3 * self.padded..], quad[3]);
                at += 4 * self.padded;
            }
            for factor in quads.remainder() {
                add_scaled(&mut a, &columns[at..], *factor);
                at += self.padded;
            }
            for i in 0..LANES {
                results[i] = (a[i] + b[i]) + (c[i] + d[i]);
            }
        }
    }
}

/// `total += factor * values`, one vector; in this form the compiler sees that it is one.
#[inline(always)]
fn add_scaled(total: &mut [f32; LANES], values: &[f32], factor: f32) {
    let values: &[f32; LANES] = values[..LANES].try_into().expect("so many lanes");
    for i in 0..LANES {
        total[i] += factor * values[i];
    }
}

/// `total += sum of weights[i * stride] * row i` over `count` rows that lie `step` apart.
#[inline(always)]
pub(super) fn add_weighted(
    total: &mut [f32],
    weights: &[f32],
    stride: usize,
    rows: &[f32],
    step: usize,
    count: usize,
) {
    let mut blocks = total.chunks_exact_mut(LANES);
    let mut start = 0;
    for block in &mut blocks {
        let mut sums = [0.0f32; LANES];
        for i in 0..count {
            add_scaled(&mut sums, &rows[i * step + start..], weights[i * stride]);
        }
        block
            .iter_mut()
            .zip(sums)
            .for_each(|(total, sum)| *total += sum);
        start += LANES;
    }
    for (d, total) in blocks.into_remainder().iter_mut().enumerate() {
        *total += (0..count)
            .map(|i| weights[i * stride] * rows[i * step + start + d])
            .sum::<f32>();
    }
}
