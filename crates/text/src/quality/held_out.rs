//! Held-out text: sentences of test sets, which training must not see.
//!
//! A score on sentences that were learned says nothing, and large corpora hold many of them by accident. Lines are
//! compared by their letters and digits in lower case, so that another punctuation or spelling of spaces hides
//! nothing. Users: `attentive-train` leaves such pairs out (`data.held_out`), [`super::inspect`] counts them,
//! [`super::clean`] removes them.

use std::collections::HashMap;

use super::hash;

/// The letters and digits of a line, hashed; nothing if it has none.
pub fn key(line: &str) -> Option<u64> {
    let letters = line.chars().filter(|character| character.is_alphanumeric());
    let letters: String = letters.flat_map(char::to_lowercase).collect();
    (!letters.is_empty()).then(|| hash(letters.as_bytes()))
}

/// Sentences that must not be learned, as hashes: a test set of any size takes little memory.
#[derive(Debug, Clone, Default)]
pub struct HeldOut {
    sentences: HashMap<u64, Seen>,
}

/// Whether a held-out sentence was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Seen {
    #[default]
    No,
    Yes,
}

impl HeldOut {
    /// Holds a line out.
    pub fn add(&mut self, line: &str) {
        if let Some(key) = key(line) {
            self.sentences.entry(key).or_default();
        }
    }

    /// Whether nothing is held out.
    pub fn is_empty(&self) -> bool {
        self.sentences.is_empty()
    }

    /// Whether the line is held out.
    pub fn holds(&self, line: &str) -> bool {
        key(line).is_some_and(|key| self.holds_key(key))
    }

    /// Whether the line with this key is held out.
    pub fn holds_key(&self, key: u64) -> bool {
        self.sentences.contains_key(&key)
    }

    /// Remembers that the line with this key was met, if it is held out.
    pub fn meet(&mut self, key: u64) {
        if let Some(seen) = self.sentences.get_mut(&key) {
            *seen = Seen::Yes;
        }
    }

    /// Whether the line was met.
    pub fn was_met(&self, line: &str) -> bool {
        key(line).is_some_and(|key| self.sentences.get(&key) == Some(&Seen::Yes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_held_out_however_it_is_punctuated() {
        let mut held_out = HeldOut::default();
        for line in ["Ein Hund bellt.", "...", ""] {
            held_out.add(line);
        }
        assert!(held_out.holds("ein hund  bellt!"));
        assert!(!held_out.holds("Zwei Hunde bellen.") && !held_out.holds("?!"));
        assert!(!held_out.was_met("Ein Hund bellt."));
        held_out.meet(key("EIN HUND BELLT").expect("letters"));
        assert!(held_out.was_met("Ein Hund bellt."));
    }
}
