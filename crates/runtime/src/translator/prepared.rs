//! A sentence of raw text as the model gets it, and its translation as the user knows it.
//!
//! Tags leave it, what is to be copied becomes marks, CAPITALS become small letters; all of that is undone in the
//! translation. Before it: [`super::raw_text`], which splits lines; after it: the model.

use std::ops::Range;

use attentive_text::keep::{self, Hidden, Instead, MARKS, Waiting};
use attentive_text::markup::units;

use super::raw_text::Keep;
use super::source::Sentence;
use super::tags::Tags;
use super::translation::{Alternative, Translation};

/// A sentence as the model gets it, with what is needed to undo that in its translation.
#[derive(Debug)]
pub(super) struct Prepared {
    hidden: Hidden,
    /// What must come back exactly as often as it is in the hidden text: marks, or what they would stand for.
    kept: Vec<Range<usize>>,
    keep: Keep,
    /// The tags that were taken out before.
    tags: Option<Tags>,
    case: Case,
    prefix: String,
}

/// How a sentence is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    AsItIs,
    /// IN CAPITALS, which a model has hardly ever seen: it gets lowercase letters instead.
    Capitals,
}

impl Case {
    /// Capitals are capitals if there is more than one word of them, or a word that is no
    /// abbreviation: NATO is a pity, but `OK` and `EU` stay.
    pub fn of(text: &str) -> Self {
        let word = |word: &&str| word.chars().any(char::is_alphabetic);
        let words = text.split_whitespace().filter(word).count();
        let letters = text.chars().filter(|c| c.is_alphabetic()).count();
        // `ß` has no capital on most keyboards: GROßE STRAßE.
        let lowercase = text.chars().any(|c| c.is_lowercase() && c != 'ß');
        let capital = text.chars().any(char::is_uppercase);
        if capital && !lowercase && (words > 1 || letters >= 4) {
            Self::Capitals
        } else {
            Self::AsItIs
        }
    }

    pub fn fold(self, text: &str) -> String {
        if self == Self::AsItIs {
            return text.to_owned();
        }
        let lowercase = text.to_lowercase();
        match lowercase.char_indices().find(|(_, c)| c.is_alphabetic()) {
            Some((at, first)) => {
                let (before, rest) = (&lowercase[..at], &lowercase[at + first.len_utf8()..]);
                format!("{before}{}{rest}", first.to_uppercase())
            }
            None => lowercase,
        }
    }

    /// The translation of what was folded; the prefix stays as it was given.
    fn unfold(self, text: &str, prefix: &str) -> String {
        match self {
            Self::AsItIs => text.to_owned(),
            Self::Capitals => match text.strip_prefix(prefix) {
                Some(rest) => format!("{prefix}{}", rest.to_uppercase()),
                None => text.to_uppercase(),
            },
        }
    }
}

impl Prepared {
    /// Prepares a sentence; nothing if there is nothing to translate in it. The first sentence that is translated takes the
    /// prefix.
    pub fn of(text: &str, prefix: &mut &str, keep: Keep) -> Option<Self> {
        let tags = Tags::of(text);
        let bare = tags.as_ref().map_or(text, Tags::text);
        let mut hidden = keep::hide(bare);
        let has_words = hidden.text.chars().any(char::is_alphabetic);
        // The translation must start with the prefix, so the first sentence is translated then.
        let has_prefix = !prefix.is_empty() && !text.is_empty();
        if !has_words && !has_prefix {
            return None;
        }
        let kept = match keep {
            Keep::AsText => {
                hidden = Hidden::nothing(bare);
                keep::spans(bare).collect()
            }
            Keep::AsMarks if hidden.items().is_empty() => Vec::new(),
            Keep::AsMarks => {
                let marks = hidden.text.match_indices(MARKS);
                marks.map(|(at, mark)| at..at + mark.len()).collect()
            }
        };
        Some(Self {
            case: Case::of(&hidden.text),
            hidden,
            kept,
            keep,
            tags,
            prefix: std::mem::take(prefix).to_owned(),
        })
    }

    /// What the model gets to see.
    pub fn sentence(&self) -> Sentence {
        let kept = self
            .kept
            .iter()
            .map(|span| self.hidden.text[span.clone()].to_owned());
        let kept = kept.map(|item| match self.case {
            Case::AsItIs => item,
            Case::Capitals => item.to_lowercase(),
        });
        Sentence {
            text: self.case.fold(&self.hidden.text),
            prefix: self.prefix.clone(),
            phrases: Vec::new(),
            kept: kept.collect(),
            is_aligned: self.tags.is_some(),
        }
    }

    /// Undoes in the answer, and in its alternatives, what was done to the sentence.
    pub fn finish(&self, mut answer: Translation) -> Translation {
        let mut best = answer.take_best();
        let mut repaired = None;
        for found in std::iter::once(&mut best).chain(&mut answer.alternatives) {
            let Alternative {
                text,
                alignment,
                unit_alignment,
                pivot,
                ..
            } = found;
            if let Some(links) = alignment {
                self.restore_links(links, text, word_positions);
            }
            let mut moved = 0;
            if self.keep == Keep::AsMarks {
                moved = self.repair(text, unit_alignment, Instead::Insert);
            }
            if let Some(links) = unit_alignment {
                self.restore_links(links, text, unit_positions);
            }
            *text = self.case.unfold(text, &self.prefix);
            if self.keep == Keep::AsText {
                moved = self.repair(text, unit_alignment, Instead::Replace);
            }
            repaired.get_or_insert(moved);
            *text = self.hidden.restore(text);
            if let Some(tags) = &self.tags {
                tags.restore(text, alignment, unit_alignment);
            }
            if let Some(pivot) = pivot {
                *pivot = self.hidden.restore(&self.case.unfold(pivot, ""));
            }
        }
        answer.put_best(best);
        answer.moved = repaired.unwrap_or(0);
        answer
    }

    /// Makes a translation hold what must be kept exactly as often as the source; says how much was not so.
    fn repair(
        &self,
        text: &mut String,
        links: &mut Option<Vec<(usize, usize)>>,
        instead: Instead,
    ) -> usize {
        let kept: Vec<&str> = self
            .kept
            .iter()
            .map(|span| &self.hidden.text[span.clone()])
            .collect();
        if keep::deviation(&kept, text) == 0 {
            return 0;
        }
        let known = links.as_deref().unwrap_or_default();
        let repaired = keep::repair(&self.hidden.text, &self.kept, text, known, instead);
        *text = repaired.text;
        if links.is_some() {
            *links = Some(repaired.links);
        }
        repaired.count
    }

    /// As [`Hidden::restore`] does it, but that nothing is appended which the beginning lacks.
    pub fn finished_chars(&self, beginning: &str) -> usize {
        let text = self.case.unfold(beginning, &self.prefix);
        let items = self.hidden.items();
        let mut waiting = Waiting::new(items);
        let chars = |c: char| {
            if MARKS.contains(&c) && !items.is_empty() {
                waiting.take(c).map_or(0, |item| item.chars().count())
            } else {
                1
            }
        };
        text.chars().map(chars).sum()
    }

    /// Links between words with marks become links between words without: something hidden may have
    /// several words, and a mark that the model made up has none.
    fn restore_links(
        &self,
        links: &mut [(usize, usize)],
        answer: &str,
        positions: fn(&str, &[String]) -> Vec<usize>,
    ) {
        let items = self.hidden.items();
        if items.is_empty() {
            return;
        }
        let (src, tgt) = (
            positions(&self.hidden.text, items),
            positions(answer, items),
        );
        for (src_word, tgt_word) in links {
            *src_word = src.get(*src_word).copied().unwrap_or(*src_word);
            *tgt_word = tgt.get(*tgt_word).copied().unwrap_or(*tgt_word);
        }
    }
}

/// For each word of a text with marks the number that it, or its first part, has without.
fn word_positions(text: &str, items: &[String]) -> Vec<usize> {
    let count = |text: &str| text.split_whitespace().count();
    positions(text.split_whitespace(), items, count)
}

/// For each unit of a text with marks the number that it, or its first part, has without.
fn unit_positions(text: &str, items: &[String]) -> Vec<usize> {
    let pieces = units(text).into_iter().map(|unit| &text[unit]);
    positions(pieces, items, |text| units(text).len())
}

/// For each piece of a text with marks the number that it has without; `count` says how many pieces a text has.
fn positions<'a>(
    pieces: impl Iterator<Item = &'a str>,
    items: &[String],
    count: impl Fn(&str) -> usize,
) -> Vec<usize> {
    let mut waiting = Waiting::new(items);
    let mut unmarked = |c: char| {
        if MARKS.contains(&c) {
            waiting.take(c).unwrap_or_default().to_owned()
        } else {
            c.to_string()
        }
    };
    let mut next = 0;
    let place = |piece: &str| {
        let piece: String = piece.chars().map(&mut unmarked).collect();
        let pieces = count(&piece);
        next += pieces;
        next.saturating_sub(pieces.max(1))
    };
    pieces.map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_that_was_made_up_has_no_place_of_its_own() {
        let items = ["a b".to_owned(), "c".to_owned()];
        assert_eq!(
            word_positions("x \u{E000} \u{E000} y \u{E001}. z", &items),
            [0, 1, 2, 3, 4, 5]
        );
        assert_eq!(word_positions("\u{E005} x", &items), [0, 0]);
    }

    #[test]
    fn capitals_are_more_than_an_abbreviation() {
        for (text, capitals) in [
            ("GUTEN MORGEN", true),
            ("HALLO!", true),
            ("GROßE STRAßE", true),
            ("I AM 5.", true),
            ("USA", false),
            ("A 5", false),
            ("Guten MORGEN", false),
            ("日本語です", false),
            ("", false),
        ] {
            assert_eq!(Case::of(text) == Case::Capitals, capitals, "{text}");
        }
        assert_eq!(
            Case::Capitals.fold("\"ÄRGER MIT EUCH\""),
            "\"Ärger mit euch\""
        );
        assert_eq!(Case::Capitals.unfold("Das große", "Das"), "Das GROSSE");
    }
}
