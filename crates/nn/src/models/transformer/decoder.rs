//! The decoder: layers of masked self-attention, cross-attention and feed-forward (figure 1 right), or with a
//! recurrent unit in place of self-attention.
//!
//! Training and translating share [`Decoder::forward`]: a whole target with an empty state and a causal
//! mask, or one position with the state of all earlier ones.

use attentive_model::config::{Autoregression, EmbeddingNorm, TransformerConfig};
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
    layers::{
        block::BlockConfig, feed_forward::FeedForward, norm::LayerNorm, residual::Residual,
        ssru::Ssru,
    },
    mask::Mask,
    ops::Precision,
    pass::Pass,
};

/// The stack that writes the target.
#[derive(Module, Debug)]
pub struct Decoder {
    /// On the embeddings, where the model has one.
    pub embedding_norm: Option<LayerNorm>,
    /// From bottom to top.
    pub layers: Vec<DecoderLayer>,
    /// On what the layers leave, where the model has one: usually with pre-norm layers.
    pub final_norm: Option<LayerNorm>,
}

/// Masked self-attention or a recurrent unit, cross-attention, feed-forward, each in a residual connection.
#[derive(Module, Debug)]
pub struct DecoderLayer {
    /// Every target position looks at itself and its past.
    pub self_attention: Option<MultiHeadAttention>,
    /// Belongs to `self_attention`.
    pub self_attention_norm: Option<LayerNorm>,
    /// Every target position goes on from what the one before it left; in place of `self_attention`.
    pub ssru: Option<Ssru>,
    /// Belongs to `ssru`.
    pub ssru_norm: Option<LayerNorm>,
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
    /// Positions decoded so far.
    len: usize,
}

#[derive(Debug, Clone)]
struct LayerState {
    /// Of self-attention: grows with each step.
    past: SelfCache,
    /// Of a recurrent unit: that of the last position, `[batch, 1, d_model]`.
    cell: Option<Tensor<3>>,
    /// Projected once, when the source was read.
    memory: KeyValues,
}

impl Decoder {
    /// The decoder of a model of this configuration.
    pub fn new(config: &TransformerConfig, init: &mut Init, device: &Device) -> Self {
        let block = BlockConfig::from(config);
        let layers = (0..config.decoder_layers)
            .map(|_| DecoderLayer::new(config.autoregression, &block, init, device));
        let normalized = config.embedding_norm == EmbeddingNorm::LayerNorm;
        Self {
            embedding_norm: normalized.then(|| block.layer_norm(device)),
            layers: layers.collect(),
            final_norm: config.has_final_norm().then(|| block.layer_norm(device)),
        }
    }

    /// The state before the first position.
    pub fn start(&self, memory: &Memory, precision: Precision) -> DecoderState {
        let layer_state = |layer: &DecoderLayer| {
            let hidden = memory.hidden.clone();
            LayerState {
                past: SelfCache::default(),
                cell: None,
                memory: layer.cross_attention.project(hidden, precision),
            }
        };
        DecoderState {
            layers: self.layers.iter().map(layer_state).collect(),
            memory_mask: memory.mask.clone(),
            len: 0,
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
        state.len += x.dims()[1];
        if let Some(norm) = &self.embedding_norm {
            x = norm.forward(x);
        }
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
    fn new(
        autoregression: Autoregression,
        config: &BlockConfig,
        init: &mut Init,
        device: &Device,
    ) -> Self {
        let recurrent = autoregression == Autoregression::Ssru;
        Self {
            self_attention: (!recurrent)
                .then(|| MultiHeadAttention::new(&config.attention(), init, device)),
            self_attention_norm: (!recurrent).then(|| config.layer_norm(device)),
            ssru: recurrent.then(|| Ssru::new(config.d_model, init, device)),
            ssru_norm: recurrent.then(|| config.layer_norm(device)),
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
        state: &mut LayerState,
        memory_mask: &Mask,
        pass: &mut Pass,
    ) -> (Tensor<3>, (Option<Tensor<4>>, Option<Tensor<4>>)) {
        let (x, self_weights) = self.look_back(x, mask, state, pass);

        let norm = &self.cross_attention_norm;
        let (input, memory) = (self.residual.input(&x, norm), state.memory.clone());
        let to_source = self
            .cross_attention
            .attend(input, memory, memory_mask, pass);
        let x = self.residual.add(x, to_source.hidden, norm, pass);

        let norm = &self.feed_forward_norm;
        let y = self
            .feed_forward
            .forward(self.residual.input(&x, norm), pass);
        let x = self.residual.add(x, y, norm, pass);
        (x, (self_weights, to_source.weights))
    }

    /// The sub-layer that sees the target so far, and its attention weights if it has some.
    fn look_back(
        &self,
        x: Tensor<3>,
        mask: &Mask,
        LayerState { past, cell, .. }: &mut LayerState,
        pass: &mut Pass,
    ) -> (Tensor<3>, Option<Tensor<4>>) {
        if let (Some(attention), Some(norm)) = (&self.self_attention, &self.self_attention_norm) {
            let input = self.residual.input(&x, norm);
            let to_past = attention.forward(input, mask, Some(past), pass);
            let x = self.residual.add(x, to_past.hidden, norm, pass);
            return (x, to_past.weights);
        }
        let (Some(ssru), Some(norm)) = (&self.ssru, &self.ssru_norm) else {
            unreachable!("a decoder layer has self-attention or a recurrent unit");
        };
        // A causal recurrence needs no mask: padding stands behind everything that counts.
        let y = ssru.forward(self.residual.input(&x, norm), cell, pass);
        (self.residual.add(x, y, norm, pass), None)
    }
}

impl DecoderState {
    /// Positions decoded so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True before the first step.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Row `i` becomes what row `rows[i]` was.
    pub fn reorder(&mut self, rows: Tensor<1, Int>) {
        for layer in &mut self.layers {
            layer.past.reorder(rows.clone());
            layer.cell = layer.cell.take().map(|cell| cell.select(0, rows.clone()));
            layer.memory = layer.memory.select(rows.clone());
        }
        self.memory_mask = self.memory_mask.select(rows);
    }
}
