//! The decoder: layers of masked self-attention, cross-attention and feed-forward (figure 1 right).
//!
//! Training and translating share [`Decoder::forward`]: a whole target with an empty state and a causal
//! mask, or one position with the state of all earlier ones.

use attentive_model::config::{NormPlacement, TransformerConfig};
use burn::{
    module::Module,
    tensor::{Device, Int, Tensor},
};

use super::{Decoded, Memory};
use crate::{
    attention::{
        cache::{KeyValues, SelfCache},
        multi_head::MultiHeadAttention,
    },
    init::Init,
    layers::{feed_forward::FeedForward, norm::LayerNorm, residual::Residual},
    mask::Mask,
    pass::Pass,
};

/// The stack that writes the target.
#[derive(Module, Debug)]
pub struct Decoder {
    /// From bottom to top.
    pub layers: Vec<DecoderLayer>,
    /// Only with pre-norm layers.
    pub final_norm: Option<LayerNorm>,
    #[module(skip)]
    residual: Residual,
}

/// Masked self-attention, cross-attention, feed-forward, each in a residual connection.
#[derive(Module, Debug)]
pub struct DecoderLayer {
    /// Every target position looks at itself and its past.
    pub self_attention: MultiHeadAttention,
    /// Belongs to `self_attention`.
    pub self_attention_norm: LayerNorm,
    /// Every target position looks at the source.
    pub cross_attention: MultiHeadAttention,
    /// Belongs to `cross_attention`.
    pub cross_attention_norm: LayerNorm,
    /// Works on each position alone.
    pub feed_forward: FeedForward,
    /// Belongs to `feed_forward`.
    pub feed_forward_norm: LayerNorm,
}

/// What the decoder remembers between steps: a value of the caller's.
#[derive(Debug, Clone)]
pub struct DecoderState {
    layers: Vec<LayerState>,
    memory_mask: Mask,
}

#[derive(Debug, Clone)]
struct LayerState {
    /// Grows with each step.
    past: SelfCache,
    /// Projected once, when the source was read.
    memory: KeyValues,
}

impl Decoder {
    /// `config.decoder_layers` layers.
    pub fn new(config: &TransformerConfig, init: &mut Init, device: &Device) -> Self {
        let norm = || LayerNorm::new(config.d_model, config.norm_epsilon, device);
        Self {
            layers: (0..config.decoder_layers)
                .map(|_| DecoderLayer {
                    self_attention: MultiHeadAttention::new(config, init, device),
                    self_attention_norm: norm(),
                    cross_attention: MultiHeadAttention::new(config, init, device),
                    cross_attention_norm: norm(),
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

    /// The state before the first position.
    pub fn start(&self, memory: &Memory) -> DecoderState {
        let layer_state = |layer: &DecoderLayer| LayerState {
            past: SelfCache::default(),
            memory: layer.cross_attention.project(memory.hidden.clone()),
        };
        DecoderState {
            layers: self.layers.iter().map(layer_state).collect(),
            memory_mask: memory.mask.clone(),
        }
    }

    /// New positions `x` `[batch, tgt_len, d_model]` after those in `state`; `mask` says which of all
    /// positions so far are hidden from them.
    pub fn forward(
        &self,
        mut x: Tensor<3>,
        mask: &Mask,
        state: &mut DecoderState,
        pass: &mut Pass,
    ) -> Decoded {
        let mut self_weights = Vec::with_capacity(self.layers.len());
        let mut cross_weights = Vec::with_capacity(self.layers.len());
        let memory_mask = &state.memory_mask;
        for (layer, LayerState { past, memory }) in self.layers.iter().zip(&mut state.layers) {
            let weights;
            (x, weights) = self
                .residual
                .around(x, &layer.self_attention_norm, pass, |x, pass| {
                    let out = layer.self_attention.forward_cached(x, past, mask, pass);
                    (out.hidden, out.weights)
                });
            self_weights.extend(weights);
            let weights;
            (x, weights) = self
                .residual
                .around(x, &layer.cross_attention_norm, pass, |x, pass| {
                    let out = layer
                        .cross_attention
                        .attend(x, memory.clone(), memory_mask, pass);
                    (out.hidden, out.weights)
                });
            cross_weights.extend(weights);
            (x, ()) = self
                .residual
                .around(x, &layer.feed_forward_norm, pass, |x, pass| {
                    (layer.feed_forward.forward(x, pass), ())
                });
        }
        let hidden = match &self.final_norm {
            Some(norm) => norm.forward(x),
            None => x,
        };
        Decoded {
            hidden,
            self_weights,
            cross_weights,
        }
    }
}

impl DecoderState {
    /// Positions decoded so far.
    pub fn len(&self) -> usize {
        self.layers.first().map_or(0, |layer| layer.past.len())
    }

    /// True before the first step.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Row `i` becomes what row `rows[i]` was.
    pub fn reorder(&mut self, rows: Tensor<1, Int>) {
        for layer in &mut self.layers {
            layer.past.reorder(rows.clone());
            layer.memory = layer.memory.select(rows.clone());
        }
        self.memory_mask = self.memory_mask.select(rows);
    }
}
