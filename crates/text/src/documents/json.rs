//! JSON string tables: every string that is a value is a text, keys and everything else stay.
//!
//! `serde_json` checks the file; then strings are found in it by their quotes. One with ICU plural or select forms is
//! left to people, because other languages have other forms.

use std::ops::Range;

use serde::de::IgnoredAny;

use super::plain::{Value, is_identifier};
use super::skipped::Reason;
use super::template::Template;
use super::{Problem, start_of};

/// Reads JSON.
pub(crate) fn read(source: String) -> Result<Template, Problem> {
    let start = start_of(&source);
    if let Err(error) = serde_json::from_str::<IgnoredAny>(&source[start..]) {
        return Err(Problem {
            line: Some(error.line().max(1)),
            problem: format!(
                "this is not valid JSON: {error}; repair the file, or use --format text to translate its lines"
            ),
        });
    }
    let escapes = if source.is_ascii() && source.contains("\\u") {
        Escapes::Ascii
    } else {
        Escapes::Few
    };
    let mut values = Vec::new();
    let mut skipped = Vec::new();
    for range in values_of(&source, start) {
        let Ok(text) = serde_json::from_str::<String>(&source[range.clone()]) else {
            continue;
        };
        match unsuited(&text) {
            Some(reason) => skipped.push((range.start, reason)),
            None => values.push((range, Value::new(&text))),
        }
    }
    let mut template = Template::new(source);
    for (range, (value, texts)) in values {
        template.add(range, texts, move |texts, _| {
            escapes.quoted(&value.filled(texts))
        });
    }
    for (offset, reason) in skipped {
        template.skip(offset, reason);
    }
    Ok(template.finished())
}

/// Why a string of a table is not translated.
pub(crate) fn unsuited(text: &str) -> Option<Reason> {
    if has_icu_forms(text) {
        Some(Reason::IcuForms)
    } else if is_identifier(text) && super::block::is_text(text) {
        Some(Reason::Identifier)
    } else {
        None
    }
}

/// Whether a message chooses between forms: `{count, plural, one {...} other {...}}`.
fn has_icu_forms(text: &str) -> bool {
    text.match_indices('{').any(|(place, _)| {
        let mut words = text[place + 1..].splitn(3, ',');
        let (_, kind, rest) = (words.next(), words.next(), words.next());
        rest.is_some()
            && kind.is_some_and(|kind| matches!(kind.trim(), "plural" | "select" | "selectordinal"))
    })
}

/// Where the strings of valid JSON are that are not keys, with their quotes.
fn values_of(source: &str, start: usize) -> Vec<Range<usize>> {
    let bytes = source.as_bytes();
    let mut found = Vec::new();
    let mut place = start;
    while place < bytes.len() {
        if bytes[place] != b'"' {
            place += 1;
            continue;
        }
        let first = place;
        place += 1;
        while place < bytes.len() && bytes[place] != b'"' {
            place += 1 + usize::from(bytes[place] == b'\\');
        }
        place = (place + 1).min(bytes.len());
        let after = bytes[place..]
            .iter()
            .find(|byte| !byte.is_ascii_whitespace());
        if after != Some(&b':') {
            found.push(first..place);
        }
    }
    found
}

/// Which characters are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escapes {
    /// Those that must be.
    Few,
    /// All but ASCII, as in the rest of the file.
    Ascii,
}

impl Escapes {
    /// A string with its quotes.
    fn quoted(self, text: &str) -> String {
        let quoted = serde_json::Value::from(text).to_string();
        if self == Self::Few || quoted.is_ascii() {
            return quoted;
        }
        let mut ascii = String::new();
        for c in quoted.chars() {
            if c.is_ascii() {
                ascii.push(c);
            } else {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    ascii.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
        ascii
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markup::Marked;

    #[test]
    fn values_are_texts_and_keys_are_not() {
        let source = "\u{FEFF}{ \"key\" : \"Ein \\\"Hund\\\"\\n\", \"n\": [1, \"Zwei\", \"user_name\", null],\n \"k\":\"\"}";
        let template = read(source.to_owned()).unwrap();
        let texts: Vec<String> = template.texts.iter().map(Marked::text).collect();
        assert_eq!(texts, ["Ein \"Hund\"", "Zwei"]);
        assert_eq!(template.skipped.len(), 1);
        let new = [Marked::plain("A \\ \"dog\""), Marked::plain("Two")];
        let filled = template.fill(&template.texts, &new);
        let expected = source
            .replace("Ein \\\"Hund\\\"", "A \\\\ \\\"dog\\\"")
            .replace("Zwei", "Two");
        assert_eq!(filled, expected);
    }

    #[test]
    fn a_file_in_ascii_stays_one() {
        let template = read("{\"a\": \"sch\\u00f6n\"}".to_owned()).unwrap();
        let filled = template.fill(&template.texts, &[Marked::plain("grün 👍")]);
        assert_eq!(filled, "{\"a\": \"gr\\u00fcn \\ud83d\\udc4d\"}");
    }

    #[test]
    fn forms_are_left_to_people() {
        assert!(has_icu_forms(
            "{n, plural, one {# Datei} other {# Dateien}}"
        ));
        assert!(has_icu_forms("Hallo {x} {g, select, a {b} other {c}}"));
        assert!(!has_icu_forms("Hallo {name}, {date, number, x}, plural"));
    }
}
