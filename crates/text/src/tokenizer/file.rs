//! Tokenizer files: which kind of tokenizer a file holds.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::subword::SubwordTokenizer;
use super::words::WordTokenizer;
use super::{Inner, SentencePiece, Tokenizer, imported};
use crate::error::{Result, TextError};

pub(super) fn load(path: &Path) -> Result<Tokenizer> {
    let bytes = fs::read(path).map_err(|source| TextError::Open {
        path: path.to_path_buf(),
        source,
    })?;
    from_bytes(&bytes, path)
}

/// The tokenizer that these bytes of a file are.
pub(super) fn from_bytes(bytes: &[u8], path: &Path) -> Result<Tokenizer> {
    // The first field of a SentencePiece file has this tag; JSON may begin with it as a line end.
    if bytes.first() == Some(&b'\n') && !bytes.trim_ascii_start().starts_with(b"{") {
        let model = SentencePiece::from_bytes(bytes, path)?;
        return Ok(Tokenizer(Inner::SentencePiece(Arc::new(model))));
    }
    parse(bytes)
        .map(Tokenizer)
        .map_err(|problem| TextError::TokenizerFile {
            path: path.to_path_buf(),
            problem,
        })
}

fn parse(bytes: &[u8]) -> std::result::Result<Inner, String> {
    let json =
        std::str::from_utf8(bytes).map_err(|error| format!("it is not a text file ({error})"))?;
    // A list would be read as an object whose keys were left out.
    let keys = if json.trim_start().starts_with('{') {
        serde_json::from_str(json)
    } else {
        serde_json::from_str(json).map(|IgnoredAny| Keys::default())
    };
    let keys: Keys = keys.map_err(|error| format!("it is not complete JSON ({error})"))?;
    let format = keys.format.as_ref();
    if format
        .and_then(Value::as_str)
        .is_some_and(imported::is_format)
    {
        imported::from_json(json)
    } else if format.is_some() {
        WordTokenizer::from_json(json).map(|words| Inner::Words(Arc::new(words)))
    } else if keys.model.is_some() {
        SubwordTokenizer::from_json(json).map(|subword| Inner::Subword(Arc::new(subword)))
    } else {
        Err(
            "it has neither a `format` (word lists, imported tokenizers) nor a `model` (subwords)"
                .to_owned(),
        )
    }
}

/// The keys that tell the families apart; reading no more than them is what makes loading fast.
#[derive(Default, Deserialize)]
struct Keys {
    format: Option<Value>,
    model: Option<IgnoredAny>,
}
