//! A text cut into its sentences, by the rules of its language.
//!
//! Models are trained on sentences and translate one at a time; people type paragraphs. In most scripts
//! only white space can separate sentences, so addresses, file names and numbers (`3.14`) stay whole by
//! themselves; what is left is to know when the period before a white space ends a sentence (`ends`, with
//! the abbreviations of each language in `words`). Full stops such as `。` and `।` need no white space.
//!
//! Why rules of our own: a language is a few lines in `words`. Of the 344 texts in `tests/fixtures/sentences`, which
//! were written along with these rules, the crate `srx` with the rules that it ships cuts 163 as expected; it has none
//! for Czech, Hindi and Chinese, cannot read some of the others, and its rules come without a license. On plain news both are
//! about as good (docs/languages.md).
//!
//! Before it on the data path: [`crate::keep`], whose marks can stand at either end of a sentence. After
//! it: the translator.

mod ends;
mod words;

use std::ops::Range;

use crate::keep::{self, MARKS};
use crate::language;
use ends::Place;
use words::Rules;

/// A sentence and the white space that follows it.
///
/// White space at the start of a text has no sentence before it: it is the gap of an empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sentence<'a> {
    /// The sentence, without white space at its ends.
    pub text: &'a str,
    /// The white space up to the next sentence, or up to the end; nothing after a `。` without any.
    pub gap: &'a str,
}

/// Cuts a text into sentences; all `text` and `gap` one after the other are the text again.
///
/// The language is a code (`fr`, `pt-BR`, `deu`). Without one, or with one that has no rules of its own, the rules
/// are those of German and English, which between them hold what many languages have.
///
/// A line break always ends a sentence. After `?` and `!` a sentence may begin with a lowercase letter, as
/// some people write; after a period it may not. What [`keep`] hides from a model is never cut within a
/// line: `` `echo Hallo. Welt` `` is one piece of code.
///
/// ```
/// use attentive_text::sentences::split;
///
/// let texts = |text, language| -> Vec<&str> {
///     split(text, language).iter().map(|sentence| sentence.text).collect()
/// };
/// assert_eq!(
///     texts("Dr. Koch kommt am 3. Mai. Und du?", Some("de")),
///     ["Dr. Koch kommt am 3. Mai.", "Und du?"]
/// );
/// assert_eq!(texts("駅はどこですか。知りません。", Some("ja")), ["駅はどこですか。", "知りません。"]);
/// ```
pub fn split<'a>(text: &'a str, language: Option<&str>) -> Vec<Sentence<'a>> {
    let rules = Rules::of(&language::canonical(language.unwrap_or_default()));
    let opaque = |span: &Range<usize>| !text[span.clone()].contains(LINE_BREAKS);
    let kept: Vec<Range<usize>> = keep::spans(text).filter(opaque).collect();
    if kept.is_empty() {
        return split_words(text, rules);
    }
    let mut masked = String::with_capacity(text.len());
    let mut done = 0;
    for span in &kept {
        masked.push_str(&text[done..span.start]);
        masked.push(MARK);
        done = span.end;
    }
    masked.push_str(&text[done..]);

    let (mut rest, mut lengths) = (text, kept.iter().map(Range::len));
    let unmasked = |sentence: Sentence| {
        let marks = sentence.text.matches(MARK).count();
        let hidden: usize = lengths.by_ref().take(marks).sum();
        let end = sentence.text.len() - marks * MARK.len_utf8() + hidden;
        let (text, after) = rest.split_at(end);
        let (gap, after) = after.split_at(sentence.gap.len());
        rest = after;
        Sentence { text, gap }
    };
    let sentences = split_words(&masked, rules);
    sentences.into_iter().map(unmasked).collect()
}

/// Stands for what is kept while sentences are searched; the text has none of its own.
const MARK: char = MARKS[0];

const LINE_BREAKS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// As [`split`], for a text without anything that is kept.
fn split_words<'a>(text: &'a str, rules: &Rules) -> Vec<Sentence<'a>> {
    let mut sentences = Vec::new();
    let (mut start, mut at) = (0, 0);
    let mut new_line = true;
    while let Some(gap) = next_gap(text, at) {
        at = gap.end;
        let (before, after) = (&text[start..gap.start], &text[at..]);
        let gap = &text[gap];
        let broken = gap.contains(LINE_BREAKS);
        let place = Place {
            before,
            after,
            new_line,
        };
        let cut = before.is_empty() || after.is_empty() || broken;
        if cut || place.ends(gap, rules) {
            sentences.push(Sentence { text: before, gap });
            start = at;
            new_line = broken || (new_line && before.is_empty());
        }
    }
    if start < text.len() {
        sentences.push(Sentence {
            text: &text[start..],
            gap: "",
        });
    }
    sentences
}

/// The next place where a sentence may end: white space, or nothing behind a full stop that needs none.
fn next_gap(text: &str, from: usize) -> Option<Range<usize>> {
    let (mut before, mut ended) = (None, false);
    for (at, c) in text[from..].char_indices() {
        let at = from + at;
        if c.is_whitespace() {
            let rest = &text[at..];
            return Some(at..text.len() - rest.trim_start().len());
        }
        let end = at + c.len_utf8();
        ended = ends::ends_tightly(ended, before, c);
        if ended && ends::begins_tightly(c, &text[end..]) {
            return Some(end..end);
        }
        before = Some(c);
    }
    None
}

/// What is missing between two sentences that are to stand one after the other: a space, unless the first
/// ends with a full stop that needs none, or with white space.
///
/// ```
/// use attentive_text::sentences::space_between;
///
/// assert_eq!(space_between("Ja.", "Nein."), " ");
/// assert_eq!(space_between("はい。", "いいえ。"), "");
/// ```
pub fn space_between(before: &str, after: &str) -> &'static str {
    let spaced = before.ends_with(char::is_whitespace) || after.starts_with(char::is_whitespace);
    if before.is_empty() || after.is_empty() || spaced || ends::end_tightly_between(before, after) {
        ""
    } else {
        " "
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sentences(text: &str) -> Vec<&str> {
        let found = split(text, None);
        found.iter().map(|sentence| sentence.text).collect()
    }

    #[test]
    fn however_much_is_kept_positions_are_right() {
        let code = "`a. B` 😀 https://example.org/x?y";
        let text = format!("Erst {0} und {0} und {0} und {0}.  Dann {0}.", code);
        let found = split(&text, None);
        let dots: Vec<bool> = found
            .iter()
            .map(|found| found.text.ends_with('.'))
            .collect();
        assert_eq!((dots, found[0].gap), (vec![true, true], "  "));
        assert!(found[1].text.starts_with("Dann `a. B`"), "{found:?}");
        let found = sentences("看 `a。b` 吧。再看 `c。d`。好。");
        assert_eq!(found, ["看 `a。b` 吧。", "再看 `c。d`。", "好。"]);
    }

    #[test]
    fn a_line_break_always_ends_a_sentence() {
        assert_eq!(
            sentences("eins und\nzwei\r\n\r\ndrei"),
            ["eins und", "zwei", "drei"]
        );
        assert_eq!(split("a\n\n b", None)[0].gap, "\n\n ");
        assert_eq!(sentences("<a b=\"c\nd\"> e"), ["<a b=\"c", "d\"> e"]);
    }

    #[test]
    fn white_space_at_the_start_is_the_gap_of_an_empty_sentence() {
        let expected = [
            Sentence {
                text: "",
                gap: " \n",
            },
            Sentence {
                text: "Ja.",
                gap: "  ",
            },
        ];
        assert_eq!(split(" \nJa.  ", None), expected);
        assert_eq!(
            split("   ", None),
            [Sentence {
                text: "",
                gap: "   "
            }]
        );
        assert_eq!(split("", None), []);
    }

    #[test]
    fn the_language_decides_and_any_code_is_taken() {
        let count = |text, language| split(text, Some(language)).len();
        let dutch = "Hij ging weg. 's Avonds kwam hij terug.";
        assert_eq!((count(dutch, "nl"), count(dutch, "xx")), (2, 1));
        for code in ["nl-BE", "nl_NL", "NLD", "dut"] {
            assert_eq!(count(dutch, code), 2, "{code}");
        }
        // A semicolon is a question mark in Greek alone.
        let greek = "Τι κάνεις; Καλά.";
        assert_eq!((count(greek, "el"), count(greek, "en")), (2, 1));
        for code in ["", "x", "\u{0}", "klingon", "日本"] {
            assert_eq!(count("Ja. Nein.", code), 2, "{code}");
        }
    }

    /// A long line is read in one go: nothing in it makes the way back or ahead long.
    #[test]
    fn long_lines_take_no_longer_for_their_length() {
        for piece in ["「あ。", "（a。", "a.", "? ", "« . ", "a. ", "。", "'s "] {
            let text = piece.repeat(20_000);
            let joined: usize = split(&text, Some("ja"))
                .iter()
                .map(|sentence| sentence.text.len() + sentence.gap.len())
                .sum();
            assert_eq!(joined, text.len(), "{piece}");
        }
    }

    /// Words, ends and spaces in any order: harder than random characters.
    fn typed() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "Ich", "du", "Dr", "z", "B", ".", ".", "?", "!", "…", " ", " ", "  ", "\n", "\u{A0}",
            "\r", "3", "XI", "`", "`", "@a", "<b", "\"", "„", "“", "(", ")", "😀", "\u{E000}",
            "Das", "-", ",", "ß", "\u{2028}", "\u{3000}", "。", "！", "「", "」", "（", "）", "と",
            "你", "।", "है", "؟", "»", "’s",
        ]);
        prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn sentences_and_gaps_give_the_text_back(
            text in prop_oneof![any::<String>(), typed()],
            language in prop::sample::select(vec!["", "de", "fr", "nl", "ru", "el", "ja", "zh", "hi", "ar"]),
        ) {
            let sentences = split(&text, Some(language));
            let joined: String = sentences.iter().flat_map(|s| [s.text, s.gap]).collect();
            prop_assert_eq!(&joined, &text);
            for (index, sentence) in sentences.iter().enumerate() {
                prop_assert_eq!(sentence.text.trim(), sentence.text);
                prop_assert_eq!(sentence.gap.trim(), "");
                prop_assert!(index == 0 || !sentence.text.is_empty());
                prop_assert!(!sentence.text.contains(LINE_BREAKS));
            }
        }
    }
}
