//! Named sizes: recipes name a [`Preset`] and write only what differs from it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{
    Activation, Autoregression, EmbeddingNorm, FinalNorm, NormPlacement, PositionKind,
    TransformerConfig, Tying,
};

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
    /// the Annotated Transformer uses; a recipe says `norm = "post"` for the paper's.
    pub fn config(self, src_vocab: usize, tgt_vocab: usize) -> TransformerConfig {
        let (d_model, d_ff, heads, layers, dropout) = match self {
            Preset::Tiny => (128, 256, 4, 4, 0.1),
            Preset::Small => (256, 1024, 4, 3, 0.1),
            Preset::Base => (512, 2048, 8, 6, 0.1),
            Preset::Big => (1024, 4096, 16, 6, 0.3),
        };
        TransformerConfig {
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
            activation: Activation::Relu,
            positions: PositionKind::Sinusoidal,
            position_offset: 0,
            max_positions: 1024,
            tying: Tying::None,
            norm_epsilon: 1e-6,
            embedding_scale: None,
            embedding_norm: EmbeddingNorm::None,
            final_norm: FinalNorm::Auto,
            autoregression: Autoregression::SelfAttention,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ModelConfig;

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
    fn unknown_keys_are_refused_by_name() {
        let error = serde_json::from_str::<TransformerConfig>(r#"{"d_model": 512, "head": 8}"#)
            .expect_err("a typo");
        assert!(
            error.to_string().contains("unknown field `head`"),
            "{error}"
        );
    }
}
