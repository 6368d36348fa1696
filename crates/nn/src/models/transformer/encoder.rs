//! The encoder: layers of self-attention and feed-forward (§3.1, figure 1 left).

use attentive_model::config::{NormPlacement, TransformerConfig};
use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

use crate::{
    attention::multi_head::MultiHeadAttention,
    init::Init,
    layers::{feed_forward::FeedForward, norm::LayerNorm, residual::Residual},
    mask::Mask,
    pass::Pass,
};

/// The stack that reads the source.
#[derive(Module, Debug)]
pub struct Encoder {
    /// From bottom to top.
    pub layers: Vec<EncoderLayer>,
    /// Only with pre-norm layers, whose sum is not normalised otherwise.
    pub final_norm: Option<LayerNorm>,
    #[module(skip)]
    residual: Residual,
}

/// Self-attention, then feed-forward, each in a residual connection.
#[derive(Module, Debug)]
pub struct EncoderLayer {
    /// Every source position looks at every other.
    pub self_attention: MultiHeadAttention,
    /// Belongs to `self_attention`.
    pub self_attention_norm: LayerNorm,
    /// Works on each position alone.
    pub feed_forward: FeedForward,
    /// Belongs to `feed_forward`.
    pub feed_forward_norm: LayerNorm,
}

impl Encoder {
    /// `config.encoder_layers` layers.
    pub fn new(config: &TransformerConfig, init: &mut Init, device: &Device) -> Self {
        let norm = || LayerNorm::new(config.d_model, config.norm_epsilon, device);
        Self {
            layers: (0..config.encoder_layers)
                .map(|_| EncoderLayer {
                    self_attention: MultiHeadAttention::new(config, init, device),
                    self_attention_norm: norm(),
                    feed_forward: FeedForward::new(config, init, device),
                    feed_forward_norm: norm(),
                })
                .collect(),
            final_norm: (config.norm == NormPlacement::Pre).then(norm),
            residual: Residual {
                placement: config.norm,
                dropout: config.dropout,
            },
        }
    }

    /// `[batch, src_len, d_model]` -> the same shape, and each layer's attention weights
    /// `[batch, heads, src_len, src_len]`, if the pass asks for them.
    pub fn forward(
        &self,
        mut x: Tensor<3>,
        mask: &Mask,
        pass: &mut Pass,
    ) -> (Tensor<3>, Vec<Tensor<4>>) {
        let mut weights = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            let attended;
            (x, attended) = self
                .residual
                .around(x, &layer.self_attention_norm, pass, |x, pass| {
                    let out = layer.self_attention.forward_self(x, mask, pass);
                    (out.hidden, out.weights)
                });
            weights.extend(attended);
            (x, ()) = self
                .residual
                .around(x, &layer.feed_forward_norm, pass, |x, pass| {
                    (layer.feed_forward.forward(x, pass), ())
                });
        }
        let x = match &self.final_norm {
            Some(norm) => norm.forward(x),
            None => x,
        };
        (x, weights)
    }
}
