//! Tercom's normalization of text before its words are compared.

use std::borrow::Cow;

use super::{AsianSupport, Normalization, Punctuation, TerOptions};
use crate::bleu_options::Case;
use crate::bleu_tokenizers::western::{isolate_marks, split_numbers, unescape};
use crate::python_text;

impl TerOptions {
    /// The sentence as words separated by white space.
    pub(super) fn tokenize(&self, line: &str) -> String {
        let line = python_text::trim_end(line);
        let mut text = match self.case {
            Case::Lower => line.to_lowercase(),
            Case::Mixed => line.to_owned(),
        };
        let asian = self.asian == AsianSupport::On;
        if self.normalization == Normalization::Tercom {
            text = normalize_western(&text);
            if asian {
                text = isolate_asian(&text);
            }
        }
        if self.punctuation == Punctuation::Removed {
            text.retain(|c| {
                !is_removed_mark(c) && !(asian && (is_asian_mark(c) || is_full_width_mark(c)))
            });
        }
        // Empty words do not exist; one space between words lets the rules run a second time.
        let words: Vec<&str> = python_text::words(&text).collect();
        words.join(" ")
    }
}

/// Joins lines, undoes escapes and splits punctuation off.
fn normalize_western(line: &str) -> String {
    let mut text = Cow::Borrowed(line);
    if text.contains('\n') {
        text = Cow::Owned(text.replace("\n-", "").replace('\n', " "));
    }
    unescape(&mut text);
    let text = isolate_marks(&format!(" {text} ")).replace("'s ", " 's ");
    split_numbers(text)
}

/// Makes Chinese characters, Japanese kanji and Asian punctuation words of their own.
///
/// Tercom also means to part runs of kana from other text, but its patterns ask for the start of the line in
/// the middle of a line and never match.
fn isolate_asian(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if is_ideograph(c) || is_asian_mark(c) || is_full_width_mark(c) {
            out.extend([' ', c, ' ']);
        } else {
            out.push(c);
        }
    }
    out
}

fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{2e80}'..='\u{2eff}'
        | '\u{31c0}'..='\u{31ef}'
        | '\u{3200}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe4f}')
}

fn is_asian_mark(c: char) -> bool {
    matches!(c,
        '\u{3001}' | '\u{3002}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}'
        | '\u{ff61}'..='\u{ff65}' | '\u{30fb}')
}

fn is_full_width_mark(c: char) -> bool {
    matches!(
        c,
        '．' | '，' | '？' | '：' | '；' | '！' | '＂' | '（' | '）'
    )
}

fn is_removed_mark(c: char) -> bool {
    matches!(c, '.' | ',' | '?' | ':' | ';' | '!' | '"' | '(' | ')')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalization_splits_marks_and_the_genitive() {
        let options = TerOptions {
            normalization: Normalization::Tercom,
            ..TerOptions::default()
        };
        assert_eq!(
            options.tokenize("Anna's cat (3.5 kg)."),
            "anna 's cat ( 3.5 kg ) ."
        );
    }

    #[test]
    fn asian_characters_are_words_only_when_asked_for() {
        let asian = TerOptions {
            normalization: Normalization::Tercom,
            asian: AsianSupport::On,
            ..TerOptions::default()
        };
        assert_eq!(asian.tokenize("我是、カナ"), "我 是 、 カナ");
        let without = TerOptions {
            punctuation: Punctuation::Removed,
            ..asian
        };
        assert_eq!(without.tokenize("我是、カナ（ok）."), "我 是 カナ ok");
    }
}
