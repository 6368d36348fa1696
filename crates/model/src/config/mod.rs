//! The configuration of each model family: plain values, checked before any tensor exists.
//!
//! A family is a struct that implements [`ModelConfig`]: [`TransformerConfig`] for the encoder-decoder of
//! the paper, [`GptConfig`] for its decoder alone, [`BertConfig`] for its encoder alone, [`RecurrentConfig`]
//! for what came before it. [`AnyConfig`] holds the configuration of whichever family.
//! `config.json` of a model directory holds one, with `"format"` and, for every family but the
//! Transformer, `"family"`. Sections refer to "Attention Is All You Need".

mod bert;
mod family;
mod gpt;
mod preset;
mod recurrent;
mod transformer;

use std::fs;
use std::path::Path;

use attentive_text::special::SPECIALS;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use bert::{BertConfig, BertHead, Pooler, TokenPruning};
pub use family::{AnyConfig, Family};
pub use gpt::GptConfig;
pub use preset::Preset;
pub use recurrent::{Context, RecurrentConfig};
pub use transformer::TransformerConfig;

use crate::durable;
use crate::error::{ModelError, Result};
use crate::tensors::TensorSpec;

/// The architecture of one model of some family.
pub trait ModelConfig: Serialize + DeserializeOwned + Clone {
    /// Which family it is.
    const FAMILY: Family;

    /// Keys that the tokenizers decide, and so no recipe has.
    const VOCABULARIES: &'static [&'static str];

    /// This configuration, if `any` is of this family.
    fn of(any: &AnyConfig) -> Option<&Self>;

    /// The configuration of a named size, with empty vocabularies.
    fn from_preset(preset: Preset) -> Self;

    /// This configuration with a value for each key that is otherwise left out where it has its usual value.
    fn with_every_key(self) -> Self {
        self
    }

    /// How many tokens are read and written, if the family has tokens at all.
    fn vocabularies(&self) -> Option<(usize, usize)>;

    /// The same architecture for vocabularies of these sizes; a family with one vocabulary takes the second.
    fn with_vocabularies(self, src: usize, tgt: usize) -> Self;

    /// The width of the layers, `d_model`, by which the learning rate of the `noam` schedule is scaled.
    fn width(&self) -> usize;

    /// Every problem of this configuration at once, each a sentence that names the keys and their values.
    fn check(&self) -> std::result::Result<(), Vec<String>>;

    /// Every tensor of the model, in the order of the weights file.
    fn tensors(&self) -> Vec<TensorSpec>;
}

/// Where the layer normalization stands in a sub-layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NormPlacement {
    /// `x + f(LN(x))` with a final norm on each side (the Annotated Transformer).
    Pre,
    /// `LN(x + f(x))` (the paper, §3.1).
    Post,
}

/// How a token's position in the sentence enters its embedding (§3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PositionKind {
    /// The paper's fixed sines and cosines, for any length: sine and cosine of `p / 10000^(2i / d_model)` side by
    /// side.
    Sinusoidal,
    /// The same numbers in another order: first all sines, then all cosines (Hugging Face's Marian models).
    SinusoidalHalves,
    /// First all sines, then all cosines of `p * exp(-i ln(10000) / (d_model / 2 - 1))`: `get_timing_signal_1d` of
    /// tensor2tensor, and with it Marian, fairseq and CTranslate2.
    TimingSignal,
    /// A trained vector per position, up to `max_positions`.
    Learned,
}

impl PositionKind {
    /// The vector of one position (§3.5); for sinusoids only.
    pub fn sinusoid(self, position: usize, d_model: usize) -> impl Iterator<Item = f32> {
        let half = d_model / 2;
        // Over how many pairs of sine and cosine the wave length grows to 10000 times the first.
        let pairs = match self {
            Self::TimingSignal => half as f64 - 1.0,
            _ => half as f64,
        };
        (0..d_model).map(move |column| {
            let (pair, is_sine) = match self {
                Self::Sinusoidal => (column / 2, column % 2 == 0),
                _ => (column % half, column < half),
            };
            // In log space, as in the Annotated Transformer.
            let angle = position as f64 * (-(10_000f64.ln()) * (pair as f64 / pairs)).exp();
            (if is_sine { angle.sin() } else { angle.cos() }) as f32
        })
    }
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

/// The function between the two linear layers of a feed-forward network (§3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// `max(0, x)`, the paper's.
    #[default]
    Relu,
    /// `x * sigmoid(x)`, also called SiLU.
    Swish,
    /// `x * Phi(x)` with the normal distribution's `Phi`, by the error function.
    Gelu,
    /// GELU approximated by a hyperbolic tangent: `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))`.
    GeluTanh,
    /// GELU approximated by a sigmoid: `x * sigmoid(1.702 x)`.
    GeluSigmoid,
}

/// Whether embeddings are normalized before the first layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmbeddingNorm {
    /// As in the paper.
    #[default]
    None,
    /// One layer normalization for each side, behind the positions.
    LayerNorm,
}

/// Whether a stack ends in a normalization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinalNorm {
    /// With [`NormPlacement::Pre`], not with [`NormPlacement::Post`].
    #[default]
    Auto,
    /// Neither stack.
    None,
    /// Both stacks.
    LayerNorm,
}

/// How a decoder layer looks back at the target so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Autoregression {
    /// Masked self-attention, the paper's.
    #[default]
    SelfAttention,
    /// A simpler simple recurrent unit ("From Research to Production and Back", Kim et al. 2019, §3.2): one vector
    /// `c` per layer instead of all keys and values. `f = sigmoid(x Wf + bf)`, `c = f * c + (1 - f) * (x W)`, and
    /// `relu(c)` is what the layer adds to its input. `c` is 0 before the first token.
    Ssru,
}

/// Raised whenever files of the new kind could no longer be read by an older program.
const FORMAT: u64 = 1;

/// Larger sizes are typing errors, and would overflow the arithmetic on shapes.
const LARGEST_SIZE: usize = 1 << 24;

/// Keys whose default is what every file without them means are not written.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Every problem of a configuration, each a sentence that names the keys and their values.
#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn require(&mut self, holds: bool, problem: String) {
        if !holds {
            self.0.push(problem);
        }
    }

    /// Of a key that counts something there must be one of.
    fn size(&mut self, key: &str, size: usize) {
        let problem = format!("`model.{key}` (0) must be at least 1");
        self.require(size > 0, problem);
        self.at_most_largest(key, size);
    }

    fn vocabulary(&mut self, key: &str, size: usize) {
        let specials = SPECIALS.len();
        let problem =
            format!("`model.{key}` ({size}) must be more than the {specials} special tokens");
        self.require(size > specials, problem);
        self.at_most_largest(key, size);
    }

    fn at_most_largest(&mut self, key: &str, size: usize) {
        let problem = format!("`model.{key}` ({size}) must be at most {LARGEST_SIZE}");
        self.require(size <= LARGEST_SIZE, problem);
    }

    fn dropout(&mut self, dropout: f64) {
        let problem = format!("`model.dropout` ({dropout}) must be at least 0 and less than 1");
        self.require((0.0..1.0).contains(&dropout), problem);
    }

    fn norm_epsilon(&mut self, epsilon: f64) {
        let problem = format!("`model.norm_epsilon` ({epsilon}) must be a small positive number");
        self.require(epsilon > 0.0 && epsilon.is_finite(), problem);
    }

    fn found(self) -> std::result::Result<(), Vec<String>> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(self.0)
        }
    }
}

/// Reads `config.json` and checks it.
pub fn read<C: ModelConfig>(path: &Path) -> Result<C> {
    parse(path, &fs::read(path).map_err(ModelError::io("read", path))?)
}

/// Whether a `config.json` states a format, whichever, and so is one of this program's.
pub(crate) fn has_format(path: &Path) -> bool {
    let json: Option<Value> = fs::read(path)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok());
    json.is_some_and(|json| json.get("format").is_some())
}

/// What the bytes of a `config.json` say; errors call it `path`.
pub fn parse<C: ModelConfig>(path: &Path, bytes: &[u8]) -> Result<C> {
    let (family, keys) = split(path, bytes)?;
    if family != C::FAMILY.name() {
        return Err(ModelError::WrongFamily {
            path: path.to_path_buf(),
            found: family,
            expected: C::FAMILY.name(),
        });
    }
    checked(path, C::deserialize(keys), C::check)
}

/// Reads a `config.json` of any family and checks it.
pub fn read_any(path: &Path) -> Result<AnyConfig> {
    let bytes = fs::read(path).map_err(ModelError::io("read", path))?;
    let (name, keys) = split(path, &bytes)?;
    let Some(family) = Family::ALL.into_iter().find(|family| family.name() == name) else {
        let known = Family::ALL.map(Family::name).join(", ");
        return Err(ModelError::BadConfigFile {
            path: path.to_path_buf(),
            reason: format!("the family {name} is unknown; this program knows {known}"),
        });
    };
    checked(path, AnyConfig::of_family(family, keys), AnyConfig::check)
}

/// The family that the bytes of a `config.json` name, and the keys of its configuration.
fn split(path: &Path, bytes: &[u8]) -> Result<(String, Value)> {
    let bad = |reason| ModelError::BadConfigFile {
        path: path.to_path_buf(),
        reason,
    };
    let mut json: Value = serde_json::from_slice(bytes).map_err(|error| bad(error.to_string()))?;
    let Some(object) = json.as_object_mut() else {
        return Err(bad("expected a JSON object".to_string()));
    };
    // The format comes first: with another one, no other complaint would make sense.
    let format = object.shift_remove("format").unwrap_or(Value::Null);
    if format != FORMAT {
        return Err(ModelError::ConfigFormat {
            path: path.to_path_buf(),
            found: format.to_string(),
            expected: FORMAT,
        });
    }
    let family = match object.shift_remove("family") {
        None => Family::default().name().to_string(),
        Some(Value::String(family)) => family,
        Some(other) => other.to_string(),
    };
    Ok((family, json))
}

/// A configuration that was read, if it describes a possible model.
fn checked<C>(
    path: &Path,
    read: serde_json::Result<C>,
    check: impl Fn(&C) -> std::result::Result<(), Vec<String>>,
) -> Result<C> {
    let config = read.map_err(|error| ModelError::BadConfigFile {
        path: path.to_path_buf(),
        reason: error.to_string(),
    })?;
    check(&config).map_err(|problems| ModelError::ImpossibleModel {
        path: path.to_path_buf(),
        problems,
    })?;
    Ok(config)
}

/// Writes `config.json`, whole or not at all.
pub fn write<C: ModelConfig>(path: &Path, config: &C) -> Result<()> {
    let mut keys = serde_json::Map::from_iter([("format".to_string(), FORMAT.into())]);
    if C::FAMILY != Family::default() {
        keys.insert("family".to_string(), C::FAMILY.name().into());
    }
    match serde_json::to_value(config) {
        Ok(Value::Object(object)) => keys.extend(object),
        other => {
            return Err(ModelError::BadConfigFile {
                path: path.to_path_buf(),
                reason: format!("cannot be written as a JSON object: {other:?}"),
            });
        }
    }
    let text = format!("{:#}\n", Value::Object(keys));
    durable::write(path, text.as_bytes()).map_err(ModelError::io("write", path))
}
