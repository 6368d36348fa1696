//! GPT as plain numbers: the Transformer's decoder without the encoder, a language model.
//!
//! As in GPT-2 the norms stand before the sub-layers and once more at the end, and the output projection is the
//! token embedding. `attentive_nn::models::gpt` computes it; `recipes/gpt-shakespeare.toml` trains one.

use serde::{Deserialize, Serialize};

use super::{Activation, AnyConfig, Family, ModelConfig, PositionKind, Preset, Problems};
use crate::tensors::{Role, Schema, TensorSpec};

/// The architecture of one GPT. All keys must be there when a file is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GptConfig {
    /// Number of tokens, the special ones included.
    pub vocab: usize,
    /// Width of every layer's input and output.
    pub d_model: usize,
    /// Width of the feed-forward network's hidden layer.
    pub d_ff: usize,
    /// Number of attention heads.
    pub heads: usize,
    /// Number of key and value heads: `heads` is multi-head attention, 1 is multi-query.
    pub kv_heads: usize,
    /// Number of layers.
    pub layers: usize,
    /// Tokens that the model sees at once: the length of a training example.
    pub context: usize,
    /// Probability that training drops a value.
    pub dropout: f64,
    /// The function between the two linear layers of the feed-forward network.
    pub activation: Activation,
    /// How a token's place enters its embedding.
    pub positions: PositionKind,
    /// Added to the variance in every layer normalization.
    pub norm_epsilon: f64,
}

impl GptConfig {
    /// Width of one attention head.
    pub fn head_dim(&self) -> usize {
        self.d_model / self.heads.max(1)
    }

    /// What token vectors are multiplied by: 1 as in GPT-2 where positions are learned; with sinusoids
    /// `sqrt(d_model)` (§3.4), or they would drown the tokens.
    pub fn embedding_factor(&self) -> f64 {
        match self.positions {
            PositionKind::Learned => 1.0,
            _ => (self.d_model as f64).sqrt(),
        }
    }
}

impl ModelConfig for GptConfig {
    const FAMILY: Family = Family::Gpt;
    const VOCABULARIES: &'static [&'static str] = &["vocab"];

    fn of(any: &AnyConfig) -> Option<&Self> {
        match any {
            AnyConfig::Gpt(config) => Some(config),
            _ => None,
        }
    }

    fn from_preset(preset: Preset) -> Self {
        // `base` is GPT-2's smallest, `big` its second.
        let (d_model, heads, layers, context, dropout) = match preset {
            Preset::Tiny => (128, 4, 4, 64, 0.0),
            Preset::Small => (384, 6, 6, 256, 0.2),
            Preset::Base => (768, 12, 12, 1024, 0.1),
            Preset::Big => (1024, 16, 24, 1024, 0.1),
        };
        Self {
            vocab: 0,
            d_model,
            d_ff: 4 * d_model,
            heads,
            kv_heads: heads,
            layers,
            context,
            dropout,
            activation: Activation::Gelu,
            positions: PositionKind::Learned,
            norm_epsilon: 1e-5,
        }
    }

    fn vocabularies(&self) -> Option<(usize, usize)> {
        Some((self.vocab, self.vocab))
    }

    fn with_vocabularies(self, _src: usize, vocab: usize) -> Self {
        Self { vocab, ..self }
    }

    fn width(&self) -> usize {
        self.d_model
    }

    fn check(&self) -> Result<(), Vec<String>> {
        let mut problems = Problems::default();
        let Self {
            vocab,
            d_model,
            heads,
            kv_heads,
            dropout,
            norm_epsilon,
            ..
        } = *self;
        problems.vocabulary("vocab", vocab);
        for (key, size) in [
            ("d_model", d_model),
            ("d_ff", self.d_ff),
            ("heads", heads),
            ("kv_heads", kv_heads),
            ("layers", self.layers),
            ("context", self.context),
        ] {
            problems.size(key, size);
        }
        problems.require(
            heads == 0 || d_model.is_multiple_of(heads),
            format!("`model.d_model` ({d_model}) must be divisible by `model.heads` ({heads})"),
        );
        problems.require(
            kv_heads == 0 || heads.is_multiple_of(kv_heads),
            format!("`model.heads` ({heads}) must be divisible by `model.kv_heads` ({kv_heads})"),
        );
        let smallest = match self.positions {
            PositionKind::Learned => 1,
            PositionKind::TimingSignal => 4,
            PositionKind::Sinusoidal | PositionKind::SinusoidalHalves => 2,
        };
        problems.require(
            smallest == 1 || (d_model >= smallest && d_model.is_multiple_of(2)),
            format!(
                "`model.d_model` ({d_model}) must be even and at least {smallest} for sinusoidal positions \
                 (`model.positions`)"
            ),
        );
        problems.dropout(dropout);
        problems.norm_epsilon(norm_epsilon);
        problems.found()
    }

    /// Every linear layer has a bias; the output projection is the token embedding and has none.
    fn tensors(&self) -> Vec<TensorSpec> {
        let (d, kv_width) = (self.d_model, self.kv_heads * self.head_dim());
        let mut schema = Schema::default();
        schema.add("embedding.weight", &[self.vocab, d], Role::Embedding);
        if self.positions == PositionKind::Learned {
            schema.add("positions.weight", &[self.context, d], Role::Positions);
        }
        for layer in (0..self.layers).map(|layer| format!("layers.{layer}")) {
            schema.attention(&format!("{layer}.self_attention"), d, kv_width);
            schema.norm(&format!("{layer}.self_attention_norm"), d);
            schema.feed_forward(&format!("{layer}.feed_forward"), d, self.d_ff);
            schema.norm(&format!("{layer}.feed_forward_norm"), d);
        }
        schema.norm("final_norm", d);
        schema.into_tensors()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensors::parameter_count;

    #[test]
    fn the_base_preset_has_the_parameters_of_gpt_2() {
        let config = GptConfig::from_preset(Preset::Base).with_vocabularies(0, 50_257);
        assert_eq!(parameter_count(&config.tensors()), 124_439_808);
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let config = GptConfig {
            heads: 5,
            context: 0,
            dropout: 1.0,
            ..GptConfig::from_preset(Preset::Tiny)
        };
        assert_eq!(
            config.check().unwrap_err(),
            [
                "`model.vocab` (0) must be more than the 4 special tokens",
                "`model.context` (0) must be at least 1",
                "`model.d_model` (128) must be divisible by `model.heads` (5)",
                "`model.heads` (5) must be divisible by `model.kv_heads` (4)",
                "`model.dropout` (1) must be at least 0 and less than 1",
            ]
        );
    }
}
