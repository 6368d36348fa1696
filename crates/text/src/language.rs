//! German or English: which of the two languages a text is in, and whether it is in neither.
//!
//! The built-in models translate between these two, and nobody wants to say which way. People type
//! single words, small letters and `ue` for `ü`, where detectors for a hundred languages guess: of
//! Tatoeba's held-out sentences `whatlang`, told to choose between these two, gets 96.6% right, of their
//! words 80%. Here a table of words and of the beginnings, middles and ends of words, learnt from
//! Tatoeba (`table.txt`), says how German each word is. Whether a text is in neither is judged by
//! its letters and by the small words of other languages (`foreign`).
//!
//! Before it on the data path: what the user typed, whose addresses and codes [`crate::keep`] hides.
//! After it: the choice of a model.

mod foreign;
#[cfg(test)]
mod learn;
mod table;

use std::fmt;
use std::str::FromStr;

use crate::keep;

/// A language that the built-in models translate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// Deutsch.
    German,
    /// English.
    English,
}

impl Language {
    /// Both languages.
    pub const ALL: [Self; 2] = [Self::German, Self::English];

    /// The code of ISO 639-1: `de` or `en`.
    pub fn code(self) -> &'static str {
        match self {
            Self::German => "de",
            Self::English => "en",
        }
    }

    /// The name in English.
    pub fn name(self) -> &'static str {
        match self {
            Self::German => "German",
            Self::English => "English",
        }
    }

    /// The language that a text in this one is translated into.
    pub fn other(self) -> Self {
        match self {
            Self::German => Self::English,
            Self::English => Self::German,
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// A language that is neither German nor English was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{asked}` is no language that is known here: use `de` (German) or `en` (English)")]
pub struct UnknownLanguage {
    /// What was asked for.
    pub asked: String,
}

impl FromStr for Language {
    type Err = UnknownLanguage;

    /// Reads a code (`de`, `de-AT`, `en_US`, `deu`, `eng`) or a name (`German`, `Deutsch`), in any case.
    fn from_str(asked: &str) -> Result<Self, UnknownLanguage> {
        let small = asked.trim().to_lowercase();
        let code = small.split(['-', '_']).next().unwrap_or_default();
        match code {
            "de" | "deu" | "ger" | "german" | "deutsch" => Ok(Self::German),
            "en" | "eng" | "english" | "englisch" => Ok(Self::English),
            _ => Err(UnknownLanguage {
                asked: asked.to_string(),
            }),
        }
    }
}

/// What [`detect`] found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Detected {
    /// Nothing that has a language: numbers, emoji, addresses, or nothing at all.
    NoWords,
    /// One of the two.
    Likely {
        /// The likelier of the two.
        language: Language,
        /// How sure that is, as a probability from 0.5 (a guess) to 1.
        sure: f64,
    },
    /// Probably another language.
    Neither {
        /// That of the two which the text resembles more, if one must be taken.
        nearer: Language,
    },
}

impl Detected {
    /// The likelier of the two languages, even if the text looks like neither.
    pub fn language(self) -> Option<Language> {
        match self {
            Self::NoWords => None,
            Self::Likely { language, .. } => Some(language),
            Self::Neither { nearer } => Some(nearer),
        }
    }
}

/// Says whether a text is German or English. Without any evidence, as for `ok`, that is a guess.
///
/// ```
/// use attentive_text::language::{Detected, Language, detect};
///
/// assert_eq!(detect("wo ist der bahnhof").language(), Some(Language::German));
/// assert_eq!(detect("Où est la gare ?"), Detected::Neither { nearer: Language::English });
/// assert_eq!(detect("42 😀"), Detected::NoWords);
/// ```
pub fn detect(text: &str) -> Detected {
    let hidden = keep::hide(text);
    let words = words(&hidden.text);
    if words.is_empty() {
        return Detected::NoWords;
    }
    let german: f64 = words.iter().map(|word| table::german(word)).sum();
    let language = if german > 0.0 {
        Language::German
    } else {
        Language::English
    };
    if foreign::is_foreign(&hidden.text, &words) {
        return Detected::Neither { nearer: language };
    }
    Detected::Likely {
        language,
        sure: 1.0 / (1.0 + (-german.abs()).exp()),
    }
}

/// The words of a text in small letters. An apostrophe belongs to its word, as in `don't`.
fn words(text: &str) -> Vec<String> {
    let small = text.to_lowercase().replace('’', "'");
    small
        .split(|c: char| !(c.is_alphabetic() || c == '\''))
        .map(|word| word.trim_matches('\''))
        .filter(|word| !word.is_empty())
        .map(str::to_string)
        .collect()
}
