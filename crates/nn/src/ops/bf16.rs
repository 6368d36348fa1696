//! Matrix products in bf16: where the processor has the instruction, twice the speed of f32.
//!
//! Both factors are rounded to bf16 (the range of f32, 8 bits of precision) while they are packed; their
//! products are added up in f32. The `gemm` crate has no such product, hence our own. It follows the usual
//! plan (Goto and van de Geijn): `right` is packed once into panels of [`NR`] columns, `left` block by block
//! into a buffer that fits the cache, and a tile of [`MR`] x [`NR`] results stays in registers while its
//! sum runs. Every result is added up in the order of `k`, whatever the number of threads.
//! Neighbors: [`super::matrix`] decides which product runs.

use std::arch::x86_64::*;

use rayon::prelude::*;

use super::matrix::{Destination, Matrix, Output};

/// Rows of a tile: 12 x 2 registers of sums leave room for one row of `right` and a broadcast.
const MR: usize = 12;
/// Columns of a tile, two registers.
const NR: usize = 32;
/// Pairs of `k` in a block: a panel of `right` of this height takes half of the first-level cache.
const KC: usize = 128;
/// At most so many rows of `left` are packed at a time.
const MC: usize = 16 * MR;

/// Whether this processor can do it.
pub(crate) fn supported() -> bool {
    is_x86_feature_detected!("avx512bf16")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
}

/// Like [`super::matrix::multiply`].
///
/// # Safety
/// `output` has room for `left.rows * right.columns` numbers, by rows; with [`Destination::Add`] they are
/// initialized. The processor is [`supported`].
pub(super) unsafe fn multiply(
    output: Output,
    left: Matrix,
    right: Matrix,
    destination: Destination,
    parallel: bool,
) {
    let (rows, columns, pairs) = (left.rows, right.columns, left.columns.div_ceil(2));
    let panels = pack_right(right, pairs, parallel);
    // Two blocks for each thread, so that one that is held up does not hold up the rest.
    let share = rows.div_ceil(2 * rayon::current_num_threads());
    let height = share.next_multiple_of(MR).min(MC);
    let block = |first: usize| {
        let rows = height.min(rows - first);
        // SAFETY: blocks are disjoint rows of the output, which the caller vouches for.
        unsafe {
            multiply_block(
                output.row(first, columns),
                left,
                first,
                rows,
                &panels,
                columns,
                destination,
            )
        }
    };
    if parallel {
        (0..rows).into_par_iter().step_by(height).for_each(block);
    } else {
        (0..rows).step_by(height).for_each(block);
    }
}

/// `rows` rows of the result, from row `first` of `left` on.
///
/// # Safety
/// As [`multiply`]; `output` points to the first of these rows.
unsafe fn multiply_block(
    output: Output,
    left: Matrix,
    first: usize,
    rows: usize,
    panels: &[u32],
    columns: usize,
    destination: Destination,
) {
    let pairs = left.columns.div_ceil(2);
    let by_rows = left.column_stride == 1;
    let mut packed = vec![0u32; rows.next_multiple_of(MR) * KC];
    for start in (0..pairs).step_by(KC) {
        let depth = KC.min(pairs - start);
        let add = start > 0 || destination == Destination::Add;
        // SAFETY: the processor is supported; the tiles lie within the output's rows and columns, `packed`
        // holds whole tiles of KC pairs and `panels` whole panels of all pairs.
        unsafe {
            if by_rows {
                pack_rows(left, first, rows, start, depth, &mut packed);
            } else {
                pack_columns(left, first, rows, start, depth, &mut packed);
            }
            for column in (0..columns).step_by(NR) {
                let right = panels.as_ptr().add((column * pairs) + start * NR);
                let width = NR.min(columns - column);
                for row in (0..rows).step_by(MR) {
                    let place = output.row(row, columns).column(column).0;
                    let (left_tile, height) = (packed.as_ptr().add(row * KC), MR.min(rows - row));
                    if by_rows {
                        tile::<KC, 1>(depth, left_tile, right, place, columns, height, width, add);
                    } else {
                        tile::<1, MR>(depth, left_tile, right, place, columns, height, width, add);
                    }
                }
            }
        }
    }
}

/// One tile of results; `left` has its pairs `ROW` apart from row to row and `PAIR` from pair to pair.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
#[allow(clippy::too_many_arguments)]
unsafe fn tile<const ROW: usize, const PAIR: usize>(
    depth: usize,
    left: *const u32,
    right: *const u32,
    output: *mut f32,
    stride: usize,
    rows: usize,
    columns: usize,
    add: bool,
) {
    let mut sums = [[_mm512_setzero_ps(); 2]; MR];
    // SAFETY: the caller hands in `depth` pairs of MR rows and of NR columns, and room for the results.
    unsafe {
        for k in 0..depth {
            let right = right.add(k * NR);
            let halves = [0, 16].map(|i| bf16(_mm512_loadu_si512(right.add(i).cast())));
            for (row, sums) in sums.iter_mut().enumerate() {
                let pair = bf16(_mm512_set1_epi32(*left.add(row * ROW + k * PAIR) as i32));
                sums[0] = _mm512_dpbf16_ps(sums[0], pair, halves[0]);
                sums[1] = _mm512_dpbf16_ps(sums[1], pair, halves[1]);
            }
        }
        let masks = [
            first_lanes(columns),
            first_lanes(columns.saturating_sub(16)),
        ];
        for (row, sums) in sums.iter().enumerate().take(rows) {
            for half in 0..2 {
                let place = output.add(row * stride + 16 * half);
                let before = if add {
                    _mm512_maskz_loadu_ps(masks[half], place)
                } else {
                    _mm512_setzero_ps()
                };
                _mm512_mask_storeu_ps(place, masks[half], _mm512_add_ps(before, sums[half]));
            }
        }
    }
}

/// All of `right` as panels of NR columns: pair by pair along `k`, zeros where there is nothing.
fn pack_right(right: Matrix, pairs: usize, parallel: bool) -> Vec<u32> {
    let mut panels = vec![0u32; right.columns.next_multiple_of(NR) * pairs];
    let pack = |(index, panel): (usize, &mut [u32])| {
        let first = index * NR;
        let width = NR.min(right.columns - first);
        // SAFETY: the processor is supported; rows and columns are those of the matrix.
        unsafe {
            if right.column_stride == 1 {
                (0..pairs).for_each(|k| interleave(right, k, first, width, &mut panel[k * NR..]));
            } else {
                (0..width).for_each(|c| scatter(right, first + c, pairs, &mut panel[c..]));
            }
        }
    };
    if parallel {
        panels.par_chunks_mut(NR * pairs).enumerate().for_each(pack);
    } else {
        panels.chunks_mut(NR * pairs).enumerate().for_each(pack);
    }
    panels
}

/// Rows `2k` and `2k + 1` of a matrix by rows, from column `first` on, as pairs.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn interleave(matrix: Matrix, k: usize, first: usize, width: usize, to: &mut [u32]) {
    let stride = matrix.row_stride as usize;
    debug_assert!(to.len() >= width && 2 * k < matrix.rows);
    // SAFETY: the mask keeps to `width` elements of rows that the matrix has.
    unsafe {
        let row = matrix.values.as_ptr().add(2 * k * stride + first);
        for start in (0..width).step_by(16) {
            let mask = first_lanes(width - start);
            let even = rounded(_mm512_maskz_loadu_ps(mask, row.add(start)));
            let pair = if 2 * k + 1 < matrix.rows {
                let odd = rounded(_mm512_maskz_loadu_ps(mask, row.add(stride + start)));
                _mm512_or_si512(even, _mm512_slli_epi32::<16>(odd))
            } else {
                even
            };
            _mm512_mask_storeu_epi32(to.as_mut_ptr().add(start).cast(), mask, pair);
        }
    }
}

/// One column of a matrix by columns, as pairs that lie NR apart.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn scatter(matrix: Matrix, column: usize, pairs: usize, to: &mut [u32]) {
    let mut line = [0u32; 16];
    for start in (0..pairs).step_by(16) {
        // SAFETY: `line` has room for 16 pairs; column and pairs are those of the matrix.
        unsafe {
            convert(
                matrix.values,
                column * matrix.rows,
                matrix.rows,
                2 * start,
                line.as_mut_ptr(),
            )
        };
        for (k, pair) in line.iter().enumerate().take(pairs - start) {
            to[(start + k) * NR] = *pair;
        }
    }
}

/// Rows of a matrix by rows, each as `depth` pairs; rows that fill up the last tile are zero.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn pack_rows(
    left: Matrix,
    first: usize,
    rows: usize,
    start: usize,
    depth: usize,
    to: &mut [u32],
) {
    debug_assert!(to.len() >= rows * KC);
    for row in 0..rows {
        for k in (0..depth).step_by(16) {
            // SAFETY: KC is a multiple of 16, so 16 pairs have room; `convert` reads within the row.
            unsafe {
                let target = to.as_mut_ptr().add(row * KC + k);
                convert(
                    left.values,
                    (first + row) * left.columns,
                    left.columns,
                    2 * (start + k),
                    target,
                );
            }
        }
    }
}

/// Rows of a matrix by columns, tile by tile: `depth` times the pairs of its MR rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn pack_columns(
    left: Matrix,
    first: usize,
    rows: usize,
    start: usize,
    depth: usize,
    to: &mut [u32],
) {
    let turned = left.transposed();
    for row in (0..rows).step_by(MR) {
        let height = MR.min(rows - row);
        for k in 0..depth {
            // SAFETY: rows and pairs are those of the matrix.
            unsafe {
                interleave(
                    turned,
                    start + k,
                    first + row,
                    height,
                    &mut to[row * KC + k * MR..],
                )
            };
        }
    }
}

/// Elements `from..from + 32` of a line of `len` numbers at `offset`, rounded: 16 pairs, zeros past the end.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn convert(values: &[f32], offset: usize, len: usize, from: usize, to: *mut u32) {
    debug_assert!(offset + len <= values.len());
    // SAFETY: the masks keep to the line; the caller vouches for 16 places at `to`.
    unsafe {
        let line = values.as_ptr().add(offset);
        let half = |from: usize| {
            let mask = first_lanes(len.saturating_sub(from));
            _mm512_maskz_loadu_ps(mask, line.wrapping_add(from))
        };
        let both = _mm512_cvtne2ps_pbh(half(from + 16), half(from));
        _mm512_storeu_si512(to.cast(), std::mem::transmute::<__m512bh, __m512i>(both));
    }
}

/// 16 numbers rounded to bf16, each in the lower half of its lane.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
fn rounded(values: __m512) -> __m512i {
    // SAFETY: both types are 256 bits without meaning of their own.
    _mm512_cvtepu16_epi32(unsafe {
        std::mem::transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(values))
    })
}

/// 32 numbers in bf16.
fn bf16(bits: __m512i) -> __m512bh {
    // SAFETY: both types are 512 bits without meaning of their own.
    unsafe { std::mem::transmute(bits) }
}

/// A mask of the first `count` of 16 lanes.
fn first_lanes(count: usize) -> __mmask16 {
    if count >= 16 {
        u16::MAX
    } else {
        (1 << count) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::random;
    use proptest::prelude::*;

    /// The nearest bf16, ties to even, as an f32.
    fn nearest(value: f32) -> f32 {
        let bits = value.to_bits();
        f32::from_bits((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF_0000)
    }

    fn matrix(values: &[f32], rows: usize, columns: usize, by_rows: bool) -> Matrix<'_> {
        let matrix = |rows, columns| Matrix {
            values,
            rows,
            columns,
            row_stride: columns as isize,
            column_stride: 1,
        };
        if by_rows {
            matrix(rows, columns)
        } else {
            matrix(columns, rows).transposed()
        }
    }

    fn at(matrix: Matrix, row: usize, column: usize) -> f32 {
        let place = row as isize * matrix.row_stride + column as isize * matrix.column_stride;
        nearest(matrix.values[place as usize])
    }

    proptest! {
        #[test]
        fn products_are_those_of_the_rounded_factors(
            rows in 1usize..60, columns in 1usize..80, depth in 1usize..600, left_by_rows in proptest::bool::ANY,
            right_by_rows in proptest::bool::ANY, added in proptest::bool::ANY, parallel in proptest::bool::ANY,
        ) {
            if !supported() {
                eprintln!("SKIPPED: this processor has no bf16 product");
                return Ok(());
            }
            let (left, right) = (random([rows, depth], 1), random([depth, columns], 2));
            let left = matrix(&left, rows, depth, left_by_rows);
            let right = matrix(&right, depth, columns, right_by_rows);
            let start = if added { 0.5 } else { f32::NAN };
            let destination = if added { Destination::Add } else { Destination::Replace };
            let mut got = vec![start; rows * columns];
            // SAFETY: `got` has room, and the processor is supported.
            unsafe { multiply(Output(got.as_mut_ptr()), left, right, destination, parallel) };
            for row in 0..rows {
                for column in 0..columns {
                    let terms = (0..depth).map(|k| f64::from(at(left, row, k) * at(right, k, column)));
                    let expected = terms.sum::<f64>() + if added { 0.5 } else { 0.0 };
                    let found = f64::from(got[row * columns + column]);
                    prop_assert!((found - expected).abs() < 1e-4, "{row}, {column}: {found}, not {expected}");
                }
            }
        }
    }
}
