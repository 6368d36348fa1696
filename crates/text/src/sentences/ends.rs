//! Whether a sentence ends at a place: the marks of all scripts, and what stands around them.
//!
//! [`super::split`] finds the places, `words` has what is different from language to language.

use unicode_segmentation::UnicodeSegmentation;

use super::words::Rules;
use crate::keep::MARKS;

/// A place between two words.
pub(super) struct Place<'a> {
    /// The sentence so far.
    pub before: &'a str,
    /// The rest of the text.
    pub after: &'a str,
    /// Whether the sentence is the first of its line.
    pub new_line: bool,
}

/// Questions and calls end a sentence whatever stands before them.
const CALLS: [char; 10] = ['!', '?', '！', '？', '؟', '\u{37E}', '፧', '‼', '⁉', '⁈'];

/// Full stops that are nothing else, and that need no white space behind them: Chinese and Japanese, Hindi,
/// Urdu, Ethiopic, Burmese, Khmer, Armenian.
const FULL_STOPS: [char; 10] = ['。', '｡', '।', '॥', '۔', '።', '။', '។', '៕', '։'];

/// Quotes and brackets that can close after the end of a sentence.
const CLOSERS: [char; 23] = [
    '"', '“', '”', '«', '»', '\'', '’', '‘', '›', ')', ']', '}', '」', '』', '）', '】', '》',
    '〉', '〕', '］', '｝', '｣', '〟',
];

/// Quotes, brackets and dashes that can come before the first word of a sentence.
const OPENERS: [char; 31] = [
    '"', '„', '“', '”', '»', '«', '\'', '‚', '‘', '’', '›', '‹', '(', '[', '{', '-', '–', '—', '¿',
    '¡', '「', '『', '（', '【', '《', '〈', '〔', '［', '｛', '｢', '〝',
];

const DASHES: [char; 3] = ['-', '–', '—'];

/// Pairs of brackets within which nothing is cut in scripts without spaces.
const PAIRS: [(char, char); 3] = [('「', '」'), ('『', '』'), ('（', '）')];

/// How far the other bracket may be away.
const BRACKETED: usize = 300;

/// Whether a sentence that goes up to `before` and `c` is at its end though no white space may follow.
/// What closes after the end belongs to it: `ended` says whether it was at its end before `c`.
pub(super) fn ends_tightly(ended: bool, before: Option<char>, c: char) -> bool {
    FULL_STOPS.contains(&c)
        || matches!(c, '！' | '？')
        || matches!(c, '!' | '?') && before.is_some_and(is_spaceless)
        || ended && CLOSERS.contains(&c)
}

/// Whether a sentence may end between two texts that have no white space between them.
pub(super) fn end_tightly_between(before: &str, after: &str) -> bool {
    let mut end = before.trim_end_matches(CLOSERS).chars().rev();
    let (last, previous) = (end.next(), end.next());
    let ended = last.is_some_and(|c| ends_tightly(false, previous, c));
    let closed_by = before.chars().next_back();
    ended && closed_by.is_some_and(|c| begins_tightly(c, after))
}

/// Whether what follows an end without white space begins something new.
pub(super) fn begins_tightly(ended_by: char, after: &str) -> bool {
    let Some(next) = after.chars().next() else {
        return false;
    };
    let new = !next.is_whitespace() && !is_end(next) && !CLOSERS.contains(&next);
    new && (!ended_by.is_ascii() || is_spaceless(next))
}

fn is_end(c: char) -> bool {
    matches!(c, '.' | '…' | '．') || CALLS.contains(&c) || FULL_STOPS.contains(&c)
}

/// A letter of a script that puts no spaces between words: Chinese and Japanese.
fn is_spaceless(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{20000}'..='\u{3FFFF}')
}

impl Place<'_> {
    /// Whether a sentence ends here, where the white space `gap` is.
    pub(super) fn ends(&self, gap: &str, rules: &Rules) -> bool {
        // `Toll!😀 Und` ends like `Toll! Und`.
        let said = self.before.trim_end_matches(is_emoji_or_mark);
        let unquoted = without_closers(said);
        let is_end = |c: char| is_end(c) || rules.semicolon_asks && c == ';';
        let words = unquoted.trim_end_matches(is_end);
        let end = &unquoted[words.len()..];
        if end.is_empty() || self.closes_first() {
            return false;
        }
        if gap.is_empty() || end.contains(FULL_STOPS) {
            return self.ends_with_a_full_stop(said, unquoted);
        }
        let after = self.after_short_words(rules);
        let first = after.trim_start_matches(|c: char| OPENERS.contains(&c) || c.is_whitespace());
        let lowercase = first.starts_with(char::is_lowercase);
        if end.contains(CALLS) || end.contains(';') {
            // `"Wer?" fragte er.` and `— Wer? — fragte er.` go on, `wer? ich!` does not.
            return !lowercase || said.len() == unquoted.len() && !after.starts_with(DASHES);
        }
        if lowercase || !begins_a_sentence(after, first) {
            return false;
        }
        if end != "." {
            // A lone `...` stands for words that are left out: `Ich habe ... Angst`.
            return !words.ends_with(char::is_whitespace);
        }
        self.period_ends(words, rules)
    }

    /// Whether a quote or a bracket closes next, with space around it: `« Oui. » Il rit.`
    fn closes_first(&self) -> bool {
        let mut next = self.after.chars();
        next.next().is_some_and(|c| CLOSERS.contains(&c))
            && next.next().is_none_or(char::is_whitespace)
    }

    /// A full stop that is nothing else ends a sentence, but not inside of brackets, and not before what
    /// refers to a quote.
    fn ends_with_a_full_stop(&self, said: &str, unquoted: &str) -> bool {
        let goes_on = self.after.starts_with(['、', '，', ',', 'と'])
            || self.after.starts_with("って")
            || self.after.starts_with(char::is_lowercase);
        let inside = |(open, close): &(char, char)| {
            let back = self.before.chars().rev().take(BRACKETED);
            let last = back.into_iter().find(|c| c == open || c == close);
            let mut ahead = self.after.chars().take(BRACKETED);
            last == Some(*open) && ahead.any(|c| c == *close)
        };
        // `他（很累。）回家了` goes on; a bracket around a whole sentence does not.
        let aside = said[unquoted.len()..].contains('）') && !said.starts_with('（');
        !goes_on && !aside && !PAIRS.iter().any(inside)
    }

    /// What follows without the short words that Dutch writes in lowercase: `'s Avonds`.
    fn after_short_words(&self, rules: &Rules) -> &str {
        let short = |word: &&str| {
            let rest = self.after.strip_prefix(['\'', '’'])?.strip_prefix(*word)?;
            rest.starts_with(char::is_whitespace).then_some(rest)
        };
        let mut words = rules.apostrophe_words.iter();
        words.find_map(short).unwrap_or(self.after).trim_start()
    }

    /// `S.` of `J. S. Bach`.
    fn initial_follows(&self) -> bool {
        let word = self.after.split(char::is_whitespace).next();
        word.and_then(|word| word.strip_suffix('.'))
            .is_some_and(is_initial)
    }

    /// Whether a period after `words` is more than that of an abbreviation or of an ordinal number.
    fn period_ends(&self, words: &str, rules: &Rules) -> bool {
        let mut last = words
            .rsplit(char::is_whitespace)
            .map(|word| word.trim_start_matches(OPENERS));
        let word = last.next().unwrap_or_default();
        let previous = last.next().unwrap_or_default();
        // The number of an item: `1. Das`.
        let alone = word == words && is_number(word, 3);
        if word.is_empty() || alone && self.new_line {
            return false;
        }
        // `z. B` is looked up as `z.B`.
        let pair = if previous.ends_with('.') {
            format!("{previous}{word}")
        } else {
            String::new()
        };
        let may_end = rules.abbreviations.has(&pair);
        let title = rules.titles.has(word) || rules.titles.has(&pair);
        let initials = is_initial(word) && (previous.ends_with('.') || self.initial_follows());
        if !may_end && (title || initials) {
            return false;
        }
        let after = self.after;
        let before_number = |word: &str| rules.before_numbers.has(word);
        if after.starts_with(|c: char| c.is_numeric() || is_emoji_or_mark(c)) && before_number(word)
        {
            return false;
        }
        let unsure = may_end
            || alone
            || is_initial(word)
            || rules.ordinals && is_ordinal(word) && !before_number(previous.trim_end_matches('.'))
            || is_roman(word)
            || is_acronym(word)
            || rules.abbreviations.has(word)
            || word.ends_with("str");
        !unsure || begins_with_a_first_word(after, rules)
    }
}

/// Without quotes and brackets at the end, and without the spaces that French puts before them.
fn without_closers(said: &str) -> &str {
    let unquoted = said.trim_end_matches(CLOSERS);
    if unquoted.len() == said.len() {
        return said;
    }
    unquoted.trim_end()
}

/// Whether a sentence can begin so: with a letter that is not lowercase, a digit, an emoji, a quote.
fn begins_a_sentence(after: &str, first: &str) -> bool {
    let starts = |c: char| c.is_alphanumeric() || is_emoji_or_mark(c);
    first.starts_with(starts) || after.starts_with(OPENERS)
}

/// `J` of `J. S. Bach`, `B` of `z. B.`
fn is_initial(word: &str) -> bool {
    let mut letters = word.graphemes(true);
    letters
        .next()
        .is_some_and(|c| c.starts_with(char::is_alphabetic))
        && letters.next().is_none()
}

fn is_number(word: &str, most: usize) -> bool {
    (1..=most).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit())
}

/// `3` of `3. Mai`, `24.12` of `am 24.12. Mittag`; `1990` is a year and `3.141` a number.
fn is_ordinal(word: &str) -> bool {
    match word.split_once('.') {
        Some((day, month)) => is_number(day, 2) && is_number(month, 2),
        None => is_number(word, 3),
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
fn begins_with_a_first_word(after: &str, rules: &Rules) -> bool {
    let after = after.trim_start_matches(OPENERS);
    let end = after
        .find(|c: char| !c.is_alphabetic())
        .unwrap_or(after.len());
    rules.first_words.has(&after[..end])
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
