//! Multi-head attention (§3.2.2), and with fewer key-value heads the multi-query and grouped-query
//! kinds: one implementation, `kv_heads` from `heads` (multi-head) down to 1 (multi-query).
//!
//! Neighbours: [`super::dot_product`] is the formula inside; encoder and decoder layers hold it.

use attentive_model::config::TransformerConfig;
use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

use super::{
    cache::{KeyValues, SelfCache},
    dot_product::{Attended, Heads, scaled_dot_product},
};
use crate::{init::Init, layers::linear::Linear, mask::Mask, pass::Pass};

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
    pub fn new(config: &TransformerConfig, init: &mut Init, device: &Device) -> Self {
        let d_model = config.d_model;
        let kv_dim = config.head_dim() * config.kv_heads;
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

    /// Self-attention over a whole sequence: `x` `[batch, len, d_model]`.
    pub fn forward_self(&self, x: Tensor<3>, mask: &Mask, pass: &mut Pass) -> MultiHeadOutput {
        let projected = self.project(x.clone());
        self.attend(x, projected, mask, pass)
    }

    /// Self-attention of new positions over the cached past and themselves.
    pub fn forward_cached(
        &self,
        x: Tensor<3>,
        cache: &mut SelfCache,
        mask: &Mask,
        pass: &mut Pass,
    ) -> MultiHeadOutput {
        let all = cache.extend(self.project(x.clone()));
        self.attend(x, all, mask, pass)
    }

    /// Projects what is looked at, once: `memory` `[batch, key_len, d_model]`.
    pub fn project(&self, memory: Tensor<3>) -> KeyValues {
        KeyValues {
            key: self.key.forward(memory.clone()),
            value: self.value.forward(memory),
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
        let query = self.query.forward(x);
        let KeyValues { key, value } = memory;
        let Attended { values, weights } =
            scaled_dot_product(query, key, value, self.heads, mask, self.dropout, pass);
        MultiHeadOutput {
            hidden: self.output.forward(values),
            weights,
        }
    }
}
