//! The tokenizers that decide what a word is to BLEU: `13a`, `intl`, `zh`, `char`, `none` and, with a
//! SentencePiece model, `spm`.
//!
//! Scores compare only between equal tokenizers, so the tokenizer's name is part of every signature.

mod chinese;
mod international;
mod unicode_classes;
pub(super) mod western;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::MetricError;

/// How BLEU splits a sentence into words.
#[derive(Debug, Clone, Default)]
pub enum BleuTokenizer {
    /// mteval-v13a's rules for Western languages: what WMT reports.
    #[default]
    Mteval13a,
    /// mteval-v14's rules: splits at all Unicode punctuation and symbols.
    International,
    /// Chinese characters are words.
    Chinese,
    /// Every character is a word.
    Character,
    /// The text is already tokenized; words stand between white space.
    None,
    /// Words are the pieces of a SentencePiece model (spBLEU).
    SentencePiece(PieceFunction),
}

/// A function that cuts a sentence into pieces, such as a SentencePiece model.
#[derive(Clone)]
pub struct PieceFunction(Arc<Pieces>);

type Pieces = dyn Fn(&str) -> Vec<String> + Send + Sync;

impl BleuTokenizer {
    /// The name of the tokenizer that needs a model file.
    pub const SENTENCE_PIECE: &'static str = "spm";

    /// All tokenizers that need no file, in the order in which messages list them.
    pub const BUILT_IN: [Self; 5] = [
        Self::Mteval13a,
        Self::International,
        Self::Chinese,
        Self::Character,
        Self::None,
    ];

    /// The tokenizer `spm`: `pieces` cuts a sentence as the SentencePiece model does.
    pub fn sentence_piece(pieces: impl Fn(&str) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self::SentencePiece(PieceFunction(Arc::new(pieces)))
    }

    /// The name in signatures and on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Mteval13a => "13a",
            Self::International => "intl",
            Self::Chinese => "zh",
            Self::Character => "char",
            Self::None => "none",
            Self::SentencePiece(_) => Self::SENTENCE_PIECE,
        }
    }

    /// The sentence with its words separated by white space.
    pub fn tokenize<'a>(&self, line: &'a str) -> Cow<'a, str> {
        match self {
            Self::Mteval13a => Cow::Owned(western::tokenize_13a(line)),
            Self::International => Cow::Owned(international::tokenize_international(line)),
            Self::Chinese => Cow::Owned(chinese::tokenize_chinese(line)),
            Self::Character => Cow::Owned(line.chars().flat_map(|c| [c, ' ']).collect()),
            Self::None => Cow::Borrowed(line),
            Self::SentencePiece(PieceFunction(pieces)) => Cow::Owned(pieces(line).join(" ")),
        }
    }
}

impl fmt::Debug for PieceFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PieceFunction")
    }
}

impl fmt::Display for BleuTokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for BleuTokenizer {
    type Err = MetricError;

    /// A tokenizer that needs no file; `spm` is made from a model by [`BleuTokenizer::sentence_piece`].
    fn from_str(name: &str) -> Result<Self, MetricError> {
        let known = Self::BUILT_IN.into_iter().find(|one| one.name() == name);
        known.ok_or_else(|| match name {
            "ja-mecab" | "ko-mecab" => MetricError::UnavailableTokenizer {
                name: name.to_owned(),
                reason: "it needs MeCab and its dictionary; use `char`".to_owned(),
            },
            "spm" | "flores101" | "flores200" | "spBLEU-1K" => MetricError::UnavailableTokenizer {
                name: name.to_owned(),
                reason: "it needs a SentencePiece model file; give one with \
                         `--tokenize spm --spm-model FILE`"
                    .to_owned(),
            },
            _ => MetricError::UnknownName {
                kind: "tokenizer",
                name: name.to_owned(),
                known: format!(
                    "{}, {}",
                    Self::BUILT_IN.map(|one| one.name()).join(", "),
                    Self::SENTENCE_PIECE
                ),
            },
        })
    }
}
