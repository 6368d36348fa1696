//! The first values of a new model's weights.
//!
//! A value that the model's constructor hands down from layer to layer, so that the weights depend on the seed
//! and on the order of the layers only. Neighbors: every layer that has a matrix draws from it.

use burn::tensor::{Device, Tensor, TensorData};

use crate::random::{Keys, mix};

/// How the matrices of a new model start; biases start at 0 and scales of normalizations at 1.
#[derive(Debug, Clone)]
pub struct Init {
    keys: Option<Keys>,
}

impl Init {
    /// Uniform in `±sqrt(6 / (rows + columns))` (Glorot and Bengio 2010), drawn from a seed.
    pub fn xavier_uniform(seed: u64) -> Self {
        Self {
            keys: Some(Keys::new(seed, 0)),
        }
    }

    /// Zeros, for weights that are about to be loaded.
    pub fn zeros() -> Self {
        Self { keys: None }
    }

    /// The next matrix, `[rows, columns]`.
    pub fn matrix(&mut self, rows: usize, columns: usize, device: &Device) -> Tensor<2> {
        let Some(keys) = &mut self.keys else {
            return Tensor::zeros([rows, columns], device);
        };
        let key = keys.next_key();
        let bound = (6.0 / (rows + columns) as f64).sqrt();
        let values: Vec<f32> = (0..(rows * columns) as u64)
            .map(|i| {
                let unit = (mix(key.wrapping_add(i)) >> 11) as f64 / (1u64 << 53) as f64;
                ((2.0 * unit - 1.0) * bound) as f32
            })
            .collect();
        Tensor::from_data(TensorData::new(values, [rows, columns]), device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xavier_stays_in_its_bound_and_has_its_variance() {
        let weight = Init::xavier_uniform(1).matrix(64, 200, &Device::flex());
        let values: Vec<f32> = weight.into_data().iter::<f32>().collect();
        let bound = (6.0f32 / 264.0).sqrt();
        assert!(values.iter().all(|v| v.abs() <= bound));
        let variance = values.iter().map(|v| v * v).sum::<f32>() / values.len() as f32;
        assert!((variance / (bound * bound / 3.0) - 1.0).abs() < 0.05);
    }
}
