//! A Transformer block: self-attention, then feed-forward, each in a residual connection (figure 1 left).
//!
//! It is the layer of an encoder, and with a causal mask and a cache that of a decoder-only model. A decoder
//! layer with cross-attention ([`crate::models::transformer::decoder`]) is made of the same parts.

use attentive_model::config::{Activation, NormPlacement};
use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

use super::{
    feed_forward::{FeedForward, FeedForwardConfig},
    norm::LayerNorm,
    residual::Residual,
};
use crate::{
    attention::{
        cache::SelfCache,
        multi_head::{AttentionConfig, MultiHeadAttention, MultiHeadOutput},
    },
    init::Init,
    mask::Mask,
    pass::Pass,
};

/// The sizes of one block.
#[derive(Debug, Clone, Copy)]
pub struct BlockConfig {
    /// Width of input and output; a multiple of `heads`.
    pub d_model: usize,
    /// Heads of the queries.
    pub heads: usize,
    /// Heads of the keys and values; divides `heads`.
    pub kv_heads: usize,
    /// Width of the feed-forward network's hidden layer.
    pub d_ff: usize,
    /// The function inside the feed-forward network.
    pub activation: Activation,
    /// Dropout on attention weights, behind the activation and on every sub-layer's output.
    pub dropout: f64,
    /// Where the layer normalization stands.
    pub norm: NormPlacement,
    /// Added to the variance in every layer normalization.
    pub norm_epsilon: f64,
}

impl BlockConfig {
    /// Of its attention.
    pub fn attention(&self) -> AttentionConfig {
        AttentionConfig {
            d_model: self.d_model,
            heads: self.heads,
            kv_heads: self.kv_heads,
            dropout: self.dropout,
        }
    }

    /// Of its feed-forward network.
    pub fn feed_forward(&self) -> FeedForwardConfig {
        FeedForwardConfig {
            d_model: self.d_model,
            d_ff: self.d_ff,
            activation: self.activation,
            dropout: self.dropout,
        }
    }

    /// Of its residual connections.
    pub fn residual(&self) -> Residual {
        Residual {
            placement: self.norm,
            dropout: self.dropout,
        }
    }

    /// A new layer normalization.
    pub fn layer_norm(&self, device: &Device) -> LayerNorm {
        LayerNorm::new(self.d_model, self.norm_epsilon, device)
    }
}

/// Self-attention, then feed-forward.
#[derive(Module, Debug)]
pub struct Block {
    /// Every position looks at every other that its mask does not hide.
    pub self_attention: MultiHeadAttention,
    /// Belongs to `self_attention`.
    pub self_attention_norm: LayerNorm,
    /// Works on each position alone.
    pub feed_forward: FeedForward,
    /// Belongs to `feed_forward`.
    pub feed_forward_norm: LayerNorm,
    #[module(skip)]
    residual: Residual,
}

impl Block {
    /// Linear maps with matrices of `init`.
    pub fn new(config: &BlockConfig, init: &mut Init, device: &Device) -> Self {
        Self {
            self_attention: MultiHeadAttention::new(&config.attention(), init, device),
            self_attention_norm: config.layer_norm(device),
            feed_forward: FeedForward::new(&config.feed_forward(), init, device),
            feed_forward_norm: config.layer_norm(device),
            residual: config.residual(),
        }
    }

    /// `[batch, len, d_model]` -> the same shape, and the attention weights if the pass asks for them. With a
    /// cache, `x` are new positions behind those in it.
    pub fn forward(
        &self,
        x: Tensor<3>,
        mask: &Mask,
        cache: Option<&mut SelfCache>,
        pass: &mut Pass,
    ) -> MultiHeadOutput {
        let norm = &self.self_attention_norm;
        let input = self.residual.input(&x, norm);
        let attended = self.self_attention.forward(input, mask, cache, pass);
        let x = self.add_attended(x, attended.hidden, pass);
        MultiHeadOutput {
            hidden: self.feed(x, pass),
            weights: attended.weights,
        }
    }

    /// As [`Block::forward`], with `change` between attention and feed-forward network: of the hidden vectors and the
    /// keys, both `[batch, len, d_model]`, it makes vectors that may be fewer.
    pub fn forward_changing(
        &self,
        x: Tensor<3>,
        mask: &Mask,
        pass: &mut Pass,
        change: impl FnOnce(Tensor<3>, Tensor<3>) -> Tensor<3>,
    ) -> MultiHeadOutput {
        let norm = &self.self_attention_norm;
        let input = self.residual.input(&x, norm);
        let memory = self.self_attention.project(input.clone(), pass.precision);
        let keys = memory.key.clone();
        let attended = self.self_attention.attend(input, memory, mask, pass);
        let x = self.add_attended(x, attended.hidden, pass);
        MultiHeadOutput {
            hidden: self.feed(change(x, keys), pass),
            weights: attended.weights,
        }
    }

    /// As [`Block::forward`] of a block with its norms before the sub-layers, each of which reads what `fewer` makes of
    /// its input, and whose output `add` adds to all positions again. For inference: there is no dropout.
    pub fn forward_on_fewer(
        &self,
        x: Tensor<3>,
        pass: &mut Pass,
        fewer: impl Fn(Tensor<3>) -> Tensor<3>,
        add: impl Fn(Tensor<3>, Tensor<3>) -> Tensor<3>,
    ) -> Tensor<3> {
        let norm = &self.self_attention_norm;
        let input = fewer(self.residual.input(&x, norm));
        let attended = self.self_attention.forward(input, &Mask::Open, None, pass);
        let x = add(x, attended.hidden);
        let norm = &self.feed_forward_norm;
        let input = fewer(self.residual.input(&x, norm));
        let y = self.feed_forward.forward(input, pass);
        add(x, y)
    }

    /// The first residual connection: what the block read, and what its attention made of it. `[batch, len, d_model]`
    pub fn add_attended(&self, x: Tensor<3>, attended: Tensor<3>, pass: &mut Pass) -> Tensor<3> {
        self.residual
            .add(x, attended, &self.self_attention_norm, pass)
    }

    /// The second half of the block: the feed-forward network and its residual connection.
    pub fn feed(&self, x: Tensor<3>, pass: &mut Pass) -> Tensor<3> {
        let norm = &self.feed_forward_norm;
        let input = self.residual.input(&x, norm);
        let y = self.feed_forward.forward(input, pass);
        self.residual.add(x, y, norm, pass)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::{floats, random};
    use burn::tensor::TensorData;

    #[test]
    fn a_causal_block_with_a_cache_is_the_layer_of_a_decoder_only_model() {
        let device = Device::flex();
        let (len, d_model) = (5, 12);
        for norm in [NormPlacement::Pre, NormPlacement::Post] {
            let config = BlockConfig {
                d_model,
                heads: 3,
                kv_heads: 1,
                d_ff: 20,
                activation: Activation::Relu,
                dropout: 0.1,
                norm,
                norm_epsilon: 1e-5,
            };
            let block = Block::new(&config, &mut Init::xavier_uniform(4), &device);
            let data = TensorData::new(random([1, len, d_model], 9), [1, len, d_model]);
            let x = Tensor::<3>::from_data(data, &device);
            let pass = &mut Pass::evaluation();
            let whole = block.forward(x.clone(), &Mask::Causal, None, pass);
            let whole = floats(whole.hidden);
            let mut cache = SelfCache::default();
            for position in 0..len {
                let new = x.clone().narrow(1, position, 1);
                let step = block.forward(new, &Mask::Open, Some(&mut cache), pass);
                let expected = &whole[position * d_model..][..d_model];
                for (got, expected) in floats(step.hidden).iter().zip(expected) {
                    assert!((got - expected).abs() < 1e-5, "{got}, not {expected}");
                }
            }
        }
    }
}
