//! `[model]`: a family, a preset, and every key of the configuration that is to differ from it.
//!
//! The keys are those of the family's configuration ([`AnyConfig`]) without the vocabularies, which come from the
//! tokenizers. A key that is added there can be set in a recipe without a word here. Read by [`super::parse`].

use attentive_model::config::{AnyConfig, Family, ModelConfig, Preset};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;
use toml::{Table, Value};

/// `[model]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Where the values that a recipe does not mention come from.
    pub preset: Preset,
    /// The architecture; vocabularies are empty as long as there is none, see [`Model::with_vocabularies`].
    pub config: AnyConfig,
}

impl Model {
    /// The preset with nothing changed.
    pub fn from_preset(family: Family, preset: Preset) -> Self {
        Model {
            preset,
            config: AnyConfig::from_preset(family, preset),
        }
    }

    /// Which family of models.
    pub fn family(&self) -> Family {
        self.config.family()
    }

    /// The architecture for vocabularies of these sizes, if the recipe is one of this family.
    pub fn with_vocabularies<C: ModelConfig>(&self, src: usize, tgt: usize) -> Option<C> {
        let config = C::of(&self.config)?;
        Some(config.clone().with_vocabularies(src, tgt))
    }
}

impl Serialize for Model {
    /// The family, where it is not the usual one, the preset, and the keys in the order of the configuration, which
    /// leaves out variants that are not used.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = |value: serde_json::Result<Json>| value.map_err(S::Error::custom);
        let mut keys = serde_json::Map::new();
        if self.family() != Family::default() {
            keys.insert("family".to_owned(), self.family().name().into());
        }
        keys.insert(
            "preset".to_owned(),
            json(serde_json::to_value(self.preset))?,
        );
        if let Json::Object(config) = json(serde_json::to_value(&self.config))? {
            keys.extend(config);
        }
        keys.retain(|key, _| !self.config.vocabulary_keys().contains(&key.as_str()));
        keys.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Model {
    /// The preset's values, and above them those that are given.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = |error: toml::de::Error| D::Error::custom(error.message());
        let mut given = Table::deserialize(deserializer)?;
        let family = match given.remove("family") {
            Some(family) => family.try_into().map_err(wrong)?,
            None => Family::default(),
        };
        let preset = match given.remove("preset") {
            Some(preset) => preset.try_into().map_err(wrong)?,
            None => Preset::Small,
        };
        let base = AnyConfig::from_preset(family, preset);
        let vocabularies = base.vocabulary_keys();
        if let Some(key) = vocabularies.iter().find(|key| given.contains_key(**key)) {
            let message = format!("unknown field `{key}`: the tokenizers decide it");
            return Err(D::Error::custom(message));
        }
        let mut keys = Table::try_from(base).map_err(D::Error::custom)?;
        // Fewer key and value heads are a choice of their own: otherwise each head has its own.
        if let (Some(heads), true) = (given.get("heads"), keys.contains_key("kv_heads")) {
            keys.insert("kv_heads".to_owned(), heads.clone());
        }
        keys.extend(given);
        let config = AnyConfig::of_family(family, Value::Table(keys)).map_err(wrong)?;
        Ok(Model { preset, config })
    }
}
