//! Markup, placeholders, addresses and numbers: what should be the same on both sides, or not there at all.
//!
//! What these are is decided where translations keep them, in [`crate::keep`].

use crate::keep;

/// What of a line is copied, not translated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Copied<'a> {
    /// Tags, comments and entities.
    markup: usize,
    /// `{name}`, `%s`, addresses; sorted.
    placeholders: Vec<&'a str>,
}

/// Whether a side has tags or entities in it.
pub fn has_markup(src: &str, tgt: &str) -> bool {
    [src, tgt]
        .iter()
        .any(|side| may_have(side) && copied(side).markup > 0)
}

/// Whether a placeholder or an address stands on one side alone.
pub fn placeholders_differ(src: &str, tgt: &str) -> bool {
    (may_have(src) || may_have(tgt)) && copied(src).placeholders != copied(tgt).placeholders
}

/// Most lines have none, and are not searched.
fn may_have(line: &str) -> bool {
    line.bytes()
        .any(|byte| matches!(byte, b'<' | b'&' | b'{' | b'%' | b'@' | b'$'))
        || line.contains("://")
}

fn copied(line: &str) -> Copied<'_> {
    let mut copied = Copied::default();
    for span in keep::spans(line) {
        let item = &line[span];
        let address = item.contains("://") || (item.contains('@') && !item.starts_with('@'));
        match item.as_bytes()[0] {
            b'<' | b'&' => copied.markup += 1,
            b'{' | b'$' | b'%' => copied.placeholders.push(item),
            _ if address => copied.placeholders.push(item),
            _ => {}
        }
    }
    copied.placeholders.sort_unstable();
    copied
}

/// Whether the sides have other digits. Numbers are written in other orders and with other separators in other
/// languages, so digits are counted; one or two digits alone may be a word on the other side.
pub fn numbers_differ(src: &str, tgt: &str) -> bool {
    let (src, tgt) = (digits(src), digits(tgt));
    let (many_src, many_tgt) = (src.iter().sum::<u32>(), tgt.iter().sum::<u32>());
    let (fewer, more) = (many_src.min(many_tgt), many_src.max(many_tgt));
    src != tgt && (fewer > 0 || more >= MANY_DIGITS)
}

const MANY_DIGITS: u32 = 3;

fn digits(line: &str) -> [u32; 10] {
    let mut counts = [0; 10];
    for byte in line.bytes().filter(u8::is_ascii_digit) {
        counts[(byte - b'0') as usize] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_entities_are_markup() {
        assert!(has_markup("<b>Ein</b> Mann", "A man") && has_markup("x", "Tom &amp; Jerry"));
        assert!(!has_markup("3 < 4 & 5 > 2", "AT&T {x}"));
    }

    #[test]
    fn placeholders_belong_to_both_sides() {
        for (src, tgt, differ) in [
            ("Lösche {name} jetzt", "Delete {name} now", false),
            ("Lösche {name}", "Delete", true),
            ("%d von %s", "%s of %d", false),
            ("%d Dateien", "%s files", true),
            ("siehe https://a.de/x", "see https://a.de/y", true),
            ("50 % der Leute", "50% of people", false),
            ("@alice sagt", "alice says", false),
        ] {
            assert_eq!(placeholders_differ(src, tgt), differ, "{src} / {tgt}");
        }
    }

    #[test]
    fn digits_are_the_same_on_both_sides() {
        for (src, tgt, differ) in [
            ("am 3. Mai 2005", "on May 3, 2005", false),
            ("10.000,5", "10,000.5", false),
            ("drei Hunde", "3 dogs", false),
            ("im Jahr 1999", "in the year", true),
            ("17 Männer", "18 men", true),
        ] {
            assert_eq!(numbers_differ(src, tgt), differ, "{src} / {tgt}");
        }
    }
}
