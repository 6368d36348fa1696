//! The recurrent translators before the Transformer as plain numbers: an encoder and a decoder of gated recurrent
//! units.
//!
//! The encoder reads in both directions. The decoder gets one vector for the whole source (Cho et al. 2014), or with
//! [`Context::Attention`] another one at each step ("Neural Machine Translation by Jointly Learning to Align and
//! Translate", Bahdanau et al. 2015). `attentive_nn::models::recurrent` computes it; `recipes/multi30k-gru.toml` and
//! `recipes/multi30k-bahdanau.toml` train one of each.

use serde::{Deserialize, Serialize};

use super::{AnyConfig, Family, ModelConfig, Preset, Problems, Tying};
use crate::tensors::{Role, Schema, TensorSpec};

/// The architecture of one recurrent encoder-decoder. All keys must be there when a file is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecurrentConfig {
    /// Number of source tokens, the special ones included.
    pub src_vocab: usize,
    /// Number of target tokens, the special ones included.
    pub tgt_vocab: usize,
    /// Width of a token's vector, and of what the output is predicted from.
    pub d_embedding: usize,
    /// Width of a state, in each direction of the encoder and in the decoder.
    pub d_hidden: usize,
    /// What the decoder knows of the source.
    pub context: Context,
    /// Width in which additive attention compares a query with a key; for `context = "attention"`.
    pub d_attention: usize,
    /// Probability that training drops a value.
    pub dropout: f64,
    /// Which embedding and output matrices are one and the same.
    pub tying: Tying,
}

/// What a recurrent decoder knows of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Context {
    /// One vector for the whole sentence: the last states of the encoder.
    Fixed,
    /// At each step another average of all states of the encoder, by additive attention. The query is the decoder's
    /// last state.
    Attention,
}

impl ModelConfig for RecurrentConfig {
    const FAMILY: Family = Family::Recurrent;
    const VOCABULARIES: &'static [&'static str] = &["src_vocab", "tgt_vocab"];

    fn of(any: &AnyConfig) -> Option<&Self> {
        match any {
            AnyConfig::Recurrent(config) => Some(config),
            _ => None,
        }
    }

    fn from_preset(preset: Preset) -> Self {
        // `big` is the paper's.
        let (d_embedding, d_hidden) = match preset {
            Preset::Tiny => (128, 128),
            Preset::Small => (256, 256),
            Preset::Base => (512, 512),
            Preset::Big => (620, 1000),
        };
        Self {
            src_vocab: 0,
            tgt_vocab: 0,
            d_embedding,
            d_hidden,
            context: Context::Attention,
            d_attention: d_hidden,
            dropout: 0.2,
            tying: Tying::Output,
        }
    }

    fn vocabularies(&self) -> Option<(usize, usize)> {
        Some((self.src_vocab, self.tgt_vocab))
    }

    fn with_vocabularies(self, src_vocab: usize, tgt_vocab: usize) -> Self {
        Self {
            src_vocab,
            tgt_vocab,
            ..self
        }
    }

    fn width(&self) -> usize {
        self.d_hidden
    }

    fn check(&self) -> Result<(), Vec<String>> {
        let mut problems = Problems::default();
        problems.vocabulary("src_vocab", self.src_vocab);
        problems.vocabulary("tgt_vocab", self.tgt_vocab);
        for (key, size) in [
            ("d_embedding", self.d_embedding),
            ("d_hidden", self.d_hidden),
            ("d_attention", self.d_attention),
        ] {
            problems.size(key, size);
        }
        let dropout = self.dropout;
        problems.dropout(dropout);
        problems.require(
            self.tying != Tying::All || self.src_vocab == self.tgt_vocab,
            format!(
                "`model.tying` (\"all\") needs one shared vocabulary, but `model.src_vocab` ({}) \
                 and `model.tgt_vocab` ({}) differ",
                self.src_vocab, self.tgt_vocab
            ),
        );
        problems.found()
    }

    fn tensors(&self) -> Vec<TensorSpec> {
        let (d, hidden) = (self.d_embedding, self.d_hidden);
        let mut schema = Schema::default();
        if self.tying != Tying::All {
            schema.add("source.weight", &[self.src_vocab, d], Role::Embedding);
        }
        schema.add("target.weight", &[self.tgt_vocab, d], Role::Embedding);
        if self.tying == Tying::None {
            schema.add("projection", &[d, self.tgt_vocab], Role::Projection);
        }
        schema.add("projection_bias", &[self.tgt_vocab], Role::Bias);
        schema.gru("encoder.forward", d, hidden);
        schema.gru("encoder.backward", d, hidden);
        schema.linear("start", 2 * hidden, hidden);
        schema.gru("decoder", d, hidden);
        schema.add("context", &[2 * hidden, 3 * hidden], Role::Linear);
        if self.context == Context::Attention {
            let width = self.d_attention;
            schema.add("attention.query", &[hidden, width], Role::Linear);
            schema.add("attention.key", &[2 * hidden, width], Role::Linear);
            schema.add("attention.score", &[width], Role::Bias);
        }
        schema.linear("readout", d + 3 * hidden, d);
        schema.into_tensors()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensors::parameter_count;

    #[test]
    fn attention_costs_two_matrices_and_a_vector() {
        let count = |context| {
            let config = RecurrentConfig {
                context,
                ..RecurrentConfig::from_preset(Preset::Small).with_vocabularies(100, 120)
            };
            parameter_count(&config.tensors())
        };
        let attention = 256 * 256 + 512 * 256 + 256;
        assert_eq!(count(Context::Attention) - count(Context::Fixed), attention);
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let config = RecurrentConfig {
            src_vocab: 50,
            tgt_vocab: 60,
            d_hidden: 0,
            dropout: 1.0,
            tying: Tying::All,
            ..RecurrentConfig::from_preset(Preset::Tiny)
        };
        assert_eq!(
            config.check().unwrap_err(),
            [
                "`model.d_hidden` (0) must be at least 1",
                "`model.dropout` (1) must be at least 0 and less than 1",
                "`model.tying` (\"all\") needs one shared vocabulary, but `model.src_vocab` (50) and \
                 `model.tgt_vocab` (60) differ",
            ]
        );
    }
}
