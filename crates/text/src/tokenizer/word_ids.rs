//! Which word of the decoded text each token belongs to, and how far it reaches, in one pass over the tokens.
//!
//! Words are what white space separates. A token belongs to the last word of the text of all tokens up to
//! it. [`WordCounter`] reads that text as it grows, so that no text is decoded twice.

/// How far the text of some tokens goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reached {
    /// The number of its last word, counted from 0.
    pub word: usize,
    /// How many characters it has that are not white space.
    pub chars: usize,
}

/// Counts the words of a text that grows, in characters or in bytes.
#[derive(Default)]
pub(super) struct WordCounter {
    words: usize,
    chars: usize,
    within_word: bool,
    /// The first bytes of a character that is not complete.
    bytes: Vec<u8>,
}

impl WordCounter {
    /// Appends characters, after which an incomplete one before them stays incomplete.
    pub fn push(&mut self, chars: impl IntoIterator<Item = char>) {
        if !self.bytes.is_empty() {
            self.bytes.clear();
            self.push_char(char::REPLACEMENT_CHARACTER);
        }
        chars.into_iter().for_each(|char| self.push_char(char));
    }

    /// Appends bytes, which may begin and end within a character.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let bytes = std::mem::take(&mut self.bytes);
        let mut rest = bytes.as_slice();
        while let Err(error) = std::str::from_utf8(rest) {
            let (valid, invalid) = rest.split_at(error.valid_up_to());
            self.push(String::from_utf8_lossy(valid).chars());
            let Some(length) = error.error_len() else {
                self.bytes = invalid.to_vec();
                return;
            };
            self.push_char(char::REPLACEMENT_CHARACTER);
            rest = &invalid[length..];
        }
        self.push(String::from_utf8_lossy(rest).chars());
    }

    /// How far the text goes up to here; a character that is not complete is part of it.
    pub fn reached(&self) -> Reached {
        let incomplete = !self.bytes.is_empty();
        let begun = incomplete && !self.within_word;
        Reached {
            word: (self.words + usize::from(begun)).saturating_sub(1),
            chars: self.chars + usize::from(incomplete),
        }
    }

    fn push_char(&mut self, char: char) {
        let before = std::mem::replace(&mut self.within_word, !char.is_whitespace());
        self.words += usize::from(self.within_word && !before);
        self.chars += usize::from(self.within_word);
    }
}
