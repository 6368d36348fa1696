//! What a vocabulary makes of a text: unknown tokens, and words that fall apart.

use rayon::prelude::*;

use crate::special::UNK;
use crate::tokenizer::Tokenizer;

/// What a tokenizer makes of some lines.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Coverage {
    /// Words, as spaces separate them.
    pub words: usize,
    /// Tokens.
    pub tokens: usize,
    /// Tokens that are `<unk>`.
    pub unknown: usize,
    /// Words of more than [`MANY`] tokens.
    pub in_many_pieces: usize,
}

/// A word of more tokens is hardly known.
pub const MANY: usize = 5;

impl Coverage {
    /// Of these lines.
    pub fn of<'a>(tokenizer: &Tokenizer, lines: impl IntoParallelIterator<Item = &'a str>) -> Self {
        let of_line = |line: &str| {
            let ids = tokenizer.encode(line);
            let pieces = line
                .split_whitespace()
                .map(|word| tokenizer.encode(word).len());
            let mut coverage = Self {
                tokens: ids.len(),
                ..Self::default()
            };
            coverage.unknown = ids.iter().filter(|id| **id == UNK).count();
            for pieces in pieces {
                coverage.words += 1;
                coverage.in_many_pieces += usize::from(pieces > MANY);
            }
            coverage
        };
        let lines = lines.into_par_iter().map(of_line);
        lines.reduce(Self::default, |a, b| Self {
            words: a.words + b.words,
            tokens: a.tokens + b.tokens,
            unknown: a.unknown + b.unknown,
            in_many_pieces: a.in_many_pieces + b.in_many_pieces,
        })
    }

    /// The share of the tokens that are unknown.
    pub fn unknown_share(&self) -> f64 {
        self.unknown as f64 / self.tokens.max(1) as f64
    }

    /// The share of the words that fall into many pieces.
    pub fn pieces_share(&self) -> f64 {
        self.in_many_pieces as f64 / self.words.max(1) as f64
    }

    /// Tokens of a word, on average.
    pub fn tokens_per_word(&self) -> f64 {
        self.tokens as f64 / self.words.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::{TokenizerKind, TokenizerOptions};

    #[test]
    fn unknown_words_and_words_in_pieces_are_counted() {
        let train = |kind, vocab_size| {
            let options = TokenizerOptions {
                kind,
                vocab_size,
                min_frequency: 1,
                lowercase: false,
            };
            Tokenizer::train(&options, &mut ["a b c d e"; 9].into_iter()).expect("a tokenizer")
        };
        let words = Coverage::of(&train(TokenizerKind::Word, 0), vec!["a b x y", "c d"]);
        assert_eq!((words.words, words.tokens, words.unknown), (6, 6, 2));
        assert!((words.unknown_share() - 1.0 / 3.0).abs() < 1e-9);
        let pieces = Coverage::of(&train(TokenizerKind::Bpe, 270), vec!["a verylongword"]);
        assert_eq!(
            (pieces.words, pieces.in_many_pieces, pieces.unknown),
            (2, 1, 0)
        );
    }
}
