//! Which terms of a glossary occur in a text: word by word, the longest first, no two of them over the same words.
//!
//! Words are runs of letters and digits; every other character but white space is a word of its own, and so is each
//! character of a script that has no spaces between words.

use std::ops::Range;

use crate::language::canonical;

use super::{Case, Entry, Forms, Glossary, inflection};

/// A term that occurs in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match<'g> {
    /// The entry of the glossary.
    pub entry: &'g Entry,
    /// Where it occurs, in bytes.
    pub range: Range<usize>,
    /// Which form occurs: the one that the glossary has, or another one.
    pub form: Forms,
}

impl Glossary {
    /// The terms that occur in a text of a language, in their order. Where several overlap, the longest counts; of
    /// equally long ones the one as it stands, then the first.
    pub fn find(&self, text: &str, language: Option<&str>) -> Vec<Match<'_>> {
        if self.is_empty() {
            return Vec::new();
        }
        let places = places(text);
        let own: Vec<&str> = places.iter().map(|place| &text[place.clone()]).collect();
        let lowercase: Vec<String> = own.iter().map(|word| word.to_lowercase()).collect();
        let language = &canonical(language.unwrap_or_default());
        let mut found = Vec::new();
        for first in 0..places.len() {
            let known = self.index.get(&key(&lowercase[first]));
            for &entry in known.into_iter().flatten() {
                let entry = &self.entries[entry];
                let last = first + entry.words.len();
                let Some(lowercase) = lowercase.get(first..last) else {
                    continue;
                };
                if let Some(form) = form(entry, &own[first..last], lowercase, language) {
                    found.push((first..last, entry, form));
                }
            }
        }
        // The sort is stable: of equals the first in the text, and there the first in the glossary.
        found.sort_by_key(|(words, _, form)| (usize::MAX - words.len(), *form == Forms::Inflected));
        let mut taken = vec![false; places.len()];
        let mut matches = Vec::new();
        for (words, entry, form) in found {
            if taken[words.clone()].contains(&true) {
                continue;
            }
            taken[words.clone()].fill(true);
            let range = places[words.start].start..places[words.end - 1].end;
            matches.push(Match { entry, range, form });
        }
        matches.sort_by_key(|found| found.range.start);
        matches
    }
}

/// In which form an entry occurs in words, if it does.
fn form(entry: &Entry, own: &[&str], lowercase: &[String], language: &str) -> Option<Forms> {
    let same = match entry.case {
        Case::Ignored => entry.words == lowercase,
        Case::Kept => entry.words.iter().zip(own).all(|(term, word)| term == word),
    };
    if same {
        return Some(Forms::Exact);
    }
    let is_form = |(word, term): (&String, &String)| {
        word == term || inflection::is_form(word, term, language)
    };
    let inflected = (entry.case, entry.forms) == (Case::Ignored, Forms::Inflected);
    let other = inflected && lowercase.iter().zip(&entry.words).all(is_form);
    other.then_some(Forms::Inflected)
}

/// The words of a term, in lowercase letters where capital ones do not count.
pub(super) fn words(term: &str, case: Case) -> Vec<String> {
    let word = |place: Range<usize>| match case {
        Case::Ignored => term[place].to_lowercase(),
        Case::Kept => term[place].to_owned(),
    };
    places(term).into_iter().map(word).collect()
}

/// By what a word is looked up: its first letters, which its other forms have too.
pub(super) fn key(word: &str) -> String {
    word.to_lowercase().chars().take(3).collect()
}

/// Where the words of a text are.
fn places(text: &str) -> Vec<Range<usize>> {
    let mut places: Vec<Range<usize>> = Vec::new();
    let mut open = false;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        let within = is_within_word(c);
        match places.last_mut() {
            Some(last) if open && within => last.end = end,
            _ if c.is_whitespace() => {}
            _ => places.push(at..end),
        }
        open = within;
    }
    places
}

/// Whether a text that follows a word does not go on with it: nothing, white space or a sign, or a script without
/// spaces between words.
pub fn ends_word(after: &str) -> bool {
    !after.chars().next().is_some_and(is_within_word)
}

/// Letters, digits and what is put above or below them, in scripts with spaces between words.
fn is_within_word(c: char) -> bool {
    let spaceless = matches!(c,
        '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' // Thai, Lao, Burmese, Khmer
        | '\u{2E80}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}' // Chinese, Japanese
        | '\u{AC00}'..='\u{D7AF}'); // Korean, whose particles are written together with nouns
    let combining = matches!(c, '\u{0300}'..='\u{036F}');
    (c.is_alphanumeric() || combining) && !spaceless
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn glossary(lines: &str) -> Glossary {
        let mut glossary = Glossary::default();
        for line in lines.split('\n') {
            glossary.add_line(line, false).expect("sound");
        }
        glossary
    }

    fn found(lines: &str, text: &str, language: &str) -> Vec<String> {
        let glossary = glossary(lines);
        let found = glossary.find(text, Some(language));
        let shown =
            |found: &Match| format!("{}={}", &text[found.range.clone()], found.entry.targets[0]);
        found.iter().map(shown).collect()
    }

    #[test]
    fn terms_are_words_and_not_parts_of_words() {
        let lines = "Hund\tdog\nC++\tC++\nE-Mail\temail";
        assert_eq!(
            found(lines, "Der HUND, das Hündchen und der Hundesalon.", "de"),
            ["HUND=dog"]
        );
        assert_eq!(
            found(lines, "C++ per e-mail (c+)", "de"),
            ["C++=C++", "e-mail=email"]
        );
        assert_eq!(found("犬\tdog", "大きな犬です", "ja"), ["犬=dog"]);
    }

    #[test]
    fn the_longest_counts_and_no_word_twice() {
        let lines = "Haus\thouse\nHaus am See\tlake house\nam See der Träume\tx\nSee\tlake";
        assert_eq!(
            found(lines, "Das Haus am  See und das Haus", "de"),
            ["Haus am  See=lake house", "Haus=house"]
        );
        assert_eq!(
            found(lines, "Haus am See der Träume", "de"),
            ["Haus=house", "am See der Träume=x"]
        );
    }

    #[test]
    fn endings_count_unless_the_entry_is_exact_or_keeps_case() {
        assert_eq!(
            found("Hund\tdog", "die Hunde des Hundes", "de"),
            ["Hunde=dog", "Hundes=dog"]
        );
        assert_eq!(
            found("Hund\tdog\nHunde\tpack", "die Hunde", "de"),
            ["Hunde=pack"]
        );
        assert!(found("Hund\tdog\texact", "die Hunde", "de").is_empty());
        assert!(found("Hund\tdog\tcase", "die hund", "de").is_empty());
        assert_eq!(found("Hund\tdog\tcase", "der Hund", "de"), ["Hund=dog"]);
        assert!(found("Hund\tdog", "die Hunde", "fi").is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]
        #[test]
        fn any_text_and_any_terms_give_matches_in_order_that_do_not_overlap(
            terms in prop::collection::vec((".{0,6}", ".{0,6}"), 0..6),
            parts in prop::collection::vec(prop_oneof![".{0,8}", "[a-z ]{0,8}", Just("Haus".to_owned())], 0..6),
        ) {
            let mut text = parts.concat();
            text.extend(terms.iter().map(|(source, _)| format!(" {source}")));
            let glossary = Glossary::of_pairs(terms.iter().map(|(a, b)| (a.as_str(), b.as_str())));
            for language in [None, Some("de"), Some("xx")] {
                let mut end = 0;
                for found in glossary.find(&text, language) {
                    prop_assert!(found.range.start >= end && !found.range.is_empty());
                    end = found.range.end;
                    prop_assert!(text.is_char_boundary(found.range.start) && text.is_char_boundary(end));
                }
            }
        }
    }
}
