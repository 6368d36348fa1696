//! BERT: the encoder of the Transformer alone (Devlin et al. 2019), post-norm, with its heads.
//!
//! Ids and segments -> token, segment and position vectors, normalized -> blocks that see the whole text -> a vector for
//! each token. On these stand the pooler and the heads: hidden tokens, next sentence, classes. [`text`] frames texts,
//! [`packed`] reads them without padding,
//! [`inspection`] shows what its attention does.

pub mod inspection;
pub mod packed;
pub mod text;

use std::path::Path;

use attentive_model::config::{self, BertConfig, BertHead, NormPlacement, Pooler};
use attentive_text::special::PAD;
use burn::{
    module::{Module, Param},
    tensor::{Device, Int, Tensor, TensorData},
};

use super::weights;
use crate::{
    attention::pruning::{Pruning, TokenPruning, received},
    error::NnError,
    init::Init,
    layers::{
        block::{Block, BlockConfig},
        embedding::Embedding,
        linear::Linear,
        norm::LayerNorm,
        positions::LearnedPositions,
    },
    mask::Mask,
    ops::{
        Precision, SmoothedLoss, affine, bias_activation_dropout, dropout, project, projected_loss,
    },
    pass::{Pass, Weights},
};

/// The encoder and its heads.
#[derive(Module, Debug)]
pub struct Bert {
    /// Between ids and vectors.
    pub embeddings: BertEmbeddings,
    /// From bottom to top.
    pub layers: Vec<Block>,
    /// On the first token, where the model has one.
    pub pooler: Option<Linear>,
    /// Predicts hidden tokens.
    pub masked: Option<MaskedHead>,
    /// Says whether the second sentence follows the first, `[d_model, 2]`: class 0 says yes.
    pub next_sentence: Option<Linear>,
    /// Says the class of a text, `[d_model, classes]`.
    pub classifier: Option<Linear>,
    /// Which tokens leave on the way up, where the model has learned it.
    pub pruning: Option<TokenPruning>,
    dropout: f64,
}

/// Token, segment and position vectors, added up and normalized.
#[derive(Module, Debug)]
pub struct BertEmbeddings {
    /// `[vocab, d_model]`
    pub token: Embedding,
    /// `[segments, d_model]`
    pub segment: Embedding,
    /// `[max_positions, d_model]`
    pub positions: LearnedPositions,
    /// On their sum.
    pub norm: LayerNorm,
}

/// From the vector of a token to the logits of all tokens; the projection is the table of token vectors.
#[derive(Module, Debug)]
pub struct MaskedHead {
    /// `[d_model, d_model]`
    pub transform: Linear,
    /// Behind the activation.
    pub norm: LayerNorm,
    /// `[vocab]`
    pub bias: Param<Tensor<1>>,
    #[module(skip)]
    activation: attentive_model::config::Activation,
}

/// What one pass of the encoder returns.
#[derive(Debug, Clone)]
pub struct BertOutput {
    /// `[batch, len, d_model]`
    pub hidden: Tensor<3>,
    /// Per layer `[batch, heads, len, len]`, if the pass asks for them.
    pub weights: Vec<Tensor<4>>,
    /// With pruning, per layer, to which degree each token is there behind it: 0 or 1, or between them while thresholds are
    /// learned. `[batch, len]`
    pub stays: Vec<Tensor<2>>,
}

impl Bert {
    /// A model with normally distributed matrices drawn from `seed`.
    pub fn new(config: &BertConfig, seed: u64, device: &Device) -> Self {
        Self::init(config, &mut Init::normal(seed, 0.02), device)
    }

    /// A model whose weights are about to be replaced.
    pub fn zeros(config: &BertConfig, device: &Device) -> Self {
        Self::init(config, &mut Init::zeros(), device)
    }

    /// Reads the weights file of a model with this architecture.
    pub fn load(config: &BertConfig, file: &Path, device: &Device) -> Result<Self, NnError> {
        weights::load(config, Self::zeros(config, device), file)
    }

    fn init(config: &BertConfig, init: &mut Init, device: &Device) -> Self {
        let block = BlockConfig::from(config);
        let d = config.d_model;
        Self {
            embeddings: BertEmbeddings {
                token: Embedding::new(config.vocab, d, init, device),
                segment: Embedding::new(config.segments, d, init, device),
                positions: LearnedPositions::new(config.max_positions, d, init, device),
                norm: block.layer_norm(device),
            },
            layers: (0..config.layers)
                .map(|_| Block::new(&block, init, device))
                .collect(),
            pooler: (config.pooler == Pooler::Tanh).then(|| Linear::new(d, d, init, device)),
            masked: config.head.fills().then(|| MaskedHead {
                transform: Linear::new(d, d, init, device),
                norm: block.layer_norm(device),
                bias: Param::from_tensor(Tensor::zeros([config.vocab], device)),
                activation: config.activation,
            }),
            next_sentence: (config.head == BertHead::Pretraining)
                .then(|| Linear::new(d, 2, init, device)),
            classifier: (config.head == BertHead::Classification)
                .then(|| Linear::new(d, config.labels.len(), init, device)),
            pruning: (config.pruning == config::TokenPruning::LearnedThresholds)
                .then(|| TokenPruning::new(config.layers, 0.0, device)),
            dropout: config.dropout,
        }
    }

    /// The device of the weights.
    pub fn device(&self) -> Device {
        self.embeddings.token.weight.val().device()
    }

    /// Texts and their segments, both `[batch, len]`, padded with `<blank>`. Tokens leave if the model has thresholds.
    pub fn forward(
        &self,
        tokens: Tensor<2, Int>,
        segments: Tensor<2, Int>,
        pass: &mut Pass,
    ) -> BertOutput {
        let pruning = if self.pruning.is_some() {
            Pruning::Hard
        } else {
            Pruning::Off
        };
        self.forward_pruned(tokens, segments, pruning, pass)
    }

    /// The same, with tokens leaving in another way. Those that have left for good are masked here, and still computed:
    /// [`Bert::encode`] does not.
    pub fn forward_pruned(
        &self,
        tokens: Tensor<2, Int>,
        segments: Tensor<2, Int>,
        how: Pruning,
        pass: &mut Pass,
    ) -> BertOutput {
        let padded = tokens.clone().equal_elem(i64::from(PAD));
        let there = padded.clone().bool_not().float(); // [batch, len]
        let x = self.embed_tokens(tokens, segments, pass);
        let thresholds = self.pruning.as_ref().filter(|_| how != Pruning::Off);
        let Some(thresholds) = thresholds else {
            return self.climb(x, &Mask::Padding(padded), pass);
        };
        let mut output = BertOutput {
            hidden: x,
            weights: Vec::new(),
            stays: Vec::new(),
        };
        let asked = std::mem::replace(&mut pass.weights, Weights::Return);
        let (mut gone, mut degrees) = (padded, there.clone());
        for (number, layer) in self.layers.iter().enumerate() {
            let mask = Mask::Padding(gone.clone());
            let block = layer.forward(output.hidden, &mask, None, pass);
            let weights = block.weights.expect("the pass asks for weights");
            output.hidden = block.hidden;
            if let Pruning::Soft { temperature } = how {
                let scores = received(weights.clone(), there.clone());
                degrees = thresholds.degrees(number, degrees, scores, temperature);
                output.hidden = output.hidden * degrees.clone().unsqueeze_dim::<3>(2);
            } else {
                let scores = received(weights.clone().detach(), degrees);
                gone = thresholds.stays(number, gone.bool_not(), scores).bool_not();
                degrees = gone.clone().bool_not().float();
            }
            output.stays.push(degrees.clone());
            if asked == Weights::Return {
                output.weights.push(weights);
            }
        }
        pass.weights = asked;
        output
    }

    /// Through all layers.
    fn climb(&self, mut x: Tensor<3>, mask: &Mask, pass: &mut Pass) -> BertOutput {
        let mut weights = Vec::new();
        for layer in &self.layers {
            let output = layer.forward(x, mask, None, pass);
            x = output.hidden;
            weights.extend(output.weights);
        }
        BertOutput {
            hidden: x,
            weights,
            stays: Vec::new(),
        }
    }

    /// Token, segment and position vectors, normalized, with dropout.
    fn embed_tokens(
        &self,
        tokens: Tensor<2, Int>,
        segments: Tensor<2, Int>,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let len = tokens.dims()[1];
        let BertEmbeddings {
            token,
            segment,
            positions,
            norm,
        } = &self.embeddings;
        let sum = token.forward(tokens)
            + segment.forward(segments)
            + positions.forward(0, len).unsqueeze();
        dropout(norm.forward(sum), self.dropout, &mut pass.dropout)
    }

    /// The pooler's output for the first token of each text, if the model has a pooler: `[batch, len, d_model]` ->
    /// `[batch, d_model]`.
    pub fn pooled(&self, hidden: Tensor<3>, precision: Precision) -> Option<Tensor<2>> {
        let pooler = self.pooler.as_ref()?;
        let [batch, _, d_model] = hidden.dims();
        let first = hidden.narrow(1, 0, 1).reshape([batch, d_model]);
        Some(pooler.forward(first, precision).tanh())
    }

    /// The logits of the two answers to whether the second sentence follows the first, `[batch, 2]`, if the model says so.
    pub fn next_sentence_logits(&self, hidden: Tensor<3>, pass: &Pass) -> Option<Tensor<2>> {
        let pooled = self.pooled(hidden, pass.precision)?;
        Some(self.next_sentence.as_ref()?.forward(pooled, pass.precision))
    }

    /// The logits of the classes, `[batch, classes]`, if the model has a classifier.
    pub fn class_logits(&self, hidden: Tensor<3>, pass: &mut Pass) -> Option<Tensor<2>> {
        let pooled = self.pooled(hidden, pass.precision)?;
        let pooled = dropout(pooled, self.dropout, &mut pass.dropout);
        Some(self.classifier.as_ref()?.forward(pooled, pass.precision))
    }

    /// The cross-entropy, summed, of predicting `targets` from the vectors at `places` of `hidden`
    /// `[batch, len, d_model]`, counted row by row; if the model predicts hidden tokens.
    pub fn masked_loss(
        &self,
        hidden: Tensor<3>,
        places: &[usize],
        targets: &[u32],
        pass: &Pass,
    ) -> Option<SmoothedLoss> {
        let head = self.masked.as_ref()?;
        let table = self.embeddings.token.weight.val().transpose(); // [d_model, vocab]
        let transformed = head.transformed(vectors_at(hidden, places), pass.precision);
        let rows = transformed.flatten::<2>(0, 1);
        let bias = head.bias.val();
        Some(projected_loss(
            rows,
            table,
            bias,
            targets,
            0.0,
            pass.precision,
        ))
    }

    /// The logits of all tokens for these vectors, if the model predicts hidden tokens: `[1, rows, d_model]` ->
    /// `[1, rows, vocab]`.
    pub fn masked_logits(&self, hidden: Tensor<3>, precision: Precision) -> Option<Tensor<3>> {
        let head = self.masked.as_ref()?;
        let table = self.embeddings.token.weight.val().transpose(); // [d_model, vocab]
        let transformed = head.transformed(hidden, precision);
        Some(affine(transformed, table, head.bias.val(), precision))
    }
}

/// Some vectors of `[batch, len, d_model]`, whose places are counted row by row: `[1, places, d_model]`.
pub fn vectors_at(hidden: Tensor<3>, places: &[usize]) -> Tensor<3> {
    let [batch, len, d_model] = hidden.dims();
    let places: Vec<i64> = places.iter().map(|place| *place as i64).collect();
    let count = places.len();
    let places = Tensor::from_data(TensorData::new(places, [count]), &hidden.device());
    hidden.reshape([1, batch * len, d_model]).select(1, places)
}

impl MaskedHead {
    /// What is compared with the token vectors. `[1, rows, d_model]`
    pub fn transformed(&self, hidden: Tensor<3>, precision: Precision) -> Tensor<3> {
        let inner = project(hidden, self.transform.weight.val(), precision);
        let bias = self.transform.bias.val();
        let active = bias_activation_dropout(inner, bias, self.activation, 0.0, &mut None);
        self.norm.forward(active)
    }
}

impl From<&BertConfig> for BlockConfig {
    fn from(config: &BertConfig) -> Self {
        Self {
            d_model: config.d_model,
            heads: config.heads,
            kv_heads: config.heads,
            d_ff: config.d_ff,
            activation: config.activation,
            dropout: config.dropout,
            norm: NormPlacement::Post,
            norm_epsilon: config.norm_epsilon,
        }
    }
}
