//! What a user may choose about a tokenizer, checked before any text is read.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Result, TextError};
use crate::special::SPECIALS;

/// The kinds of tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenizerKind {
    /// Unicode words and punctuation marks; rare words become `<unk>`.
    Word,
    /// Lines that are cut already, with a tab between tokens; rare tokens become `<unk>`.
    Tabs,
    /// Byte-pair encoding: subwords that grow by merging frequent neighbors.
    Bpe,
    /// A unigram language model: subwords that remain when unlikely ones are pruned.
    Unigram,
    /// A SentencePiece file of another program; read, not trained.
    SentencePiece,
    /// Byte-pair encoding by the codes of subword-nmt; read, not trained.
    #[serde(rename = "subword-nmt")]
    SubwordNmt,
    /// The pieces of BERT, as a `tokenizer.json` or a `vocab.txt` has them.
    WordPiece,
    /// Single characters, line breaks included; rare ones become `<unk>`.
    Characters,
    /// Lines that are cut already, with a space between tokens; read, not trained.
    Spaces,
}

/// How to train a tokenizer. The defaults are those of recipes and of `attentive tokenizer train`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TokenizerOptions {
    /// The kind of tokenizer.
    pub kind: TokenizerKind,
    /// The most entries that the vocabulary may have, special tokens included. For words and characters, 0
    /// means no limit; subwords need 260 or more.
    pub vocab_size: usize,
    /// Words (or, for subwords, neighbors to merge) seen less often are left out.
    pub min_frequency: usize,
    /// Whether text is lowercased first; if so, decoding gives back lowercase.
    pub lowercase: bool,
}

impl Default for TokenizerOptions {
    fn default() -> Self {
        Self {
            kind: TokenizerKind::Unigram,
            vocab_size: 8000,
            min_frequency: 2,
            lowercase: false,
        }
    }
}

impl TokenizerOptions {
    /// Checks that the vocabulary can hold what this kind always holds.
    pub fn check(&self) -> Result<()> {
        let (least, why) = match self.kind {
            TokenizerKind::SentencePiece | TokenizerKind::SubwordNmt | TokenizerKind::Spaces => {
                return Err(TextError::NotTrained { kind: self.kind });
            }
            TokenizerKind::Characters if self.lowercase => {
                return Err(TextError::LowercaseCharacters);
            }
            TokenizerKind::Word | TokenizerKind::Tabs | TokenizerKind::Characters
                if self.vocab_size == 0 =>
            {
                return Ok(());
            }
            TokenizerKind::Word | TokenizerKind::Tabs | TokenizerKind::Characters => (
                SPECIALS.len() + 1,
                "4 special tokens and a word or character; 0 means no limit",
            ),
            TokenizerKind::WordPiece => (
                SPECIALS.len() + 2,
                "4 special tokens, [MASK] and a character",
            ),
            TokenizerKind::Bpe | TokenizerKind::Unigram => (
                SPECIALS.len() + 256,
                "4 special tokens and the 256 bytes, so that no text is unknown",
            ),
        };
        if self.vocab_size < least {
            let (kind, vocab_size) = (self.kind, self.vocab_size);
            return Err(TextError::VocabularyTooSmall {
                kind,
                vocab_size,
                least,
                why,
            });
        }
        Ok(())
    }
}

impl TokenizerKind {
    const ALL: [Self; 9] = [
        Self::Word,
        Self::Tabs,
        Self::Bpe,
        Self::Unigram,
        Self::SentencePiece,
        Self::SubwordNmt,
        Self::WordPiece,
        Self::Characters,
        Self::Spaces,
    ];

    /// The name in recipes, on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Word => "word",
            Self::Tabs => "tabs",
            Self::Bpe => "bpe",
            Self::Unigram => "unigram",
            Self::SentencePiece => "sentencepiece",
            Self::SubwordNmt => "subword-nmt",
            Self::WordPiece => "wordpiece",
            Self::Characters => "characters",
            Self::Spaces => "spaces",
        }
    }
}

impl fmt::Display for TokenizerKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for TokenizerKind {
    type Err = TextError;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| TextError::UnknownKind {
                name: name.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_on_the_command_line_and_in_files() {
        for kind in TokenizerKind::ALL {
            assert_eq!(kind.to_string().parse::<TokenizerKind>().unwrap(), kind);
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        let message = "letters".parse::<TokenizerKind>().unwrap_err().to_string();
        assert!(
            message.contains("letters") && message.contains("word, tabs, bpe"),
            "{message}"
        );
    }

    #[test]
    fn a_vocabulary_that_cannot_hold_the_bytes_is_refused() {
        for kind in [TokenizerKind::Bpe, TokenizerKind::Unigram] {
            let options = |vocab_size| TokenizerOptions {
                kind,
                vocab_size,
                ..Default::default()
            };
            assert!(options(260).check().is_ok());
            let message = options(259).check().unwrap_err().to_string();
            for part in ["`vocab_size` (259)", kind.name(), "needs 260 or more"] {
                assert!(message.contains(part), "{part} is not in: {message}");
            }
        }
    }

    #[test]
    fn a_word_list_has_no_limit_or_room_for_a_word() {
        for kind in [TokenizerKind::Word, TokenizerKind::Tabs] {
            let options = |vocab_size| TokenizerOptions {
                kind,
                vocab_size,
                ..Default::default()
            };
            assert!(options(0).check().is_ok() && options(5).check().is_ok());
            assert!(
                options(4)
                    .check()
                    .unwrap_err()
                    .to_string()
                    .contains("needs 5 or more")
            );
        }
    }

    #[test]
    fn missing_options_have_defaults_and_unknown_ones_are_refused() {
        let options: TokenizerOptions = serde_json::from_str(r#"{"kind": "tabs"}"#).unwrap();
        assert_eq!(
            options,
            TokenizerOptions {
                kind: TokenizerKind::Tabs,
                ..Default::default()
            }
        );
        assert!(serde_json::from_str::<TokenizerOptions>(r#"{"vocabsize": 1}"#).is_err());
    }
}
