//! The recurrent translators that attention grew out of: an encoder and a decoder of gated recurrent units.
//!
//! ```text
//! source ids -> embedding -> bidirectional GRU -> states h_1 .. h_n
//! s_0 = tanh(W [last states])     c_t = one vector for all steps (Cho et al. 2014)
//!                                     = attention(s_{t-1}, h)    (Bahdanau et al. 2015)
//! s_t = GRU([y_{t-1}; c_t], s_{t-1})      y_t ~ softmax(E tanh(W [y_{t-1}; s_t; c_t]))
//! ```
//!
//! Both kinds are one network but for the context `c_t`, so that they can be compared. Paper: a maxout layer in front
//! of the output. Here: a tanh, because then the output matrix can be the embedding. [`search`] lets
//! `attentive-runtime`'s search drive it, [`inspection`] shows its attention.

pub mod inspection;
pub mod search;

use std::path::Path;

use attentive_model::config::{Context, RecurrentConfig, Tying};
use attentive_text::special::PAD;
use burn::{
    module::{Module, Param},
    tensor::{Device, Int, Tensor, activation::tanh},
};

use super::weights;
use crate::{
    attention::additive::{AdditiveAttention, AdditiveConfig},
    error::NnError,
    init::Init,
    layers::{
        embedding::Embedding,
        gru::{BidirectionalGru, Gru},
        linear::Linear,
    },
    ops::{
        Attentive, Direction, SmoothedLoss, affine, attention_gru, dropout, embed, gru, project,
        projected_loss,
    },
    pass::Pass,
};

/// A recurrent encoder-decoder, with attention or with one context for the whole sentence.
#[derive(Module, Debug)]
pub struct Recurrent {
    /// The source's table; absent when all are tied.
    pub source: Option<Embedding>,
    /// The target's table; with [`Tying::All`] the source's as well.
    pub target: Embedding,
    /// `[d_embedding, vocab]`; absent when tied to the target's table.
    pub projection: Option<Param<Tensor<2>>>,
    /// `[vocab]`
    pub projection_bias: Param<Tensor<1>>,
    /// Reads the source in both directions.
    pub encoder: BidirectionalGru,
    /// From the encoder's last states to the decoder's first.
    pub start: Linear,
    /// Writes the target.
    pub decoder: Gru,
    /// From a context to the decoder's gates, `[2 * d_hidden, 3 * d_hidden]`.
    pub context: Param<Tensor<2>>,
    /// What makes a context of each step; without it there is one for all of them.
    pub attention: Option<AdditiveAttention>,
    /// From token, state and context to what the output is predicted from.
    pub readout: Linear,
    dropout: f64,
}

/// A source that has been read.
#[derive(Debug, Clone)]
pub struct Memory {
    /// The encoder's states, `[batch, src_len, 2 * d_hidden]`.
    pub states: Tensor<3>,
    /// The same, projected to be compared with queries: `[batch, src_len, d_attention]`.
    pub keys: Option<Tensor<3>>,
    /// The last state of each direction, `[batch, 2 * d_hidden]`.
    pub last: Tensor<2>,
    /// Source tokens of each row that are no padding.
    pub lengths: Vec<usize>,
}

/// What one pass of the decoder returns.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// What the output is predicted from, `[batch, len, d_embedding]`.
    pub hidden: Tensor<3>,
    /// The decoder's last state, `[batch, d_hidden]`.
    pub state: Tensor<2>,
    /// `[batch, len, src_len]`, with attention and if the pass asks for weights.
    pub weights: Option<Tensor<3>>,
}

impl Recurrent {
    /// A model with Xavier-uniform matrices drawn from `seed`.
    pub fn new(config: &RecurrentConfig, seed: u64, device: &Device) -> Self {
        Self::init(config, &mut Init::xavier_uniform(seed), device)
    }

    /// A model whose weights are about to be replaced.
    pub fn zeros(config: &RecurrentConfig, device: &Device) -> Self {
        Self::init(config, &mut Init::zeros(), device)
    }

    /// Reads the weights file of a model with this architecture.
    pub fn load(config: &RecurrentConfig, file: &Path, device: &Device) -> Result<Self, NnError> {
        weights::load(config, Self::zeros(config, device), file)
    }

    fn init(config: &RecurrentConfig, init: &mut Init, device: &Device) -> Self {
        let (d, hidden) = (config.d_embedding, config.d_hidden);
        let additive = AdditiveConfig {
            d_query: hidden,
            d_key: 2 * hidden,
            d_hidden: config.d_attention,
            dropout: 0.0,
        };
        Self {
            source: (config.tying != Tying::All)
                .then(|| Embedding::new(config.src_vocab, d, init, device)),
            target: Embedding::new(config.tgt_vocab, d, init, device),
            projection: (config.tying == Tying::None)
                .then(|| Param::from_tensor(init.matrix(d, config.tgt_vocab, device))),
            projection_bias: Param::from_tensor(Tensor::zeros([config.tgt_vocab], device)),
            encoder: BidirectionalGru::new(d, hidden, init, device),
            start: Linear::new(2 * hidden, hidden, init, device),
            decoder: Gru::new(d, hidden, init, device),
            context: Param::from_tensor(init.matrix(2 * hidden, 3 * hidden, device)),
            attention: (config.context == Context::Attention)
                .then(|| AdditiveAttention::new(&additive, init, device)),
            readout: Linear::new(d + 3 * hidden, d, init, device),
            dropout: config.dropout,
        }
    }

    /// Reads sources `[batch, src_len]`, padded with `<blank>`.
    pub fn encode(&self, src: Tensor<2, Int>, pass: &mut Pass) -> Memory {
        let [_, src_len] = src.dims();
        let ids: Vec<u32> = src.clone().into_data().iter::<u32>().collect();
        let length = |row: &[u32]| row.iter().filter(|id| **id != PAD).count();
        let lengths: Vec<usize> = ids.chunks(src_len.max(1)).map(length).collect();
        let table = self.source.as_ref().unwrap_or(&self.target);
        let embedded = self.embed(table, src, pass);
        let encoded = self.encoder.forward(embedded, &lengths, pass);
        let attention = self.attention.as_ref();
        Memory {
            keys: attention.map(|layer| layer.project_keys(encoded.states.clone(), pass.precision)),
            states: encoded.states,
            last: encoded.last,
            lengths,
        }
    }

    /// The decoder's state before the first token, `[batch, d_hidden]`.
    pub fn first_state(&self, memory: &Memory, pass: &Pass) -> Tensor<2> {
        tanh(self.start.forward(memory.last.clone(), pass.precision))
    }

    /// The positions of `tgt` `[batch, len]` from `state` `[batch, d_hidden]` on: a whole target in training, one
    /// position when translating.
    pub fn decode(
        &self,
        tgt: Tensor<2, Int>,
        state: Tensor<2>,
        memory: &Memory,
        pass: &mut Pass,
    ) -> Decoded {
        let [batch, len] = tgt.dims();
        let width = state.dims()[1];
        let embedded = self.embed(&self.target, tgt, pass);
        let inputs = self.decoder.input.forward(embedded.clone(), pass.precision); // [batch, len, 3 * d_hidden]
        let (weight, bias) = (
            self.decoder.state.weight.val(),
            self.decoder.state.bias.val(),
        );
        let (both, weights) = match (&self.attention, &memory.keys) {
            (Some(attention), Some(keys)) => {
                let attentive = Attentive {
                    keys: keys.clone(),
                    values: memory.states.clone(),
                    query: attention.query.val(),
                    score: attention.score.val(),
                    context: self.context.val(),
                    lengths: memory.lengths.clone(),
                };
                let out = attention_gru(inputs, weight, bias, state, attentive, pass);
                (out.hidden, out.weights)
            }
            _ => {
                let context = memory.last.clone().unsqueeze_dim::<3>(1); // [batch, 1, 2 * d_hidden]
                let inputs = inputs + project(context.clone(), self.context.val(), pass.precision);
                let direction = Direction::Forward;
                let lengths = vec![len; batch];
                let precision = pass.precision;
                let states = gru(inputs, weight, bias, state, &lengths, direction, precision);
                let context = context.expand([batch, len, 2 * width]);
                (Tensor::cat(vec![states, context], 2), None)
            }
        };
        let last = both.clone().narrow(1, len - 1, 1).narrow(2, 0, width);
        let read = Tensor::cat(vec![embedded, both], 2); // [batch, len, d_embedding + 3 * d_hidden]
        let hidden = tanh(self.readout.forward(read, pass.precision));
        Decoded {
            hidden: dropout(hidden, self.dropout, &mut pass.dropout),
            state: last.squeeze_dim(1),
            weights,
        }
    }

    /// Logits over the target vocabulary: `[batch, len, d_embedding]` -> `[batch, len, vocab]`.
    pub fn logits(&self, hidden: Tensor<3>, pass: &Pass) -> Tensor<3> {
        let bias = self.projection_bias.val();
        affine(hidden, self.output_matrix(), bias, pass.precision)
    }

    /// The label-smoothed loss of predicting `targets`, row by row, from `hidden` `[batch, len, d_embedding]`.
    pub fn loss(
        &self,
        hidden: Tensor<3>,
        targets: &[u32],
        smoothing: f64,
        pass: &Pass,
    ) -> SmoothedLoss {
        projected_loss(
            hidden.flatten::<2>(0, 1),
            self.output_matrix(),
            self.projection_bias.val(),
            targets,
            smoothing,
            pass.precision,
        )
    }

    /// Where the parameters live.
    pub fn device(&self) -> Device {
        self.target.weight.device()
    }

    /// `[d_embedding, vocab]`
    fn output_matrix(&self) -> Tensor<2> {
        match &self.projection {
            Some(weight) => weight.val(),
            None => self.target.weight.val().transpose(),
        }
    }

    /// Token vectors times `sqrt(d_embedding)`, for the matrix may be that of the output, whose rows are short.
    fn embed(&self, table: &Embedding, tokens: Tensor<2, Int>, pass: &mut Pass) -> Tensor<3> {
        let (weight, len) = (table.weight.val(), tokens.dims()[1]);
        let width = weight.dims()[1];
        let positions = Tensor::zeros([len, width], &weight.device());
        let scale = (width as f64).sqrt();
        embed(
            weight,
            tokens,
            scale,
            positions,
            self.dropout,
            &mut pass.dropout,
        )
    }
}
