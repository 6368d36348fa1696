//! The `intl` tokenizer of mteval-v14: splits at every Unicode punctuation mark and symbol, but not
//! at punctuation between digits.
//!
//! As in mteval-v14, a full stop after a number at the end of a line stays with the number.

use super::unicode_classes::{NUMBER, PUNCTUATION, SYMBOL};

/// Separates punctuation and symbols from words by spaces.
pub(crate) fn tokenize_international(line: &str) -> String {
    let chars: Vec<char> = line.chars().collect();
    let after_non_number = replace_pairs(
        &chars,
        |first, second| class(second) == Class::Punctuation && class(first) != Class::Number,
        |out, first, second| out.extend([first, ' ', second, ' ']),
    );
    let before_non_number = replace_pairs(
        &after_non_number,
        |first, second| class(first) == Class::Punctuation && class(second) != Class::Number,
        |out, first, second| out.extend([' ', first, ' ', second]),
    );
    let mut out = String::with_capacity(line.len() + 32);
    for c in before_non_number {
        if class(c) == Class::Symbol {
            out.extend([' ', c, ' ']);
        } else {
            out.push(c);
        }
    }
    out
}

/// The classes of characters the rules tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Punctuation,
    Symbol,
    Number,
    Other,
}

/// Rewrites neighboring characters that satisfy `matches`, from left to right, without overlap.
fn replace_pairs(
    chars: &[char],
    matches: impl Fn(char, char) -> bool,
    write: impl Fn(&mut Vec<char>, char, char),
) -> Vec<char> {
    let mut out = Vec::with_capacity(chars.len() + 16);
    let mut i = 0;
    while i < chars.len() {
        match chars.get(i + 1) {
            Some(&next) if matches(chars[i], next) => {
                write(&mut out, chars[i], next);
                i += 2;
            }
            _ => {
                out.push(chars[i]);
                i += 1;
            }
        }
    }
    out
}

fn class(c: char) -> Class {
    match c {
        'a'..='z' | 'A'..='Z' | '\0'..=' ' => Class::Other,
        '0'..='9' => Class::Number,
        _ if contains(PUNCTUATION, c) => Class::Punctuation,
        _ if contains(SYMBOL, c) => Class::Symbol,
        _ if contains(NUMBER, c) => Class::Number,
        _ => Class::Other,
    }
}

fn contains(ranges: &[(u32, u32)], c: char) -> bool {
    let code = u32::from(c);
    let after = ranges.partition_point(|&(_, end)| end < code);
    ranges.get(after).is_some_and(|&(start, _)| start <= code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_unicode() {
        for (c, expected) in [
            ('«', Class::Punctuation),
            ('€', Class::Symbol),
            ('½', Class::Number),
            ('ß', Class::Other),
            ('😀', Class::Symbol),
            ('。', Class::Punctuation),
        ] {
            assert_eq!(class(c), expected, "{c}");
        }
    }

    #[test]
    fn a_full_stop_after_a_final_number_stays() {
        let words = |line| -> Vec<String> {
            let tokenized = tokenize_international(line);
            tokenized.split_whitespace().map(str::to_owned).collect()
        };
        assert_eq!(words("in 2017."), ["in", "2017."]);
        assert_eq!(words("3.5€,"), ["3.5", "€", ","]);
    }
}
