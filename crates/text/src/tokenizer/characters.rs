//! A tokenizer of single characters, for language models and for models that spell (letters to phonemes, for example).
//!
//! Every character (a Unicode scalar value, spaces included) is a token, or `<unk>`. Its neighbor
//! [`super::subword_nmt`] joins characters; [`super::imported`] is the file of both.

use std::collections::HashMap;

use super::options::TokenizerOptions;
use super::vocabulary::Vocabulary;
use super::word_ids::{Reached, WordCounter};
use crate::error::TextError;
use crate::special::{BOS, EOS, PAD};

/// A vocabulary of characters. Longer tokens never come from text, but are shown when a model predicts them.
#[derive(Debug)]
pub(super) struct Characters {
    vocabulary: Vocabulary,
}

impl Characters {
    /// The characters of the texts, line breaks included, the most frequent first.
    pub(super) fn train(
        options: &TokenizerOptions,
        texts: &mut dyn Iterator<Item = &str>,
    ) -> Result<Self, TextError> {
        let mut counts: HashMap<char, u64> = HashMap::new();
        for char in texts.flat_map(str::chars) {
            *counts.entry(char).or_default() += 1;
        }
        if counts.is_empty() {
            return Err(TextError::NoText);
        }
        let counts = counts.into_iter();
        let counts = counts.map(|(char, count)| (char.to_string(), count));
        let vocabulary = Vocabulary::from_counts(
            counts.collect(),
            options.min_frequency as u64,
            options.vocab_size,
        );
        Ok(Self { vocabulary })
    }

    /// Says what is wrong if the tokens are no vocabulary.
    pub(super) fn new(tokens: Vec<String>) -> Result<Self, String> {
        let vocabulary = Vocabulary::new(tokens)?;
        Ok(Self { vocabulary })
    }

    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        let mut buffer = [0; 4];
        text.chars()
            .map(|char| self.vocabulary.id_in_text(char.encode_utf8(&mut buffer)))
            .collect()
    }

    pub(super) fn decode(&self, ids: &[u32]) -> String {
        ids.iter().map(|id| self.shown(*id)).collect()
    }

    pub(super) fn reached(&self, ids: &[u32]) -> Vec<Reached> {
        let mut counter = WordCounter::default();
        let reached = |id: &u32| {
            counter.push(self.shown(*id).chars());
            counter.reached()
        };
        ids.iter().map(reached).collect()
    }

    pub(super) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// What an id adds to a text.
    fn shown(&self, id: u32) -> &str {
        if [BOS, EOS, PAD].contains(&id) {
            ""
        } else {
            self.vocabulary.shown(id)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::UNK;
    use crate::tokenizer::TokenizerKind;

    #[test]
    fn every_character_is_a_token_or_unknown() {
        let tokens = ["<s>", "</s>", "<blank>", "<unk>", "a", " ", "ɹ", "<long>"];
        let characters = Characters::new(tokens.map(str::to_owned).into()).unwrap();
        assert_eq!(characters.encode("a ɹé"), [4, 5, 6, UNK]);
        assert_eq!(characters.encode("<s><long>").iter().max(), Some(&UNK));
        assert_eq!(
            characters.decode(&[BOS, 4, 5, 6, 7, UNK, 99, EOS]),
            "a ɹ<long><unk><unk>"
        );
        let reached = characters.reached(&[4, 5, 6, EOS]);
        let reached: Vec<_> = reached.iter().map(|end| (end.word, end.chars)).collect();
        assert_eq!(reached, [(0, 1), (0, 1), (1, 2), (1, 2)]);
    }

    #[test]
    fn the_characters_of_a_text_are_learned_and_come_back() {
        let options = |min_frequency| TokenizerOptions {
            kind: TokenizerKind::Characters,
            vocab_size: 0,
            min_frequency,
            lowercase: false,
        };
        let learn = |least| Characters::train(&options(least), &mut ["Ä a\n", "aa\n"].into_iter());
        let all = learn(1).unwrap();
        assert_eq!(all.vocabulary().tokens()[4..], ["a", "\n", " ", "Ä"]);
        assert_eq!(all.decode(&all.encode("a\nÄ a")), "a\nÄ a");
        assert_eq!(learn(2).unwrap().encode("aÄ\n"), [4, UNK, 5]);
        let nothing = Characters::train(&options(1), &mut std::iter::empty());
        assert!(matches!(nothing, Err(TextError::NoText)));
    }

    #[test]
    fn the_special_tokens_come_first() {
        let problem = Characters::new(vec!["a".to_owned()]).unwrap_err();
        assert!(problem.contains("first tokens"), "{problem}");
    }
}
