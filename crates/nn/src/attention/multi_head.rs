//! Multi-head attention (§3.2.2), and with fewer key-value heads the multi-query and grouped-query
//! kinds: one implementation, `kv_heads` from `heads` (multi-head) down to 1 (multi-query).
//!
//! Neighbours: [`super::dot_product`] is the formula inside; encoder and decoder layers hold it.

use attentive_runtime::config::ModelConfig;
use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

use super::{
    cache::{KeyValues, SelfCache},
    dot_product::{Attended, scaled_dot_product},
};
use crate::{layers::linear::Linear, mask::Mask, noise::Noise};

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
    heads: usize,
    kv_heads: usize,
    dropout: f64,
}

/// What a multi-head layer returns.
#[derive(Debug, Clone)]
pub struct MultiHeadOutput {
    /// `[batch, query_len, d_model]`
    pub hidden: Tensor<3>,
    /// `[batch, heads, query_len, key_len]`
    pub weights: Tensor<4>,
}

impl MultiHeadAttention {
    /// A layer with Xavier-uniform projections.
    pub fn new(config: &ModelConfig, init: &mut Noise, device: &Device) -> Self {
        let d_model = config.d_model;
        let kv_dim = config.head_dim() * config.kv_heads;
        Self {
            query: Linear::new(d_model, d_model, init, device),
            key: Linear::new(d_model, kv_dim, init, device),
            value: Linear::new(d_model, kv_dim, init, device),
            output: Linear::new(d_model, d_model, init, device),
            heads: config.heads,
            kv_heads: config.kv_heads,
            dropout: config.dropout,
        }
    }

    /// Self-attention over a whole sequence: `x` `[batch, len, d_model]`.
    pub fn forward_self(&self, x: Tensor<3>, mask: &Mask, noise: &mut Noise) -> MultiHeadOutput {
        let projected = self.project(x.clone());
        self.attend(x, projected, mask, noise)
    }

    /// Self-attention of new positions over the cached past and themselves.
    pub fn forward_cached(
        &self,
        x: Tensor<3>,
        cache: &mut SelfCache,
        mask: &Mask,
        noise: &mut Noise,
    ) -> MultiHeadOutput {
        let all = cache.extend(self.project(x.clone()));
        self.attend(x, all, mask, noise)
    }

    /// Projects what is looked at, once: `memory` `[batch, key_len, d_model]`.
    pub fn project(&self, memory: Tensor<3>) -> KeyValues {
        KeyValues {
            key: split_heads(self.key.forward(memory.clone()), self.kv_heads),
            value: split_heads(self.value.forward(memory), self.kv_heads),
        }
    }

    /// Queries from `x` `[batch, query_len, d_model]` over projected keys and values.
    pub fn attend(
        &self,
        x: Tensor<3>,
        memory: KeyValues,
        mask: &Mask,
        noise: &mut Noise,
    ) -> MultiHeadOutput {
        let query = split_heads(self.query.forward(x), self.heads);
        let key = share_heads(memory.key, self.heads / self.kv_heads);
        let value = share_heads(memory.value, self.heads / self.kv_heads);
        let Attended { values, weights } =
            scaled_dot_product(query, key, value, mask, self.dropout, noise);
        MultiHeadOutput {
            hidden: self.output.forward(merge_heads(values)),
            weights,
        }
    }
}

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

/// Lets each kv head serve `share` neighbouring query heads.
fn share_heads(x: Tensor<4>, share: usize) -> Tensor<4> {
    if share == 1 {
        return x;
    }
    let [batch, kv_heads, len, head_dim] = x.dims();
    x.reshape([batch, kv_heads, 1, len, head_dim])
        .expand([batch, kv_heads, share, len, head_dim])
        .reshape([batch, kv_heads * share, len, head_dim])
}
