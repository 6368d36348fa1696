//! Numbers for words, so that metrics compare and hash integers instead of strings.

use std::collections::HashMap;

use super::python_text;

/// The words that references have, numbered in order of appearance.
#[derive(Debug, Clone, Default)]
pub struct Vocabulary {
    numbers: HashMap<Box<str>, u32>,
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
