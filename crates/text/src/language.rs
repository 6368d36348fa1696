//! German or English: which of the two languages a text is in, and whether it is in neither.
//!
//! The built-in models translate between these two, and nobody wants to say which way. People type
//! single words, lowercase and `ue` for `ü`, where detectors for a hundred languages guess: of
//! Tatoeba's held-out sentences `whatlang`, told to choose between these two, gets 96.6% right, of their
//! words 80%. Here a table of words and of the beginnings, middles and ends of words, learned from
//! Tatoeba (`table.txt`), says how German each word is. Whether a text is in neither is judged by
//! its letters and by the frequent short words of other languages (`foreign`).
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

/// Says whether a text is German or English. Without any evidence, as for `Tom`, that is a guess.
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
    use std::path::Path;

    use super::*;
    use crate::lines::read_lines;

    #[test]
    fn what_people_type_is_recognized() {
        let german = [
            "Hallo",
            "danke schoen",
            "guten morgen wie geht es dir",
            "WO IST DER BAHNHOF",
            "Ich liebe dich",
            "Grüße",
            "der",
            "tschüss",
            "Wie spät ist es?",
            "mir ist kalt",
            "Straßenbahnhaltestelle",
            "bitte",
            "Ja",
            "nein",
            "das weiss ich nicht",
            "fuer dich",
            "Krankenversicherung",
            "Guten Tag!",
            "Wir fahren nach Łódź",
            "Das Café ist à la mode",
            "gehts dir gut?",
            "was ist das",
        ];
        let english = [
            "hello",
            "Where is the station",
            "the",
            "I love you",
            "THANK YOU VERY MUCH",
            "yes",
            "no",
            "what's up",
            "don’t worry",
            "good morning",
            "see you",
            "where are you",
            "how much is it",
            "neighbourhood",
            "We live in São Paulo",
            "i dont know",
            "Please help me",
            "sorry",
            "my name is tom",
        ];
        for (texts, expected) in [
            (&german[..], Language::German),
            (&english, Language::English),
        ] {
            for text in texts {
                let Detected::Likely { language, sure } = detect(text) else {
                    panic!("{text}: {:?}", detect(text));
                };
                assert_eq!(language, expected, "{text}");
                assert!((0.5..=1.0).contains(&sure), "{text}: {sure}");
            }
        }
    }

    #[test]
    fn other_languages_are_neither() {
        for text in [
            "Bonjour, comment allez-vous ?",
            "Je ne sais pas",
            "Où est la gare ?",
            "Il fait beau aujourd'hui",
            "C'est la vie, mon ami",
            "Je voudrais une baguette, s'il vous plaît",
            "¿Dónde está la estación?",
            "No sé qué hacer",
            "Buenos días, señor",
            "hola como estas",
            "Me gusta el café con leche",
            "Buongiorno, come stai?",
            "Non lo so",
            "Mi piace questa città",
            "Bom dia, como você está?",
            "Eu não sei",
            "Ik weet het niet",
            "Hoe gaat het met jou?",
            "Dzień dobry, jak się masz?",
            "Nie wiem, gdzie jest dworzec",
            "Jag vet inte",
            "Jeg ved det ikke",
            "Bilmiyorum, teşekkürler",
            "Děkuji, nevím",
            "Nem tudom",
            "Nu știu",
            "En tiedä missä hän on",
            "Saya tidak tahu",
            "Привет",
            "Где вокзал?",
            "你好",
            "駅はどこですか",
            "Γειά σου",
            "أين المحطة",
            "안녕하세요",
            "Дякую",
            "Xin chào, bạn khỏe không?",
        ] {
            assert!(
                matches!(detect(text), Detected::Neither { .. }),
                "{text}: {:?}",
                detect(text)
            );
        }
    }

    #[test]
    fn without_words_there_is_no_language() {
        for text in [
            "",
            " \n",
            "42",
            "3,14 %",
            "😀",
            "https://www.example.com/the",
            "a@example.com",
            "?!",
            "\u{E000}",
        ] {
            assert_eq!(detect(text), Detected::NoWords, "{text}");
            assert_eq!(detect(text).language(), None);
        }
    }

    #[test]
    fn a_name_says_little_and_a_sentence_much() {
        let sure = |text| match detect(text) {
            Detected::Likely { sure, .. } => sure,
            other => panic!("{text}: {other:?}"),
        };
        assert!(sure("Tom") < 0.7, "{}", sure("Tom"));
        assert!(sure("computer") < 0.7, "{}", sure("computer"));
        assert!(sure("Ich weiß nicht, wo der Bahnhof ist.") > 0.99);
        assert!(sure("Tom was belligerent.") < sure("I do not know where the station is."));
    }

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

    /// Makes texts out of a line.
    type Change = fn(&str) -> Vec<String>;

    /// How many of the texts of a corpus are taken for what they are, and how many for neither, in
    /// percent.
    fn measure(corpus: &str, change: Change) -> Option<(f64, f64)> {
        let data = std::env::var_os("ATTENTIVE_DATA")?;
        let (mut right, mut neither, mut all) = (0, 0, 0);
        for language in Language::ALL {
            let path = Path::new(&data).join(format!("{corpus}.{}.gz", language.code()));
            for text in read_lines(&path)
                .unwrap()
                .iter()
                .flat_map(|line| change(line))
            {
                let detected = detect(&text);
                right += usize::from(detected.language() == Some(language));
                neither += usize::from(matches!(detected, Detected::Neither { .. }));
                all += 1;
            }
        }
        let percent = |count: usize| count as f64 * 100.0 / all as f64;
        eprintln!(
            "{corpus}: {:.2}% of {all} right, {:.2}% neither",
            percent(right),
            percent(neither)
        );
        Some((percent(right), percent(neither)))
    }

    /// As some people type: lowercase, no punctuation, no umlauts.
    fn careless(line: &str) -> Vec<String> {
        let line = words(line).join(" ").replace('ß', "ss").replace('ä', "ae");
        vec![line.replace('ö', "oe").replace('ü', "ue")]
    }

    #[test]
    fn german_and_english_sentences_are_told_apart() {
        let whole = |line: &str| vec![line.to_string()];
        let tatoeba = "tatoeba/val";
        let multi30k = "multi30k/test_2016_flickr";
        let cases: [(&str, Change, f64); 5] = [
            (tatoeba, whole, 99.8),
            (multi30k, whole, 99.9),
            (tatoeba, careless, 99.7),
            (multi30k, careless, 99.9),
            // Many words are the same in both languages: `in`, `war`, `Tom`.
            (tatoeba, words, 94.5),
        ];
        for (corpus, change, least) in cases {
            let Some((right, neither)) = measure(corpus, change) else {
                eprintln!(
                    "SKIPPED: set ATTENTIVE_DATA to the data folder to measure how much is recognized"
                );
                return;
            };
            assert!(right >= least, "{corpus}: {right}% are right");
            assert!(
                neither <= 1.0,
                "{corpus}: {neither}% are taken for other languages"
            );
        }
    }
}
