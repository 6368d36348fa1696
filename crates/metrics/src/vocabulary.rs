//! Numbers for words, so that metrics compare and hash integers instead of strings.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::python_text;

/// The words that references have, numbered in order of appearance.
#[derive(Debug, Clone, Default)]
pub struct Vocabulary {
    numbers: HashMap<Box<str>, u32, BuildHasherDefault<WordHasher>>,
}

/// Stands for every word that is in no reference, and so matches none.
pub const UNKNOWN: u32 = u32::MAX;

impl Vocabulary {
    /// The number of a word, a new one if it has none yet.
    pub fn add(&mut self, word: &str) -> u32 {
        if let Some(&number) = self.numbers.get(word) {
            return number;
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(word.into(), number);
        number
    }

    /// The number of a word, or [`UNKNOWN`].
    pub fn get(&self, word: &str) -> u32 {
        self.numbers.get(word).copied().unwrap_or(UNKNOWN)
    }

    /// Numbers the words of a text that white space separates.
    pub fn add_words(&mut self, text: &str) -> Vec<u32> {
        python_text::words(text)
            .map(|word| self.add(word))
            .collect()
    }
}

/// A hash for short strings, eight bytes at a time. It need not resist attacks: who chooses the words
/// only slows down the scoring of those words.
#[derive(Default)]
struct WordHasher {
    state: u64,
}

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.mix(u64::from(byte));
    }

    fn finish(&self) -> u64 {
        self.state ^ (self.state >> 32)
    }
}

impl WordHasher {
    fn mix(&mut self, word: u64) {
        self.state = (self.state.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_numbers_and_unknown_ones_have_none() {
        let mut vocabulary = Vocabulary::default();
        assert_eq!(vocabulary.add_words("a b a\u{3000}c"), [0, 1, 0, 2]);
        assert_eq!(vocabulary.get("b"), 1);
        assert_eq!(vocabulary.get("d"), UNKNOWN);
    }
}
