//! The inner loops of attention: products of one vector with many rows and of small matrices, in whole registers.
//!
//! Inlined into `simd!` bodies, which decide the instruction set. Neighbors: [`mod@super::attention`] uses the
//! former, [`super::attention_blocks`] the latter.

use super::simd::LANES;

/// The keys or values of one head transposed, `[head_dim, padded]`, so that products with all of them fill
/// whole vectors.
pub(crate) struct Transposed {
    columns: Vec<f32>,
    key_len: usize,
    /// The number of keys, rounded up to whole vectors; the padding is zero.
    pub(crate) padded: usize,
}

impl Transposed {
    #[inline(always)]
    pub(crate) fn new(key_len: usize, head_dim: usize) -> Self {
        let padded = key_len.next_multiple_of(LANES);
        Self {
            columns: vec![0.0; head_dim * padded],
            key_len,
            padded,
        }
    }

    /// Takes the first columns of `rows`, which lie `step` apart.
    #[inline(always)]
    pub(crate) fn load(&mut self, rows: &[f32], step: usize) {
        for (d, column) in self.columns.chunks_exact_mut(self.padded).enumerate() {
            for (j, value) in column[..self.key_len].iter_mut().enumerate() {
                *value = rows[j * step + d];
            }
        }
    }

    /// `results[j] = vector . row j`
    #[inline(always)]
    pub(crate) fn dots(&self, vector: &[f32], results: &mut [f32]) {
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
    let values: &[f32; LANES] = values[..LANES].try_into().expect("LANES values");
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

/// `output = left right`, or added to it, of small matrices.
///
/// Results may be computed in whole tiles: of `output` there is room for rows rounded up to [`ROWS`] and columns
/// rounded up to [`LANES`], and the factors have as much.
pub(super) struct Product<'a> {
    pub(super) left: Left<'a>,
    /// By rows, which lie `right_step` apart.
    pub(super) right: &'a [f32],
    pub(super) right_step: usize,
    pub(super) output: &'a mut [f32],
    pub(super) output_step: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) depth: usize,
    pub(super) add: bool,
}

/// A left factor in any order: how far its rows lie apart, and the numbers of a row.
#[derive(Clone, Copy)]
pub(super) struct Left<'a> {
    pub(super) values: &'a [f32],
    pub(super) row: usize,
    pub(super) depth: usize,
}

/// Rows of a tile.
const ROWS: usize = 8;

/// Whether the processor has what the tiles are made of.
#[cfg(target_arch = "x86_64")]
pub(super) fn has_tiles() -> bool {
    super::simd::has_avx512()
}

/// They are not written for this processor.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn has_tiles() -> bool {
    false
}

/// See [`Product`]. Every result is one sum in the order of the depth.
///
/// With AVX-512 by tiles of our own, which need no packing and are as fast as the processor; otherwise by the
/// matrix library.
pub(super) fn multiply(product: Product) {
    let rows = product.rows.next_multiple_of(ROWS);
    let columns = product.columns.next_multiple_of(LANES);
    let Left { values, row, depth } = product.left;
    assert!(product.rows > 0 && product.columns > 0 && product.depth > 0);
    assert!((rows - 1) * row + (product.depth - 1) * depth < values.len());
    assert!((product.depth - 1) * product.right_step + columns <= product.right.len());
    assert!((rows - 1) * product.output_step + columns <= product.output.len());
    #[cfg(target_arch = "x86_64")]
    if has_tiles() {
        // SAFETY: the features were just detected, and whole tiles lie within the slices.
        return unsafe { tiles(product, rows, columns) };
    }
    // SAFETY: rows, columns and depth lie within the slices.
    unsafe { by_library(product) }
}

/// The same by the matrix library.
///
/// # Safety
/// All rows and columns lie within the factors and the output.
unsafe fn by_library(product: Product) {
    let Left { values, row, depth } = product.left;
    // SAFETY: the caller vouches for it.
    unsafe {
        gemm::gemm(
            product.rows,
            product.columns,
            product.depth,
            product.output.as_mut_ptr(),
            1,
            product.output_step as isize,
            product.add,
            values.as_ptr(),
            depth as isize,
            row as isize,
            product.right.as_ptr(),
            1,
            product.right_step as isize,
            1.0f32,
            1.0f32,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// Covers the results with tiles of two vectors, or one at the end.
///
/// # Safety
/// All rows and columns lie within the factors and the output.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn tiles(mut product: Product, rows: usize, columns: usize) {
    for column in (0..columns).step_by(2 * LANES) {
        for first in (0..rows).step_by(ROWS) {
            // SAFETY: the caller vouches for it.
            unsafe {
                if columns - column > LANES {
                    tile::<2>(&mut product, first, column);
                } else {
                    tile::<1>(&mut product, first, column);
                }
            }
        }
    }
}

/// One tile of `P` vectors, whose sums stay in registers.
///
/// # Safety
/// All of its rows and columns lie within the factors and the output.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn tile<const P: usize>(product: &mut Product, first: usize, column: usize) {
    use std::arch::x86_64::*;
    let Left { values, row, depth } = product.left;
    let mut sums = [[_mm512_setzero_ps(); P]; ROWS];
    // SAFETY: the caller vouches for it.
    unsafe {
        let left = values.as_ptr().add(first * row);
        let right = product.right.as_ptr().add(column);
        for k in 0..product.depth {
            let mut vectors = [_mm512_setzero_ps(); P];
            for (p, vector) in vectors.iter_mut().enumerate() {
                *vector = _mm512_loadu_ps(right.add(k * product.right_step + p * LANES));
            }
            for (m, sums) in sums.iter_mut().enumerate() {
                let factor = _mm512_set1_ps(*left.add(m * row + k * depth));
                for (sum, vector) in sums.iter_mut().zip(vectors) {
                    *sum = _mm512_fmadd_ps(factor, vector, *sum);
                }
            }
        }
        let output = product.output.as_mut_ptr();
        for (m, sums) in sums.iter().enumerate() {
            for (p, sum) in sums.iter().enumerate() {
                let place = output.add((first + m) * product.output_step + column + p * LANES);
                let before = if product.add {
                    _mm512_loadu_ps(place)
                } else {
                    _mm512_setzero_ps()
                };
                _mm512_storeu_ps(place, _mm512_add_ps(before, *sum));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::random;

    #[test]
    fn tiles_and_the_matrix_library_give_the_same_products() {
        for (rows, columns, depth, add) in [
            (1usize, 1usize, 1, false),
            (5, 40, 7, true),
            (16, 32, 64, true),
            (9, 17, 3, false),
        ] {
            let (wide, high) = (columns.next_multiple_of(LANES), rows.next_multiple_of(ROWS));
            let (left, right) = (random([high, depth], 1), random([depth, wide], 2));
            let results = [multiply as fn(Product), |product| unsafe {
                by_library(product)
            }]
            .map(|multiply| {
                let mut output = random([high, wide], 3);
                multiply(Product {
                    left: Left {
                        values: &left,
                        row: depth,
                        depth: 1,
                    },
                    right: &right,
                    right_step: wide,
                    output: &mut output,
                    output_step: wide,
                    rows,
                    columns,
                    depth,
                    add,
                });
                output
            });
            for row in 0..rows {
                for column in 0..columns {
                    let [a, b] = [0, 1].map(|way| results[way][row * wide + column]);
                    assert!((a - b).abs() < 1e-5, "{a} and {b} at {row}, {column}");
                }
            }
        }
    }
}
