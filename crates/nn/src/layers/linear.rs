//! `x W + b` over the last axis.
//!
//! Our own instead of burn-nn's: [`crate::ops::affine`] is faster on the CPU, and initialisation draws
//! from a seed that we own.

use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor, TensorData},
};

use crate::{
    noise::{Noise, mix},
    ops::affine,
};

/// An affine map of the last axis.
#[derive(Module, Debug)]
pub struct Linear {
    /// `[d_input, d_output]`
    pub weight: Param<Tensor<2>>,
    /// `[d_output]`
    pub bias: Param<Tensor<1>>,
}

impl Linear {
    /// Xavier-uniform weights, zero bias.
    pub fn new(d_input: usize, d_output: usize, init: &mut Noise, device: &Device) -> Self {
        Self {
            weight: Param::from_tensor(xavier_uniform(d_input, d_output, init, device)),
            bias: Param::from_tensor(Tensor::zeros([d_output], device)),
        }
    }

    /// `[.., d_input]` -> `[.., d_output]`
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        affine(x, self.weight.val(), self.bias.val())
    }
}

/// Uniform in `±sqrt(6 / (rows + columns))`, drawn from `init`; zeros when `init` is off (the
/// weights are about to be loaded).
pub fn xavier_uniform(rows: usize, columns: usize, init: &mut Noise, device: &Device) -> Tensor<2> {
    let Some(key) = init.next_key() else {
        return Tensor::zeros([rows, columns], device);
    };
    let bound = (6.0 / (rows + columns) as f64).sqrt();
    let values: Vec<f32> = (0..(rows * columns) as u64)
        .map(|i| {
            let unit = (mix(key.wrapping_add(i)) >> 11) as f64 / (1u64 << 53) as f64;
            ((2.0 * unit - 1.0) * bound) as f32
        })
        .collect();
    Tensor::from_data(TensorData::new(values, [rows, columns]), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xavier_stays_in_its_bound_and_has_its_variance() {
        let mut init = Noise::for_batch(1, 0);
        let weight = xavier_uniform(64, 200, &mut init, &Device::flex());
        let values: Vec<f32> = weight.into_data().iter::<f32>().collect();
        let bound = (6.0f32 / 264.0).sqrt();
        assert!(values.iter().all(|v| v.abs() <= bound));
        let variance = values.iter().map(|v| v * v).sum::<f32>() / values.len() as f32;
        assert!((variance / (bound * bound / 3.0) - 1.0).abs() < 0.05);
    }
}
