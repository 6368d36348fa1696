//! Which language a text is in, and what languages are called.
//!
//! Nobody wants to say which language they type. The [`Detector`] is told which languages are in play (those that
//! the models at hand read): telling two apart is easier than telling hundreds apart, and people type single
//! words, lowercase and `ue` for `ü`, where detectors for a hundred languages guess. Measured in
//! docs/languages.md: of one to five words nothing is better in 49 languages; `lingua` is about as good, but adds 250 MB to a
//! program; `whichlang` is better at whole sentences, but knows 16 languages and cannot be told which of them are in play.
//!
//! `detector` decides, by scripts (`scripts`), by tables of words and their parts for many languages (`profiles`) and
//! for German against English alone (`table`, which is right about 95% of Tatoeba's words, where the profiles are about
//! 93%). The tables are learned by tests (`learn_profiles`, `learn`). `names` has codes and names.
//!
//! Before it on the data path: what the user typed, whose addresses and codes [`crate::keep`] hides.
//! After it: the choice of a model.

mod detector;
#[cfg(test)]
mod learn;
#[cfg(test)]
mod learn_profiles;
mod names;
mod profiles;
mod scripts;
mod table;

use std::fmt;
use std::str::FromStr;

pub use detector::{Detection, Detector, Guess};
pub use names::{canonical, name, normalized};

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
        let lower = asked.trim().to_lowercase();
        let code = lower.split(['-', '_']).next().unwrap_or_default();
        match code {
            "de" | "deu" | "ger" | "german" | "deutsch" => Ok(Self::German),
            "en" | "eng" | "english" | "englisch" => Ok(Self::English),
            _ => Err(UnknownLanguage {
                asked: asked.to_string(),
            }),
        }
    }
}

/// German as typed on a keyboard without umlauts.
pub fn without_umlauts(line: &str) -> String {
    let mut plain = String::with_capacity(line.len() + 8);
    for letter in line.chars() {
        match letter {
            'ä' => plain.push_str("ae"),
            'ö' => plain.push_str("oe"),
            'ü' => plain.push_str("ue"),
            'Ä' => plain.push_str("Ae"),
            'Ö' => plain.push_str("Oe"),
            'Ü' => plain.push_str("Ue"),
            'ß' => plain.push_str("ss"),
            _ => plain.push(letter),
        }
    }
    plain
}

/// The words of a text in lowercase. An apostrophe belongs to its word, as in `don't`.
fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase().replace('’', "'");
    lower
        .split(|c: char| !(c.is_alphabetic() || c == '\''))
        .map(|word| word.trim_matches('\''))
        .filter(|word| !word.is_empty())
        .map(str::to_string)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_read_from_codes_and_names() {
        for (text, language) in [
            ("de", Language::German),
            ("DE-at", Language::German),
            ("Deutsch", Language::German),
            (" german ", Language::German),
            ("en", Language::English),
            ("en_US", Language::English),
            ("English", Language::English),
        ] {
            assert_eq!(text.parse(), Ok(language), "{text}");
        }
        for language in Language::ALL {
            assert_eq!(language.code().parse(), Ok(language));
            assert_eq!(language.to_string().parse(), Ok(language));
            assert_eq!(language.other().other(), language);
            assert_ne!(language.other(), language);
        }
        let error = "fr".parse::<Language>().unwrap_err().to_string();
        assert!(error.contains("`fr`") && error.contains("`de`"), "{error}");
    }
}
