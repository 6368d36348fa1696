//! The `13a` tokenizer of mteval-v13a, which WMT scores with, and the punctuation rules that the `zh` and
//! TER tokenizers share with it.
//!
//! The rules are four replacements over the whole line, one after the other, each finding its matches
//! from left to right without overlap. All of them look at ASCII bytes only, so they run over bytes and
//! copy the text between matches as it is.

use std::borrow::Cow;

/// Splits punctuation off as mteval-v13a does; words are then separated by spaces.
pub(crate) fn tokenize_13a(line: &str) -> String {
    let mut line = Cow::Borrowed(line);
    for (from, to) in [("<skipped>", ""), ("-\n", ""), ("\n", " ")] {
        replace(&mut line, from, to);
    }
    unescape(&mut line);
    // The spaces at both ends let the rules see the first and the last character's neighbor.
    let mut padded = String::with_capacity(line.len() * 2);
    padded.push(' ');
    padded.push_str(&line);
    padded.push(' ');
    split_punctuation(padded)
}

/// Replaces four XML escapes, in this order, so that `&amp;lt;` becomes `<`.
pub(crate) fn unescape(line: &mut Cow<'_, str>) {
    if line.contains('&') {
        for (from, to) in [
            ("&quot;", "\""),
            ("&amp;", "&"),
            ("&lt;", "<"),
            ("&gt;", ">"),
        ] {
            replace(line, from, to);
        }
    }
}

/// Puts spaces around ASCII punctuation, around full stops and commas unless digits stand on both
/// sides, and around a dash after a digit.
pub(crate) fn split_punctuation(line: String) -> String {
    split_numbers(isolate_marks(&line))
}

/// Puts spaces around every ASCII mark but apostrophe, comma, dash and full stop.
pub(crate) fn isolate_marks(line: &str) -> String {
    let mut out = String::with_capacity(line.len() + 32);
    let mut copied = 0;
    for (i, &byte) in line.as_bytes().iter().enumerate() {
        if is_mark(byte) {
            out.push_str(&line[copied..i]);
            out.push(' ');
            out.push(char::from(byte));
            out.push(' ');
            copied = i + 1;
        }
    }
    out.push_str(&line[copied..]);
    out
}

/// Splits off full stops and commas that are not inside a number, and dashes after a digit.
pub(crate) fn split_numbers(line: String) -> String {
    let is_point = |byte: u8| matches!(byte, b'.' | b',');
    let after = |first: u8, second: u8| !first.is_ascii_digit() && is_point(second);
    let before = |first: u8, second: u8| is_point(first) && !second.is_ascii_digit();
    let dash = |first: u8, second: u8| first.is_ascii_digit() && second == b'-';
    let line = split_pairs(line, after, Side::Second);
    let line = split_pairs(line, before, Side::First);
    split_pairs(line, dash, Side::Second)
}

/// Which of two neighboring characters gets spaces around it.
#[derive(Clone, Copy)]
enum Side {
    First,
    Second,
}

/// Finds neighboring bytes that satisfy `matches`, without overlap, and isolates one of the two.
///
/// One of the two is always ASCII; where the other is part of a longer character, its last (or first)
/// byte stands for it, which no rule can tell from the character.
fn split_pairs(line: String, matches: impl Fn(u8, u8) -> bool, side: Side) -> String {
    let bytes = line.as_bytes();
    let mut out = String::new();
    let mut copied = 0;
    let mut i = 1;
    while i < bytes.len() {
        if !matches(bytes[i - 1], bytes[i]) {
            i += 1;
            continue;
        }
        let mark = match side {
            Side::First => i - 1,
            Side::Second => i,
        };
        out.push_str(&line[copied..mark]);
        out.push(' ');
        out.push(char::from(bytes[mark]));
        out.push(' ');
        copied = mark + 1;
        // Both characters are used up: the next pair begins behind them.
        i += 2;
    }
    if copied == 0 {
        return line;
    }
    out.push_str(&line[copied..]);
    out
}

fn is_mark(byte: u8) -> bool {
    matches!(byte, b'!'..=b'&' | b'('..=b'+' | b'/' | b':'..=b'@' | b'['..=b'`' | b'{'..=b'~')
}

fn replace(line: &mut Cow<'_, str>, from: &str, to: &str) {
    if line.contains(from) {
        *line = Cow::Owned(line.replace(from, to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        tokenize_13a(line)
            .split_whitespace()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn numbers_stay_whole_and_sentence_ends_come_off() {
        assert_eq!(words("It cost 3,000.50."), ["It", "cost", "3,000.50", "."]);
        assert_eq!(words("1-2, x-y"), ["1", "-", "2", ",", "x-y"]);
    }

    #[test]
    fn escapes_are_undone_before_splitting() {
        assert_eq!(words("&amp;lt; &quot;a&quot;"), ["<", "\"", "a", "\""]);
    }

    #[test]
    fn matches_do_not_overlap() {
        assert_eq!(words("a..5"), ["a", ".", ".5"]);
        assert_eq!(words("a...5"), ["a", ".", ".", ".", "5"]);
    }
}
