//! `Attention(Q, K, V) = softmax(Q Kᵀ / sqrt(d_k)) V` (§3.2.1).
//!
//! Neighbours: [`super::multi_head`] splits heads before and merges them after.

use burn::tensor::{Tensor, activation::softmax};

use crate::{mask::Mask, noise::Noise, ops::dropout};

/// What attention returns: the averaged values, and the weights that averaged them.
#[derive(Debug, Clone)]
pub struct Attended {
    /// `[batch, heads, query_len, head_dim]`
    pub values: Tensor<4>,
    /// `[batch, heads, query_len, key_len]`, before dropout; rows sum to 1.
    pub weights: Tensor<4>,
}

/// Scaled dot-product attention.
///
/// `query` `[batch, heads, query_len, head_dim]`, `key` and `value` `[batch, heads, key_len, head_dim]`.
/// Hidden keys receive exactly no weight; a query that may see nothing gets zeros, not NaN.
/// Dropout acts on the weights after the softmax.
pub fn scaled_dot_product(
    query: Tensor<4>,
    key: Tensor<4>,
    value: Tensor<4>,
    mask: &Mask,
    dropout_rate: f64,
    noise: &mut Noise,
) -> Attended {
    let head_dim = query.dims()[3];
    // Scaling the queries is the same as scaling the scores, over fewer numbers.
    let scores = query
        .mul_scalar((head_dim as f64).powf(-0.5))
        .matmul(key.swap_dims(2, 3)); // [batch, heads, query_len, key_len]
    let weights = match mask {
        Mask::Open => softmax(scores, 3),
        Mask::Hidden(hidden) => {
            let hidden = hidden.clone().expand(scores.dims());
            let scores = scores.mask_fill(hidden.clone(), f32::MIN);
            softmax(scores, 3).mask_fill(hidden, 0.0)
        }
    };
    let dropped = dropout(weights.clone(), dropout_rate, noise);
    Attended {
        values: dropped.matmul(value),
        weights,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Bool, Device, TensorData};

    fn random(shape: [usize; 4], salt: u64) -> Tensor<4> {
        let count = shape.iter().product::<usize>();
        let values: Vec<f32> = (0..count)
            .map(|i| (crate::noise::mix(i as u64 ^ (salt << 32)) >> 40) as f32 / 8_388_608.0 - 1.0)
            .collect();
        Tensor::from_data(TensorData::new(values, shape), &Device::flex())
    }

    fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    #[test]
    fn scores_are_divided_by_the_root_of_head_dim() {
        // One query along the first axis, two keys: scores 4/2 and 0/2.
        let device = Device::flex();
        let query = Tensor::<4>::from_data([[[[4.0, 0.0, 0.0, 0.0]]]], &device);
        let key = Tensor::<4>::from_data([[[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]]], &device);
        let out = scaled_dot_product(query, key.clone(), key, &Mask::Open, 0.0, &mut Noise::off());
        let expected = 2f32.exp() / (2f32.exp() + 1.0);
        assert!((floats(out.weights)[0] - expected).abs() < 1e-6);
    }

    #[test]
    fn hidden_keys_get_no_weight_and_a_query_that_sees_nothing_gets_zeros() {
        let [q, k, v] = [1, 2, 3].map(|salt| random([1, 2, 2, 8], salt));
        let hidden =
            Tensor::<4, Bool>::from_data([[[[true, false], [true, true]]]], &Device::flex());
        let out = scaled_dot_product(q, k, v, &Mask::Hidden(hidden), 0.0, &mut Noise::off());
        assert_eq!(
            floats(out.weights),
            [0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
        );
        assert!(floats(out.values).iter().skip(8).take(8).all(|v| *v == 0.0));
    }
}
