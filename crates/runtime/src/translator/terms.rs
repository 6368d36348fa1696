//! Terms of a glossary to tokens that a search must produce.
//!
//! A phrase has several spellings as tokens: at the beginning of a sentence it has a capital letter, and an opening
//! bracket or quote may hold on to it. Any of them will do, the model chooses. Neighbors:
//! [`attentive_text::glossary`] finds the terms in a sentence, [`crate::search::Terms`] are what the search requires.

use std::sync::{Arc, OnceLock};

use attentive_text::Tokenizer;
use attentive_text::glossary::{Forms, Glossary, Match, ends_word, inflected_forms};
use attentive_text::special::{BOS, EOS, PAD, UNK};

use crate::search::{Term, Terms};

/// A phrase that a translation must contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    /// Its spellings, of which any will do; the first is its name in messages.
    pub spellings: Vec<String>,
}

impl Phrase {
    /// A phrase that is spelled in one way.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            spellings: vec![text.into()],
        }
    }

    /// What a translation must contain for a term of its source. Where the source has another form of the term than the
    /// glossary, the translation may, too.
    fn of(found: &Match<'_>, target_language: Option<&str>) -> Self {
        let mut spellings = found.entry.targets.clone();
        if let (Forms::Inflected, Some(language)) = (found.form, target_language) {
            let other = |target: &String| inflected_forms(target, language);
            spellings.extend(found.entry.targets.iter().flat_map(other));
        }
        Self { spellings }
    }

    /// Whether a text has it, as words and with a capital letter or without.
    pub fn is_in(&self, text: &str) -> bool {
        let has = |spelling: &String| {
            let places = text.match_indices(spelling.as_str());
            let mut ends = places.map(|(at, _)| &text[at + spelling.len()..]);
            ends.any(ends_word)
        };
        let spellings = self.spellings.iter();
        spellings
            .into_iter()
            .any(|spelling| has(spelling) || has(&capitalized(spelling)))
    }
}

/// What the translation of a sentence must contain.
pub(super) fn phrases(
    glossary: &Glossary,
    sentence: &str,
    source_language: Option<&str>,
    target_language: Option<&str>,
) -> Vec<Phrase> {
    let found = glossary.find(sentence, source_language);
    let phrase = |found| Phrase::of(found, target_language);
    found.iter().map(phrase).collect()
}

/// Spells phrases as tokens of a target vocabulary.
#[derive(Debug, Clone, Default)]
pub(super) struct Speller {
    /// For each token whether it goes on with the word before it; worked out when it is needed first.
    continues: Arc<OnceLock<Arc<[bool]>>>,
}

impl Speller {
    /// The same for a process in which nobody is at work on it.
    pub fn after_fork(&self) -> Self {
        let known = self.continues.get().cloned();
        Self {
            continues: Arc::new(known.map_or_else(OnceLock::new, OnceLock::from)),
        }
    }

    /// The phrases as terms of a search; those that the vocabulary cannot spell, or only in very many tokens, are not
    /// among them.
    pub fn terms(&self, phrases: &[Phrase], forbidden: &[u32], tokenizer: &Tokenizer) -> Terms {
        let term = |phrase: &Phrase| {
            let spellings = phrase.spellings.iter();
            let mut forms: Vec<Vec<u32>> =
                spellings.flat_map(|text| forms(text, tokenizer)).collect();
            let impossible =
                |token: &u32| [BOS, EOS, PAD, UNK].contains(token) || forbidden.contains(token);
            forms.retain(|form| form.len() <= MOST_TOKENS && !form.iter().any(impossible));
            Term::new(forms)
        };
        let continues = self.continues.get_or_init(|| continuing(tokenizer));
        let terms = Terms::new(phrases.iter().map(term).collect());
        terms.of_whole_words(Arc::clone(continues))
    }
}

/// Longer phrases are sentences, and would cost as much as one: they are told and not required.
const MOST_TOKENS: usize = 32;

/// What may stand right before a word.
const OPENING: [&str; 7] = ["", "(", "\"", "“", "'", "-", "/"];

/// The tokens of a phrase behind another word, as it stands and with a capital letter; alone and behind something
/// that holds on to it.
fn forms(phrase: &str, tokenizer: &Tokenizer) -> Vec<Vec<u32>> {
    let before = tokenizer.encode(BEFORE);
    let mut texts = vec![phrase.to_owned(), capitalized(phrase)];
    texts.dedup();
    let texts = texts
        .iter()
        .flat_map(|text| OPENING.map(|opening| format!("{opening}{text}")));
    let form = |text: String| {
        let both = tokenizer.encode(&format!("{BEFORE} {text}"));
        let own = both.strip_prefix(&before[..]).filter(|own| !own.is_empty());
        own.map(<[u32]>::to_vec)
    };
    texts.filter_map(form).collect()
}

/// A word that other words come after.
const BEFORE: &str = "a";

/// For each token whether it goes on with the word before it.
fn continuing(tokenizer: &Tokenizer) -> Arc<[bool]> {
    let before = tokenizer.encode(BEFORE);
    let alone = tokenizer.decode(&before);
    let goes_on = |token: u32| {
        let both = tokenizer.decode(&[&before[..], &[token]].concat());
        let rest = both.strip_prefix(alone.as_str());
        rest.is_some_and(|rest| !rest.is_empty() && !ends_word(rest))
    };
    (0..tokenizer.vocab_size() as u32).map(goes_on).collect()
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use attentive_text::{TokenizerKind, TokenizerOptions};

    use super::*;

    fn tokenizer(kind: TokenizerKind) -> Tokenizer {
        let options = TokenizerOptions {
            kind,
            vocab_size: 280,
            ..TokenizerOptions::default()
        };
        let corpus = ["a dog runs", "Dogs run in a house (a dog house)", "a dog"];
        Tokenizer::train(&options, &mut corpus.into_iter()).expect("a tokenizer")
    }

    #[test]
    fn a_phrase_is_found_however_it_is_cut_and_not_within_words() {
        for kind in [
            TokenizerKind::Bpe,
            TokenizerKind::Unigram,
            TokenizerKind::Word,
        ] {
            let tokenizer = tokenizer(kind);
            let terms = Speller::default().terms(&[Phrase::new("dog")], &[], &tokenizer);
            let lacks = |text: &str| !terms.lacking(&tokenizer.encode(text)).is_empty();
            for text in ["dog", "a dog runs", "in a (dog house)", "a dog, in a house"] {
                assert!(!lacks(text), "{kind:?} {text}");
            }
            assert!(
                lacks("Dogs run") && lacks("a house") && lacks(""),
                "{kind:?}"
            );
        }
    }

    #[test]
    fn what_the_vocabulary_cannot_spell_is_not_required() {
        let tokenizer = tokenizer(TokenizerKind::Word);
        let terms = |text: &str| Speller::default().terms(&[Phrase::new(text)], &[], &tokenizer);
        assert!(terms("zebra").is_empty() && terms("").is_empty() && terms(" ").is_empty());
        assert!(terms(&"a ".repeat(40)).is_empty());
        let either = Phrase {
            spellings: vec!["zebra".to_owned(), "dog".to_owned()],
        };
        let either = Speller::default().terms(&[either], &[], &tokenizer);
        assert!(either.lacking(&tokenizer.encode("a dog")).is_empty());
    }

    #[test]
    fn a_text_has_a_phrase_as_words() {
        let has = |phrase: &str, text: &str| Phrase::new(phrase).is_in(text);
        assert!(has("big dog", "Big dog, small cat") && has("dog", "the dog"));
        assert!(!has("dog", "the dogs") && !has("dog", "cat") && has("犬", "大きな犬です"));
    }
}
