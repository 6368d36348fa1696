//! Languages: sides that are in another one than the rest of the corpus.
//!
//! The [`Detector`] decides, and only where it can: a line of a few words may be a name in any language. It takes a
//! tenth of a millisecond, so it is not asked about lines whose words are plainly those of their own side (`Usual`).

use std::collections::HashMap;

use rayon::prelude::*;

use super::words::words;
use crate::language::Detector;

/// What is expected of each side.
#[derive(Debug, Clone)]
pub struct LanguageCheck {
    detector: Detector,
    usual: Usual,
}

/// How much each word speaks for the source side, learned from some pairs; negative for the target side.
#[derive(Debug, Clone, Default)]
struct Usual {
    odds: HashMap<u64, f32>,
}

/// What the languages of a pair say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing, or that all is well.
    Fine,
    /// Each side is in the language of the other.
    Swapped,
    /// At least one side is in another language.
    Wrong,
}

/// What language a side seems to be in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seems {
    Unknown,
    Own,
    Others,
    Foreign,
}

/// How sure the detector must be that a side is in the language of the other one.
const SURE: f64 = 0.99;

/// Lines with fewer words, or fewer letters, are not judged.
const FEWEST_WORDS: usize = 4;
const FEWEST_LETTERS: usize = 20;

impl LanguageCheck {
    /// Expects these two languages, by their codes; nothing can be expected if they are the same. Most of `pairs`
    /// are as they should be.
    pub fn new(src: &str, tgt: &str, pairs: &[(&str, &str)]) -> Option<Self> {
        if src == tgt {
            return None;
        }
        let mut check = Self {
            detector: Detector::new([src, tgt]),
            usual: Usual::default(),
        };
        check.usual = check.learn(pairs);
        Some(check)
    }

    /// Learns from lines that the detector takes for their own side's: words of another language that is frequent on a
    /// side must not become usual.
    fn learn(&self, pairs: &[(&str, &str)]) -> Usual {
        let stride = pairs.len().div_ceil(LEARNED_PAIRS).max(1);
        let pairs: Vec<&(&str, &str)> = pairs.iter().step_by(stride).collect();
        let own = |line, side| self.seems(line, side) == Seems::Own;
        let sure: Vec<[bool; 2]> = pairs
            .par_iter()
            .map(|(src, tgt)| [own(src, 0), own(tgt, 1)])
            .collect();
        let mut counts: HashMap<u64, [f32; 2]> = HashMap::new();
        for ((src, tgt), sure) in pairs.into_iter().zip(sure) {
            for (side, line) in [src, tgt].into_iter().enumerate() {
                if sure[side] {
                    words(line).for_each(|word| counts.entry(word).or_default()[side] += 1.0);
                }
            }
        }
        let often = counts
            .into_iter()
            .filter(|(_, [src, tgt])| src + tgt >= 3.0);
        let odds = often.map(|(word, [src, tgt])| (word, ((src + 0.5) / (tgt + 0.5)).ln()));
        Usual {
            odds: odds.collect(),
        }
    }

    /// Looks at a pair.
    pub fn check(&self, src: &str, tgt: &str) -> Verdict {
        match (self.seems(src, 0), self.seems(tgt, 1)) {
            (Seems::Others, Seems::Others) => Verdict::Swapped,
            (Seems::Others | Seems::Foreign, _) | (_, Seems::Others | Seems::Foreign) => {
                Verdict::Wrong
            }
            _ => Verdict::Fine,
        }
    }

    fn seems(&self, line: &str, side: usize) -> Seems {
        if !is_judged(line) {
            return Seems::Unknown;
        }
        if self.usual.is_plainly(line, side) {
            return Seems::Own;
        }
        let found = self.detector.detect(line);
        if found.other.is_some() {
            return Seems::Foreign;
        }
        let own = &self.detector.languages()[side];
        match found.best() {
            Some(best) if best.language == own => Seems::Own,
            Some(best) if best.confidence >= SURE => Seems::Others,
            _ => Seems::Unknown,
        }
    }
}

impl Usual {
    /// Whether the words of a line speak for its side by far.
    fn is_plainly(&self, line: &str, side: usize) -> bool {
        let (mut sum, mut count) = (0.0, 0.0);
        for word in words(line) {
            sum += self.odds.get(&word).copied().unwrap_or(0.0);
            count += 1.0;
        }
        let own = if side == 0 { sum } else { -sum };
        own >= PLAIN_SUM && own >= PLAIN_MEAN * count
    }
}

/// What the words of a line must say for their side, all together and each on average.
const PLAIN_SUM: f32 = 6.0;
const PLAIN_MEAN: f32 = 1.0;

/// Words are learned from at most so many pairs.
const LEARNED_PAIRS: usize = 2000;

/// Whether a line has enough words that are no names: some begin in lower case, unless the script has no case.
fn is_judged(line: &str) -> bool {
    let mut words = 0;
    let mut letters = 0;
    for word in line.split_whitespace() {
        let mut own = word.chars().filter(|c| c.is_alphabetic()).peekable();
        if own.peek().is_some_and(|first| !first.is_uppercase()) {
            words += 1;
            letters += own.count();
        }
    }
    words >= FEWEST_WORDS && letters >= FEWEST_LETTERS
}

/// The language that most of these lines seem to be in, if most of them seem to be in one.
pub fn most_frequent(lines: &[&str]) -> Option<String> {
    let detector = Detector::new(Vec::<String>::new());
    let mut counts: Vec<(&str, usize)> = Vec::new();
    let mut judged = 0;
    // Lines may be single words, so some are read together.
    for together in lines.chunks(LINES_TOGETHER) {
        if let Some(code) = detector.detect(&together.join("\n")).other {
            judged += 1;
            match counts.iter_mut().find(|(known, _)| *known == code) {
                Some((_, count)) => *count += 1,
                None => counts.push((code, 1)),
            }
        }
    }
    let (code, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (count * 2 > judged).then(|| code.to_owned())
}

const LINES_TOGETHER: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const GERMAN: &str = "Ein Mann geht mit seinem Hund durch den Wald.";
    const ENGLISH: &str = "A man is walking his dog through the woods.";
    const FRENCH: &str = "Un homme se promène avec son chien dans la forêt.";

    #[test]
    fn sides_in_the_wrong_language_are_found() {
        let check =
            LanguageCheck::new("de", "en", &[(GERMAN, ENGLISH); 20]).expect("two languages");
        assert!(check.usual.is_plainly(GERMAN, 0) && check.usual.is_plainly(ENGLISH, 1));
        assert!(!check.usual.is_plainly(GERMAN, 1) && !check.usual.is_plainly(FRENCH, 1));
        for (src, tgt, verdict) in [
            (GERMAN, ENGLISH, Verdict::Fine),
            (ENGLISH, GERMAN, Verdict::Swapped),
            (GERMAN, FRENCH, Verdict::Wrong),
            (ENGLISH, ENGLISH, Verdict::Wrong),
            ("Barack Obama", "Emmanuel Macron", Verdict::Fine),
            ("", "", Verdict::Fine),
        ] {
            assert_eq!(check.check(src, tgt), verdict, "{src} / {tgt}");
        }
        assert!(LanguageCheck::new("de", "de", &[]).is_none());
    }

    #[test]
    fn another_language_that_is_frequent_on_a_side_does_not_become_usual() {
        let pairs = [[(GERMAN, ENGLISH); 20], [(GERMAN, FRENCH); 20]].concat();
        let check = LanguageCheck::new("de", "en", &pairs).expect("two languages");
        assert_eq!(check.check(GERMAN, FRENCH), Verdict::Wrong);
        assert_eq!(check.check(GERMAN, ENGLISH), Verdict::Fine);
    }

    #[test]
    fn the_language_of_a_corpus_is_that_of_most_of_its_lines() {
        let lines = [GERMAN, GERMAN, FRENCH, GERMAN];
        assert_eq!(most_frequent(&lines).as_deref(), Some("de"));
        assert_eq!(most_frequent(&["42", ""]), None);
        assert_eq!(most_frequent(&[]), None);
    }
}
