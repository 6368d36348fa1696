//! `[model]`: a preset, and every key of the configuration that is to differ from it.
//!
//! The keys are those of [`TransformerConfig`] without the vocabularies, which come from the tokenizers. A key
//! that is added there can be set in a recipe without a word here; one that is left out where it has its usual value
//! needs a line in [`super::keys`]. Read by [`super::parse`].

use attentive_model::config::{Preset, TransformerConfig};
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
    /// The architecture; both vocabularies are empty as long as there is none, see [`Model::with_vocabularies`].
    pub config: TransformerConfig,
}

/// Keys of the configuration that a recipe does not have.
const VOCABULARIES: [&str; 2] = ["src_vocab", "tgt_vocab"];

impl Model {
    /// The preset with nothing changed.
    pub fn from_preset(preset: Preset) -> Self {
        Model {
            preset,
            config: preset.config(0, 0),
        }
    }

    /// The architecture for vocabularies of these sizes.
    pub fn with_vocabularies(&self, src_vocab: usize, tgt_vocab: usize) -> TransformerConfig {
        TransformerConfig {
            src_vocab,
            tgt_vocab,
            ..self.config.clone()
        }
    }
}

impl Serialize for Model {
    /// The keys in the order of the configuration, which leaves out variants that are not used.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = |value: serde_json::Result<Json>| value.map_err(S::Error::custom);
        let mut keys = serde_json::Map::new();
        keys.insert(
            "preset".to_owned(),
            json(serde_json::to_value(self.preset))?,
        );
        if let Json::Object(config) = json(serde_json::to_value(&self.config))? {
            keys.extend(config);
        }
        keys.retain(|key, _| !VOCABULARIES.contains(&key.as_str()));
        keys.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Model {
    /// The preset's values, and above them those that are given.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = |error: toml::de::Error| D::Error::custom(error.message());
        let mut given = Table::deserialize(deserializer)?;
        let preset = match given.remove("preset") {
            Some(preset) => preset.try_into().map_err(wrong)?,
            None => Preset::Small,
        };
        if let Some(key) = VOCABULARIES
            .into_iter()
            .find(|key| given.contains_key(*key))
        {
            let message = format!("unknown field `{key}`: the tokenizers decide it");
            return Err(D::Error::custom(message));
        }
        // Fewer key and value heads are a choice of their own: otherwise each head has its own.
        if let (Some(heads), None) = (given.get("heads").cloned(), given.get("kv_heads")) {
            given.insert("kv_heads".to_owned(), heads);
        }
        let mut keys = Table::try_from(preset.config(0, 0)).map_err(D::Error::custom)?;
        keys.extend(given);
        let config = Value::Table(keys).try_into().map_err(wrong)?;
        Ok(Model { preset, config })
    }
}
