//! Files that are read whole, each up to a size that no such file has: settings, and files of tokenizers.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value;

use super::{bad_json, refused};
use crate::error::{ConvertError, Result};

/// Settings, mappings and lists of weights take some kilobytes.
const SETTINGS: u64 = 16 << 20;
/// The largest tokenizers take some ten megabytes. The files of plain vocabularies have the same limit
/// (`attentive_text::tokenizer::vocabulary_file`).
const TOKENIZER: u64 = 256 << 20;

/// The bytes of a file of settings.
pub(super) fn settings(path: &Path) -> Result<Vec<u8>> {
    read(path, SETTINGS, "settings")
}

/// The bytes of a file of a tokenizer.
pub(super) fn tokenizer(path: &Path) -> Result<Vec<u8>> {
    read(path, TOKENIZER, "a tokenizer")
}

/// Settings in JSON.
pub(super) fn json(path: &Path) -> Result<Value> {
    let wrong = |error| bad_json(path, "a JSON object", &error);
    serde_json::from_slice(&settings(path)?).map_err(wrong)
}

/// A tokenizer in JSON, and its text.
pub(super) fn tokenizer_json(path: &Path) -> Result<(Value, String)> {
    let bytes = tokenizer(path)?;
    let wrong = |error| bad_json(path, "a JSON object", &error);
    let value = serde_json::from_slice(&bytes).map_err(wrong)?;
    // JSON that was read is UTF-8.
    Ok((value, String::from_utf8_lossy(&bytes).into_owned()))
}

fn read(path: &Path, largest: u64, what: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(ConvertError::io("open", path))?;
    file.take(largest + 1)
        .read_to_end(&mut bytes)
        .map_err(ConvertError::io("read", path))?;
    if bytes.len() as u64 > largest {
        let found = format!("a file of more than {} MiB", largest >> 20);
        let remedy = format!("no file of {what} is so large; copy or download the file again");
        return Err(refused(path, format!("as {what}"), found, &remedy));
    }
    Ok(bytes)
}
