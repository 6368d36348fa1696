//! The units between which tags can stand: words, punctuation, signs.
//!
//! Finer than what white space separates, so that a tag around `Welt` in `Welt!` comes back around `world` alone, and
//! so that languages without spaces have units, too. Links of an alignment are pairs of unit numbers; they outlast
//! a change of case, and the replacement of one unit by others is only a matter of counting.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// Where the units of a text are, from left to right; white space is none.
///
/// ```
/// use attentive_text::markup::units;
///
/// let text = "Hallo, Welt!";
/// let words: Vec<&str> = units(text).into_iter().map(|unit| &text[unit]).collect();
/// assert_eq!(words, ["Hallo", ",", "Welt", "!"]);
/// ```
pub fn units(text: &str) -> Vec<Range<usize>> {
    let bounds = text.split_word_bound_indices();
    let units = bounds.filter(|(_, unit)| !unit.chars().all(char::is_whitespace));
    units.map(|(at, unit)| at..at + unit.len()).collect()
}

/// For each token the units that it writes. `ends` says how many characters of the text, not counting white space,
/// end with each token. Where a tokenizer changes characters, so that they are more or fewer than those of the text,
/// they are spread over it evenly.
pub fn units_of_tokens(ends: &[usize], text: &str) -> Vec<Range<usize>> {
    let solid = |unit: Range<usize>| text[unit].chars().filter(|c| !c.is_whitespace()).count();
    let mut unit_ends = Vec::new();
    let mut chars = 0;
    for unit in units(text) {
        chars += solid(unit);
        unit_ends.push(chars);
    }
    let all = ends.last().copied().unwrap_or(0);
    let scaled = |end: usize| {
        if all == chars {
            end
        } else {
            (end * chars).div_ceil(all.max(1))
        }
    };
    let (mut unit, mut begin) = (0, 0);
    let of_token = |&end: &usize| {
        let end = scaled(end);
        if end <= begin {
            return unit..unit;
        }
        while unit_ends.get(unit).is_some_and(|&last| last <= begin) {
            unit += 1;
        }
        let first = unit;
        while unit_ends.get(unit).is_some_and(|&last| last < end) {
            unit += 1;
        }
        begin = end;
        first..(unit + 1).min(unit_ends.len())
    };
    ends.iter().map(of_token).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_write_the_units_that_their_characters_are_in() {
        // Wel|t!| |Ja|.|
        let text = "Welt! Ja.";
        assert_eq!(
            units_of_tokens(&[3, 5, 5, 7, 8], text),
            [0..1, 0..2, 1..1, 2..3, 3..4]
        );
        assert_eq!(units_of_tokens(&[2, 4, 6], "日本"), [0..1, 1..2, 1..1]);
        assert!(units_of_tokens(&[], "a").is_empty());
        assert_eq!(units_of_tokens(&[0, 3], ""), [0..0, 0..0]);
    }

    #[test]
    fn a_long_text_takes_no_longer_for_its_length() {
        for piece in [
            "a",
            "\u{301}",
            "🇩",
            "a'",
            "1,",
            "👩\u{200D}",
            "あ",
            " ",
            "ア",
        ] {
            let text = piece.repeat(200_000);
            assert!(units(&text).len() <= 200_000, "{piece}");
        }
    }
}
