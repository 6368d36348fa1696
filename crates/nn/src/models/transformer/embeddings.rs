//! Token and position vectors on both sides and the output projection, with the three ways of tying.
//!
//! §3.4: the paper shares one matrix between the two embeddings and the projection ([`Tying::All`]).
//! Untied models keep three; [`Tying::Output`] shares the target embedding with the projection.
//! The tied matrix stands once in the struct, so it is one parameter with one gradient.

use attentive_model::config::{PositionKind, TransformerConfig, Tying};
use burn::{
    module::{Module, Param},
    tensor::{Device, Int, Tensor},
};

use crate::{
    init::Init,
    layers::{
        embedding::Embedding,
        positions::{LearnedPositions, Sinusoids, sinusoids_of},
    },
    ops::{Precision, SmoothedLoss, affine, dropout, embed, projected_loss},
    pass::Pass,
};

/// Everything between ids and vectors.
#[derive(Module, Debug)]
pub struct Embeddings {
    /// The source's table; absent when all are tied.
    pub source: Option<Embedding>,
    /// The target's table; with [`Tying::All`] the source's as well.
    pub target: Embedding,
    /// `[d_model, vocab]`; absent when tied to the target's table.
    pub projection: Option<Param<Tensor<2>>>,
    /// `[vocab]`
    pub projection_bias: Param<Tensor<1>>,
    /// Learned positions of the source, if not sinusoids.
    pub source_positions: Option<LearnedPositions>,
    /// Learned positions of the target, if not sinusoids.
    pub target_positions: Option<LearnedPositions>,
    #[module(skip)]
    sinusoids: Option<Sinusoids>,
    /// The number of the first position, for sinusoids.
    position_offset: usize,
    /// What token vectors are multiplied by.
    scale: f64,
    dropout: f64,
}

impl Embeddings {
    /// Tables as `config.tying` and `config.positions` ask for.
    pub fn new(config: &TransformerConfig, init: &mut Init, device: &Device) -> Self {
        let d_model = config.d_model;
        let source = (config.tying != Tying::All)
            .then(|| Embedding::new(config.src_vocab, d_model, init, device));
        let target = Embedding::new(config.tgt_vocab, d_model, init, device);
        let projection = (config.tying == Tying::None)
            .then(|| Param::from_tensor(init.matrix(d_model, config.tgt_vocab, device)));
        let mut learned = || {
            (config.positions == PositionKind::Learned)
                .then(|| LearnedPositions::new(config.max_positions, d_model, init, device))
        };
        Self {
            source,
            target,
            projection,
            projection_bias: Param::from_tensor(Tensor::zeros([config.tgt_vocab], device)),
            source_positions: learned(),
            target_positions: learned(),
            sinusoids: Sinusoids::of(config.positions),
            position_offset: config.position_offset,
            scale: config.embedding_factor(),
            dropout: config.dropout,
        }
    }

    /// `[batch, src_len]` -> `[batch, src_len, d_model]`
    pub fn source(&self, tokens: Tensor<2, Int>, pass: &mut Pass) -> Tensor<3> {
        let table = self.source.as_ref().unwrap_or(&self.target);
        self.embed(table, tokens, self.source_positions.as_ref(), 0, pass)
    }

    /// `[batch, len]` at positions `start..` -> `[batch, len, d_model]`
    pub fn target(&self, tokens: Tensor<2, Int>, start: usize, pass: &mut Pass) -> Tensor<3> {
        let positions = self.target_positions.as_ref();
        self.embed(&self.target, tokens, positions, start, pass)
    }

    /// `[batch, len, d_model]` -> logits `[batch, len, vocab]`
    pub fn project(&self, hidden: Tensor<3>, precision: Precision) -> Tensor<3> {
        let bias = self.projection_bias.val();
        affine(hidden, self.projection(), bias, precision)
    }

    /// The loss of the logits of `[batch, len, d_model]`, `targets` row by row, without keeping the logits.
    pub fn loss(
        &self,
        hidden: Tensor<3>,
        targets: &[u32],
        smoothing: f64,
        precision: Precision,
    ) -> SmoothedLoss {
        let hidden = hidden.flatten::<2>(0, 1);
        let bias = self.projection_bias.val();
        projected_loss(
            hidden,
            self.projection(),
            bias,
            targets,
            smoothing,
            precision,
        )
    }

    /// `[d_model, vocab]`
    fn projection(&self) -> Tensor<2> {
        match &self.projection {
            Some(weight) => weight.val(),
            None => self.target.weight.val().transpose(),
        }
    }

    /// Token vectors times a factor, usually `sqrt(d_model)` (§3.4), plus positions, with dropout (§5.4).
    fn embed(
        &self,
        table: &Embedding,
        tokens: Tensor<2, Int>,
        positions: Option<&LearnedPositions>,
        start: usize,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let [len, d_model] = [tokens.dims()[1], table.weight.dims()[1]];
        let keys = &mut pass.dropout;
        if let Some(formula) = self.sinusoids {
            let weight = table.weight.val();
            let first = self.position_offset + start;
            let positions = sinusoids_of(formula, first, len, d_model, &weight.device());
            return embed(weight, tokens, self.scale, positions, self.dropout, keys);
        }
        let mut embedded = table.forward(tokens).mul_scalar(self.scale); // [batch, len, d_model]
        if let Some(positions) = positions {
            embedded = embedded + positions.forward(start, len).unsqueeze();
        }
        dropout(embedded, self.dropout, keys)
    }
}
