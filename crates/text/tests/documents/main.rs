//! Documents: what is not translated stays to the last byte, and what is written is read again as it was meant.
//!
//! `real_files_come_back` takes a folder of real files from `ATTENTIVE_DOCUMENTS` and is skipped without it.

mod archives;
mod damaged;
mod real_files;

use std::path::Path;

use attentive_text::documents::{Document, Format};
use attentive_text::markup::{Marked, Part};

/// Reads a document, which must be one.
fn read(format: Format, bytes: impl Into<Vec<u8>>) -> Document {
    let name = format!("test.{}", format.endings()[0]);
    Document::read(Path::new(&name), bytes.into(), format).unwrap_or_else(|error| panic!("{error}"))
}

fn texts(document: &Document) -> Vec<String> {
    document.texts().iter().map(Marked::text).collect()
}

/// A text in another language: letters of ASCII are moved by 13 places, which keeps everything else.
fn rot13(text: &str) -> String {
    let moved = |c: char| match c {
        'a'..='m' | 'A'..='M' => (c as u8 + 13) as char,
        'n'..='z' | 'N'..='Z' => (c as u8 - 13) as char,
        other => other,
    };
    text.chars().map(moved).collect()
}

/// Every text in this language, with its tags where they were.
fn in_rot13(texts: &[Marked]) -> Vec<Marked> {
    let part = |part: &Part| match part {
        Part::Text(text) => Part::Text(rot13(text)),
        other => other.clone(),
    };
    let text = |text: &Marked| Marked {
        parts: text.parts.iter().map(part).collect(),
    };
    texts.iter().map(text).collect()
}

/// Reads a document, writes it with its own texts and with others, and reads that again.
fn check(name: &Path, bytes: &[u8], format: Format) -> Result<usize, String> {
    let document =
        Document::read(name, bytes.to_vec(), format).map_err(|error| error.to_string())?;
    let same = document.write(document.texts(), Some("en"));
    let same = same.map_err(|error| error.to_string())?;
    if same != bytes {
        return Err(format!("{}: it is not byte-equal", name.display()));
    }
    let new = in_rot13(document.texts());
    let written = document
        .write(&new, Some("en"))
        .map_err(|error| error.to_string())?;
    let again = Document::read(name, written.clone(), format);
    let again = again.map_err(|error| format!("{error}, after writing"))?;
    // There, the translation is not what is read.
    let is_catalog = matches!(format, Format::Po | Format::Xliff);
    let expected = if is_catalog { document.texts() } else { &new };
    // White space is not compared, nor where lines of plain text end: they are wrapped again.
    let own = |texts: &[Marked]| -> Vec<String> {
        let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let texts = texts.iter().map(|text| words(text.text()));
        if format == Format::Text {
            return vec![texts.collect::<Vec<_>>().join(" ")];
        }
        texts.collect()
    };
    let (expected, found) = (own(expected), own(again.texts()));
    let first = expected
        .iter()
        .zip(&found)
        .position(|(one, other)| one != other);
    let first =
        first.or((expected.len() != found.len()).then_some(expected.len().min(found.len())));
    if let Some(first) = first.filter(|_| !is_catalog) {
        return Err(format!(
            "{}: text {first} of {} and {} was written as {:?} and read as {:?}",
            name.display(),
            expected.len(),
            found.len(),
            expected.get(first),
            found.get(first)
        ));
    }
    Ok(document.texts().len())
}
