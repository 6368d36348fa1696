//! Named sizes, and configs with gaps that such a size fills.
//!
//! Recipes differ in values only, so they name a [`Preset`] and write what differs from it;
//! [`ModelSettings::resolve`] makes the complete [`ModelConfig`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{ModelConfig, NormPlacement, PositionKind, Tying};

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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn unknown_keys_are_refused_by_name() {
        let error = serde_json::from_str::<ModelConfig>(r#"{"head": 8}"#).expect_err("a typo");
        assert!(
            error.to_string().contains("unknown field `head`"),
            "{error}"
        );
    }
}
