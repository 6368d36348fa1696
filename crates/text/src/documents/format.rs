//! Which format a file has: said by its name, or by what it begins with.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{Result, TextError};

/// A format of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Plain text.
    Text,
    /// Markdown (CommonMark with tables, footnotes and strikethrough).
    Markdown,
    /// HTML.
    Html,
    /// XML in which the elements beside text are part of it.
    Xml,
    /// SubRip subtitles.
    Srt,
    /// WebVTT subtitles.
    Vtt,
    /// Message catalogs of gettext.
    Po,
    /// JSON in which every string value is a text.
    Json,
    /// YAML in which every string value is a text.
    Yaml,
    /// XLIFF 1.2 and 2.x.
    Xliff,
    /// Documents of Word.
    Docx,
    /// OpenDocument text.
    Odt,
}

/// Each format with its name and the endings of its files, the usual one first.
const FORMATS: [(Format, &str, &[&str]); 12] = [
    (Format::Text, "text", &["txt"]),
    (Format::Markdown, "markdown", &["md", "markdown"]),
    (Format::Html, "html", &["html", "htm", "xhtml"]),
    (Format::Xml, "xml", &["xml"]),
    (Format::Srt, "srt", &["srt"]),
    (Format::Vtt, "vtt", &["vtt"]),
    (Format::Po, "po", &["po", "pot"]),
    (Format::Json, "json", &["json"]),
    (Format::Yaml, "yaml", &["yaml", "yml"]),
    (Format::Xliff, "xliff", &["xlf", "xliff"]),
    (Format::Docx, "docx", &["docx", "docm", "dotx"]),
    (Format::Odt, "odt", &["odt", "ott"]),
];

impl Format {
    /// All formats.
    pub fn all() -> impl Iterator<Item = Self> {
        FORMATS.iter().map(|(format, ..)| *format)
    }

    /// The name that it is asked for by.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Endings of its files, without a dot; the usual one first.
    pub fn endings(self) -> &'static [&'static str] {
        self.row().2
    }

    fn row(self) -> &'static (Self, &'static str, &'static [&'static str]) {
        let row = FORMATS.iter().find(|(format, ..)| *format == self);
        row.expect("the table has every format")
    }

    /// The format with this name or ending.
    pub fn named(name: &str) -> Option<Self> {
        let is = |other: &&str| other.eq_ignore_ascii_case(name);
        let row = FORMATS
            .iter()
            .find(|(_, own, endings)| is(own) || endings.iter().any(is));
        row.map(|(format, ..)| *format)
    }

    /// The format that the ending of a name says.
    pub fn of_name(name: &Path) -> Option<Self> {
        Self::named(name.extension()?.to_str()?)
    }

    /// The format that the beginning of a file leaves no doubt about.
    pub fn of_content(head: &[u8]) -> Option<Self> {
        if head.starts_with(ZIP) {
            let has = |name: &str| {
                head.windows(name.len())
                    .any(|bytes| bytes == name.as_bytes())
            };
            if has("mimetypeapplication/vnd.oasis.opendocument.text") {
                return Some(Self::Odt);
            }
            let office = has("[Content_Types].xml") || has("word/");
            return office.then_some(Self::Docx);
        }
        let end = std::str::from_utf8(head).map_or_else(|error| error.valid_up_to(), str::len);
        let text = std::str::from_utf8(&head[..end]).ok()?;
        let text = text.trim_start_matches('\u{FEFF}').trim_start();
        let first = text.lines().next().unwrap_or_default().trim_end();
        let second = text.lines().nth(1).unwrap_or_default();
        if first == "WEBVTT" || first.starts_with("WEBVTT ") || first.starts_with("WEBVTT\t") {
            Some(Self::Vtt)
        } else if text.starts_with("<?xml") && text.contains("<xliff") {
            Some(Self::Xliff)
        } else if starts(text, "<!doctype html") || starts(text, "<html") {
            Some(Self::Html)
        } else if first.parse::<u32>().is_ok() && second.contains(" --> ") {
            Some(Self::Srt)
        } else {
            None
        }
    }

    /// The format that the name of a file says, or its beginning.
    pub fn of_file(path: &Path) -> Result<Option<Self>> {
        let named = Self::of_name(path);
        // A pipe could not be read again.
        if named.is_some() || !path.is_file() {
            return Ok(named);
        }
        let mut head = Vec::new();
        let read = File::open(path).and_then(|file| file.take(HEAD as u64).read_to_end(&mut head));
        read.map_err(|source| TextError::Open {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self::of_content(&head))
    }

    /// Whether its files are zip archives, which nobody wants to see on a terminal.
    pub fn is_archive(self) -> bool {
        matches!(self, Self::Docx | Self::Odt)
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

fn starts(text: &str, with: &str) -> bool {
    let start = text.get(..with.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(with))
}

/// What every zip archive that is not empty begins with.
pub(crate) const ZIP: &[u8] = b"PK\x03\x04";

/// So many bytes of a file are enough for [`Format::of_content`].
const HEAD: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_found_by_name_and_by_content() {
        for (name, format) in [
            ("a.TXT", Some(Format::Text)),
            ("a.b.md", Some(Format::Markdown)),
            ("x.yml", Some(Format::Yaml)),
            ("x.pot", Some(Format::Po)),
            ("test.de", None),
            ("docx", None),
        ] {
            assert_eq!(Format::of_name(Path::new(name)), format, "{name}");
        }
        for (head, format) in [
            (&b"\xEF\xBB\xBFWEBVTT - x\n"[..], Some(Format::Vtt)),
            (
                b"1\r\n00:00:01,000 --> 00:00:02,000\r\nHallo\r\n",
                Some(Format::Srt),
            ),
            (
                b"<?xml version='1.0'?>\n<xliff version='1.2'>",
                Some(Format::Xliff),
            ),
            (b"PK\x03\x04....[Content_Types].xml", Some(Format::Docx)),
            (b"<!DOCTYPE HTML>\n<p>", Some(Format::Html)),
            (b"Ein Satz.\n", None),
            (b"{\"a\": 1}", None),
            (b"", None),
            (b"\xFF\xFE", None),
        ] {
            assert_eq!(Format::of_content(head), format);
        }
        for format in Format::all() {
            assert_eq!(Format::named(format.name()), Some(format));
        }
    }
}
