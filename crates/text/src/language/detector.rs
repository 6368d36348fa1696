//! Which of the languages in play a text is in, and how sure that is.
//!
//! Scripts decide first (`scripts`), then how probable the words and their parts are in each language (`profiles`),
//! and between German and English a table made for these two (`table`). A text that is far more probable in a
//! language that is not in play is said to be in that one.

use super::{canonical, profiles, scripts, table, words};
use crate::keep;

/// Tells a set of languages apart, such as those that the installed models translate from.
///
/// ```
/// use attentive_text::language::Detector;
///
/// let detector = Detector::new(["de", "en", "fr"]);
/// let found = detector.detect("Où est la gare ?");
/// assert_eq!(found.best().map(|guess| guess.language), Some("fr"));
/// assert_eq!(detector.detect("¿Dónde está la estación?").other, Some("es"));
/// assert!(detector.detect("42 😀").best().is_none());
/// ```
#[derive(Debug, Clone)]
pub struct Detector {
    /// As they were given.
    languages: Vec<String>,
    /// What is compared: those in play in their order, then all others that are known.
    candidates: Vec<Candidate>,
    /// The candidates of each code of two letters, by [`place_of`].
    places: Vec<Vec<usize>>,
}

#[derive(Debug, Clone)]
struct Candidate {
    code: String,
    latin: bool,
}

/// What [`Detector::detect`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct Detection<'a> {
    /// All languages in play, the likeliest first; none if the text has no words.
    pub ranked: Vec<Guess<'a>>,
    /// The language that the text rather is in, if that is none of those in play.
    pub other: Option<&'static str>,
}

/// A language that a text may be in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Guess<'a> {
    /// Its code, as the detector was given it.
    pub language: &'a str,
    /// How probable that is, from 0 to 1. All languages in play together have less than 1 if the text may be in
    /// another language.
    pub confidence: f64,
}

impl<'a> Detection<'a> {
    /// The likeliest language in play, even if the text looks like another.
    pub fn best(&self) -> Option<Guess<'a>> {
        self.ranked.first().copied()
    }
}

/// What a word costs a language that is not written in its script.
const FOREIGN_SCRIPT: f64 = 10.0;

/// Chinese letters without any kana are Chinese more often than Japanese.
const NO_KANA: f64 = 2.0;

/// By how much a language that is not in play must be better: people rather write what can be translated.
const NOT_IN_PLAY: f64 = 9.0;

/// The words of a text depend on each other, so their points are worth less than their sum: with this the
/// confidence is as high as the share that is right.
const TEMPERATURE: f64 = 1.2;

impl Detector {
    /// A detector for languages by their codes, each of which is given back as it is here. A language in Latin,
    /// Cyrillic or Arabic letters that has no profile is never the likeliest of several.
    pub fn new<S: Into<String>>(languages: impl IntoIterator<Item = S>) -> Self {
        let languages: Vec<String> = languages.into_iter().map(Into::into).collect();
        let mut candidates: Vec<Candidate> = Vec::new();
        candidates.extend(languages.iter().map(|code| Candidate::new(profile(code))));
        for code in known() {
            if !candidates.iter().any(|candidate| candidate.code == code) {
                candidates.push(Candidate::new(code.to_owned()));
            }
        }
        let mut places = vec![Vec::new(); LETTERS * LETTERS];
        for (index, candidate) in candidates.iter().enumerate() {
            if let Some(place) = place_of(&candidate.code) {
                places[place].push(index);
            }
        }
        Self {
            languages,
            candidates,
            places,
        }
    }

    /// The languages in play, as they were given.
    pub fn languages(&self) -> &[String] {
        &self.languages
    }

    /// Ranks the languages in play for a text. Without any evidence, as for `Tom`, that is a guess.
    pub fn detect(&self, text: &str) -> Detection<'_> {
        let hidden = keep::hide(text);
        let words = words(&hidden.text);
        if words.is_empty() {
            return Detection {
                ranked: Vec::new(),
                other: None,
            };
        }
        let scores = self.scores(&words);
        let (in_play, others) = scores.split_at(self.languages.len());
        let best = |scores: &[f64]| scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (top, top_other) = (best(in_play), best(others) - NOT_IN_PLAY);
        let weight = |score: f64| ((score - top.max(top_other)) / TEMPERATURE).exp();
        let all = in_play.iter().copied().map(weight).sum::<f64>()
            + others
                .iter()
                .map(|score| weight(score - NOT_IN_PLAY))
                .sum::<f64>();
        let mut confidence: Vec<f64> = in_play.iter().map(|score| weight(*score) / all).collect();
        self.tell_german_from_english(&words, &mut confidence);
        let guesses = self.languages.iter().zip(confidence);
        let mut ranked: Vec<Guess> = guesses
            .map(|(language, confidence)| Guess {
                language,
                confidence,
            })
            .collect();
        ranked.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
        let other = || {
            let index = others
                .iter()
                .position(|score| score - NOT_IN_PLAY == top_other)?;
            let candidate = &self.candidates[self.languages.len() + index];
            known().find(|known| *known == candidate.code)
        };
        Detection {
            ranked,
            other: (top_other > top).then(other).flatten(),
        }
    }

    /// How probable the words are in each candidate: logarithms, without what all have in common.
    fn scores(&self, words: &[String]) -> Vec<f64> {
        let mut scores = vec![0.0; self.candidates.len()];
        for word in words {
            let letters = word.chars().filter(|c| *c != '\'');
            let mut scripts: Vec<Option<&str>> = letters.map(scripts::languages).collect();
            scripts.dedup();
            for (candidate, score) in self.candidates.iter().zip(&mut scores) {
                if !scripts.iter().all(|script| candidate.writes(*script)) {
                    *score -= FOREIGN_SCRIPT;
                }
            }
        }
        let kana = |c: char| matches!(c, '\u{3040}'..='\u{30FF}');
        if !words.iter().any(|word| word.contains(kana)) {
            let candidates = self.candidates.iter().zip(&mut scores);
            let japanese = candidates.filter(|(candidate, _)| candidate.code == "ja");
            japanese.for_each(|(_, score)| *score -= NO_KANA);
        }
        for word in words {
            profiles::points(word, |code, points| {
                for &index in place_of(code)
                    .into_iter()
                    .flat_map(|place| &self.places[place])
                {
                    scores[index] += points;
                }
            });
        }
        scores
    }

    /// Divides what German and English have together by the table that was made for these two.
    fn tell_german_from_english(&self, words: &[String], confidence: &mut [f64]) {
        let place = |code| {
            let in_play = &self.candidates[..self.languages.len()];
            in_play.iter().position(|candidate| candidate.code == code)
        };
        if let (Some(german), Some(english)) = (place("de"), place("en")) {
            let both = confidence[german] + confidence[english];
            let odds: f64 = words.iter().map(|word| table::german(word)).sum();
            confidence[german] = both / (1.0 + (-odds).exp());
            confidence[english] = both / (1.0 + odds.exp());
        }
    }
}

const LETTERS: usize = 26;

/// A number for each code of two letters, which all languages with profiles have.
fn place_of(code: &str) -> Option<usize> {
    match code.as_bytes() {
        [a @ b'a'..=b'z', b @ b'a'..=b'z'] => {
            Some(usize::from(a - b'a') * LETTERS + usize::from(b - b'a'))
        }
        _ => None,
    }
}

impl Candidate {
    fn new(code: String) -> Self {
        let latin = scripts::is_latin(&code);
        Self { code, latin }
    }

    /// Whether it is written in the script of these languages, Latin if there are none.
    fn writes(&self, script: Option<&str>) -> bool {
        match script {
            Some(codes) => codes.split(' ').any(|code| code == self.code),
            None => self.latin,
        }
    }
}

/// All languages that are known here; some more than once.
fn known() -> impl Iterator<Item = &'static str> {
    PROFILES.split(' ').chain(scripts::codes())
}

/// The languages that `profiles.txt` knows.
const PROFILES: &str = "af ar az be bg ca cs cy da de en eo es et eu fa fi fr ga hr hu id is it kk la lt lv mk nl no pl \
                        pt ro ru sk sl sq sr sv sw tl tr uk ur vi";

/// The code under which a language is known here: some are too close to be told apart.
fn profile(code: &str) -> String {
    let code = canonical(code);
    match code.as_str() {
        "nb" | "nn" => "no".to_owned(),
        "bs" | "sh" => "hr".to_owned(),
        "ms" => "id".to_owned(),
        "fil" => "tl".to_owned(),
        _ => code,
    }
}

#[cfg(test)]
mod tests;
