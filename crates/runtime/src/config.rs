//! The architecture of a Transformer as plain numbers, checked before any tensor exists.
//!
//! Recipes and `config.json` are read into [`ModelSettings`], where every key may be missing;
//! [`ModelSettings::resolve`] fills the gaps from a [`Preset`]. `attentive-nn` builds the model from
//! the [`ModelConfig`] that results. Sizes: "Attention Is All You Need", §3 and table 3.

use std::fmt;
use std::str::FromStr;

use attentive_text::special::SPECIALS;
use serde::{Deserialize, Serialize};

/// The architecture of one encoder-decoder Transformer.
///
/// Read from TOML or JSON, missing keys take the values of [`Preset::Base`] (or of the `preset`
/// that is named), and `kv_heads` follows `heads`; unknown keys are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "ModelSettings")]
pub struct ModelConfig {
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
    /// Where the layer normalisation stands.
    pub norm: NormPlacement,
    /// How a token's place enters its embedding.
    pub positions: PositionKind,
    /// Longest sequence with learned positions; sinusoids have no maximum and ignore it.
    pub max_positions: usize,
    /// Which embedding and output matrices are one and the same.
    pub tying: Tying,
    /// Added to the variance in every layer normalisation.
    pub norm_epsilon: f64,
}

/// Where the layer normalisation stands in a sub-layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NormPlacement {
    /// `x + f(LN(x))` with a final norm on each side (the Annotated Transformer).
    Pre,
    /// `LN(x + f(x))` (the paper, §3.1).
    Post,
}

/// How a token's place in the sentence enters its embedding (§3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PositionKind {
    /// Fixed sines and cosines, for any length.
    Sinusoidal,
    /// A trained vector per place, up to `max_positions`.
    Learned,
}

/// Which embedding and output matrices are one and the same (§3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tying {
    /// Source embedding, target embedding and output projection are three matrices.
    None,
    /// The output projection is the target embedding.
    Output,
    /// All three are one matrix; source and target share one vocabulary.
    All,
}

/// A named size (table 3 of the paper for `base` and `big`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// 128 wide, 4 + 4 layers, 4 heads.
    Tiny,
    /// 256 wide, 3 + 3 layers, 4 heads.
    Small,
    /// 512 wide, 6 + 6 layers, 8 heads.
    Base,
    /// 1024 wide, 6 + 6 layers, 16 heads.
    Big,
}

/// A [`ModelConfig`] in which every key may be missing, as people write it in a recipe.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
#[allow(missing_docs)] // The fields are those of `ModelConfig`, described there.
pub struct ModelSettings {
    /// Where missing values come from; [`Preset::Base`] if this is missing too.
    pub preset: Option<Preset>,
    pub src_vocab: Option<usize>,
    pub tgt_vocab: Option<usize>,
    pub d_model: Option<usize>,
    pub d_ff: Option<usize>,
    pub heads: Option<usize>,
    /// As many as `heads` if missing.
    pub kv_heads: Option<usize>,
    pub encoder_layers: Option<usize>,
    pub decoder_layers: Option<usize>,
    pub dropout: Option<f64>,
    pub norm: Option<NormPlacement>,
    pub positions: Option<PositionKind>,
    pub max_positions: Option<usize>,
    pub tying: Option<Tying>,
    pub norm_epsilon: Option<f64>,
}

impl ModelSettings {
    /// The complete config: what is written here, then what the preset says, then the vocabularies
    /// given (those of the tokenizers, which a recipe cannot know beforehand).
    pub fn resolve(&self, src_vocab: usize, tgt_vocab: usize) -> ModelConfig {
        let base = self.preset.unwrap_or(Preset::Base).config(
            self.src_vocab.unwrap_or(src_vocab),
            self.tgt_vocab.unwrap_or(tgt_vocab),
        );
        let heads = self.heads.unwrap_or(base.heads);
        ModelConfig {
            d_model: self.d_model.unwrap_or(base.d_model),
            d_ff: self.d_ff.unwrap_or(base.d_ff),
            heads,
            kv_heads: self.kv_heads.unwrap_or(heads),
            encoder_layers: self.encoder_layers.unwrap_or(base.encoder_layers),
            decoder_layers: self.decoder_layers.unwrap_or(base.decoder_layers),
            dropout: self.dropout.unwrap_or(base.dropout),
            norm: self.norm.unwrap_or(base.norm),
            positions: self.positions.unwrap_or(base.positions),
            max_positions: self.max_positions.unwrap_or(base.max_positions),
            tying: self.tying.unwrap_or(base.tying),
            norm_epsilon: self.norm_epsilon.unwrap_or(base.norm_epsilon),
            ..base
        }
    }
}

impl From<ModelSettings> for ModelConfig {
    /// Vocabularies that are missing become 0, which [`ModelConfig::check`] reports.
    fn from(settings: ModelSettings) -> Self {
        settings.resolve(0, 0)
    }
}

impl Preset {
    /// Every preset, smallest first.
    pub const ALL: [Preset; 4] = [Preset::Tiny, Preset::Small, Preset::Base, Preset::Big];

    /// The config of this size for two vocabularies.
    ///
    /// Paper: post-norm. Here: pre-norm, because it trains without a delicate warm-up and is what
    /// the reproduction of SPEC section 2 used; a recipe says `norm = "post"` for the paper's.
    pub fn config(self, src_vocab: usize, tgt_vocab: usize) -> ModelConfig {
        let (d_model, d_ff, heads, layers, dropout) = match self {
            Preset::Tiny => (128, 256, 4, 4, 0.1),
            Preset::Small => (256, 1024, 4, 3, 0.1),
            Preset::Base => (512, 2048, 8, 6, 0.1),
            Preset::Big => (1024, 4096, 16, 6, 0.3),
        };
        ModelConfig {
            src_vocab,
            tgt_vocab,
            d_model,
            d_ff,
            heads,
            kv_heads: heads,
            encoder_layers: layers,
            decoder_layers: layers,
            dropout,
            norm: NormPlacement::Pre,
            positions: PositionKind::Sinusoidal,
            max_positions: 1024,
            tying: Tying::None,
            norm_epsilon: 1e-6,
        }
    }

    /// The name in recipes and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Tiny => "tiny",
            Preset::Small => "small",
            Preset::Base => "base",
            Preset::Big => "big",
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Preset::ALL
            .into_iter()
            .find(|preset| preset.name() == text)
            .ok_or_else(|| {
                format!("there is no preset `{text}`; choose one of tiny, small, base, big")
            })
    }
}

impl ModelConfig {
    /// Every problem of this config at once, each a sentence that names the keys and their values.
    pub fn check(&self) -> Result<(), Vec<String>> {
        let mut problems = Vec::new();
        let mut require = |holds: bool, problem: String| {
            if !holds {
                problems.push(problem);
            }
        };

        let specials = SPECIALS.len();
        for (key, vocab) in [("src_vocab", self.src_vocab), ("tgt_vocab", self.tgt_vocab)] {
            require(
                vocab > specials,
                format!("`model.{key}` ({vocab}) must be more than the {specials} special tokens"),
            );
            require(
                vocab <= LARGEST_SIZE,
                format!("`model.{key}` ({vocab}) must be at most {LARGEST_SIZE}"),
            );
        }
        for (key, size) in self.sizes() {
            require(size > 0, format!("`model.{key}` (0) must be at least 1"));
            require(
                size <= LARGEST_SIZE,
                format!("`model.{key}` ({size}) must be at most {LARGEST_SIZE}"),
            );
        }

        let Self {
            d_model,
            heads,
            kv_heads,
            dropout,
            norm_epsilon,
            ..
        } = *self;
        require(
            heads == 0 || d_model.is_multiple_of(heads),
            format!("`model.d_model` ({d_model}) must be divisible by `model.heads` ({heads})"),
        );
        require(
            kv_heads == 0 || heads.is_multiple_of(kv_heads),
            format!("`model.heads` ({heads}) must be divisible by `model.kv_heads` ({kv_heads})"),
        );
        require(
            self.positions != PositionKind::Sinusoidal || d_model.is_multiple_of(2),
            format!(
                "`model.d_model` ({d_model}) must be even for `model.positions` (\"sinusoidal\")"
            ),
        );
        require(
            (0.0..1.0).contains(&dropout),
            format!("`model.dropout` ({dropout}) must be at least 0 and less than 1"),
        );
        require(
            norm_epsilon > 0.0 && norm_epsilon.is_finite(),
            format!("`model.norm_epsilon` ({norm_epsilon}) must be a small positive number"),
        );
        require(
            self.tying != Tying::All || self.src_vocab == self.tgt_vocab,
            format!(
                "`model.tying` (\"all\") needs one shared vocabulary, but `model.src_vocab` ({}) \
                 and `model.tgt_vocab` ({}) differ",
                self.src_vocab, self.tgt_vocab
            ),
        );

        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }

    /// Width of one attention head, `d_k = d_v` of §3.2.2.
    pub fn head_dim(&self) -> usize {
        self.d_model / self.heads.max(1)
    }

    /// The longest sequence the model can read or write, if it has a limit.
    pub fn position_limit(&self) -> Option<usize> {
        match self.positions {
            PositionKind::Sinusoidal => None,
            PositionKind::Learned => Some(self.max_positions),
        }
    }

    /// Number of trained values; tied matrices count once.
    ///
    /// Every linear layer has a bias, the output projection too (even when its matrix is tied), and
    /// learned positions are one table for each side.
    pub fn parameter_count(&self) -> usize {
        let d = self.d_model;
        let linear = |inputs: usize, outputs: usize| inputs * outputs + outputs;
        let norm = 2 * d;
        let kv_width = self.kv_heads * self.head_dim();
        let attention = 2 * linear(d, d) + 2 * linear(d, kv_width);
        let feed_forward = linear(d, self.d_ff) + linear(self.d_ff, d);

        let encoder = self.encoder_layers * (attention + feed_forward + 2 * norm);
        let decoder = self.decoder_layers * (2 * attention + feed_forward + 3 * norm);
        let final_norms = match self.norm {
            NormPlacement::Pre => 2 * norm,
            NormPlacement::Post => 0,
        };
        let positions = self.position_limit().map_or(0, |limit| 2 * limit * d);
        let matrices = d * match self.tying {
            Tying::None => self.src_vocab + 2 * self.tgt_vocab,
            Tying::Output => self.src_vocab + self.tgt_vocab,
            Tying::All => self.tgt_vocab,
        };
        encoder + decoder + final_norms + positions + matrices + self.tgt_vocab
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

/// Larger sizes are typing errors, and would overflow the arithmetic on shapes.
const LARGEST_SIZE: usize = 1 << 24;

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(change: impl FnOnce(&mut ModelConfig)) -> Vec<String> {
        let mut config = Preset::Base.config(100, 120);
        change(&mut config);
        config.check().expect_err("an impossible config")
    }

    #[test]
    fn every_preset_is_sound() {
        for preset in Preset::ALL {
            assert_eq!(preset.config(5, 6).check(), Ok(()), "{preset}");
            assert_eq!(preset.to_string().parse(), Ok(preset));
        }
        assert!(
            "huge"
                .parse::<Preset>()
                .expect_err("no such preset")
                .contains("`huge`")
        );
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
            ["`model.d_model` (9) must be even for `model.positions` (\"sinusoidal\")"]
        );
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
        let learned = |c: &mut ModelConfig| c.positions = PositionKind::Learned;
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
    fn missing_keys_come_from_the_preset_and_kv_heads_follow_heads() {
        let read = |json: &str| serde_json::from_str::<ModelConfig>(json).expect("valid");
        let big = read(r#"{"preset": "big", "src_vocab": 9, "tgt_vocab": 8, "dropout": 0.2}"#);
        assert_eq!(
            big,
            ModelConfig {
                dropout: 0.2,
                ..Preset::Big.config(9, 8)
            }
        );
        assert_eq!(read(r#"{"heads": 16}"#).kv_heads, 16);
        assert_eq!(
            read(r#"{"heads": 16, "kv_heads": 1, "norm": "post"}"#).kv_heads,
            1
        );
        assert_eq!(read("{}"), Preset::Base.config(0, 0));
        let settings = ModelSettings {
            tgt_vocab: Some(70),
            ..Default::default()
        };
        let resolved = settings.resolve(50, 60);
        assert_eq!((resolved.src_vocab, resolved.tgt_vocab), (50, 70));
    }

    #[test]
    fn every_key_is_read_back_as_written() {
        let config = ModelConfig {
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
            positions: PositionKind::Learned,
            max_positions: 19,
            tying: Tying::Output,
            norm_epsilon: 1e-5,
        };
        let json = serde_json::to_string(&config).expect("plain numbers");
        assert_eq!(
            serde_json::from_str::<ModelConfig>(&json).expect("just written"),
            config
        );
    }

    #[test]
    fn unknown_keys_are_refused_by_name() {
        let error = serde_json::from_str::<ModelConfig>(r#"{"head": 8}"#).expect_err("a typo");
        assert!(
            error.to_string().contains("unknown field `head`"),
            "{error}"
        );
    }

    #[test]
    fn the_base_model_is_as_large_as_the_papers() {
        // Table 3 says 65 million for a shared vocabulary of "about 37000".
        let paper = ModelConfig {
            tying: Tying::All,
            ..Preset::Base.config(37_000, 37_000)
        };
        assert_eq!(paper.parameter_count(), 63_121_544);
        assert_eq!(paper.head_dim(), 64);
    }

    #[test]
    fn tied_matrices_and_fewer_kv_heads_count_less() {
        let config = Preset::Tiny.config(50, 50);
        let count = |change: fn(&mut ModelConfig)| {
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
