//! Every family of models, and the configuration of whichever one.
//!
//! A family is a variant of [`Family`] and of [`AnyConfig`], a file beside this one, and a line in [`each`]. What
//! else a family touches is listed where it is learned: `crates/train/src/task/mod.rs`.

use serde::{Deserialize, Deserializer, Serialize};

use super::{
    BertConfig, DiffusionConfig, GptConfig, ModelConfig, Preset, RecurrentConfig,
    TransformerConfig, VitConfig,
};
use crate::tensors::{TensorSpec, parameter_count};

/// A family of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// The encoder-decoder of "Attention Is All You Need".
    #[default]
    Transformer,
    /// The decoder alone, as a language model ("Improving Language Understanding by Generative Pre-Training",
    /// Radford et al. 2018; pre-norm as in GPT-2).
    Gpt,
    /// Encoder and decoder of gated recurrent units, with attention (Bahdanau et al. 2015) or with one context vector
    /// (Cho et al. 2014).
    Recurrent,
    /// The encoder alone ("BERT: Pre-training of Deep Bidirectional Transformers", Devlin et al. 2019).
    Bert,
    /// The encoder alone, on the patches of an image ("An Image is Worth 16x16 Words", Dosovitskiy et al. 2021).
    Vit,
    /// A U-Net with Transformer blocks that takes noise out of images ("Denoising Diffusion Probabilistic Models", Ho
    /// et al. 2020).
    Diffusion,
}

/// The configuration of a model of some family.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AnyConfig {
    /// Of the encoder-decoder.
    Transformer(TransformerConfig),
    /// Of a language model.
    Gpt(GptConfig),
    /// Of a recurrent encoder-decoder.
    Recurrent(RecurrentConfig),
    /// Of an encoder with its heads.
    Bert(BertConfig),
    /// Of a classifier of images.
    Vit(VitConfig),
    /// Of a model that draws images.
    Diffusion(DiffusionConfig),
}

/// The same expression for the configuration of each family.
macro_rules! each {
    ($any:expr, $config:ident => $value:expr) => {
        match $any {
            AnyConfig::Transformer($config) => $value,
            AnyConfig::Gpt($config) => $value,
            AnyConfig::Recurrent($config) => $value,
            AnyConfig::Bert($config) => $value,
            AnyConfig::Vit($config) => $value,
            AnyConfig::Diffusion($config) => $value,
        }
    };
}

impl Family {
    /// Every family.
    pub const ALL: [Family; 6] = [
        Family::Transformer,
        Family::Gpt,
        Family::Recurrent,
        Family::Bert,
        Family::Vit,
        Family::Diffusion,
    ];

    /// The name in recipes and in `config.json`.
    pub fn name(self) -> &'static str {
        match self {
            Family::Transformer => "transformer",
            Family::Gpt => "gpt",
            Family::Recurrent => "recurrent",
            Family::Bert => "bert",
            Family::Vit => "vit",
            Family::Diffusion => "diffusion",
        }
    }

    /// The command that uses its models, and for what.
    pub fn usage(self) -> &'static str {
        match self {
            Family::Transformer => "`attentive translate` translates with it",
            Family::Gpt => "`attentive generate` continues text with it",
            Family::Recurrent => "`attentive translate` translates with it",
            Family::Bert => "`attentive embed`, `fill` and `classify` use it",
            Family::Vit => "`attentive classify` classifies images with it",
            Family::Diffusion => "`attentive draw` draws images with it",
        }
    }
}

impl AnyConfig {
    /// The configuration of a named size, with empty vocabularies.
    pub fn from_preset(family: Family, preset: Preset) -> Self {
        match family {
            Family::Transformer => Self::Transformer(ModelConfig::from_preset(preset)),
            Family::Gpt => Self::Gpt(ModelConfig::from_preset(preset)),
            Family::Recurrent => Self::Recurrent(ModelConfig::from_preset(preset)),
            Family::Bert => Self::Bert(ModelConfig::from_preset(preset)),
            Family::Vit => Self::Vit(ModelConfig::from_preset(preset)),
            Family::Diffusion => Self::Diffusion(ModelConfig::from_preset(preset)),
        }
    }

    /// Reads the keys of a family's configuration, all of which must be there.
    pub fn of_family<'de, D: Deserializer<'de>>(family: Family, keys: D) -> Result<Self, D::Error> {
        Ok(match family {
            Family::Transformer => Self::Transformer(Deserialize::deserialize(keys)?),
            Family::Gpt => Self::Gpt(Deserialize::deserialize(keys)?),
            Family::Recurrent => Self::Recurrent(Deserialize::deserialize(keys)?),
            Family::Bert => Self::Bert(Deserialize::deserialize(keys)?),
            Family::Vit => Self::Vit(Deserialize::deserialize(keys)?),
            Family::Diffusion => Self::Diffusion(Deserialize::deserialize(keys)?),
        })
    }

    /// Its family.
    pub fn family(&self) -> Family {
        fn of<C: ModelConfig>(_: &C) -> Family {
            C::FAMILY
        }
        each!(self, config => of(config))
    }

    /// Keys that the tokenizers decide.
    pub fn vocabulary_keys(&self) -> &'static [&'static str] {
        fn of<C: ModelConfig>(_: &C) -> &'static [&'static str] {
            C::VOCABULARIES
        }
        each!(self, config => of(config))
    }

    /// As [`ModelConfig::with_every_key`].
    pub fn with_every_key(self) -> Self {
        each!(self, config => config.with_every_key().into())
    }

    /// As [`ModelConfig::vocabularies`].
    pub fn vocabularies(&self) -> Option<(usize, usize)> {
        each!(self, config => config.vocabularies())
    }

    /// As [`ModelConfig::with_vocabularies`].
    pub fn with_vocabularies(self, src: usize, tgt: usize) -> Self {
        each!(self, config => config.with_vocabularies(src, tgt).into())
    }

    /// As [`ModelConfig::width`].
    pub fn width(&self) -> usize {
        each!(self, config => config.width())
    }

    /// As [`ModelConfig::check`].
    pub fn check(&self) -> Result<(), Vec<String>> {
        each!(self, config => config.check())
    }

    /// As [`ModelConfig::tensors`].
    pub fn tensors(&self) -> Vec<TensorSpec> {
        each!(self, config => config.tensors())
    }

    /// Number of trained values; tied matrices count once.
    pub fn parameter_count(&self) -> usize {
        parameter_count(&self.tensors())
    }
}

impl From<TransformerConfig> for AnyConfig {
    fn from(config: TransformerConfig) -> Self {
        Self::Transformer(config)
    }
}

impl From<BertConfig> for AnyConfig {
    fn from(config: BertConfig) -> Self {
        Self::Bert(config)
    }
}

impl From<GptConfig> for AnyConfig {
    fn from(config: GptConfig) -> Self {
        Self::Gpt(config)
    }
}

impl From<RecurrentConfig> for AnyConfig {
    fn from(config: RecurrentConfig) -> Self {
        Self::Recurrent(config)
    }
}

impl From<VitConfig> for AnyConfig {
    fn from(config: VitConfig) -> Self {
        Self::Vit(config)
    }
}

impl From<DiffusionConfig> for AnyConfig {
    fn from(config: DiffusionConfig) -> Self {
        Self::Diffusion(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_serde_and_presets_are_possible_models_of_their_family() {
        for family in Family::ALL {
            assert_eq!(serde_json::to_value(family).unwrap(), family.name());
            for preset in Preset::ALL {
                let config = AnyConfig::from_preset(family, preset).with_vocabularies(100, 100);
                assert_eq!(config.family(), family);
                assert_eq!(config.check(), Ok(()), "{family:?} {preset}");
                let keys = serde_json::to_value(&config).unwrap();
                for key in config.vocabulary_keys() {
                    assert_eq!(keys[key], 100, "{key}");
                }
                assert_eq!(AnyConfig::of_family(family, keys).unwrap(), config);
            }
        }
    }
}
