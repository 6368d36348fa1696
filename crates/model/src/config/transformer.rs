//! The encoder-decoder Transformer of "Attention Is All You Need" as plain numbers.
//!
//! A recipe's `[model]` (`attentive-train`) starts from a [`Preset`](super::Preset); `attentive-nn` and the
//! CPU runtime build the model from the [`TransformerConfig`] that results, and `config.json` keeps it.

use serde::{Deserialize, Serialize};

use super::{
    Activation, AnyConfig, Autoregression, EmbeddingNorm, Family, FinalNorm, LARGEST_SIZE,
    ModelConfig, NormPlacement, PositionKind, Preset, Problems, Tying, is_default,
};
use crate::tensors::{Role, Schema, TensorSpec, parameter_count};

/// The architecture of one encoder-decoder Transformer.
///
/// Most keys must be there when a file is read, since a default would be a guess about existing weights. Those of
/// the variants that came later (`activation` and others) may be missing, which means what was there before them, and
/// are then not written. Unknown keys are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransformerConfig {
    /// Number of source tokens, the special ones included.
    pub src_vocab: usize,
    /// Number of target tokens, the special ones included.
    pub tgt_vocab: usize,
    /// Width of every layer's input and output.
    pub d_model: usize,
    /// Width of the feed-forward network's hidden layer.
    pub d_ff: usize,
    /// Number of attention heads.
    pub heads: usize,
    /// Number of key and value heads: `heads` is multi-head attention, 1 is multi-query.
    pub kv_heads: usize,
    /// Number of encoder layers.
    pub encoder_layers: usize,
    /// Number of decoder layers.
    pub decoder_layers: usize,
    /// Probability that training drops a value.
    pub dropout: f64,
    /// Where the layer normalization stands.
    pub norm: NormPlacement,
    /// The function between the two linear layers of the feed-forward network.
    #[serde(default, skip_serializing_if = "is_default")]
    pub activation: Activation,
    /// How a token's place enters its embedding.
    pub positions: PositionKind,
    /// The number of the first position; for sinusoids only.
    #[serde(default, skip_serializing_if = "is_default")]
    pub position_offset: usize,
    /// Longest sequence with learned positions; sinusoids have no maximum and ignore it.
    pub max_positions: usize,
    /// Which embedding and output matrices are one and the same.
    pub tying: Tying,
    /// Added to the variance in every layer normalization.
    pub norm_epsilon: f64,
    /// What token vectors are multiplied by; `sqrt(d_model)` (§3.4) if nothing is given.
    #[serde(default, skip_serializing_if = "is_default")]
    pub embedding_scale: Option<f64>,
    /// Whether embeddings are normalized before the first layer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub embedding_norm: EmbeddingNorm,
    /// Whether a stack ends in a normalization.
    #[serde(default, skip_serializing_if = "is_default")]
    pub final_norm: FinalNorm,
    /// How decoder layers look back at the target so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub autoregression: Autoregression,
}

impl TransformerConfig {
    /// Width of one attention head, `d_k = d_v` of §3.2.2.
    pub fn head_dim(&self) -> usize {
        self.d_model / self.heads.max(1)
    }

    /// Number of trained values; tied matrices count once.
    pub fn parameter_count(&self) -> usize {
        parameter_count(&self.tensors())
    }

    /// The longest sequence the model can read or write, if it has a limit.
    pub fn position_limit(&self) -> Option<usize> {
        match self.positions {
            PositionKind::Sinusoidal
            | PositionKind::SinusoidalHalves
            | PositionKind::TimingSignal => None,
            PositionKind::Learned => Some(self.max_positions),
        }
    }

    /// What token vectors are multiplied by.
    pub fn embedding_factor(&self) -> f64 {
        self.embedding_scale
            .unwrap_or_else(|| (self.d_model as f64).sqrt())
    }

    /// Whether both stacks end in a normalization.
    pub fn has_final_norm(&self) -> bool {
        match self.final_norm {
            FinalNorm::Auto => self.norm == NormPlacement::Pre,
            FinalNorm::None => false,
            FinalNorm::LayerNorm => true,
        }
    }

    /// The sizes that must be positive, with their keys; `max_positions` only where it is used.
    fn sizes(&self) -> impl Iterator<Item = (&'static str, usize)> {
        [
            ("d_model", self.d_model),
            ("d_ff", self.d_ff),
            ("heads", self.heads),
            ("kv_heads", self.kv_heads),
            ("encoder_layers", self.encoder_layers),
            ("decoder_layers", self.decoder_layers),
        ]
        .into_iter()
        .chain(self.position_limit().map(|limit| ("max_positions", limit)))
    }
}

impl ModelConfig for TransformerConfig {
    const FAMILY: Family = Family::Transformer;
    const VOCABULARIES: &'static [&'static str] = &["src_vocab", "tgt_vocab"];

    fn of(any: &AnyConfig) -> Option<&Self> {
        match any {
            AnyConfig::Transformer(config) => Some(config),
            _ => None,
        }
    }

    fn from_preset(preset: Preset) -> Self {
        preset.config(0, 0)
    }

    fn with_every_key(self) -> Self {
        Self {
            activation: Activation::Swish,
            position_offset: 1,
            embedding_scale: Some(1.0),
            embedding_norm: EmbeddingNorm::LayerNorm,
            final_norm: FinalNorm::LayerNorm,
            autoregression: Autoregression::Ssru,
            ..self
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
        self.d_model
    }

    fn check(&self) -> Result<(), Vec<String>> {
        let mut problems = Problems::default();

        problems.vocabulary("src_vocab", self.src_vocab);
        problems.vocabulary("tgt_vocab", self.tgt_vocab);
        for (key, size) in self.sizes() {
            problems.size(key, size);
        }

        let Self {
            d_model,
            heads,
            kv_heads,
            dropout,
            norm_epsilon,
            ..
        } = *self;
        problems.require(
            heads == 0 || d_model.is_multiple_of(heads),
            format!("`model.d_model` ({d_model}) must be divisible by `model.heads` ({heads})"),
        );
        problems.require(
            kv_heads == 0 || heads.is_multiple_of(kv_heads),
            format!("`model.heads` ({heads}) must be divisible by `model.kv_heads` ({kv_heads})"),
        );
        let limited = self.positions == PositionKind::Learned;
        problems.require(
            limited || d_model.is_multiple_of(2),
            format!(
                "`model.d_model` ({d_model}) must be even for sinusoidal positions (`model.positions`)"
            ),
        );
        problems.require(
            self.positions != PositionKind::TimingSignal || d_model != 2,
            "`model.d_model` (2) must be at least 4 for `model.positions` (\"timing_signal\")"
                .into(),
        );
        let offset = self.position_offset;
        problems.require(
            !limited || offset == 0,
            format!(
                "`model.position_offset` ({offset}) is for sinusoids; learned positions (`model.positions`) \
                 start with their first row"
            ),
        );
        problems.require(
            offset <= LARGEST_SIZE,
            format!("`model.position_offset` ({offset}) must be at most {LARGEST_SIZE}"),
        );
        problems.dropout(dropout);
        problems.norm_epsilon(norm_epsilon);
        let scale = self.embedding_factor();
        problems.require(
            scale.is_finite() && (scale > 0.0 || self.embedding_scale.is_none()),
            format!("`model.embedding_scale` ({scale}) must be a positive number"),
        );
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

    /// Every linear layer has a bias, the output projection too (even when its matrix is tied), and
    /// learned positions are one table for each side.
    fn tensors(&self) -> Vec<TensorSpec> {
        let (d, kv_width) = (self.d_model, self.kv_heads * self.head_dim());
        let mut schema = Schema::default();
        if self.tying != Tying::All {
            let shape = [self.src_vocab, d];
            schema.add("embeddings.source.weight", &shape, Role::Embedding);
        }
        let shape = [self.tgt_vocab, d];
        schema.add("embeddings.target.weight", &shape, Role::Embedding);
        if self.tying == Tying::None {
            let shape = [d, self.tgt_vocab];
            schema.add("embeddings.projection", &shape, Role::Projection);
        }
        schema.add("embeddings.projection_bias", &[self.tgt_vocab], Role::Bias);
        if let Some(limit) = self.position_limit() {
            for side in ["source", "target"] {
                let name = format!("embeddings.{side}_positions.weight");
                schema.add(name, &[limit, d], Role::Positions);
            }
        }
        for (stack, layers) in [
            ("encoder", self.encoder_layers),
            ("decoder", self.decoder_layers),
        ] {
            if self.embedding_norm == EmbeddingNorm::LayerNorm {
                schema.norm(&format!("{stack}.embedding_norm"), d);
            }
            for layer in (0..layers).map(|layer| format!("{stack}.layers.{layer}")) {
                if stack == "decoder" && self.autoregression == Autoregression::Ssru {
                    schema.ssru(&format!("{layer}.ssru"), d);
                    schema.norm(&format!("{layer}.ssru_norm"), d);
                } else {
                    schema.attention(&format!("{layer}.self_attention"), d, kv_width);
                    schema.norm(&format!("{layer}.self_attention_norm"), d);
                }
                if stack == "decoder" {
                    schema.attention(&format!("{layer}.cross_attention"), d, kv_width);
                    schema.norm(&format!("{layer}.cross_attention_norm"), d);
                }
                schema.feed_forward(&format!("{layer}.feed_forward"), d, self.d_ff);
                schema.norm(&format!("{layer}.feed_forward_norm"), d);
            }
            if self.has_final_norm() {
                schema.norm(&format!("{stack}.final_norm"), d);
            }
        }
        schema.into_tensors()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(change: impl FnOnce(&mut TransformerConfig)) -> Vec<String> {
        let mut config = Preset::Base.config(100, 120);
        change(&mut config);
        config.check().expect_err("an impossible config")
    }

    #[test]
    fn each_problem_names_its_keys_and_values() {
        assert_eq!(
            problems(|c| c.heads = 7),
            [
                "`model.d_model` (512) must be divisible by `model.heads` (7)",
                "`model.heads` (7) must be divisible by `model.kv_heads` (8)"
            ]
        );
        assert_eq!(
            problems(|c| c.kv_heads = 3),
            ["`model.heads` (8) must be divisible by `model.kv_heads` (3)"]
        );
        assert_eq!(
            problems(|c| (c.d_model, c.heads, c.kv_heads) = (9, 3, 3)),
            ["`model.d_model` (9) must be even for sinusoidal positions (`model.positions`)"]
        );
        assert_eq!(
            problems(|c| {
                (c.d_model, c.heads, c.kv_heads) = (2, 1, 1);
                c.positions = PositionKind::TimingSignal;
            }),
            ["`model.d_model` (2) must be at least 4 for `model.positions` (\"timing_signal\")"]
        );
        assert_eq!(
            problems(|c| c.position_offset = usize::MAX),
            [format!(
                "`model.position_offset` ({}) must be at most 16777216",
                usize::MAX
            )]
        );
        assert_eq!(
            problems(|c| (c.positions, c.position_offset) = (PositionKind::Learned, 2)),
            [
                "`model.position_offset` (2) is for sinusoids; learned positions (`model.positions`) start \
                 with their first row"
            ]
        );
        for scale in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(
                problems(|c| c.embedding_scale = Some(scale)),
                [format!(
                    "`model.embedding_scale` ({scale}) must be a positive number"
                )]
            );
        }
        for dropout in [1.0, -0.1, f64::NAN] {
            assert_eq!(
                problems(|c| c.dropout = dropout),
                [format!(
                    "`model.dropout` ({dropout}) must be at least 0 and less than 1"
                )]
            );
        }
        assert_eq!(
            problems(|c| c.tying = Tying::All),
            [
                "`model.tying` (\"all\") needs one shared vocabulary, but `model.src_vocab` (100) and \
              `model.tgt_vocab` (120) differ"
            ]
        );
        assert_eq!(
            problems(|c| c.norm_epsilon = 0.0),
            ["`model.norm_epsilon` (0) must be a small positive number"]
        );
        assert_eq!(
            problems(|c| c.src_vocab = 4),
            ["`model.src_vocab` (4) must be more than the 4 special tokens"]
        );
    }

    #[test]
    fn any_divisor_of_the_heads_may_share_keys_and_values() {
        for kv_heads in [1, 2, 4, 8] {
            let config = TransformerConfig {
                kv_heads,
                ..Preset::Base.config(100, 120)
            };
            assert_eq!(config.check(), Ok(()), "{kv_heads}");
        }
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let found = problems(|c| {
            (c.tgt_vocab, c.d_ff, c.encoder_layers, c.decoder_layers) = (0, 0, 0, usize::MAX);
            (c.d_model, c.heads, c.kv_heads, c.dropout) = (0, 0, 0, 2.0);
        });
        let keys = [
            "tgt_vocab",
            "d_model",
            "d_ff",
            "heads",
            "kv_heads",
            "encoder_layers",
            "decoder_layers",
            "dropout",
        ];
        assert_eq!(found.len(), keys.len(), "{found:?}");
        for (problem, key) in found.iter().zip(keys) {
            assert!(problem.starts_with(&format!("`model.{key}`")), "{problem}");
        }
    }

    #[test]
    fn learned_positions_need_a_maximum_and_allow_an_odd_width() {
        let learned = |c: &mut TransformerConfig| c.positions = PositionKind::Learned;
        assert_eq!(
            problems(|c| {
                learned(c);
                c.max_positions = 0;
            }),
            ["`model.max_positions` (0) must be at least 1"]
        );
        let mut odd = Preset::Base.config(100, 120);
        (odd.d_model, odd.heads, odd.kv_heads) = (9, 3, 3);
        learned(&mut odd);
        assert_eq!(odd.check(), Ok(()));
        assert_eq!(odd.position_limit(), Some(1024));
    }

    #[test]
    fn every_key_is_read_back_as_written() {
        let config = TransformerConfig {
            src_vocab: 11,
            tgt_vocab: 12,
            d_model: 13,
            d_ff: 14,
            heads: 15,
            kv_heads: 5,
            encoder_layers: 16,
            decoder_layers: 17,
            dropout: 0.18,
            norm: NormPlacement::Post,
            activation: Activation::GeluTanh,
            positions: PositionKind::TimingSignal,
            position_offset: 2,
            max_positions: 19,
            tying: Tying::Output,
            norm_epsilon: 1e-5,
            embedding_scale: Some(1.5),
            embedding_norm: EmbeddingNorm::LayerNorm,
            final_norm: FinalNorm::None,
            autoregression: Autoregression::Ssru,
        };
        let json = serde_json::to_string(&config).expect("plain numbers");
        assert_eq!(
            serde_json::from_str::<TransformerConfig>(&json).expect("just written"),
            config
        );
    }

    #[test]
    fn variants_that_are_not_used_are_not_written() {
        let json = serde_json::to_value(Preset::Base.config(100, 120)).expect("plain numbers");
        let keys: Vec<&String> = json.as_object().expect("an object").keys().collect();
        assert_eq!(keys.len(), 14, "{keys:?}");
        assert!(!keys.iter().any(|key| *key == "activation"));
        let names = |kind| serde_json::to_string(&kind).expect("a name");
        assert_eq!(names(Activation::GeluSigmoid), "\"gelu_sigmoid\"");
    }

    #[test]
    fn variants_have_tensors_of_their_own() {
        let mut config = Preset::Tiny.config(50, 50);
        config.autoregression = Autoregression::Ssru;
        config.embedding_norm = EmbeddingNorm::LayerNorm;
        config.final_norm = FinalNorm::None;
        let tensors = config.tensors();
        let shape = |name: &str| {
            let found = tensors.iter().find(|spec| spec.name == name);
            found.map(|spec| &spec.shape[..])
        };
        for (name, expected) in [
            ("decoder.layers.3.ssru.input.weight", &[128, 128][..]),
            ("decoder.layers.3.ssru.forget.weight", &[128, 128]),
            ("decoder.layers.3.ssru.forget.bias", &[128]),
            ("decoder.layers.3.ssru_norm.weight", &[128]),
            ("encoder.layers.3.self_attention.query.weight", &[128, 128]),
            ("encoder.embedding_norm.bias", &[128]),
            ("decoder.embedding_norm.weight", &[128]),
        ] {
            assert_eq!(shape(name), Some(expected), "{name}");
        }
        for name in [
            "decoder.layers.3.ssru.input.bias",
            "decoder.layers.3.self_attention.query.weight",
            "decoder.layers.3.self_attention_norm.weight",
            "encoder.final_norm.weight",
        ] {
            assert_eq!(shape(name), None, "{name}");
        }
        // Four matrices and biases of attention become two and one.
        let plain = Preset::Tiny.config(50, 50);
        let less = 4 * (2 * 128 * 128 + 3 * 128);
        assert_eq!(
            config.parameter_count(),
            plain.parameter_count() - less,
            "as many embedding norms as final norms"
        );
    }

    #[test]
    fn the_final_norm_follows_the_placement_unless_it_is_given() {
        use {FinalNorm as Final, NormPlacement as Norm};
        for (norm, final_norm, expected) in [
            (Norm::Pre, Final::Auto, true),
            (Norm::Post, Final::Auto, false),
            (Norm::Pre, Final::None, false),
            (Norm::Post, Final::LayerNorm, true),
        ] {
            let config = TransformerConfig {
                norm,
                final_norm,
                ..Preset::Tiny.config(50, 50)
            };
            assert_eq!(config.has_final_norm(), expected, "{norm:?} {final_norm:?}");
        }
    }

    #[test]
    fn the_base_model_is_as_large_as_the_papers() {
        // Table 3 says 65 million for a shared vocabulary of "about 37000".
        let paper = TransformerConfig {
            tying: Tying::All,
            ..Preset::Base.config(37_000, 37_000)
        };
        assert_eq!(paper.parameter_count(), 63_121_544);
        assert_eq!(paper.head_dim(), 64);
    }

    #[test]
    fn tied_matrices_and_fewer_kv_heads_count_less() {
        let config = Preset::Tiny.config(50, 50);
        let count = |change: fn(&mut TransformerConfig)| {
            let mut changed = config.clone();
            change(&mut changed);
            config.parameter_count() as i64 - changed.parameter_count() as i64
        };
        assert_eq!(count(|c| c.tying = Tying::Output), 50 * 128);
        assert_eq!(count(|c| c.tying = Tying::All), 2 * 50 * 128);
        assert_eq!(count(|c| c.norm = NormPlacement::Post), 2 * 2 * 128);
        // 12 attention blocks lose three of four heads (96 of 128 columns) in keys and values.
        assert_eq!(count(|c| c.kv_heads = 1), 12 * 2 * 96 * (128 + 1));
        assert_eq!(
            count(|c| c.positions = PositionKind::Learned),
            -2 * 1024 * 128
        );
    }
}
