//! What is done to one row of activations at a time: normalize, quantize, softmax.
//!
//! Rows lie at a distance that is a multiple of [`LANES`], and the numbers behind a row's own are
//! zero, so that nothing here has a remainder to treat. (The vocabulary is the exception.)

use std::f32::consts::LOG2_E;

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
        // Only behind the last whole vector is there something to leave out.
        let whole = width / LANES * LANES;
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
                for i in (0..whole).step_by(LANES) {
                    let value = S::sub(S::load(x.add(i)), mean);
                    squares = S::fma(value, value, squares);
                }
                for i in (whole..padded).step_by(LANES) {
                    let value = S::sub(S::load(x.add(i)), mean);
                    let value = S::mul(value, S::load(keep.as_ptr().add(i)));
                    squares = S::fma(value, value, squares);
                }
                let factor = S::splat(1.0 / (S::sum(squares) * share + epsilon).sqrt());
                // Behind the row's end weight and bias are zero.
                for i in (0..padded).step_by(LANES) {
                    let value = S::mul(S::sub(S::load(x.add(i)), mean), factor);
                    let (weight, bias) = (weight.as_ptr().add(i), bias.as_ptr().add(i));
                    S::store(out.add(i), S::fma(value, S::load(weight), S::load(bias)));
                }
            }
        }
    }
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
        // Four vectors at a time, each with its own sum.
        const BLOCK: usize = 4 * LANES;
        let blocks = width / BLOCK * BLOCK;
        for row in self.rows.chunks_exact_mut(width) {
            unsafe {
                let x = row.as_mut_ptr();
                let mut tops = [S::splat(f32::NEG_INFINITY); 4];
                for i in (0..blocks).step_by(BLOCK) {
                    for (part, top) in tops.iter_mut().enumerate() {
                        *top = S::max(*top, S::load(x.add(i + part * LANES)));
                    }
                }
                for i in (blocks..width).step_by(LANES) {
                    let value = S::load_some(x.add(i), (width - i).min(LANES), f32::NEG_INFINITY);
                    tops[0] = S::max(tops[0], value);
                }
                let [a, b, c, d] = tops;
                let largest = S::largest(S::max(S::max(a, b), S::max(c, d)));
                let (top, factor) = (S::splat(largest), S::splat(LOG2_E));
                let mut sums = [S::splat(0.0); 4];
                for i in (0..blocks).step_by(BLOCK) {
                    for (part, sum) in sums.iter_mut().enumerate() {
                        let value = S::sub(S::load(x.add(i + part * LANES)), top);
                        *sum = S::add(*sum, exp2::<S>(S::mul(value, factor)));
                    }
                }
                for i in (blocks..width).step_by(LANES) {
                    let value = S::load_some(x.add(i), (width - i).min(LANES), f32::NEG_INFINITY);
                    let value = S::mul(S::sub(value, top), factor);
                    sums[0] = S::add(sums[0], exp2::<S>(value));
                }
                let [a, b, c, d] = sums;
                let total = S::sum(S::add(S::add(a, b), S::add(c, d)));
                let shift = S::splat(largest + total.ln());
                for i in (0..blocks).step_by(LANES) {
                    S::store(x.add(i), S::sub(S::load(x.add(i)), shift));
                }
                for i in (blocks..width).step_by(LANES) {
                    let count = (width - i).min(LANES);
                    let value = S::sub(S::load_some(x.add(i), count, 0.0), shift);
                    S::store_some(x.add(i), value, count);
                }
            }
        }
    }
}

/// `softmax(row * factor)` over the first `width` numbers, in place; the row has room up to a whole vector.
#[inline(always)]
pub(super) unsafe fn softmax<S: Simd>(row: *mut f32, width: usize, factor: f32) {
    unsafe {
        let factor = S::splat(factor * LOG2_E);
        let whole = (width - 1) / LANES * LANES;
        // A load of some numbers that were just written one by one would wait for them to reach the cache.
        let rest = S::load_some(row.add(whole), width - whole, f32::NEG_INFINITY);
        let mut largest = rest;
        for i in (0..whole).step_by(LANES) {
            largest = S::max(largest, S::load(row.add(i)));
        }
        let largest = S::splat(S::largest(largest));
        let mut sum = S::splat(0.0);
        for i in (0..whole).step_by(LANES) {
            let value = exp2::<S>(S::mul(S::sub(S::load(row.add(i)), largest), factor));
            S::store(row.add(i), value);
            sum = S::add(sum, value);
        }
        let rest = exp2::<S>(S::mul(S::sub(rest, largest), factor));
        let share = S::splat(1.0 / S::sum(S::add(sum, rest)));
        for i in (0..whole).step_by(LANES) {
            S::store(row.add(i), S::mul(S::load(row.add(i)), share));
        }
        S::store(row.add(whole), S::mul(rest, share));
    }
}

/// `2^x` for `x <= 0` or a little above, to about one unit in the last place; tiny where it is almost 0.
///
/// `x = n + r` with a whole `n`. (Where `x` is a logarithm times 1.44, its rounding matters for numbers only that are
/// almost 0.)
#[inline(always)]
unsafe fn exp2<S: Simd>(x: S::F) -> S::F {
    unsafe {
        let x = S::max(x, S::splat(-126.0));
        let n = S::round(x);
        S::scale(exp2_near_zero::<S>(S::sub(x, n)), n)
    }
}

/// `2^r` by the polynomial that is nearest to it for `|r| <= 0.5`: within 7.5e-8 of the value.
#[inline(always)]
pub(super) unsafe fn exp2_near_zero<S: Simd>(r: S::F) -> S::F {
    unsafe {
        let mut sum = S::splat(1.327_647_2e-3);
        for coefficient in [9.675_541e-3, 5.550_713e-2, 0.240_221_2, 0.693_146_94, 1.0] {
            sum = S::fma(sum, r, S::splat(coefficient));
        }
        sum
    }
}
