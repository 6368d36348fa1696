//! Multi-head attention (§3.2.2), and with fewer key-value heads the multi-query and grouped-query
//! kinds: one implementation, `kv_heads` from `heads` (multi-head) down to 1 (multi-query).
//!
//! Neighbors: [`super::dot_product`] is the formula inside; [`crate::layers::block`] and the decoder hold it.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

use super::{
    cache::{KeyValues, SelfCache},
    dot_product::{Attended, Heads, scaled_dot_product},
};
use crate::{
    init::Init,
    layers::linear::Linear,
    mask::Mask,
    ops::{Precision, packed_attention},
    pass::Pass,
};

/// The sizes of one multi-head layer.
#[derive(Debug, Clone, Copy)]
pub struct AttentionConfig {
    /// Width of input and output; a multiple of `heads`.
    pub d_model: usize,
    /// Heads of the queries.
    pub heads: usize,
    /// Heads of the keys and values; divides `heads`.
    pub kv_heads: usize,
    /// Dropout on the attention weights.
    pub dropout: f64,
}

/// Four separate projections around scaled dot-product attention.
#[derive(Module, Debug)]
pub struct MultiHeadAttention {
    /// Projects queries, `[d_model, d_model]`.
    pub query: Linear,
    /// Projects keys, `[d_model, kv_heads * head_dim]`.
    pub key: Linear,
    /// Projects values, `[d_model, kv_heads * head_dim]`.
    pub value: Linear,
    /// Projects the merged heads, `[d_model, d_model]`.
    pub output: Linear,
    #[module(skip)]
    heads: Heads,
    dropout: f64,
}

/// What a multi-head layer returns.
#[derive(Debug, Clone)]
pub struct MultiHeadOutput {
    /// `[batch, query_len, d_model]`
    pub hidden: Tensor<3>,
    /// `[batch, heads, query_len, key_len]`, if the pass asks for weights.
    pub weights: Option<Tensor<4>>,
}

impl MultiHeadAttention {
    /// Projections with matrices of `init`.
    pub fn new(config: &AttentionConfig, init: &mut Init, device: &Device) -> Self {
        let d_model = config.d_model;
        let kv_dim = d_model / config.heads * config.kv_heads;
        Self {
            query: Linear::new(d_model, d_model, init, device),
            key: Linear::new(d_model, kv_dim, init, device),
            value: Linear::new(d_model, kv_dim, init, device),
            output: Linear::new(d_model, d_model, init, device),
            heads: Heads {
                query: config.heads,
                key_value: config.kv_heads,
            },
            dropout: config.dropout,
        }
    }

    /// Self-attention of `x` `[batch, len, d_model]` over itself and, with a cache, over the positions
    /// before it, which it joins.
    pub fn forward(
        &self,
        x: Tensor<3>,
        mask: &Mask,
        cache: Option<&mut SelfCache>,
        pass: &mut Pass,
    ) -> MultiHeadOutput {
        let new = self.project(x.clone(), pass.precision);
        let all = match cache {
            Some(cache) => cache.extend(new),
            None => new,
        };
        self.attend(x, all, mask, pass)
    }

    /// Self-attention of texts that lie one behind the other, `[1, tokens, d_model]`, of these lengths; on the CPU, without
    /// a backward pass. Also returns the mean attention that each token received.
    pub fn forward_packed(
        &self,
        x: Tensor<3>,
        lengths: &[usize],
        precision: Precision,
    ) -> (Tensor<3>, Vec<f32>) {
        assert_eq!(self.heads.query, self.heads.key_value, "as BERT's");
        let query = self.query.forward(x.clone(), precision);
        let KeyValues { key, value } = self.project(x, precision);
        let (values, received) = packed_attention([query, key, value], lengths, self.heads.query);
        (self.output.forward(values, precision), received)
    }

    // ANCHOR: attend
    /// Projects keys and values, once for any number of queries: `memory` `[batch, key_len, d_model]`.
    pub fn project(&self, memory: Tensor<3>, precision: Precision) -> KeyValues {
        KeyValues {
            key: self.key.forward(memory.clone(), precision),
            value: self.value.forward(memory, precision),
        }
    }

    /// Queries from `x` `[batch, query_len, d_model]` over projected keys and values.
    pub fn attend(
        &self,
        x: Tensor<3>,
        memory: KeyValues,
        mask: &Mask,
        pass: &mut Pass,
    ) -> MultiHeadOutput {
        let query = self.query.forward(x, pass.precision);
        let KeyValues { key, value } = memory;
        let Attended { values, weights } =
            scaled_dot_product(query, key, value, self.heads, mask, self.dropout, pass);
        MultiHeadOutput {
            hidden: self.output.forward(values, pass.precision),
            weights,
        }
    }
    // ANCHOR_END: attend
}
