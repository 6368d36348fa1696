//! Where a run stands, apart from its weights: `state.json` of a checkpoint.
//!
//! Together with the weights, the optimizer's moments and the recipe this is all that a continued
//! run needs to be bitwise equal to an uninterrupted one. Random numbers need no state of their own:
//! batches depend on seed and epoch, dropout on seed and batch.

use std::collections::BTreeMap;
use std::path::Path;

use attentive_nn::ops::Precision;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::data::fingerprint::CorpusFingerprint;
use crate::error::StorageError;
use crate::run::checkpoint::Position;

/// The file's name in a checkpoint.
pub const FILE_NAME: &str = "state.json";

/// Where a run stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainState {
    /// Optimizer steps done.
    pub step: u64,
    /// Batches whose gradients wait to be part of the next step.
    pub micro_step: u64,
    /// Target tokens in these batches, by which their gradients are divided.
    pub micro_tokens: u64,
    /// Sum of the loss over these batches.
    #[serde(with = "exact")]
    pub micro_loss: f64,
    /// The epoch that is going on, from 0.
    pub epoch: u64,
    /// The next batch of the epoch, from 0.
    pub batch: u64,
    /// Examples seen, such as sentence pairs.
    pub examples: u64,
    /// Target tokens seen.
    #[serde(alias = "tgt_tokens")]
    pub tokens: u64,
    /// Steps that were not applied because the loss or a gradient was not finite, in a row.
    pub bad_steps: u64,
    /// Seconds of training, over all continuations.
    #[serde(with = "exact")]
    pub seconds: f64,
    /// Sum of the loss since the last line of the log.
    #[serde(with = "exact")]
    pub window_loss: f64,
    /// Target tokens since the last line of the log.
    pub window_tokens: u64,
    /// Sum of the loss in this epoch.
    #[serde(with = "exact")]
    pub epoch_loss: f64,
    /// Target tokens in this epoch.
    pub epoch_tokens: u64,
    /// Loss per token of the last line of the log.
    #[serde(with = "exact_option")]
    pub train_loss: Option<f64>,
    /// Loss per token of the last validation.
    #[serde(with = "exact_option")]
    pub val_loss: Option<f64>,
    /// The task's metrics in the last validation, by name, as far as they were finite.
    pub val_metrics: BTreeMap<String, f64>,
    /// The best score so far, higher being better: BLEU, or minus the loss, as `validation.best_by` says.
    #[serde(with = "exact_option")]
    pub best_score: Option<f64>,
    /// The step of the best score.
    pub best_step: Option<u64>,
    /// Whether the best model is `RUN/average`, and not the checkpoint of that step.
    pub best_is_average: bool,
    /// Validations since the best score.
    pub validations_without_improvement: u64,
    /// Whether early stopping has ended the run.
    pub stopped_early: bool,
    /// Lines that `metrics.jsonl` had, so that a continued run cuts off what came later.
    pub metrics_lines: u64,
    /// What `training.precision` came to on the machine of the run; earlier versions did not write it.
    pub precision: Option<Precision>,
    /// The corpus of the run.
    pub corpus: CorpusFingerprint,
}

/// Keys that earlier versions wrote and that nothing needs.
const RETIRED: [&str; 4] = [
    "recipe_fingerprint",
    "src_tokenizer",
    "tgt_tokenizer",
    "src_tokens",
];

impl TrainState {
    /// Steps and batches towards the next.
    pub fn position(&self) -> Position {
        Position {
            step: self.step,
            micro_step: self.micro_step,
        }
    }

    /// As JSON, every number exact.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("plain strings and numbers");
        text.push('\n');
        text
    }

    /// Reads what [`TrainState::to_json`] wrote, or what it wrote in an earlier version.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        let mut json: Value = serde_json::from_str(text)?;
        if let Some(keys) = json.as_object_mut() {
            for key in RETIRED {
                keys.remove(key);
            }
            if let Some(bleu @ Value::Number(_)) = keys.remove("val_bleu") {
                keys.insert(
                    "val_metrics".to_owned(),
                    serde_json::json!({ "bleu": bleu }),
                );
            }
        }
        serde_json::from_value(json)
    }

    /// Reads `state.json` of a checkpoint.
    pub fn load(checkpoint: &Path) -> Result<Self, StorageError> {
        let path = checkpoint.join(FILE_NAME);
        let text = std::fs::read_to_string(&path).map_err(StorageError::io("read", &path))?;
        Self::from_json(&text).map_err(|error| StorageError::Damaged {
            path: checkpoint.to_owned(),
            problems: vec![format!("{FILE_NAME} cannot be understood ({error})")],
            remedy: "Continue with the version of this program that wrote it.".to_owned(),
        })
    }
}

/// Numbers as JSON numbers, and what JSON has no number for (infinities, NaN) as words.
mod exact {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    pub(super) enum Number {
        Finite(f64),
        Other(String),
    }

    impl From<f64> for Number {
        fn from(value: f64) -> Self {
            if value.is_finite() {
                Number::Finite(value)
            } else {
                Number::Other(value.to_string())
            }
        }
    }

    impl Number {
        pub(super) fn value(self) -> Result<f64, String> {
            match self {
                Number::Finite(value) => Ok(value),
                Number::Other(word) => word
                    .parse()
                    .map_err(|_| format!("{word:?} is not a number")),
            }
        }
    }

    pub(super) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        Number::from(*value).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Number::deserialize(deserializer)?
            .value()
            .map_err(serde::de::Error::custom)
    }
}

/// [`exact`] for numbers that may be missing.
mod exact_option {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::exact::Number;

    pub(super) fn serialize<S: Serializer>(
        value: &Option<f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(Number::from).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<f64>, D::Error> {
        let number = Option::<Number>::deserialize(deserializer)?;
        number
            .map(Number::value)
            .transpose()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(state: &TrainState) -> TrainState {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE_NAME), state.to_json()).unwrap();
        TrainState::load(dir.path()).unwrap()
    }

    #[test]
    fn everything_comes_back() {
        let mut corpus = CorpusFingerprint::default();
        corpus.add("a.de", "training source", &["eins".to_owned()]);
        let state = TrainState {
            step: 12_345,
            micro_step: 3,
            best_score: Some(34.5),
            best_step: Some(12_000),
            tokens: u64::MAX,
            corpus,
            precision: Some(Precision::Bf16),
            ..TrainState::default()
        };
        assert_eq!(round_trip(&state), state);
    }

    #[test]
    fn a_state_of_an_earlier_version_is_understood() {
        let text = r#"{"step": 7, "src_tokens": 90, "tgt_tokens": 80, "val_bleu": 12.5,
            "recipe_fingerprint": "abc", "src_tokenizer": "d", "tgt_tokenizer": "e"}"#;
        let expected = TrainState {
            step: 7,
            tokens: 80,
            val_metrics: BTreeMap::from([("bleu".to_owned(), 12.5)]),
            ..TrainState::default()
        };
        assert_eq!(TrainState::from_json(text).unwrap(), expected);
        let none = TrainState::from_json(r#"{"val_bleu": null}"#).unwrap();
        assert_eq!(none, TrainState::default());
        assert!(TrainState::from_json(r#"{"of_a_later_version": 1}"#).is_err());
    }

    #[test]
    fn infinities_and_nan_come_back_too() {
        let state = TrainState {
            micro_loss: f64::INFINITY,
            epoch_loss: f64::NEG_INFINITY,
            train_loss: Some(f64::NAN),
            ..TrainState::default()
        };
        let back = round_trip(&state);
        assert_eq!(
            (back.micro_loss, back.epoch_loss),
            (f64::INFINITY, f64::NEG_INFINITY)
        );
        assert!(back.train_loss.is_some_and(f64::is_nan));
    }

    #[test]
    fn a_state_that_is_no_json_names_the_checkpoint() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE_NAME), "{\"step\": ").unwrap();
        let message = TrainState::load(dir.path()).unwrap_err().to_string();
        assert!(
            message.contains("state.json") && message.contains("damaged"),
            "{message}"
        );
    }

    proptest! {
        #[test]
        fn every_number_comes_back_to_the_last_bit(bits: u64, other: u64) {
            let state = TrainState {
                epoch_loss: f64::from_bits(bits),
                best_score: Some(f64::from_bits(other)),
                ..TrainState::default()
            };
            prop_assume!(!state.epoch_loss.is_nan() && !f64::from_bits(other).is_nan());
            let back = round_trip(&state);
            prop_assert_eq!(back.epoch_loss.to_bits(), bits);
            prop_assert_eq!(back.best_score.map(f64::to_bits), Some(other));
        }
    }
}
