//! Files to translate: which there are, and the text in them.

use std::path::Path;

use crate::http::body::File;
use crate::refusal::{Refusal, invalid};

/// Endings of the files that can be translated.
pub const EXTENSIONS: [&str; 1] = [".txt"];

/// The text of a file. One without a name is taken for what it holds.
pub fn text(file: &File) -> Result<String, Refusal> {
    if file.bytes.is_empty() {
        return Err(invalid("Invalid request: empty file"));
    }
    let unsupported = || invalid("Invalid request: file format not supported");
    let named = file
        .name
        .as_deref()
        .and_then(|name| Path::new(name).extension());
    if named.is_some_and(|ending| !ending.eq_ignore_ascii_case("txt")) {
        return Err(unsupported());
    }
    let text = std::str::from_utf8(&file.bytes).map_err(|_| unsupported())?;
    if text.contains('\0') {
        return Err(unsupported());
    }
    Ok(text.strip_prefix('\u{FEFF}').unwrap_or(text).to_owned())
}

/// `letter_en.txt` for `letter.txt`.
pub fn translated_name(file: &File, target: &str) -> String {
    let name = file.name.as_deref().unwrap_or("file.txt");
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str());
    format!("{}_{target}.txt", stem.unwrap_or("file"))
}
