//! A text cut into its sentences, by the rules of German and English.
//!
//! Models are trained on sentences and translate one at a time; people type paragraphs. Only white
//! space can separate sentences, so addresses, file names and numbers (`3.14`) stay whole by
//! themselves; what is left is to know when the period before a white space ends a sentence. Before it on
//! the data path: [`crate::keep`], whose marks can stand at either end of a sentence. After it: the
//! translator.

mod words;

use std::ops::Range;

use crate::keep::{self, MARKS};
use words::{ABBREVIATIONS, BEFORE_NUMBERS, FIRST_WORDS, TITLES};

/// A sentence and the white space that follows it.
///
/// White space at the start of a text has no sentence before it: it is the gap of an empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sentence<'a> {
    /// The sentence, without white space at its ends.
    pub text: &'a str,
    /// The white space up to the next sentence, or up to the end.
    pub gap: &'a str,
}

/// Cuts a text into sentences; all `text` and `gap` one after the other are the text again.
///
/// A line break always ends a sentence. After `?` and `!` a sentence may begin with a lowercase letter, as
/// some people write; after a period it may not. What [`keep`] hides from a model is never cut within a
/// line: `` `echo Hallo. Welt` `` is one piece of code.
///
/// ```
/// use attentive_text::sentences::split;
///
/// let text = "Dr. Koch kommt am 3. Mai. Und du?";
/// let sentences: Vec<&str> = split(text).iter().map(|sentence| sentence.text).collect();
/// assert_eq!(sentences, ["Dr. Koch kommt am 3. Mai.", "Und du?"]);
/// ```
pub fn split(text: &str) -> Vec<Sentence<'_>> {
    let opaque = |span: &Range<usize>| !text[span.clone()].contains(LINE_BREAKS);
    let kept: Vec<Range<usize>> = keep::spans(text).filter(opaque).collect();
    if kept.is_empty() {
        return split_words(text);
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
    split_words(&masked).into_iter().map(unmasked).collect()
}

/// Stands for what is kept while sentences are searched; the text has none of its own.
const MARK: char = MARKS[0];

/// As [`split`], for a text without anything that is kept.
fn split_words(text: &str) -> Vec<Sentence<'_>> {
    let mut sentences = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at < text.len() {
        let Some(word) = text[at..].find(char::is_whitespace) else {
            at = text.len();
            break;
        };
        let end = at + word;
        let gap = text[end..]
            .find(|c: char| !c.is_whitespace())
            .unwrap_or(text.len() - end);
        at = end + gap;
        let (before, gap, after) = (&text[start..end], &text[end..at], &text[at..]);
        let cut = before.is_empty() || after.is_empty() || gap.contains(LINE_BREAKS);
        if cut || ends_between(before, after) {
            sentences.push(Sentence { text: before, gap });
            start = at;
        }
    }
    if start < at {
        sentences.push(Sentence {
            text: &text[start..at],
            gap: "",
        });
    }
    sentences
}

const LINE_BREAKS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// What ends a sentence; `。！？` are typed by people whose keyboard has them.
const ENDS: [char; 7] = ['.', '!', '?', '…', '。', '！', '？'];

/// Quotes and brackets that can close after the end of a sentence.
const CLOSERS: [char; 12] = ['"', '“', '”', '«', '»', '\'', '’', '‘', '›', ')', ']', '}'];

/// Quotes, brackets and dashes that can come before the first word of a sentence.
const OPENERS: [char; 20] = [
    '"', '„', '“', '”', '»', '«', '\'', '‚', '‘', '’', '›', '‹', '(', '[', '{', '-', '–', '—', '¿',
    '¡',
];

/// Whether a sentence ends between two words of a line.
fn ends_between(before: &str, after: &str) -> bool {
    // `Toll!😀 Und` ends like `Toll! Und`.
    let said = before.trim_end_matches(is_emoji_or_mark);
    let unquoted = said.trim_end_matches(CLOSERS);
    let words = unquoted.trim_end_matches(ENDS);
    let end = &unquoted[words.len()..];
    if end.is_empty() {
        return false;
    }
    let first = after.trim_start_matches(|c: char| OPENERS.contains(&c) || c.is_whitespace());
    let lowercase = first.starts_with(char::is_lowercase);
    if end.contains(['!', '?', '！', '？']) {
        // `"Wer?" fragte er.` goes on after the quote, `wer? ich!` does not.
        return !lowercase || said.len() == unquoted.len();
    }
    if lowercase || !begins_a_sentence(after, first) {
        return false;
    }
    if end != "." {
        // A lone `...` stands for words that are left out: `Ich habe ... Angst`.
        return !words.ends_with(char::is_whitespace);
    }
    period_ends(words, after)
}

/// Whether a sentence can begin so: with a letter that is not lowercase, a digit, an emoji, a quote.
fn begins_a_sentence(after: &str, first: &str) -> bool {
    let starts = |c: char| c.is_alphanumeric() || is_emoji_or_mark(c);
    first.starts_with(starts) || after.starts_with(OPENERS)
}

/// Whether a period after `words` is more than that of an abbreviation or of a German ordinal.
fn period_ends(words: &str, after: &str) -> bool {
    let mut last = words
        .rsplit(char::is_whitespace)
        .map(|word| word.trim_start_matches(OPENERS));
    let word = last.next().unwrap_or_default();
    let previous = last.next().unwrap_or_default();
    if word.is_empty() {
        return false;
    }
    if TITLES.contains(&word) || is_initial(word) && previous.ends_with('.') {
        return false;
    }
    if after.starts_with(|c: char| c.is_ascii_digit() || is_emoji_or_mark(c))
        && BEFORE_NUMBERS.contains(&word)
    {
        return false;
    }
    let unsure = is_initial(word)
        || is_ordinal(word) && !BEFORE_NUMBERS.contains(&previous.trim_end_matches('.'))
        || is_roman(word)
        || is_acronym(word)
        || ABBREVIATIONS.contains(&word)
        || word.ends_with("str");
    !unsure || begins_with_a_first_word(after)
}

/// `J` of `J. S. Bach`, `B` of `z. B.`
fn is_initial(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(char::is_alphabetic) && chars.next().is_none()
}

/// `3` of `3. Mai`, `24.12` of `am 24.12. Mittag`; `1990` is a year and `3.141` a number.
fn is_ordinal(word: &str) -> bool {
    let digits = |part: &str, most: usize| {
        (1..=most).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit())
    };
    match word.split_once('.') {
        Some((day, month)) => digits(day, 2) && digits(month, 2),
        None => digits(word, 3),
    }
}

/// `XIV` of `Ludwig XIV. und seine Frau`.
fn is_roman(word: &str) -> bool {
    word.len() > 1 && word.bytes().all(|b| b"IVX".contains(&b))
}

/// `U.S`, `a.m`, `u.v.m`: letters with periods between them.
fn is_acronym(word: &str) -> bool {
    word.contains('.') && word.split('.').all(is_initial)
}

/// Whether the next word is one that hardly ever has a capital inside a sentence.
fn begins_with_a_first_word(after: &str) -> bool {
    let after = after.trim_start_matches(OPENERS);
    let end = after
        .find(|c: char| !c.is_alphabetic())
        .unwrap_or(after.len());
    FIRST_WORDS.contains(&&after[..end])
}

/// An emoji, or a mark that stands for something.
fn is_emoji_or_mark(c: char) -> bool {
    MARKS.contains(&c)
        || matches!(c, '\u{1F000}'..='\u{1FAFF}' | '\u{2600}'..='\u{27BF}' | '\u{2B50}' | '\u{2B55}')
        || matches!(
            c,
            '\u{200D}' | '\u{FE0F}' | '\u{20E3}' | '\u{E0020}'..='\u{E007F}'
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sentences(text: &str) -> Vec<&str> {
        split(text).iter().map(|sentence| sentence.text).collect()
    }

    /// Each line is one text; `|` stands where a sentence ends, before the white space, `§` for a mark.
    const TEXTS: &str = r#"
Hallo.| Wie geht es dir?| Mir geht es gut!
He left.| She stayed.
Wirklich?!| Ja...| Nein…| Doch.
Er sagte: „Ich komme.“| Dann ging er.
"Come in."| He opened the door.
“Are you sure?”| “Yes.”
»Wer ist da?«| »Ich.«
(Das war gestern.)| Heute ist es anders.
"Kommst du?" fragte er.| Sie schwieg.
Kommt er (wirklich?) und wann?
Obst, z. B. Äpfel, d. h. Früchte.| Gut.
Obst, z.B. Äpfel, u.a. Birnen usw. und mehr.
Äpfel, Birnen usw.| Das ist alles.
Die Zeitung, z. B. Die Zeit, z.B. Die Welt.
Dr. Koch und Prof. Dr. Maier.| Beide kamen.
Hr. Meier und Fr. Schulz wohnen Hauptstr. 5, St. Gallen.
Mr. Smith met Mrs. Jones vs. Dr. Who.| They talked.
I know, e.g. Tom, i.e. Thomas.| And you?
It cost 3.14 dollars.| Really.
Es kostet 1.000,50 Euro.| Das ist viel.
Sie liegt bei ca. 3 Mio. Euro.| Das reicht.
J. S. Bach lebte in Leipzig.| Er komponierte.
George W. Bush was president.| He won.
Ich brauche Vitamin C.| Das ist gesund.
Wir treffen uns am 3. Mai.| Bis dann.
Nach dem 2. Weltkrieg kam der 1. FC Köln.
Er ist 30.| Sie ist 20.
Am 24.12. Abend sind wir da.
Ludwig XIV. König von Frankreich.
Das war 1990.| Danach kam Tom.
See No. 5.| No.| I will not.
Siehe Abb. 3 und Nr. 7.| Weiter.
It is 5 p.m. Tuesday.| We met at 8 a.m.| The train left.
He lives in the U.S. Army base.| She is in the U.S.| They met.
Acme Inc. and Foo Ltd. Europe merged.| The end.
Siehe www.example.com.| Dort steht alles.
Lies report.pdf.| Es ist in C:\x\y.txt.| Danke.
was machst du?| ich schlafe!| und du
ich komme. du auch. sie nicht.
Ja.| 3 Leute kamen.
Super!| 😀 Und du?
Toll!😀| Und du?
Siehe §.| § ist besser.
Das ist § Und das?
Ruf an: Tel. §.| Danke.
Na ja ... Angst habe ich nicht.
Warte...| Ich komme.
Er kam an. – aber zu spät.
1. Erstens dies.| 2. Zweitens das.
Hallo!!!| Wie geht's???| Gut.
Ich bin da.| Äpfel auch.
Das ist gut。| Ja.
Yes.| "No."
Tippe `echo Hallo. Welt` ein.| Danke.
Siehe <a title="Wer? Ich!">hier</a>.| Oder `a. B`.| `Ja. Nein`
"#;

    #[test]
    fn real_texts_are_cut_where_people_would_cut_them() {
        let mut seen = 0;
        for line in TEXTS.lines().filter(|line| !line.is_empty()) {
            let line = line.replace('§', "\u{E000}");
            let expected: Vec<&str> = line.split('|').map(str::trim).collect();
            assert_eq!(sentences(&line.replace('|', "")), expected, "{line}");
            seen += 1;
        }
        assert!(seen > 40, "only {seen} texts");
    }

    #[test]
    fn however_much_is_kept_positions_are_right() {
        let code = "`a. B` 😀 https://example.org/x?y";
        let text = format!("Erst {0} und {0} und {0} und {0}.  Dann {0}.", code);
        let found = split(&text);
        let dots: Vec<bool> = found
            .iter()
            .map(|found| found.text.ends_with('.'))
            .collect();
        assert_eq!((dots, found[0].gap), (vec![true, true], "  "));
        assert!(found[1].text.starts_with("Dann `a. B`"), "{found:?}");
    }

    #[test]
    fn a_line_break_always_ends_a_sentence() {
        assert_eq!(
            sentences("eins und\nzwei\r\n\r\ndrei"),
            ["eins und", "zwei", "drei"]
        );
        assert_eq!(split("a\n\n b")[0].gap, "\n\n ");
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
        assert_eq!(split(" \nJa.  "), expected);
        assert_eq!(
            split("   "),
            [Sentence {
                text: "",
                gap: "   "
            }]
        );
        assert_eq!(split(""), []);
    }

    /// Words, ends and spaces in any order: harder than random characters.
    fn typed() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "Ich", "du", "Dr", "z", "B", ".", ".", "?", "!", "…", " ", " ", "  ", "\n", "\u{A0}",
            "\r", "3", "XI", "`", "`", "@a", "<b", "\"", "„", "“", "(", ")", "😀", "\u{E000}",
            "Das", "-", ",", "ß", "\u{2028}", "\u{3000}",
        ]);
        prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn sentences_and_gaps_give_the_text_back(text in prop_oneof![any::<String>(), typed()]) {
            let sentences = split(&text);
            let joined: String = sentences.iter().flat_map(|s| [s.text, s.gap]).collect();
            prop_assert_eq!(&joined, &text);
            for (index, sentence) in sentences.iter().enumerate() {
                prop_assert_eq!(sentence.text.trim(), sentence.text);
                prop_assert_eq!(sentence.gap.trim(), "");
                prop_assert!(index == 0 || !sentence.text.is_empty());
                prop_assert!(index + 1 == sentences.len() || !sentence.gap.is_empty());
                prop_assert!(!sentence.text.contains(LINE_BREAKS));
            }
        }
    }
}
