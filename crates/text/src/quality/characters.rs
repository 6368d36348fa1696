//! Characters that text should not have: the traces of wrong encodings, and what nobody sees.
//!
//! Each trouble has a test and a repair, so that `doctor` counts what `clean` repairs. Bytes that are no UTF-8 at all
//! cannot be repaired without knowing what they were; `pairs` finds those.

use std::borrow::Cow;

use unicode_normalization_alignments::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::lines::BYTE_ORDER_MARK;

/// What a decoder writes where it found no character: something is lost.
pub const REPLACEMENT: char = '\u{FFFD}';

/// Whether a line has a character that nobody sees, or one that says that something was lost.
///
/// Tabs, joiners (emoji and Persian need them) and marks of direction are none of these.
pub fn has_controls(line: &str) -> bool {
    // All of them are control characters of ASCII, or begin with a byte above it.
    let suspicious = |byte: u8| byte >= 0x80 || (byte < 0x20 && byte != b'\t') || byte == 0x7f;
    line.bytes().any(suspicious) && line.chars().any(|c| is_control(c) || c == REPLACEMENT)
}

/// The line without them, a line separator as a space; `None` if a replacement character says that the line is damaged.
pub fn without_controls(line: &str) -> Option<String> {
    if line.contains(REPLACEMENT) {
        return None;
    }
    let separator = |c: char| {
        matches!(
            c,
            '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let spaced = line.chars().map(|c| if separator(c) { ' ' } else { c });
    Some(spaced.filter(|c| !is_control(*c)).collect())
}

fn is_control(c: char) -> bool {
    match c {
        '\t' => false,
        // Zero-width space, soft hyphen, line and paragraph separators, private use.
        '\u{200B}' | '\u{AD}' | '\u{2028}' | '\u{2029}' | BYTE_ORDER_MARK => true,
        '\u{E000}'..='\u{F8FF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{FFFE}' | '\u{FFFF}' => true,
        c => c.is_control(),
    }
}

/// Whether the line is not in Unicode's composed form, NFC: then the same word has two spellings.
pub fn is_not_nfc(line: &str) -> bool {
    !line.is_ascii()
        && match is_nfc_quick(line.chars()) {
            IsNormalized::Yes => false,
            IsNormalized::No => true,
            IsNormalized::Maybe => nfc(line) != line,
        }
}

/// The line in NFC.
pub fn nfc(line: &str) -> String {
    line.nfc().map(|(c, _)| c).collect()
}

/// Whether a part of the line is UTF-8 that was read as Windows-1252 or Latin-1: `Ã¼` for `ü`.
pub fn has_mojibake(line: &str) -> bool {
    matches!(without_mojibake(line), Cow::Owned(_))
}

/// The line with such parts read as UTF-8.
pub fn without_mojibake(line: &str) -> Cow<'_, str> {
    // UTF-8 of two bytes and more begins with one of these.
    if line.is_ascii() || !line.contains(|c| matches!(c, '\u{C2}'..='\u{F4}')) {
        return Cow::Borrowed(line);
    }
    let mut repaired = String::new();
    let mut copied = 0;
    let mut at = 0;
    while at < line.len() {
        match mojibake_at(&line[at..]) {
            Some((c, length)) => {
                repaired.push_str(&line[copied..at]);
                repaired.push(c);
                at += length;
                copied = at;
            }
            None => at += line[at..].chars().next().map_or(1, char::len_utf8),
        }
    }
    if copied == 0 {
        return Cow::Borrowed(line);
    }
    repaired.push_str(&line[copied..]);
    Cow::Owned(repaired)
}

/// The character that the beginning of a text was, and how many bytes of the text it became.
fn mojibake_at(text: &str) -> Option<(char, usize)> {
    let mut chars = text.chars();
    let first = byte_of(chars.next()?)?;
    let more = match first {
        0xC2..=0xDF => 1,
        0xE0..=0xEF => 2,
        0xF0..=0xF4 => 3,
        _ => return None,
    };
    let mut bytes = [first, 0, 0, 0];
    for byte in &mut bytes[1..=more] {
        *byte = byte_of(chars.next()?).filter(|byte| (0x80..0xC0).contains(byte))?;
    }
    let was = std::str::from_utf8(&bytes[..=more]).ok()?.chars().next()?;
    // What text has often; the rest is chance, as a French `à` before a space and a quotation mark.
    let usual = match was {
        '\u{A0}'..='\u{17F}' | '\u{2010}'..='\u{2044}' | '€' | '™' | '\u{FEFF}' => true,
        // A letter with its sign of the next, as in `Î±`: Greek and Cyrillic.
        '\u{370}'..='\u{45F}' => was.is_alphabetic(),
        '\u{1F300}'..='\u{1FAFF}' => true,
        _ => false,
    };
    usual.then(|| (was, text.len() - chars.as_str().len()))
}

/// The byte that Windows-1252 has for a character, from 0x80; control characters are their own, as in Latin-1.
fn byte_of(c: char) -> Option<u8> {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8D}', 'Ž',
        '\u{8F}', '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9D}',
        'ž', 'Ÿ',
    ];
    match c {
        '\u{80}'..='\u{FF}' => Some(c as u8),
        _ => HIGH
            .iter()
            .position(|high| *high == c)
            .map(|index| 0x80 + index as u8),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What becomes of text that is written as UTF-8 and read as Windows-1252.
    fn misread(text: &str) -> String {
        let byte = |byte: u8| {
            (0..=0xFFFF)
                .filter_map(char::from_u32)
                .find(|c| byte_of(*c) == Some(byte))
        };
        text.bytes()
            .map(|b| {
                if b < 0x80 {
                    b as char
                } else {
                    byte(b).expect("every byte has a character")
                }
            })
            .collect()
    }

    #[test]
    fn text_that_was_misread_is_found_and_comes_back() {
        for text in [
            "schöne Grüße",
            "„Weiß“ – naïve café…",
            "Zażółć gęślą jaźń",
            "über 5 € ☀ 😀",
            "Ελλάδα, Москва",
        ] {
            let wrong = misread(text);
            assert!(has_mojibake(&wrong), "{wrong}");
            if !text.contains('☀') {
                assert_eq!(without_mojibake(&wrong), text);
            }
            assert!(!has_mojibake(text), "{text}");
        }
    }

    #[test]
    fn right_text_is_not_taken_for_misread_text() {
        for text in [
            "« voilà\u{a0}» dit-il",
            "CAFÉ… ÎLE, Ôtez ça",
            "„Übermaß“",
            "Ångström’s Œuvre",
            "À «moi»",
            "Große Äpfel – schöne Öfen",
            "São Paulo, coração, irmã",
            "Łódź",
            "ÄÖÜäöüß",
        ] {
            assert!(!has_mojibake(text), "{text} -> {}", without_mojibake(text));
        }
    }

    #[test]
    fn what_nobody_sees_is_found_and_removed() {
        for (line, repaired) in [
            ("a\u{7}b", Some("ab")),
            ("a\u{200b}b\u{ad}c", Some("abc")),
            ("\u{feff}x", Some("x")),
            ("a\u{2028}b\rc", Some("a b c")),
            ("lost \u{fffd}", None),
            ("mark \u{e000}", Some("mark ")),
            ("\u{85}\u{9d}", Some(" ")),
        ] {
            assert!(has_controls(line), "{line:?}");
            assert_eq!(without_controls(line).as_deref(), repaired, "{line:?}");
        }
        for line in [
            "tab\tbed",
            "👨‍👩‍👧",
            "می‌خواهم",
            "\u{200f}שלום",
            "ä – “x”\u{a0}!",
        ] {
            assert!(!has_controls(line), "{line:?}");
        }
    }

    #[test]
    fn two_characters_for_one_letter_are_found() {
        assert!(is_not_nfc("scho\u{308}n") && nfc("scho\u{308}n") == "schön");
        assert!(!is_not_nfc("schön") && !is_not_nfc("plain"));
        assert!(!is_not_nfc("x\u{302}"), "has no composed form");
    }

    proptest! {
        #[test]
        fn any_text_is_repaired_without_a_panic_and_repairs_hold(line in "\\PC*|(?s:.)*") {
            let repaired = without_mojibake(&line).into_owned();
            let composed = nfc(&repaired);
            prop_assert!(!is_not_nfc(&composed));
            if let Some(clean) = without_controls(&line) {
                prop_assert!(!has_controls(&clean));
            }
        }
    }
}
