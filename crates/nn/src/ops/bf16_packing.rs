//! How the factors of a product in bf16 are packed: rounded, and in the order in which a tile reads them.
//!
//! Two neighbors along `k` are a pair in one 32-bit number, as the instruction wants them. Neighbor:
//! [`super::bf16`] multiplies what is packed here.

use std::{arch::x86_64::*, mem::MaybeUninit};

#[cfg(doc)]
use super::bf16::supported;
use super::matrix::Matrix;

/// Rows of a tile: 12 x 2 registers of sums leave room for one row of `right` and a broadcast.
pub(super) const MR: usize = 12;
/// Columns of a tile, two registers.
pub(super) const NR: usize = 32;
/// Pairs of rows that are packed together, so that a line of memory is read once and not once for each strip.
const GROUP: usize = 4;

/// A part of the rows, of the columns or of `k`: where it starts, and how long it is.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) first: usize,
    pub(super) count: usize,
}

/// Parts of `size`, the last of which may be smaller.
pub(super) fn parts(count: usize, size: usize) -> impl Iterator<Item = Part> {
    let starts = (0..count).step_by(size);
    starts.map(move |first| Part {
        first,
        count: size.min(count - first),
    })
}

/// Memory that is about to be written.
pub(super) type Room = [MaybeUninit<u32>];

pub(super) fn room(size: usize) -> Vec<MaybeUninit<u32>> {
    let mut room = Vec::with_capacity(size);
    // SAFETY: the capacity is there, and such elements need no initialization.
    unsafe { room.set_len(size) };
    room
}

/// Columns of `right` as panels of NR columns, `panel_size` apart: pair by pair, zeros where there is nothing.
///
/// # Safety
/// The processor is [`supported`], and `to` has room for whole panels.
pub(super) unsafe fn pack_panels(
    right: Matrix,
    columns: Part,
    depth: Part,
    panel_size: usize,
    to: &mut Room,
) {
    debug_assert!(to.len() >= (columns.count.div_ceil(NR) - 1) * panel_size + depth.count * NR);
    // SAFETY: the caller's.
    unsafe {
        if right.column_stride == 1 {
            return pack_pairs::<NR>(right, columns, depth, panel_size, to);
        }
        if !columns.count.is_multiple_of(NR) {
            let last = columns.count / NR * panel_size;
            to[last..][..depth.count * NR].fill(MaybeUninit::new(0));
        }
        for column in 0..columns.count {
            let panel = &mut to[column / NR * panel_size + column % NR..];
            scatter(right, columns.first + column, depth, panel);
        }
    }
}

/// Columns of a matrix by rows, two rows at a time as pairs, in strips of `STRIP` columns that lie `strip_size`
/// apart; a strip is filled up with zeros.
///
/// # Safety
/// The processor is [`supported`]; rows and columns are those of the matrix; `to` has room for whole strips.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) unsafe fn pack_pairs<const STRIP: usize>(
    matrix: Matrix,
    columns: Part,
    depth: Part,
    strip_size: usize,
    to: &mut Room,
) {
    let stride = matrix.row_stride as usize;
    // From all even numbers before all odd ones to pairs.
    let order: [u16; 32] = std::array::from_fn(|i| (i / 2 + i % 2 * 16) as u16);
    // SAFETY: the masks keep to the columns, and to the rows that the matrix has.
    unsafe {
        let order = _mm512_loadu_si512(order.as_ptr().cast());
        for group in (0..depth.count).step_by(GROUP) {
            for strip in (0..columns.count).step_by(STRIP) {
                for k in group..depth.count.min(group + GROUP) {
                    let row = 2 * (depth.first + k);
                    let even = matrix
                        .values
                        .as_ptr()
                        .wrapping_add(row * stride + columns.first);
                    let odd = even.wrapping_add(stride);
                    let target = to.as_mut_ptr().add(strip / STRIP * strip_size + k * STRIP);
                    for at in (0..STRIP).step_by(16) {
                        let column = strip + at;
                        let mask =
                            first_lanes(columns.count.saturating_sub(column).min(STRIP - at));
                        let below = if row + 1 < matrix.rows { mask } else { 0 };
                        let both = _mm512_cvtne2ps_pbh(
                            _mm512_maskz_loadu_ps(below, odd.wrapping_add(column)),
                            _mm512_maskz_loadu_ps(mask, even.wrapping_add(column)),
                        );
                        let pairs = _mm512_permutexvar_epi16(order, bits(both));
                        let target = target.add(at).cast();
                        _mm512_mask_storeu_epi32(target, first_lanes(STRIP - at), pairs);
                    }
                }
            }
        }
    }
}

/// One column of a matrix by columns, as pairs that lie NR apart.
///
/// # Safety
/// The processor is [`supported`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn scatter(matrix: Matrix, column: usize, depth: Part, to: &mut Room) {
    let mut line = [MaybeUninit::new(0); 16];
    for k in (0..depth.count).step_by(16) {
        // SAFETY: `line` has room for 16 pairs; column and pairs are those of the matrix.
        unsafe {
            convert(
                matrix.transposed(),
                column,
                depth.first + k,
                line.as_mut_ptr(),
            )
        };
        for (i, pair) in line.iter().enumerate().take(depth.count - k) {
            to[(k + i) * NR] = *pair;
        }
    }
}

/// Rows of a matrix by rows, each as `ROW` pairs of which `depth` count; rows that fill up the last tile are zero.
///
/// # Safety
/// The processor is [`supported`]; `to` has room for whole tiles.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) unsafe fn pack_rows<const ROW: usize>(
    left: Matrix,
    rows: Part,
    depth: Part,
    to: &mut Room,
) {
    for row in 0..rows.count {
        for k in (0..depth.count).step_by(16) {
            // SAFETY: ROW is a multiple of 16, so 16 pairs have room.
            unsafe {
                let target = to.as_mut_ptr().add(row * ROW + k);
                convert(left, rows.first + row, depth.first + k, target);
            }
        }
    }
    to[rows.count * ROW..rows.count.next_multiple_of(MR) * ROW].fill(MaybeUninit::new(0));
}

/// 16 pairs of a row of a matrix by rows, from pair `first` on, zeros past its end.
///
/// # Safety
/// The processor is [`supported`], and there are 16 places at `to`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn convert(matrix: Matrix, row: usize, first: usize, to: *mut MaybeUninit<u32>) {
    debug_assert!(row < matrix.rows && matrix.column_stride == 1);
    // SAFETY: the masks keep to the row; the caller vouches for the places.
    unsafe {
        let line = matrix.values.as_ptr().add(row * matrix.columns);
        let half = |from: usize| {
            let mask = first_lanes(matrix.columns.saturating_sub(from));
            _mm512_maskz_loadu_ps(mask, line.wrapping_add(from))
        };
        let both = _mm512_cvtne2ps_pbh(half(2 * first + 16), half(2 * first));
        _mm512_storeu_si512(to.cast(), bits(both));
    }
}

/// 32 numbers in bf16 as plain bits.
#[inline(always)]
fn bits(numbers: __m512bh) -> __m512i {
    // SAFETY: both types are 512 bits without meaning of their own.
    unsafe { std::mem::transmute(numbers) }
}

/// A mask of the first `count` of 16 lanes.
#[inline(always)]
pub(super) fn first_lanes(count: usize) -> __mmask16 {
    if count >= 16 {
        u16::MAX
    } else {
        (1 << count) - 1
    }
}
