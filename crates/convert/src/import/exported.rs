//! Models that this program exported for another one (`export`) come back as they were.
//!
//! Their `config.json` says under `attentive` what the other program's files do not say, and their ids are ours already.
//! The importers of the formats take their names and layouts apart, as those of every other model.

use std::path::Path;

use attentive_model::Tokenizers;
use attentive_model::config::TransformerConfig;
use attentive_model::generation::Generation;
use attentive_text::Tokenizer;
use attentive_text::special::{BOS, EOS, PAD, UNK};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::vocabulary::{Order, Specials, Start};
use super::{bad_json, whole_files};
use crate::error::Result;

/// What stands under `attentive` in an exported `config.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Exported {
    /// The architecture.
    pub config: TransformerConfig,
    /// How text is framed and searched.
    pub generation: Generation,
}

const EXPECTED: &str = "what `attentive export` wrote";

/// Our special ids.
pub(super) const SPECIALS: Specials = Specials {
    start: Start::Token(BOS),
    end: EOS,
    padding: Some(PAD),
    unknown: Some(UNK),
};

impl Exported {
    /// What an exported `config.json` says about our model; nothing if another program wrote it.
    pub fn of(path: &Path, config: &Value) -> Result<Option<Self>> {
        let Some(own) = config.get("attentive") else {
            return Ok(None);
        };
        let own = Self::deserialize(own).map_err(|error| bad_json(path, EXPECTED, &error))?;
        Ok(Some(own))
    }
}

/// The tokenizers of an exported folder, where they are files of ours.
pub(super) fn tokenizers(folder: &Path) -> Result<Option<Tokenizers>> {
    let fast = folder.join("tokenizer.json");
    if !fast.is_file() {
        let own = ["src.tokenizer.json", "src.tokenizer.spm", "tokenizer.spm"];
        let is_there = own.iter().any(|name| folder.join(name).is_file());
        return Ok(is_there.then(|| Tokenizers::load(folder)).transpose()?);
    }
    let src = tokenizer(&fast)?;
    let target = folder.join("target_tokenizer/tokenizer.json");
    let tgt = if target.is_file() {
        tokenizer(&target)?
    } else {
        src.clone()
    };
    Ok(Some(Tokenizers { src, tgt }))
}

/// The order of the rows of a table whose ids are ours.
pub(super) fn order(path: &Path, tokenizer: &Tokenizer, rows: usize) -> Result<Order> {
    let ids = 0..tokenizer.vocab_size() as u32;
    let tokens = ids.map(|id| {
        tokenizer
            .token(id)
            .expect("every id has a token")
            .to_owned()
    });
    Order::new(path, tokens.collect(), rows, SPECIALS)
}

/// A `tokenizer.json`, without what exporting added for the other program (`export/huggingface.rs`).
fn tokenizer(path: &Path) -> Result<Tokenizer> {
    let bytes = whole_files::tokenizer(path)?;
    let mut file: Value =
        serde_json::from_slice(&bytes).map_err(|error| bad_json(path, EXPECTED, &error))?;
    if file.get("post_processor").is_none_or(Value::is_null) {
        return Ok(Tokenizer::from_bytes(&bytes, path)?);
    }
    let first = |place: &str| file.pointer(place).cloned().unwrap_or_default();
    let normalizer = first("/normalizer/normalizers/0");
    let decoder = first("/decoder/decoders/0");
    file["post_processor"] = Value::Null;
    file["normalizer"] = normalizer;
    file["decoder"] = decoder;
    Ok(Tokenizer::from_bytes(file.to_string().as_bytes(), path)?)
}
