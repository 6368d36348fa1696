//! Matrix products in bf16: where the processor has the instruction, twice the speed of f32.
//!
//! Both factors are rounded to bf16 (the range of f32, 8 bits of precision) while they are packed; their
//! products are added up in f32. The `gemm` crate has no such product, hence our own. It follows the usual
//! plan (Goto and van de Geijn): `right` is packed into panels of [`NR`] columns, `left` block by block
//! into a buffer that fits the cache, and a tile of [`MR`] x [`NR`] results stays in registers while its
//! sum runs. Every result is added up in the order of `k`, in blocks of [`KC`] pairs, whatever the number of
//! threads. Neighbors: [`super::bf16_packing`] packs, [`super::matrix`] decides which product runs.

use std::{arch::x86_64::*, mem::MaybeUninit};

use rayon::prelude::*;

use super::{
    bf16_packing::{
        MR, NR, Part, Room, first_lanes, pack_pairs, pack_panels, pack_rows, parts, room,
    },
    matrix::{Destination, Matrix, Output},
};

/// Pairs of `k` in a block: for a model of width 512 the result is then written once.
const KC: usize = 256;
/// The most rows of `left` that are packed at a time.
const MC: usize = 16 * MR;
/// The most columns of `right` that a task packs for itself.
const NC: usize = 16 * NR;

/// Whether this processor can do it.
pub(crate) fn supported() -> bool {
    is_x86_feature_detected!("avx512bf16")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
}

/// As `multiply` in [`super::matrix`].
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
    let product = Product {
        output,
        left,
        right,
        destination,
    };
    let threads = if parallel {
        rayon::current_num_threads()
    } else {
        1
    };
    // A long sum over a wide `right` (a weight's gradient): who needs a part of `right` packs it, in the cache.
    // Otherwise `right` is packed as a whole, for all rows of `left`.
    if product.pairs() > 2 * KC && right.columns > left.rows {
        let share = right.columns.div_ceil(threads).min(NC);
        let task = |columns| {
            // SAFETY: the caller vouches for the output, of which tasks write disjoint parts, and the processor.
            unsafe { product.columns(columns) }
        };
        each(right.columns, share.next_multiple_of(NR), parallel, task);
    } else {
        let panels = product.whole_right(threads);
        // Two blocks for each thread, so that one that is held up does not hold up the rest.
        let share = left.rows.div_ceil(2 * threads).min(MC);
        let task = |rows| {
            // SAFETY: as above.
            unsafe { product.rows(rows, &panels) }
        };
        each(left.rows, share.next_multiple_of(MR), parallel, task);
    }
}

/// `right`, packed for products with any number of `left`s ([`multiply_packed`]).
///
/// # Safety
/// The processor is [`supported`].
pub(super) unsafe fn pack_right(right: Matrix) -> Vec<MaybeUninit<u32>> {
    let nothing = Matrix::by_rows(&[], right.rows);
    let product = Product {
        output: Output(std::ptr::null_mut()),
        left: nothing,
        right,
        destination: Destination::Replace,
    };
    product.whole_right(1)
}

/// As [`multiply`] on one thread, with `panels` of [`pack_right`].
///
/// # Safety
/// As [`multiply`]; the panels are those of `right`.
pub(super) unsafe fn multiply_packed(
    output: Output,
    left: Matrix,
    right: Matrix,
    panels: &Room,
    destination: Destination,
) {
    let product = Product {
        output,
        left,
        right,
        destination,
    };
    // SAFETY: the caller's.
    each(left.rows, MC, false, |rows| unsafe {
        product.rows(rows, panels)
    });
}

/// Runs `task` for each of these parts.
fn each(count: usize, size: usize, parallel: bool, task: impl Fn(Part) + Send + Sync) {
    if parallel {
        let all: Vec<Part> = parts(count, size).collect();
        all.into_par_iter().for_each(task);
    } else {
        parts(count, size).for_each(task);
    }
}

#[derive(Clone, Copy)]
struct Product<'a> {
    output: Output,
    left: Matrix<'a>,
    right: Matrix<'a>,
    destination: Destination<'a>,
}

impl Product<'_> {
    fn pairs(&self) -> usize {
        self.left.columns.div_ceil(2)
    }

    /// Some rows of the result, with all of `right` in panels.
    ///
    /// # Safety
    /// As [`multiply`].
    unsafe fn rows(&self, rows: Part, panels: &Room) {
        let all = Part {
            first: 0,
            count: self.right.columns,
        };
        let mut packed = room(LeftTiles::size(rows.count));
        for depth in parts(self.pairs(), KC) {
            // SAFETY: the panels hold all pairs of all columns.
            unsafe {
                let left = LeftTiles::pack(self.left, rows, depth, &mut packed);
                let panels = panels.as_ptr().cast::<u32>().add(depth.first * NR);
                self.tiles(rows, all, depth, left, panels, self.pairs() * NR);
            }
        }
    }

    /// Some columns of the result, packing both factors block by block.
    ///
    /// # Safety
    /// As [`multiply`].
    unsafe fn columns(&self, columns: Part) {
        let mut panels = room(columns.count.next_multiple_of(NR) * KC);
        let mut packed = room(LeftTiles::size(self.left.rows.min(MC)));
        for depth in parts(self.pairs(), KC) {
            // SAFETY: there is room for all panels and all tiles of a block.
            unsafe {
                pack_panels(self.right, columns, depth, KC * NR, &mut panels);
                for rows in parts(self.left.rows, MC) {
                    let left = LeftTiles::pack(self.left, rows, depth, &mut packed);
                    self.tiles(rows, columns, depth, left, panels.as_ptr().cast(), KC * NR);
                }
            }
        }
    }

    /// All of `right` as panels of NR columns: pair by pair along `k`, zeros where there is nothing.
    fn whole_right(&self, threads: usize) -> Vec<MaybeUninit<u32>> {
        let (columns, pairs) = (self.right.columns, self.pairs());
        let mut panels = room(columns.next_multiple_of(NR) * pairs);
        let depth = Part {
            first: 0,
            count: pairs,
        };
        let share = columns.div_ceil(threads).min(NC).next_multiple_of(NR);
        let pack = |(index, panels): (usize, &mut Room)| {
            let first = index * share;
            let count = share.min(columns - first);
            // SAFETY: the processor is supported; each part has room for its columns.
            unsafe { pack_panels(self.right, Part { first, count }, depth, pairs * NR, panels) }
        };
        if threads > 1 {
            let parts = panels.par_chunks_mut(share * pairs);
            parts.enumerate().for_each(pack);
        } else {
            panels.chunks_mut(share * pairs).enumerate().for_each(pack);
        }
        panels
    }

    /// All tiles of some rows and columns, over one block of `k`.
    ///
    /// # Safety
    /// As [`multiply`]; `left` and `panels` hold these rows, columns and pairs, and panels are `panel_size` apart.
    unsafe fn tiles(
        &self,
        rows: Part,
        columns: Part,
        depth: Part,
        left: LeftTiles,
        panels: *const u32,
        panel_size: usize,
    ) {
        let stride = self.right.columns;
        for column in (0..columns.count).step_by(NR) {
            let width = NR.min(columns.count - column);
            let right = panels.wrapping_add(column / NR * panel_size);
            let before = match self.destination {
                Destination::Replace if depth.first == 0 => Before::Nothing,
                Destination::Bias(bias) if depth.first == 0 => {
                    Before::Row(bias[columns.first + column..][..width].as_ptr())
                }
                _ => Before::Output,
            };
            for row in (0..rows.count).step_by(MR) {
                let output = self.output.row(rows.first + row, stride);
                let place = Place {
                    output: output.column(columns.first + column).0,
                    stride,
                    rows: MR.min(rows.count - row),
                    columns: width,
                    before,
                };
                // SAFETY: the tile lies within the output, and its factors were packed.
                unsafe { left.multiply(row / MR, depth.count, right, place) };
            }
        }
    }
}

/// Where a tile goes.
#[derive(Clone, Copy)]
struct Place {
    output: *mut f32,
    stride: usize,
    rows: usize,
    columns: usize,
    before: Before,
}

/// What a tile is added to.
#[derive(Clone, Copy)]
enum Before {
    Nothing,
    Output,
    /// One row for all rows.
    Row(*const f32),
}

/// Packed rows of `left` in tiles of MR.
#[derive(Clone, Copy)]
struct LeftTiles {
    values: *const u32,
    order: LeftOrder,
}

/// How the pairs of a tile lie. That of the matrix is kept.
#[derive(Clone, Copy)]
enum LeftOrder {
    /// Row by row, each of up to 64 pairs.
    Rows64,
    /// Of up to 128.
    Rows128,
    /// Of up to KC.
    Rows256,
    /// Pair by pair: those of all rows side by side.
    Columns,
}

/// From tile to tile where a matrix by columns is packed: not a power of two, which would fill few sets of the cache.
const COLUMN_TILE: usize = MR * KC + 16;

impl LeftTiles {
    /// How many pairs so many rows take at most.
    fn size(rows: usize) -> usize {
        rows.div_ceil(MR) * COLUMN_TILE
    }

    /// # Safety
    /// The processor is [`supported`]; `to` has the [`LeftTiles::size`] of these rows.
    unsafe fn pack(left: Matrix, rows: Part, depth: Part, to: &mut Room) -> Self {
        debug_assert!(to.len() >= Self::size(rows.count));
        let order = match depth.count {
            _ if left.column_stride != 1 => LeftOrder::Columns,
            0..=64 => LeftOrder::Rows64,
            65..=128 => LeftOrder::Rows128,
            _ => LeftOrder::Rows256,
        };
        // SAFETY: the caller's.
        unsafe {
            match order {
                LeftOrder::Rows64 => pack_rows::<64>(left, rows, depth, to),
                LeftOrder::Rows128 => pack_rows::<128>(left, rows, depth, to),
                LeftOrder::Rows256 => pack_rows::<KC>(left, rows, depth, to),
                LeftOrder::Columns => {
                    pack_pairs::<MR>(left.transposed(), rows, depth, COLUMN_TILE, to);
                }
            }
        }
        Self {
            values: to.as_ptr().cast(),
            order,
        }
    }

    /// # Safety
    /// As [`tile`], for the tile with this number.
    unsafe fn multiply(self, number: usize, depth: usize, right: *const u32, place: Place) {
        let at = |size: usize| self.values.wrapping_add(number * size);
        // SAFETY: the caller's.
        unsafe {
            match self.order {
                LeftOrder::Rows64 => tile::<64, 1>(depth, at(MR * 64), right, place),
                LeftOrder::Rows128 => tile::<128, 1>(depth, at(MR * 128), right, place),
                LeftOrder::Rows256 => tile::<KC, 1>(depth, at(MR * KC), right, place),
                LeftOrder::Columns => tile::<1, MR>(depth, at(COLUMN_TILE), right, place),
            }
        }
    }
}

/// One tile of results; `left` has its pairs `ROW` apart from row to row and `PAIR` from pair to pair.
///
/// # Safety
/// `left` holds `depth` pairs of MR rows, `right` of NR columns; the processor is [`supported`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn tile<const ROW: usize, const PAIR: usize>(
    depth: usize,
    left: *const u32,
    right: *const u32,
    place: Place,
) {
    let mut sums = [[_mm512_setzero_ps(); 2]; MR];
    // SAFETY: the caller hands in `depth` pairs of MR rows and of NR columns, and room for the results.
    unsafe {
        if matches!(place.before, Before::Output) {
            for row in 0..place.rows {
                let line = place.output.wrapping_add(row * place.stride);
                _mm_prefetch::<_MM_HINT_T0>(line.cast());
                _mm_prefetch::<_MM_HINT_T0>(line.wrapping_add(16).cast());
            }
        }
        for k in 0..depth {
            let right = right.add(k * NR);
            let halves = [0, 16].map(|i| bf16(_mm512_loadu_si512(right.add(i).cast())));
            for (row, sums) in sums.iter_mut().enumerate() {
                let pair = bf16(_mm512_set1_epi32(*left.add(row * ROW + k * PAIR) as i32));
                sums[0] = _mm512_dpbf16_ps(sums[0], pair, halves[0]);
                sums[1] = _mm512_dpbf16_ps(sums[1], pair, halves[1]);
            }
        }
        let masks = [0, 16].map(|half| first_lanes(place.columns.saturating_sub(half)));
        for (row, sums) in sums.iter().enumerate().take(place.rows) {
            for half in 0..2 {
                let output = place.output.wrapping_add(row * place.stride + 16 * half);
                let before = match place.before {
                    Before::Nothing => _mm512_setzero_ps(),
                    Before::Output => _mm512_maskz_loadu_ps(masks[half], output),
                    Before::Row(row) => {
                        _mm512_maskz_loadu_ps(masks[half], row.wrapping_add(16 * half))
                    }
                };
                _mm512_mask_storeu_ps(output, masks[half], _mm512_add_ps(before, sums[half]));
            }
        }
    }
}

/// 32 numbers in bf16.
#[inline(always)]
fn bf16(bits: __m512i) -> __m512bh {
    // SAFETY: both types are 512 bits without meaning of their own.
    unsafe { std::mem::transmute(bits) }
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
