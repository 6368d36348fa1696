//! Dropout whose mask is a hash of (key, index), so that it needs no generator and no stored mask.
//!
//! Stock dropout on the CPU draws its random numbers one after another and keeps the mask; here
//! forward and backward each recompute it, in parallel, from the same key.
//! Neighbours: [`crate::random::Keys`] hands out the keys.

use burn::{
    backend::flex::FlexTensor,
    tensor::{Tensor, TensorData},
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
    let shape = x.dims();
    let mut mask = vec![1.0; shape.iter().product()];
    pattern.apply(&mut mask);
    let mask = Tensor::from_data(TensorData::new(mask, shape), &x.device());
    x * mask
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

    /// The factor of one element: 0 or `1 / (1 - rate)`.
    #[inline(always)]
    pub(crate) fn factor(self, index: u32) -> f32 {
        // MurmurHash3's 32-bit finaliser over the index, keyed twice.
        let mut x = index.wrapping_mul(0x9E37_79B9) ^ self.low;
        x = (x ^ (x >> 16)).wrapping_mul(0x85EB_CA6B);
        x = (x ^ (x >> 13))
            .wrapping_add(self.high)
            .wrapping_mul(0xC2B2_AE35);
        x ^= x >> 16;
        if x < self.threshold { 0.0 } else { self.keep }
    }
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
    use burn::tensor::Device;

    fn dropped(rate: f64, batch: u64) -> Vec<f32> {
        let x = Tensor::<2>::ones([200, 500], &Device::flex());
        let y = dropout(x, rate, &mut Some(Keys::new(1, batch)));
        y.into_data().iter::<f32>().collect()
    }

    #[test]
    fn dropout_keeps_the_expected_share_and_the_mean() {
        for rate in [0.1, 0.3] {
            let values = dropped(rate, 5);
            let zeros = values.iter().filter(|v| **v == 0.0).count() as f64 / values.len() as f64;
            assert!((zeros - rate).abs() < 0.005, "{zeros} for {rate}");
            assert!((values.iter().sum::<f32>() / values.len() as f32 - 1.0).abs() < 0.01);
        }
        assert_ne!(dropped(0.1, 5), dropped(0.1, 6));
        assert_eq!(dropped(0.1, 5), dropped(0.1, 5));
    }

    #[test]
    fn the_gradient_passes_where_the_value_passed() {
        let device = Device::flex().autodiff();
        let x = Tensor::<2>::full([7, 33], 3.0, &device).require_grad();
        let y = dropout(x.clone() * 1.0, 0.3, &mut Some(Keys::new(1, 2)));
        let gradients = y.clone().sum().backward();
        let gradient = x
            .grad(&gradients)
            .unwrap()
            .into_data()
            .iter::<f32>()
            .collect::<Vec<_>>();
        for (g, y) in gradient.iter().zip(y.into_data().iter::<f32>()) {
            assert!((g * 3.0 - y).abs() < 1e-5);
        }
        assert!(gradient.contains(&0.0));
    }

    #[test]
    fn without_keys_nothing_changes() {
        let x = Tensor::<1>::from_floats([1.0, 2.0], &Device::flex());
        let y = dropout(x, 0.5, &mut None);
        assert_eq!(y.into_data().iter::<f32>().collect::<Vec<_>>(), [1.0, 2.0]);
    }
}
