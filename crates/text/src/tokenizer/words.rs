//! Word tokenizers: text cut into words (or cut already, with tabs), and a list of known words.
//!
//! The word list is that of the paper's first reproductions (spaCy tokens, words seen at least
//! twice). Words are found by the Unicode word boundaries (UAX #29); punctuation marks are tokens of
//! their own and spaces are dropped, so [`WordTokenizer::decode`] puts them back by rule.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation;

use super::lowercased;
use super::options::{TokenizerKind, TokenizerOptions};
use super::vocabulary::Vocabulary;
use crate::error::{Result, TextError};
use crate::special::{BOS, EOS, PAD};

/// A tokenizer with a list of words.
#[derive(Debug)]
pub(super) struct WordTokenizer {
    cut: Cut,
    lowercase: bool,
    vocabulary: Vocabulary,
}

/// Where one token ends and the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    UnicodeWords,
    Tabs,
}

/// The file's layout; `format` tells it apart from the subword library's files.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WordFile<'f> {
    format: Cow<'f, str>,
    kind: TokenizerKind,
    lowercase: bool,
    tokens: Cow<'f, [String]>,
}

pub(super) const FORMAT: &str = "attentive-words-1";

impl WordTokenizer {
    pub(super) fn train(
        options: &TokenizerOptions,
        texts: &mut dyn Iterator<Item = &str>,
    ) -> Result<Self> {
        let cut = match options.kind {
            TokenizerKind::Tabs => Cut::Tabs,
            _ => Cut::UnicodeWords,
        };
        let mut counts: HashMap<String, u64> = HashMap::new();
        for text in texts {
            let text = lowercased(text, options.lowercase);
            for token in cut.tokens(&text) {
                // Most tokens are known already, and looking one up needs no owned string.
                match counts.get_mut(token) {
                    Some(count) => *count += 1,
                    None => drop(counts.insert(token.to_owned(), 1)),
                }
            }
        }
        if counts.is_empty() {
            return Err(TextError::NoText);
        }
        let vocabulary =
            Vocabulary::from_counts(counts, options.min_frequency as u64, options.vocab_size);
        if vocabulary.len() == crate::special::SPECIALS.len() {
            return Err(TextError::NoFrequentWords {
                min_frequency: options.min_frequency,
            });
        }
        Ok(Self {
            cut,
            lowercase: options.lowercase,
            vocabulary,
        })
    }

    /// Reads the file's text; says what is wrong if it cannot be used.
    pub(super) fn from_json(json: &str) -> std::result::Result<Self, String> {
        let file: WordFile = serde_json::from_str(json).map_err(|error| error.to_string())?;
        if file.format != FORMAT {
            return Err(format!(
                "its format is {:?}, expected {FORMAT:?}",
                file.format
            ));
        }
        let cut = match file.kind {
            TokenizerKind::Word => Cut::UnicodeWords,
            TokenizerKind::Tabs => Cut::Tabs,
            other => return Err(format!("a word list cannot be of kind {other}")),
        };
        let vocabulary = Vocabulary::new(file.tokens.into_owned())?;
        Ok(Self {
            cut,
            lowercase: file.lowercase,
            vocabulary,
        })
    }

    pub(super) fn to_json(&self) -> String {
        let file = WordFile {
            format: Cow::Borrowed(FORMAT),
            kind: self.kind(),
            lowercase: self.lowercase,
            tokens: Cow::Borrowed(self.vocabulary.tokens()),
        };
        // Strings, a flag and an enum always have a JSON form.
        serde_json::to_string_pretty(&file).expect("a word list is plain JSON")
    }

    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        let text = lowercased(text, self.lowercase);
        self.cut
            .tokens(&text)
            .map(|token| self.vocabulary.id_in_text(token))
            .collect()
    }

    pub(super) fn decode(&self, ids: &[u32]) -> String {
        let tokens = ids
            .iter()
            .filter(|id| ![BOS, EOS, PAD].contains(id))
            .map(|id| self.vocabulary.shown(*id));
        match self.cut {
            Cut::Tabs => tokens.collect::<Vec<_>>().join(" "),
            Cut::UnicodeWords => joined(tokens),
        }
    }

    pub(super) fn kind(&self) -> TokenizerKind {
        match self.cut {
            Cut::UnicodeWords => TokenizerKind::Word,
            Cut::Tabs => TokenizerKind::Tabs,
        }
    }

    pub(super) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }
}

impl Cut {
    fn tokens(self, text: &str) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::UnicodeWords => Box::new(
                text.split_word_bounds()
                    .filter(|word| !word.chars().all(char::is_whitespace)),
            ),
            Self::Tabs => Box::new(text.split('\t').filter(|token| !token.is_empty())),
        }
    }
}

/// Words to a sentence: a space between two tokens unless either of them holds on to the other.
fn joined<'t>(tokens: impl Iterator<Item = &'t str>) -> String {
    let mut text = String::new();
    let mut glued = true; // nothing goes before the first token
    let mut quote_is_open = false;
    for token in tokens {
        let hold = match token {
            "\"" if quote_is_open => Hold::Left,
            "\"" => Hold::Right,
            _ => hold_of(token),
        };
        quote_is_open ^= token == "\"";
        if !glued && !matches!(hold, Hold::Left | Hold::Both) {
            text.push(' ');
        }
        text.push_str(token);
        glued = matches!(hold, Hold::Right | Hold::Both);
    }
    text
}

/// To which neighbour a token is written without a space.
#[derive(Clone, Copy)]
enum Hold {
    Neither,
    Left,
    Right,
    Both,
}

fn hold_of(token: &str) -> Hold {
    match token {
        "." | "," | "!" | "?" | ";" | ":" | ")" | "]" | "}" | "%" | "…" | "”" | "»" | "’" | "'" => {
            Hold::Left
        }
        "(" | "[" | "{" | "„" | "«" | "¿" | "¡" | "#" | "$" | "€" | "£" => Hold::Right,
        "-" | "/" | "@" | "_" => Hold::Both,
        _ => Hold::Neither,
    }
}
