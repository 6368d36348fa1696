//! Text as it can be shown: whatever a token holds, something visible and harmless comes out.
//!
//! Tokens come from outside and may hold anything: control characters that no XML file may hold,
//! escape sequences for a terminal, marks that turn the direction of what follows, accents without a
//! letter. All formats show labels that went through here; programs get the tokens as they are.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::fonts;

/// The text with everything visible: characters that cannot be shown as `U+XXXX`.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for cluster in text.graphemes(true) {
        if cluster.width() == 0 && cluster.chars().all(|c| !is_unsafe(c) && !is_joiner(c)) {
            // An accent without a letter.
            shown.push('◌');
        }
        let alone = cluster.width() == 0;
        for character in cluster.chars() {
            if is_unsafe(character) || (alone && is_joiner(character)) {
                shown.push_str(&format!("U+{:04X}", character as u32));
            } else {
                shown.push(character);
            }
        }
    }
    if shown.is_empty() {
        // A token may be empty once its spaces are gone.
        shown.push('␣');
    }
    shown
}

/// A visible text of at most so many columns; what is cut off leaves `…`.
pub fn shortened(text: &str, columns: usize) -> String {
    let text = visible(text);
    if text.width() <= columns {
        return text;
    }
    let mut short = String::new();
    for cluster in text.graphemes(true) {
        if short.width() + cluster.width() + 1 > columns {
            break;
        }
        short.push_str(cluster);
    }
    short.push('…');
    short
}

/// Characters that would change more than their own place, or that XML forbids.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{200E}' | '\u{200F}' | '\u{061C}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
            | '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
        || (character as u32) & 0xFFFE == 0xFFFE
}

/// Characters that only work between others, and are nothing alone.
fn is_joiner(character: char) -> bool {
    matches!(character, '\u{200B}'..='\u{200D}' | '\u{2060}'..='\u{2064}' | '\u{00AD}' | '\u{FE00}'..='\u{FE0F}')
        && character.width().unwrap_or(0) == 0
}

/// A text in lines that are at most so wide, in units of its size; a fourth line is not begun.
pub(crate) fn wrapped(text: &str, room: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in visible(text).split_whitespace() {
        let line = lines.last_mut().expect("there is always one");
        if !line.is_empty() && fonts::width(line) + fonts::width(word) + 0.4 > room {
            lines.push(word.to_owned());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    if lines.len() > 3 {
        lines.truncate(3);
        lines[2].push_str(" …");
    }
    lines.iter().map(|line| fitted(line, room)).collect()
}

/// A text that is at most so wide; one word may be wider than the page.
pub(crate) fn fitted(text: &str, room: f64) -> String {
    let mut columns = text.chars().count() * 2;
    let mut shown = text.to_owned();
    while fonts::width(&shown) > room && columns > 1 {
        columns -= 1;
        shown = shortened(text, columns);
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_cannot_be_seen_is_spelled_out() {
        for (text, expected) in [
            ("Haus", "Haus"),
            ("▁Haus", "▁Haus"),
            ("<script>", "<script>"),
            ("a\nb", "aU+000Ab"),
            ("\x1b[31m", "U+001B[31m"),
            ("\u{202E}abc", "U+202Eabc"),
            ("\u{0301}", "◌\u{0301}"),
            ("e\u{0301}", "e\u{0301}"),
            ("\u{200B}", "U+200B"),
            ("👩‍👧", "👩‍👧"),
            ("שלום", "שלום"),
            ("\u{FFFF}", "U+FFFF"),
            ("", "␣"),
        ] {
            assert_eq!(visible(text), expected, "{text:?}");
        }
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(shortened("Donaudampfschiff", 8), "Donauda…");
        assert_eq!(shortened("Haus", 4), "Haus");
        assert_eq!(shortened("日本語日本語", 6), "日本…");
        assert_eq!(shortened("👩‍👧👩‍👧👩‍👧", 5), "👩‍👧👩‍👧…");
    }

    proptest! {
        #[test]
        fn nothing_dangerous_comes_out(
            // Not `any::<String>()`, which leaves out control characters.
            text in proptest::collection::vec(any::<char>(), 0..20),
            columns in 2usize..20,
        ) {
            let text: String = text.into_iter().collect();
            let shown = shortened(&text, columns);
            prop_assert!(!shown.is_empty());
            prop_assert!(shown.width() <= columns, "{shown:?}");
            prop_assert!(shown.chars().all(|c| !is_unsafe(c)), "{shown:?}");
        }
    }
}
