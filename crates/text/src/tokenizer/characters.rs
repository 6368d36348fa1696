//! A tokenizer of single characters, for models that spell (letters to phonemes, for example).
//!
//! Every character (a Unicode scalar value, spaces included) is a token, or `<unk>`. Its neighbor
//! [`super::subword_nmt`] joins characters; [`super::imported`] is the file of both.

use super::vocabulary::Vocabulary;
use super::word_ids::{Reached, WordCounter};
use crate::special::{BOS, EOS, PAD};

/// A vocabulary of characters. Longer tokens never come from text, but are shown when a model predicts them.
#[derive(Debug)]
pub(super) struct Characters {
    vocabulary: Vocabulary,
}

impl Characters {
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
    fn the_special_tokens_come_first() {
        let problem = Characters::new(vec!["a".to_owned()]).unwrap_err();
        assert!(problem.contains("first tokens"), "{problem}");
    }
}
