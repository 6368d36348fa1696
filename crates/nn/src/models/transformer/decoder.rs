//! The decoder: layers of masked self-attention, cross-attention and feed-forward (figure 1 right).
//!
//! Training and translating share [`Decoder::forward`]: a whole target with an empty state and a causal
//! mask, or one position with the state of all earlier ones.

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
    layers::{block::BlockConfig, feed_forward::FeedForward, norm::LayerNorm, residual::Residual},
    mask::Mask,
    ops::Precision,
    pass::Pass,
};

/// The stack that writes the target.
#[derive(Module, Debug)]
pub struct Decoder {
    /// From bottom to top.
    pub layers: Vec<DecoderLayer>,
    /// Only with pre-norm layers.
    pub final_norm: Option<LayerNorm>,
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
    #[module(skip)]
    residual: Residual,
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
    /// So many equal layers.
    pub fn new(layers: usize, config: &BlockConfig, init: &mut Init, device: &Device) -> Self {
        let layers = (0..layers).map(|_| DecoderLayer::new(config, init, device));
        Self {
            layers: layers.collect(),
            final_norm: config.final_norm(device),
        }
    }

    /// The state before the first position.
    pub fn start(&self, memory: &Memory, precision: Precision) -> DecoderState {
        let layer_state = |layer: &DecoderLayer| {
            let hidden = memory.hidden.clone();
            LayerState {
                past: SelfCache::default(),
                memory: layer.cross_attention.project(hidden, precision),
            }
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
        for (layer, layer_state) in self.layers.iter().zip(&mut state.layers) {
            let weights;
            (x, weights) = layer.forward(x, mask, layer_state, &state.memory_mask, pass);
            self_weights.extend(weights.0);
            cross_weights.extend(weights.1);
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

impl DecoderLayer {
    fn new(config: &BlockConfig, init: &mut Init, device: &Device) -> Self {
        Self {
            self_attention: MultiHeadAttention::new(&config.attention(), init, device),
            self_attention_norm: config.layer_norm(device),
            cross_attention: MultiHeadAttention::new(&config.attention(), init, device),
            cross_attention_norm: config.layer_norm(device),
            feed_forward: FeedForward::new(&config.feed_forward(), init, device),
            feed_forward_norm: config.layer_norm(device),
            residual: config.residual(),
        }
    }

    /// The new positions, and the weights of both attentions if the pass asks for them.
    fn forward(
        &self,
        x: Tensor<3>,
        mask: &Mask,
        LayerState { past, memory }: &mut LayerState,
        memory_mask: &Mask,
        pass: &mut Pass,
    ) -> (Tensor<3>, (Option<Tensor<4>>, Option<Tensor<4>>)) {
        let norm = &self.self_attention_norm;
        let input = self.residual.input(&x, norm);
        let to_past = self.self_attention.forward(input, mask, Some(past), pass);
        let x = self.residual.add(x, to_past.hidden, norm, pass);

        let norm = &self.cross_attention_norm;
        let (input, memory) = (self.residual.input(&x, norm), memory.clone());
        let to_source = self
            .cross_attention
            .attend(input, memory, memory_mask, pass);
        let x = self.residual.add(x, to_source.hidden, norm, pass);

        let norm = &self.feed_forward_norm;
        let y = self
            .feed_forward
            .forward(self.residual.input(&x, norm), pass);
        let x = self.residual.add(x, y, norm, pass);
        (x, (to_past.weights, to_source.weights))
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
