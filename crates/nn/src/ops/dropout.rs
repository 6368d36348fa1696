//! Dropout whose mask is a hash of (key, index), so that it needs no generator and no stored mask.
//!
//! Burn's dropout on the CPU draws its random numbers one after another and keeps the mask; here
//! forward and backward each recompute it, in parallel, from the same key. Other devices compute the same
//! mask with integer tensors. Neighbor: [`crate::random::Keys`] hands out the keys.

use burn::{
    backend::flex::FlexTensor,
    tensor::{Bool, DType, Device, Int, Tensor},
};
use rayon::prelude::*;

use super::{
    fused::{CpuOp, apply, contiguous, on_cpu},
    simd::simd,
};
use crate::random::Keys;

/// Zeroes each element with probability `rate` and scales the rest by `1 / (1 - rate)`.
pub fn dropout<const D: usize>(x: Tensor<D>, rate: f64, keys: &mut Option<Keys>) -> Tensor<D> {
    let Some(pattern) = Pattern::draw(rate, keys) else {
        return x;
    };
    if on_cpu(&x.device()) {
        return apply(Dropout(pattern), x.is_autodiff(), [x.into_dispatch()]);
    }
    composed(x, pattern)
}

/// The same mask out of plain tensor operations, on the device: only a few numbers for each axis are uploaded.
fn composed<const D: usize>(x: Tensor<D>, pattern: Pattern) -> Tensor<D> {
    let dropped = pattern.dropped(x.dims(), &x.device());
    x.mask_fill(dropped, 0.0).mul_scalar(pattern.keep)
}

/// Which elements are dropped: a function of the element's index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pattern {
    low: u32,
    high: u32,
    threshold: u32,
    keep: f32,
}

/// Elements per task; also the unit in which indices are handed to the hash.
const CHUNK: usize = 1 << 14;

/// The hash is MurmurHash3's 32-bit finalizer over the element's index, keyed twice.
const MULTIPLIERS: [u32; 3] = [0x9E37_79B9, 0x85EB_CA6B, 0xC2B2_AE35];

impl Pattern {
    /// The pattern of the next key; none if nothing is to be dropped.
    pub(crate) fn draw(rate: f64, keys: &mut Option<Keys>) -> Option<Self> {
        if rate == 0.0 {
            return None;
        }
        let key = keys.as_mut()?.next_key();
        Some(Self {
            low: key as u32,
            high: (key >> 32) as u32,
            threshold: (rate * 4_294_967_296.0) as u32,
            keep: (1.0 / (1.0 - rate)) as f32,
        })
    }

    /// What a kept element is multiplied with.
    pub(crate) fn keep(self) -> f32 {
        self.keep
    }

    /// Drops and scales `values` in place.
    pub(crate) fn apply(self, values: &mut [f32]) {
        values
            .par_chunks_mut(CHUNK)
            .enumerate()
            .for_each(|(chunk, values)| {
                drop_chunk(self, (chunk * CHUNK) as u32, values);
            });
    }

    /// `values`, dropped and scaled.
    pub(crate) fn applied(self, values: &[f32]) -> Vec<f32> {
        let mut output = Vec::with_capacity(values.len());
        output.spare_capacity_mut()[..values.len()]
            .par_chunks_mut(CHUNK)
            .zip(values.par_chunks(CHUNK))
            .enumerate()
            .for_each(|(chunk, (output, values))| {
                let output = output.write_copy_of_slice(values);
                drop_chunk(self, (chunk * CHUNK) as u32, output);
            });
        // SAFETY: every element was written above.
        unsafe { output.set_len(values.len()) };
        output
    }

    /// Which elements of a tensor of this shape have the factor 0.
    ///
    /// [`Pattern::factor`] in 32-bit integer tensors, which every device has. They are signed and wrap around;
    /// so a shift is followed by a mask of the bits that remain, and the comparison is moved by half the range.
    fn dropped<const D: usize>(self, shape: [usize; D], device: &Device) -> Tensor<D, Bool> {
        let shifted = |x: Tensor<D, Int>, bits: u32| {
            x.bitwise_right_shift_scalar(bits as i32)
                .bitwise_and_scalar((u32::MAX >> bits) as i32)
        };
        let mixed = |x: Tensor<D, Int>, bits| x.clone().bitwise_xor(shifted(x, bits));
        let mut x = indices(shape, device)
            .mul_scalar(MULTIPLIERS[0] as i32)
            .bitwise_xor_scalar(self.low as i32);
        x = mixed(x, 16).mul_scalar(MULTIPLIERS[1] as i32);
        x = mixed(x, 13)
            .add_scalar(self.high as i32)
            .mul_scalar(MULTIPLIERS[2] as i32);
        let half = 1 << 31;
        mixed(x, 16)
            .bitwise_xor_scalar(half as i32)
            .lower_elem((self.threshold ^ half) as i32)
    }

    /// The factor of one element: 0 or `1 / (1 - rate)`.
    #[inline(always)]
    pub(crate) fn factor(self, index: u32) -> f32 {
        let mut x = index.wrapping_mul(MULTIPLIERS[0]) ^ self.low;
        x = (x ^ (x >> 16)).wrapping_mul(MULTIPLIERS[1]);
        x = (x ^ (x >> 13))
            .wrapping_add(self.high)
            .wrapping_mul(MULTIPLIERS[2]);
        x ^= x >> 16;
        if x < self.threshold { 0.0 } else { self.keep }
    }
}

/// The row-major index of every element as a 32-bit number, summed up from one range for each axis: Burn makes
/// ranges on the host.
fn indices<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D, Int> {
    let mut stride = 1;
    let mut total: Option<Tensor<D, Int>> = None;
    for axis in (0..D).rev() {
        let mut along = [1; D];
        along[axis] = shape[axis];
        let range = Tensor::<1, Int>::arange(0..shape[axis] as i64, (device, DType::I32))
            .mul_scalar(stride as i32)
            .reshape(along);
        total = Some(match total {
            Some(total) => range + total,
            None => range,
        });
        stride *= shape[axis];
    }
    total.expect("a tensor has an axis")
}

simd! {
    fn drop_chunk(pattern: Pattern, start: u32, values: &mut [f32]) {
        for (i, value) in values.iter_mut().enumerate() {
            *value *= pattern.factor(start.wrapping_add(i as u32));
        }
    }
}

#[derive(Debug, Clone)]
struct Dropout(Pattern);

impl Dropout {
    fn run(&self, x: FlexTensor) -> FlexTensor {
        let mut x = contiguous(x);
        self.0.apply(x.storage_mut::<f32>());
        x
    }
}

impl CpuOp<1> for Dropout {
    type Saved = ();

    fn forward(&self, [x]: [FlexTensor; 1]) -> (FlexTensor, ()) {
        (self.run(x), ())
    }

    fn backward(&self, (): (), gradient: FlexTensor) -> [FlexTensor; 1] {
        [self.run(gradient)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::{floats, with_composed_forms};
    use proptest::prelude::*;

    /// Runs dropout in its fused form, then in its composed form.
    fn both<T>(work: impl Fn() -> T) -> [T; 2] {
        [work(), with_composed_forms(&work)]
    }

    fn dropped(rate: f64, batch: u64) -> Vec<f32> {
        let x = Tensor::<2>::ones([200, 500], &Device::flex());
        floats(dropout(x, rate, &mut Some(Keys::new(1, batch))))
    }

    #[test]
    fn dropout_keeps_the_expected_share_and_the_mean() {
        for rate in [0.1, 0.3] {
            for values in both(|| dropped(rate, 5)) {
                let zeros = values.iter().filter(|v| **v == 0.0).count();
                let share = zeros as f64 / values.len() as f64;
                assert!((share - rate).abs() < 0.005, "{share} for {rate}");
                assert!((values.iter().sum::<f32>() / values.len() as f32 - 1.0).abs() < 0.01);
            }
        }
        for [first, again, other] in both(|| [5, 5, 6].map(|batch| dropped(0.1, batch))) {
            assert_eq!(first, again);
            assert_ne!(first, other);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn both_forms_drop_the_same_elements(
            a in 1usize..5, b in 1usize..5, c in 1usize..40, d in 1usize..40,
            rate in 0.01f64..0.99, seed in proptest::num::u64::ANY,
        ) {
            let [fused, composed] = both(|| {
                let x = Tensor::<4>::ones([a, b, c, d], &Device::flex());
                floats(dropout(x, rate, &mut Some(Keys::new(seed, 0))))
            });
            prop_assert_eq!(fused, composed);
        }
    }

    #[test]
    fn the_gradient_passes_where_the_value_passed() {
        let device = Device::flex().autodiff();
        let run = || {
            let x = Tensor::<2>::full([7, 33], 3.0, &device).require_grad();
            let y = dropout(x.clone() * 1.0, 0.3, &mut Some(Keys::new(1, 2)));
            let gradients = y.clone().sum().backward();
            [floats(x.grad(&gradients).unwrap()), floats(y)]
        };
        for [gradient, values] in both(run) {
            for (g, y) in gradient.iter().zip(values) {
                assert!((g * 3.0 - y).abs() < 1e-5);
            }
            assert!(gradient.contains(&0.0));
        }
    }

    #[test]
    fn without_keys_nothing_changes() {
        let x = Tensor::<1>::from_floats([1.0, 2.0], &Device::flex());
        assert_eq!(floats(dropout(x, 0.5, &mut None)), [1.0, 2.0]);
    }
}
