//! The encoder-decoder Transformer (§3, figure 1).
//!
//! Source ids -> [`encoder`] -> memory -> [`decoder`] with the target so far -> log-probabilities of the
//! next token. [`search`] lets `attentive-runtime`'s search drive it one step at a time, [`inspection`] shows what
//! its attention does.

pub mod decoder;
pub mod embeddings;
pub mod encoder;
pub mod inspection;
pub mod search;

use std::path::Path;

use attentive_model::config::TransformerConfig;
use attentive_text::special::PAD;
use burn::{
    module::Module,
    tensor::{Device, Int, Tensor, activation::log_softmax},
};

use self::{
    decoder::{Decoder, DecoderState},
    embeddings::Embeddings,
    encoder::Encoder,
};
use super::weights;
use crate::{
    error::NnError, init::Init, layers::block::BlockConfig, mask::Mask, ops::SmoothedLoss,
    pass::Pass,
};

/// The Transformer: embeddings on both sides, the two stacks, and the output projection.
#[derive(Module, Debug)]
pub struct Transformer {
    /// Token and position vectors, and the output projection, tied or not.
    pub embeddings: Embeddings,
    /// Reads the source.
    pub encoder: Encoder,
    /// Writes the target.
    pub decoder: Decoder,
}

/// A source that has been read: what the decoder looks at.
#[derive(Debug, Clone)]
pub struct Memory {
    /// `[batch, src_len, d_model]`
    pub hidden: Tensor<3>,
    /// Hides the source's padding.
    pub mask: Mask,
    /// Per layer `[batch, heads, src_len, src_len]`, if the pass asks for them.
    pub weights: Vec<Tensor<4>>,
}

/// What one pass of the decoder returns.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// `[batch, tgt_len, d_model]`, before the output projection.
    pub hidden: Tensor<3>,
    /// Per layer `[batch, heads, tgt_len, tgt_len so far]`, if the pass asks for them.
    pub self_weights: Vec<Tensor<4>>,
    /// Per layer `[batch, heads, tgt_len, src_len]`, if the pass asks for them.
    pub cross_weights: Vec<Tensor<4>>,
}

impl Transformer {
    /// A model with Xavier-uniform matrices drawn from `seed`.
    pub fn new(config: &TransformerConfig, seed: u64, device: &Device) -> Self {
        Self::init(config, &mut Init::xavier_uniform(seed), device)
    }

    /// A model whose weights are about to be replaced.
    pub fn zeros(config: &TransformerConfig, device: &Device) -> Self {
        Self::init(config, &mut Init::zeros(), device)
    }

    /// Reads the weights file of a model with this architecture.
    pub fn load(config: &TransformerConfig, file: &Path, device: &Device) -> Result<Self, NnError> {
        weights::load(config, Self::zeros(config, device), file)
    }

    fn init(config: &TransformerConfig, init: &mut Init, device: &Device) -> Self {
        Self {
            embeddings: Embeddings::new(config, init, device),
            encoder: Encoder::new(config, init, device),
            decoder: Decoder::new(config, init, device),
        }
    }

    /// Reads sources `[batch, src_len]`, padded with `<blank>`.
    pub fn encode(&self, src: Tensor<2, Int>, pass: &mut Pass) -> Memory {
        let mask = Mask::padding(src.clone(), PAD);
        let embedded = self.embeddings.source(src, pass);
        let (hidden, weights) = self.encoder.forward(embedded, &mask, pass);
        Memory {
            hidden,
            mask,
            weights,
        }
    }

    /// Teacher forcing: all positions of `tgt` `[batch, tgt_len]` at once, none seeing its future.
    pub fn decode(&self, tgt: Tensor<2, Int>, memory: &Memory, pass: &mut Pass) -> Decoded {
        let mask = Mask::causal_and_padding(tgt.clone(), PAD);
        let embedded = self.embeddings.target(tgt, 0, pass);
        let mut state = self.start(memory, pass);
        self.decoder.forward(embedded, &mask, &mut state, pass)
    }

    /// The decoder's state before the first token: cross-attention is projected here, once.
    pub fn start(&self, memory: &Memory, pass: &Pass) -> DecoderState {
        self.decoder.start(memory, pass.precision)
    }

    /// One position further: `tokens` `[batch, 1]`, without dropout or weights. Equal to the last position of [`Transformer::decode`].
    pub fn step(&self, tokens: Tensor<2, Int>, state: &mut DecoderState) -> Decoded {
        let pass = &mut Pass::evaluation();
        let embedded = self.embeddings.target(tokens, state.len(), pass);
        self.decoder.forward(embedded, &Mask::Open, state, pass)
    }

    /// Logits over the target vocabulary: `[batch, len, d_model]` -> `[batch, len, vocab]`.
    pub fn logits(&self, hidden: Tensor<3>, pass: &Pass) -> Tensor<3> {
        self.embeddings.project(hidden, pass.precision)
    }

    /// The label-smoothed loss of predicting `targets`, row by row, from `hidden` `[batch, len, d_model]`.
    pub fn loss(
        &self,
        hidden: Tensor<3>,
        targets: &[u32],
        smoothing: f64,
        pass: &Pass,
    ) -> SmoothedLoss {
        self.embeddings
            .loss(hidden, targets, smoothing, pass.precision)
    }

    /// Log-probabilities over the target vocabulary, `[batch, len, vocab]`.
    pub fn log_probs(&self, hidden: Tensor<3>, pass: &Pass) -> Tensor<3> {
        log_softmax(self.logits(hidden, pass), 2)
    }
}

impl From<&TransformerConfig> for BlockConfig {
    fn from(config: &TransformerConfig) -> Self {
        Self {
            d_model: config.d_model,
            heads: config.heads,
            kv_heads: config.kv_heads,
            d_ff: config.d_ff,
            activation: config.activation,
            dropout: config.dropout,
            norm: config.norm,
            norm_epsilon: config.norm_epsilon,
        }
    }
}
