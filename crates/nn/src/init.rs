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
    spread: Spread,
}

/// What the values of a matrix are drawn from.
#[derive(Debug, Clone, Copy)]
enum Spread {
    Xavier,
    Normal(f64),
}

impl Init {
    /// Uniform in `±sqrt(6 / (rows + columns))` (Glorot and Bengio 2010), drawn from a seed.
    pub fn xavier_uniform(seed: u64) -> Self {
        Self {
            keys: Some(Keys::new(seed, 0)),
            spread: Spread::Xavier,
        }
    }

    /// Normally distributed around 0 with this standard deviation (0.02 in GPT-2 and BERT), drawn from a seed.
    pub fn normal(seed: u64, deviation: f64) -> Self {
        Self {
            keys: Some(Keys::new(seed, 0)),
            spread: Spread::Normal(deviation),
        }
    }

    /// Zeros, for weights that are about to be loaded.
    pub fn zeros() -> Self {
        Self {
            keys: None,
            spread: Spread::Xavier,
        }
    }

    /// The next matrix, `[rows, columns]`.
    pub fn matrix(&mut self, rows: usize, columns: usize, device: &Device) -> Tensor<2> {
        let Some(keys) = &mut self.keys else {
            return Tensor::zeros([rows, columns], device);
        };
        let key = keys.next_key();
        let unit = |i: u64| (mix(key.wrapping_add(i)) >> 11) as f64 / (1u64 << 53) as f64;
        let bound = (6.0 / (rows + columns) as f64).sqrt();
        let count = (rows * columns) as u64;
        let value = |i: u64| match self.spread {
            Spread::Xavier => (2.0 * unit(i) - 1.0) * bound,
            // Box and Muller (1958): a radius and an angle.
            Spread::Normal(deviation) => {
                let radius = (-2.0 * (1.0 - unit(i)).ln()).sqrt();
                deviation * radius * (std::f64::consts::TAU * unit(count + i)).cos()
            }
        };
        let values: Vec<f32> = (0..count).map(|i| value(i) as f32).collect();
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
    #[test]
    fn normal_values_have_their_deviation_and_no_bound() {
        let weight = Init::normal(1, 0.02).matrix(64, 200, &Device::flex());
        let values: Vec<f32> = weight.into_data().iter::<f32>().collect();
        let count = values.len() as f32;
        let mean = values.iter().sum::<f32>() / count;
        let variance = values.iter().map(|v| v * v).sum::<f32>() / count;
        assert!(mean.abs() < 1e-3 && (variance / 4e-4 - 1.0).abs() < 0.05);
        let far = values.iter().filter(|v| v.abs() > 0.04).count() as f32;
        assert!((far / count - 0.0455).abs() < 0.01, "{far} of {count}");
    }
}
