//! BERT as plain numbers: the Transformer's encoder alone, with vectors for tokens, segments and positions (Devlin et al.
//! 2019), and the heads that stand on it.
//!
//! `attentive_nn::models::bert` computes it; `attentive-convert` makes one of a Hugging Face directory.

use serde::{Deserialize, Serialize};

use super::{Activation, AnyConfig, Family, ModelConfig, Preset, Problems, is_default};
use crate::tensors::{Role, Schema, TensorSpec};

/// The architecture of one BERT. All keys must be there when a file is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BertConfig {
    /// Number of tokens, the special ones included.
    pub vocab: usize,
    /// Width of every layer's input and output.
    pub d_model: usize,
    /// Width of the feed-forward network's hidden layer.
    pub d_ff: usize,
    /// Number of attention heads.
    pub heads: usize,
    /// Number of layers.
    pub layers: usize,
    /// Longest text in tokens, special ones included.
    pub max_positions: usize,
    /// Number of segments: 2 where pairs of sentences are read.
    pub segments: usize,
    /// Probability that training drops a value.
    pub dropout: f64,
    /// The function between the two linear layers of the feed-forward network.
    pub activation: Activation,
    /// Added to the variance in every layer normalization.
    pub norm_epsilon: f64,
    /// Whether the vector of the first token goes through a layer of its own.
    pub pooler: Pooler,
    /// What stands on the encoder.
    pub head: BertHead,
    /// The names of the classes; none unless the head is a classifier.
    pub labels: Vec<String>,
    /// Whether tokens that receive little attention leave on the way up.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pruning: TokenPruning,
}

/// Whether tokens that receive little attention leave on the way up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenPruning {
    /// All stay.
    #[default]
    None,
    /// Those leave whose mean received attention is below the threshold of a layer ("Learned Token Pruning for
    /// Transformers", Kim et al. 2022).
    LearnedThresholds,
}

/// Whether the vector of the first token goes through a layer of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pooler {
    /// It does not.
    Absent,
    /// A linear layer and a hyperbolic tangent.
    Tanh,
}

/// What stands on the encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BertHead {
    /// Nothing: a vector for each token.
    None,
    /// The probabilities of hidden tokens.
    MaskedLanguageModel,
    /// These, and whether the second sentence follows the first.
    Pretraining,
    /// The class of a text, or of a pair of texts.
    Classification,
}

impl BertHead {
    /// Whether hidden tokens are predicted.
    pub fn fills(self) -> bool {
        matches!(self, Self::MaskedLanguageModel | Self::Pretraining)
    }

    /// Whether it reads the pooler's output.
    fn needs_pooler(self) -> bool {
        matches!(self, Self::Pretraining | Self::Classification)
    }
}

impl ModelConfig for BertConfig {
    const FAMILY: Family = Family::Bert;
    const VOCABULARIES: &'static [&'static str] = &["vocab"];

    fn of(any: &AnyConfig) -> Option<&Self> {
        match any {
            AnyConfig::Bert(config) => Some(config),
            _ => None,
        }
    }

    fn from_preset(preset: Preset) -> Self {
        // `base` and `big` are the paper's.
        let (d_model, heads, layers) = match preset {
            Preset::Tiny => (128, 4, 2),
            Preset::Small => (256, 4, 4),
            Preset::Base => (768, 12, 12),
            Preset::Big => (1024, 16, 24),
        };
        Self {
            vocab: 0,
            d_model,
            d_ff: 4 * d_model,
            heads,
            layers,
            max_positions: 512,
            segments: 2,
            dropout: 0.1,
            activation: Activation::Gelu,
            norm_epsilon: 1e-12,
            pooler: Pooler::Tanh,
            head: BertHead::Pretraining,
            labels: Vec::new(),
            pruning: TokenPruning::None,
        }
    }

    fn with_every_key(self) -> Self {
        Self {
            pruning: TokenPruning::LearnedThresholds,
            ..self
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
            dropout,
            norm_epsilon,
            head,
            ..
        } = *self;
        problems.vocabulary("vocab", vocab);
        for (key, size) in [
            ("d_model", d_model),
            ("d_ff", self.d_ff),
            ("heads", heads),
            ("layers", self.layers),
            ("max_positions", self.max_positions),
            ("segments", self.segments),
        ] {
            problems.size(key, size);
        }
        problems.require(
            heads == 0 || d_model.is_multiple_of(heads),
            format!("`model.d_model` ({d_model}) must be divisible by `model.heads` ({heads})"),
        );
        problems.dropout(dropout);
        problems.norm_epsilon(norm_epsilon);
        problems.require(
            !head.needs_pooler() || self.pooler == Pooler::Tanh,
            "`model.head` reads the pooler's output: set `model.pooler` = \"tanh\"".to_string(),
        );
        problems.require(
            self.pruning == TokenPruning::None || head == BertHead::Classification,
            "`model.pruning` needs `model.head` = \"classification\": other heads read every token"
                .to_string(),
        );
        let classes = self.labels.len();
        let classifies = head == BertHead::Classification;
        problems.require(
            if classifies {
                classes > 1
            } else {
                classes == 0
            },
            format!(
                "`model.labels` has {classes} names; a classifier has at least two, other heads none"
            ),
        );
        problems.found()
    }

    /// Every linear layer has a bias. Hidden tokens are predicted with the token vectors and a bias of their own.
    fn tensors(&self) -> Vec<TensorSpec> {
        let d = self.d_model;
        let mut schema = Schema::default();
        schema.add("embeddings.token.weight", &[self.vocab, d], Role::Embedding);
        schema.add(
            "embeddings.segment.weight",
            &[self.segments, d],
            Role::Positions,
        );
        let shape = [self.max_positions, d];
        schema.add("embeddings.positions.weight", &shape, Role::Positions);
        schema.norm("embeddings.norm", d);
        for layer in (0..self.layers).map(|layer| format!("layers.{layer}")) {
            schema.attention(&format!("{layer}.self_attention"), d, d);
            schema.norm(&format!("{layer}.self_attention_norm"), d);
            schema.feed_forward(&format!("{layer}.feed_forward"), d, self.d_ff);
            schema.norm(&format!("{layer}.feed_forward_norm"), d);
        }
        if self.pooler == Pooler::Tanh {
            schema.linear("pooler", d, d);
        }
        if self.head.fills() {
            schema.linear("masked.transform", d, d);
            schema.norm("masked.norm", d);
            schema.add("masked.bias", &[self.vocab], Role::Bias);
        }
        if self.head == BertHead::Pretraining {
            schema.linear("next_sentence", d, 2);
        }
        if self.head == BertHead::Classification {
            schema.linear("classifier", d, self.labels.len());
        }
        if self.pruning == TokenPruning::LearnedThresholds {
            schema.add("pruning.thresholds", &[self.layers], Role::Bias);
        }
        schema.into_tensors()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensors::parameter_count;

    #[test]
    fn the_base_preset_has_the_parameters_of_bert_base_uncased() {
        let config = BertConfig::from_preset(Preset::Base).with_vocabularies(0, 30_522);
        assert_eq!(parameter_count(&config.tensors()), 110_106_428);
    }

    #[test]
    fn heads_need_what_they_read() {
        let config = BertConfig {
            pooler: Pooler::Absent,
            head: BertHead::Classification,
            ..BertConfig::from_preset(Preset::Tiny).with_vocabularies(0, 9)
        };
        assert_eq!(
            config.check().unwrap_err(),
            [
                "`model.head` reads the pooler's output: set `model.pooler` = \"tanh\"",
                "`model.labels` has 0 names; a classifier has at least two, other heads none",
            ]
        );
    }
}
