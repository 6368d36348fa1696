//! GPT: the decoder of the Transformer without an encoder, a language model (Radford et al. 2018, 2019).
//!
//! Ids -> token and position vectors -> blocks with a causal mask -> logits of the next token. Training sees a whole
//! text at once, [`generation`] one token after another with a [`Cache`]; both are [`Gpt::forward`]. [`inspection`]
//! shows what its attention does.

pub mod generation;
pub mod inspection;

use std::path::Path;

use attentive_model::config::{GptConfig, NormPlacement, PositionKind};
use burn::{
    module::Module,
    tensor::{Device, Int, Tensor, activation::log_softmax},
};

use super::weights;
use crate::{
    attention::cache::SelfCache,
    error::NnError,
    init::Init,
    layers::{
        block::{Block, BlockConfig},
        embedding::Embedding,
        norm::LayerNorm,
        positions::{LearnedPositions, Sinusoids, sinusoids_of},
    },
    mask::Mask,
    ops::{SmoothedLoss, dropout, embed, projected_loss},
    parameters,
    pass::Pass,
};

/// Token and position vectors, pre-norm blocks, a final norm; the token vectors are the output projection, too.
#[derive(Module, Debug)]
pub struct Gpt {
    /// `[vocab, d_model]`
    pub embedding: Embedding,
    /// Learned positions, if not sinusoids.
    pub positions: Option<LearnedPositions>,
    /// From bottom to top.
    pub layers: Vec<Block>,
    /// On what the layers leave.
    pub final_norm: LayerNorm,
    #[module(skip)]
    sinusoids: Option<Sinusoids>,
    /// What token vectors are multiplied by.
    scale: f64,
    dropout: f64,
    /// Tokens that it sees at once.
    context: usize,
}

/// The keys and values of every layer for the tokens so far: a value of the caller's.
#[derive(Debug, Clone, Default)]
pub struct Cache {
    layers: Vec<SelfCache>,
}

impl Cache {
    /// Tokens held.
    pub fn len(&self) -> usize {
        self.layers.first().map_or(0, SelfCache::len)
    }

    /// True before the first token.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What one pass returns.
#[derive(Debug, Clone)]
pub struct GptOutput {
    /// `[batch, len, d_model]`, before the output projection.
    pub hidden: Tensor<3>,
    /// Per layer `[batch, heads, len, len so far]`, if the pass asks for them.
    pub weights: Vec<Tensor<4>>,
}

impl Gpt {
    /// A model with normally distributed matrices drawn from `seed`, those that write to the residual stream smaller
    /// the more layers there are (GPT-2, §2.3).
    pub fn new(config: &GptConfig, seed: u64, device: &Device) -> Self {
        let model = Self::init(config, &mut Init::normal(seed, 0.02), device);
        let smaller = (2.0 * config.layers as f64).powf(-0.5);
        let writes = ["self_attention.output.weight", "feed_forward.outer.weight"];
        parameters::replace(model, |name, values| {
            if writes.iter().any(|end| name.ends_with(end)) {
                values.mul_scalar(smaller)
            } else {
                values
            }
        })
    }

    /// A model whose weights are about to be replaced.
    pub fn zeros(config: &GptConfig, device: &Device) -> Self {
        Self::init(config, &mut Init::zeros(), device)
    }

    /// Reads the weights file of a model with this architecture.
    pub fn load(config: &GptConfig, file: &Path, device: &Device) -> Result<Self, NnError> {
        weights::load(config, Self::zeros(config, device), file)
    }

    fn init(config: &GptConfig, init: &mut Init, device: &Device) -> Self {
        let block = BlockConfig::from(config);
        let d_model = config.d_model;
        let learned = config.positions == PositionKind::Learned;
        Self {
            embedding: Embedding::new(config.vocab, d_model, init, device),
            positions: learned
                .then(|| LearnedPositions::new(config.context, d_model, init, device)),
            layers: (0..config.layers)
                .map(|_| Block::new(&block, init, device))
                .collect(),
            final_norm: block.layer_norm(device),
            sinusoids: Sinusoids::of(config.positions),
            scale: config.embedding_factor(),
            dropout: config.dropout,
            context: config.context,
        }
    }

    /// Tokens that it sees at once.
    pub fn context(&self) -> usize {
        self.context
    }

    /// The device of the weights.
    pub fn device(&self) -> Device {
        self.embedding.weight.val().device()
    }

    /// Texts `[batch, len]`, none of whose tokens sees its future. With a cache they are new tokens behind those in
    /// it, one at a time, or all of a text into an empty one.
    pub fn forward(
        &self,
        tokens: Tensor<2, Int>,
        mut cache: Option<&mut Cache>,
        pass: &mut Pass,
    ) -> GptOutput {
        let start = cache.as_ref().map_or(0, |cache| cache.len());
        let new = tokens.dims()[1];
        assert!(
            start == 0 || new == 1,
            "behind a cache there is one new token, not {new}"
        );
        let mask = if start == 0 { Mask::Causal } else { Mask::Open };
        if let Some(cache) = cache.as_deref_mut() {
            cache
                .layers
                .resize_with(self.layers.len(), SelfCache::default);
        }
        let mut x = self.embed(tokens, start, pass);
        let mut weights = Vec::new();
        for (number, layer) in self.layers.iter().enumerate() {
            let past = cache.as_deref_mut().map(|cache| &mut cache.layers[number]);
            let output = layer.forward(x, &mask, past, pass);
            x = output.hidden;
            weights.extend(output.weights);
        }
        GptOutput {
            hidden: self.final_norm.forward(x),
            weights,
        }
    }

    /// Logits of the next token: `[batch, len, d_model]` -> `[batch, len, vocab]`.
    pub fn logits(&self, hidden: Tensor<3>) -> Tensor<3> {
        let [batch, len, d_model] = hidden.dims();
        let projection = self.embedding.weight.val().transpose(); // [d_model, vocab]
        let logits = hidden.reshape([batch * len, d_model]).matmul(projection);
        let vocab = logits.dims()[1];
        logits.reshape([batch, len, vocab])
    }

    /// Log-probabilities of the next token, `[batch, len, vocab]`.
    pub fn log_probs(&self, hidden: Tensor<3>) -> Tensor<3> {
        log_softmax(self.logits(hidden), 2)
    }

    /// The cross-entropy of predicting `targets`, row by row, from `hidden` `[batch, len, d_model]`, summed.
    pub fn loss(&self, hidden: Tensor<3>, targets: &[u32], pass: &Pass) -> SmoothedLoss {
        let projection = self.embedding.weight.val().transpose();
        // GPT's output projection has no bias.
        let bias = Tensor::zeros([projection.dims()[1]], &hidden.device());
        let hidden = hidden.flatten::<2>(0, 1);
        projected_loss(hidden, projection, bias, targets, 0.0, pass.precision)
    }

    /// Token vectors plus positions `start..`, with dropout.
    fn embed(&self, tokens: Tensor<2, Int>, start: usize, pass: &mut Pass) -> Tensor<3> {
        let [len, d_model] = [tokens.dims()[1], self.embedding.weight.dims()[1]];
        let keys = &mut pass.dropout;
        if let Some(formula) = self.sinusoids {
            let table = self.embedding.weight.val();
            let positions = sinusoids_of(formula, start, len, d_model, &table.device());
            return embed(table, tokens, self.scale, positions, self.dropout, keys);
        }
        let mut embedded = self.embedding.forward(tokens).mul_scalar(self.scale);
        if let Some(positions) = &self.positions {
            embedded = embedded + positions.forward(start, len).unsqueeze();
        }
        dropout(embedded, self.dropout, keys)
    }
}

impl From<&GptConfig> for BlockConfig {
    fn from(config: &GptConfig) -> Self {
        Self {
            d_model: config.d_model,
            heads: config.heads,
            kv_heads: config.kv_heads,
            d_ff: config.d_ff,
            activation: config.activation,
            dropout: config.dropout,
            norm: NormPlacement::Pre,
            norm_epsilon: config.norm_epsilon,
        }
    }
}
