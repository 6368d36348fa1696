//! What is done to one row of activations at a time: normalize, quantize, softmax.
//!
//! Rows lie at a distance that is a multiple of [`LANES`], and the numbers behind a row's own are
//! zero, so that nothing here has a remainder to treat. (The vocabulary is the exception.)

use super::aligned::Aligned;
use super::simd::{LANES, Simd, Work};

/// Layer normalization of `rows` rows.
pub(crate) struct Normalize<'a> {
    pub x: *const f32,
    pub out: *mut f32,
    pub stride: usize,
    pub rows: usize,
    pub norm: &'a Norm,
}

/// The parameters of a layer normalization, zeros up to a whole vector.
#[derive(Debug)]
pub(crate) struct Norm {
    pub weight: Aligned<f32>,
    pub bias: Aligned<f32>,
    /// 1 for numbers of the row, 0 for those behind it.
    pub keep: Aligned<f32>,
    pub width: usize,
    pub epsilon: f32,
}

impl Work for Normalize<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Norm {
            weight,
            bias,
            keep,
            width,
            epsilon,
        } = self.norm;
        let padded = weight.len();
        let share = 1.0 / *width as f32;
        for row in 0..self.rows {
            unsafe {
                let (x, out) = (
                    self.x.add(row * self.stride),
                    self.out.add(row * self.stride),
                );
                let mut sum = S::splat(0.0);
                for i in (0..padded).step_by(LANES) {
                    sum = S::add(sum, S::load(x.add(i)));
                }
                let mean = S::splat(S::sum(sum) * share);
                let mut squares = S::splat(0.0);
                for i in (0..padded).step_by(LANES) {
                    let value = centered::<S>(x.add(i), mean, keep.as_ptr().add(i));
                    squares = S::fma(value, value, squares);
                }
                let factor = S::splat(1.0 / (S::sum(squares) * share + epsilon).sqrt());
                for i in (0..padded).step_by(LANES) {
                    let value = centered::<S>(x.add(i), mean, keep.as_ptr().add(i));
                    let scale = S::mul(factor, S::load(weight.as_ptr().add(i)));
                    S::store(
                        out.add(i),
                        S::fma(value, scale, S::load(bias.as_ptr().add(i))),
                    );
                }
            }
        }
    }
}

/// `x - mean`, and zero behind the row's end. (A function: closures would be compiled without the
/// instructions that are enabled around them.)
#[inline(always)]
unsafe fn centered<S: Simd>(x: *const f32, mean: S::F, keep: *const f32) -> S::F {
    unsafe { S::mul(S::sub(S::load(x), mean), S::load(keep)) }
}

/// Rows as bytes: the largest number of each becomes ±127.
pub(crate) struct Quantize<'a> {
    pub x: *const f32,
    pub stride: usize,
    pub rows: usize,
    /// Numbers in a row, a multiple of [`LANES`], and distance between rows of bytes.
    pub width: usize,
    pub bytes: &'a mut [u8],
    /// What a step of one is worth, for each row.
    pub scales: &'a mut [f32],
}

impl Work for Quantize<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        assert!(self.bytes.len() >= self.rows * self.width && self.width.is_multiple_of(LANES));
        for (row, scale) in self.scales[..self.rows].iter_mut().enumerate() {
            unsafe {
                let x = self.x.add(row * self.stride);
                let to = self.bytes.as_mut_ptr().add(row * self.width);
                let mut largest = S::splat(0.0);
                for i in (0..self.width).step_by(LANES) {
                    largest = S::max(S::abs(S::load(x.add(i))), largest);
                }
                let largest = S::largest(largest);
                *scale = largest / 127.0;
                let steps = S::splat(if largest > 0.0 { 127.0 / largest } else { 0.0 });
                for i in (0..self.width).step_by(LANES) {
                    S::store_bytes(to.add(i), S::mul(S::load(x.add(i)), steps));
                }
            }
        }
    }
}

/// Logits to log-probabilities, in place; rows of any width, one behind the other.
pub(crate) struct LogSoftmax<'a> {
    pub rows: &'a mut [f32],
    pub width: usize,
}

impl Work for LogSoftmax<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let width = self.width;
        let (whole, rest) = (width / LANES * LANES, width % LANES);
        for row in self.rows.chunks_exact_mut(width) {
            unsafe {
                let x = row.as_mut_ptr();
                let mut largest = S::load_some(x.add(whole), rest, f32::NEG_INFINITY);
                for i in (0..whole).step_by(LANES) {
                    largest = S::max(largest, S::load(x.add(i)));
                }
                let largest = S::largest(largest);
                let top = S::splat(largest);
                let mut sum = exp::<S>(S::sub(
                    S::load_some(x.add(whole), rest, f32::NEG_INFINITY),
                    top,
                ));
                for i in (0..whole).step_by(LANES) {
                    sum = S::add(sum, exp::<S>(S::sub(S::load(x.add(i)), top)));
                }
                let shift = S::splat(largest + S::sum(sum).ln());
                for i in (0..whole).step_by(LANES) {
                    S::store(x.add(i), S::sub(S::load(x.add(i)), shift));
                }
                let last = S::sub(S::load_some(x.add(whole), rest, 0.0), shift);
                S::store_some(x.add(whole), last, rest);
            }
        }
    }
}

/// `softmax(row * factor)` over the first `width` numbers, in place; the row has room up to a whole vector.
#[inline(always)]
pub(super) unsafe fn softmax<S: Simd>(row: *mut f32, width: usize, factor: f32) {
    unsafe {
        let padded = width.next_multiple_of(LANES);
        for i in width..padded {
            *row.add(i) = f32::NEG_INFINITY;
        }
        let mut largest = S::load(row);
        for i in (LANES..padded).step_by(LANES) {
            largest = S::max(largest, S::load(row.add(i)));
        }
        let (largest, factor) = (S::splat(S::largest(largest)), S::splat(factor));
        let mut sum = S::splat(0.0);
        for i in (0..padded).step_by(LANES) {
            let value = exp::<S>(S::mul(S::sub(S::load(row.add(i)), largest), factor));
            S::store(row.add(i), value);
            sum = S::add(sum, value);
        }
        let share = S::splat(1.0 / S::sum(sum));
        for i in (0..padded).step_by(LANES) {
            S::store(row.add(i), S::mul(S::load(row.add(i)), share));
        }
    }
}

/// `e^x` for `x <= 0` or a little above, to about one unit in the last place; tiny where it is almost 0.
///
/// `x = n ln 2 + r`, and `e^r` by its Taylor series: `|r| <= 0.35` makes the next term 1e-7 of the sum.
#[inline(always)]
unsafe fn exp<S: Simd>(x: S::F) -> S::F {
    unsafe {
        let x = S::max(x, S::splat(-87.0));
        let n = S::round(S::mul(x, S::splat(std::f32::consts::LOG2_E)));
        // ln 2 in two parts, the first one short, so that n times it is exact.
        let r = S::fma(n, S::splat(-0.693_359_4), x);
        let r = S::fma(n, S::splat(2.121_944_4e-4), r);
        let mut sum = S::splat(1.0 / 720.0);
        for coefficient in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
            sum = S::fma(sum, r, S::splat(coefficient));
        }
        S::scale(sum, n)
    }
}
