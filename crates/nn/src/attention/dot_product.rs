//! `Attention(Q, K, V) = softmax(Q Kᵀ / sqrt(d_k)) V` (§3.2.1), for all heads of a layer.
//!
//! Heads lie side by side in the last axis, as the projections leave them; the composed form splits
//! and merges them, the fused one on the CPU walks over them in place.
//! Neighbors: [`super::multi_head`] projects before and after.

use burn::tensor::Tensor;

use super::masked_softmax::masked_softmax;
use crate::{
    mask::Mask,
    ops::{self, dropout},
    pass::{Pass, Weights},
};

/// The number of heads of the queries, and of the keys and values (fewer: each serves a group of query heads).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads {
    /// Heads of the queries.
    pub query: usize,
    /// Heads of the keys and values; divides `query`.
    pub key_value: usize,
}

/// What attention returns: the averaged values, and the weights that averaged them.
#[derive(Debug, Clone)]
pub struct Attended {
    /// `[batch, query_len, heads * head_dim]`
    pub values: Tensor<3>,
    /// `[batch, heads, query_len, key_len]`, before dropout; rows sum to 1. If the pass asks for them.
    pub weights: Option<Tensor<4>>,
}

/// Scaled dot-product attention.
///
/// `query` `[batch, query_len, heads * head_dim]`, `key` and `value`
/// `[batch, key_len, kv_heads * head_dim]`. Hidden keys receive exactly no weight; a query that may
/// see nothing gets zeros, not NaN. Dropout acts on the weights after the softmax.
pub fn scaled_dot_product(
    query: Tensor<3>,
    key: Tensor<3>,
    value: Tensor<3>,
    heads: Heads,
    mask: &Mask,
    dropout_rate: f64,
    pass: &mut Pass,
) -> Attended {
    let fused = pass.weights == Weights::Discard && !matches!(mask, Mask::PerQuery(_));
    if fused && ops::on_cpu(&query.device()) {
        let keys = &mut pass.dropout;
        let values = ops::attention(query, key, value, heads, mask, dropout_rate, keys);
        return Attended {
            values,
            weights: None,
        };
    }
    composed(query, key, value, heads, mask, dropout_rate, pass)
}

/// The formula out of plain tensor operations, for every device and for passes that return weights.
pub(crate) fn composed(
    query: Tensor<3>,
    key: Tensor<3>,
    value: Tensor<3>,
    heads: Heads,
    mask: &Mask,
    dropout_rate: f64,
    pass: &mut Pass,
) -> Attended {
    // ANCHOR: formula
    let share = heads.query / heads.key_value;
    let query = split_heads(query, heads.query);
    let [key, value] = [key, value].map(|x| share_heads(split_heads(x, heads.key_value), share));
    let head_dim = query.dims()[3];
    // Scaling the queries is the same as scaling the scores, over fewer numbers.
    let scores = query
        .mul_scalar((head_dim as f64).powf(-0.5))
        .matmul(key.swap_dims(2, 3)); // [batch, heads, query_len, key_len]
    let weights = masked_softmax(scores, mask);
    let dropped = dropout(weights.clone(), dropout_rate, &mut pass.dropout);
    Attended {
        values: merge_heads(dropped.matmul(value)),
        weights: Some(weights),
    }
    // ANCHOR_END: formula
}

// ANCHOR: split
/// `[batch, len, heads * head_dim]` -> `[batch, heads, len, head_dim]`
fn split_heads(x: Tensor<3>, heads: usize) -> Tensor<4> {
    let [batch, len, width] = x.dims();
    x.reshape([batch, len, heads, width / heads])
        .swap_dims(1, 2)
}

/// `[batch, heads, len, head_dim]` -> `[batch, len, heads * head_dim]`
fn merge_heads(x: Tensor<4>) -> Tensor<3> {
    let [batch, heads, len, head_dim] = x.dims();
    x.swap_dims(1, 2).reshape([batch, len, heads * head_dim])
}
// ANCHOR_END: split

// ANCHOR: share
/// Lets each kv head serve `share` neighboring query heads.
fn share_heads(x: Tensor<4>, share: usize) -> Tensor<4> {
    if share == 1 {
        return x;
    }
    let [batch, kv_heads, len, head_dim] = x.dims();
    x.reshape([batch, kv_heads, 1, len, head_dim])
        .expand([batch, kv_heads, share, len, head_dim])
        .reshape([batch, kv_heads * share, len, head_dim])
}
// ANCHOR_END: share

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::random;
    use burn::tensor::{Bool, Device, TensorData};

    fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    #[test]
    fn scores_are_divided_by_the_root_of_head_dim() {
        // One query along the first axis, two keys: scores 4/2 and 0/2.
        let device = Device::flex();
        let query = Tensor::<3>::from_data([[[4.0, 0.0, 0.0, 0.0]]], &device);
        let key = Tensor::<3>::from_data([[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]], &device);
        let heads = Heads {
            query: 1,
            key_value: 1,
        };
        let expected = 2f32.exp() / (2f32.exp() + 1.0);
        for mut pass in [Pass::inspection(), Pass::evaluation()] {
            let out = scaled_dot_product(
                query.clone(),
                key.clone(),
                key.clone(),
                heads,
                &Mask::Open,
                0.0,
                &mut pass,
            );
            assert!((floats(out.values)[0] - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn hidden_keys_get_no_weight_and_a_query_that_sees_nothing_gets_zeros() {
        let device = Device::flex();
        let tensor = |salt| {
            Tensor::<3>::from_data(
                TensorData::new(random([1, 2, 16], salt), [1, 2, 16]),
                &device,
            )
        };
        let [q, k, v] = [1, 2, 3].map(tensor);
        // The first key is padding, and the second one is the first query's future.
        let padded = Tensor::<2, Bool>::from_data([[true, false]], &device);
        let mask = Mask::CausalAndPadding(padded);
        let heads = Heads {
            query: 2,
            key_value: 2,
        };
        let run = |mut pass: Pass| {
            scaled_dot_product(
                q.clone(),
                k.clone(),
                v.clone(),
                heads,
                &mask,
                0.0,
                &mut pass,
            )
        };
        let weights = run(Pass::inspection()).weights.expect("asked for");
        assert_eq!(floats(weights), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
        for pass in [Pass::inspection(), Pass::evaluation()] {
            let values = floats(run(pass).values);
            assert!(values[..16].iter().all(|v| *v == 0.0));
            assert_eq!(values[16..], floats(v.clone())[16..]);
        }
    }
}
