//! Additive attention: `score(q, k) = w_vᵀ tanh(W_q q + W_k k)` (Bahdanau et al. 2015).
//!
//! Queries and keys may differ in size, since both are projected to a common one before they are compared; scaled
//! dot-product attention ([`super::dot_product`]) needs one size, and a matrix product instead of a tanh for every
//! pair. Neighbors: [`crate::models::recurrent`] attends with it; [`crate::ops`] has the whole decoder fused.

use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor},
};

use super::masked_softmax::masked_softmax;
use crate::{
    init::Init,
    mask::Mask,
    ops::{Precision, dropout, project},
    pass::Pass,
};

/// The sizes of one additive attention.
#[derive(Debug, Clone, Copy)]
pub struct AdditiveConfig {
    /// Width of a query.
    pub d_query: usize,
    /// Width of a key.
    pub d_key: usize,
    /// Width in which both are compared.
    pub d_hidden: usize,
    /// Dropout on the attention weights.
    pub dropout: f64,
}

/// `w_vᵀ tanh(W_q q + W_k k)`, and the average of the values with its softmax.
#[derive(Module, Debug)]
pub struct AdditiveAttention {
    /// `W_q`, `[d_query, d_hidden]`
    pub query: Param<Tensor<2>>,
    /// `W_k`, `[d_key, d_hidden]`
    pub key: Param<Tensor<2>>,
    /// `w_v`, `[d_hidden]`
    pub score: Param<Tensor<1>>,
    dropout: f64,
}

/// What additive attention returns.
#[derive(Debug, Clone)]
pub struct AdditiveOutput {
    /// `[batch, query_len, d_value]`
    pub values: Tensor<3>,
    /// `[batch, query_len, key_len]`, before dropout; rows sum to 1.
    pub weights: Tensor<3>,
}

impl AdditiveAttention {
    /// Matrices of `init`.
    pub fn new(config: &AdditiveConfig, init: &mut Init, device: &Device) -> Self {
        let width = config.d_hidden;
        let score = init.matrix(width, 1, device).reshape([width]);
        Self {
            query: Param::from_tensor(init.matrix(config.d_query, width, device)),
            key: Param::from_tensor(init.matrix(config.d_key, width, device)),
            score: Param::from_tensor(score),
            dropout: config.dropout,
        }
    }

    /// `queries` `[batch, query_len, d_query]`, `keys` `[batch, key_len, d_key]`, `values` `[batch, key_len, d_value]`.
    pub fn forward(
        &self,
        queries: Tensor<3>,
        keys: Tensor<3>,
        values: Tensor<3>,
        mask: &Mask,
        pass: &mut Pass,
    ) -> AdditiveOutput {
        let keys = self.project_keys(keys, pass.precision);
        self.attend(queries, keys, values, mask, pass)
    }

    /// `W_k k`, once for any number of queries: `[batch, key_len, d_key]` -> `[batch, key_len, d_hidden]`.
    pub fn project_keys(&self, keys: Tensor<3>, precision: Precision) -> Tensor<3> {
        project(keys, self.key.val(), precision)
    }

    /// As [`AdditiveAttention::forward`] with projected keys, `[batch, key_len, d_hidden]`.
    pub fn attend(
        &self,
        queries: Tensor<3>,
        projected_keys: Tensor<3>,
        values: Tensor<3>,
        mask: &Mask,
        pass: &mut Pass,
    ) -> AdditiveOutput {
        let queries = project(queries, self.query.val(), pass.precision);
        let scores = additive_scores(queries, projected_keys, self.score.val());
        let weights = masked_softmax(scores.unsqueeze_dim(1), mask).squeeze_dim::<3>(1);
        let dropped = dropout(weights.clone(), self.dropout, &mut pass.dropout);
        AdditiveOutput {
            values: dropped.matmul(values),
            weights,
        }
    }
}

/// `w_vᵀ tanh(q + k)` for every pair of projected queries `[batch, query_len, d_hidden]` and keys
/// `[batch, key_len, d_hidden]`: `[batch, query_len, key_len]`.
pub fn additive_scores(queries: Tensor<3>, keys: Tensor<3>, score: Tensor<1>) -> Tensor<3> {
    let sums = queries.unsqueeze_dim::<4>(2) + keys.unsqueeze_dim::<4>(1); // [batch, query_len, key_len, d_hidden]
    (sums.tanh() * score.unsqueeze())
        .sum_dim(3)
        .squeeze_dim::<3>(3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attention::dot_product::{Heads, scaled_dot_product},
        ops::check::{floats, random},
    };
    use burn::tensor::TensorData;

    /// Keys that are all the same get the same weight, so the outputs are means of the valid values, whatever the
    /// queries and the weights of the layer are.
    #[test]
    fn equal_keys_give_the_mean_of_the_valid_values() {
        let device = Device::flex();
        let tensor = |seed, shape: [usize; 3]| {
            Tensor::<3>::from_data(TensorData::new(random(shape, seed), shape), &device)
        };
        let numbers: Vec<f32> = (0..40).map(|i| i as f32).collect();
        let values = Tensor::<3>::from_data(TensorData::new(numbers, [1, 10, 4]), &device);
        let values = values.expand([2, 10, 4]);
        let mask = Mask::valid_lengths(&[2, 6], 10, &device);
        let expected = [2.0, 3.0, 4.0, 5.0, 10.0, 11.0, 12.0, 13.0];
        let check = |outputs: Tensor<3>| {
            for (got, expected) in floats(outputs).iter().zip(expected) {
                assert!((got - expected).abs() < 1e-5, "{got}, not {expected}");
            }
        };

        let config = AdditiveConfig {
            d_query: 20,
            d_key: 2,
            d_hidden: 8,
            dropout: 0.1,
        };
        for seed in 0..3 {
            let layer = AdditiveAttention::new(&config, &mut Init::xavier_uniform(seed), &device);
            let (queries, keys) = (tensor(seed, [2, 1, 20]), Tensor::ones([2, 10, 2], &device));
            let pass = &mut Pass::evaluation();
            let out = layer.forward(queries, keys, values.clone(), &mask, pass);
            check(out.values);
        }

        // The same with scaled dot products, whose queries are as wide as the keys.
        let keys = Tensor::ones([2, 10, 4], &device);
        let heads = Heads {
            query: 1,
            key_value: 1,
        };
        let pass = &mut Pass::evaluation();
        let queries = tensor(7, [2, 1, 4]);
        check(scaled_dot_product(queries, keys, values, heads, &mask, 0.0, pass).values);
    }
}
