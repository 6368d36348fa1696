//! chrF (Popović, 2015) and chrF++ (2017): how many character n-grams, and short word n-grams, output and
//! reference share, as an F-score.
//!
//! Text -> characters without white space (and words, punctuation split off) -> matching n-grams per segment
//! (`ngrams`) -> the F-score of the sums (`chrf_formula`). With several references the best one counts.

use rayon::prelude::*;

use crate::bleu_options::Case;
use crate::chrf_formula::f_score;
use crate::error::MetricError;
use crate::ngrams::{MatchScratch, NgramTrie, ngram_total};
use crate::python_text;
use crate::references::References;
use crate::scorer::{Score, Scorer, check_lines};
use crate::signature::{Setting, Signature};
use crate::statistics::{Arithmetic, Sample, Statistics};
use crate::vocabulary::Vocabulary;

/// How chrF is computed; the default is sacreBLEU's, plain chrF2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChrfOptions {
    /// The longest character n-grams.
    pub char_order: usize,
    /// The longest word n-grams: 0 for chrF, 2 for chrF++.
    pub word_order: usize,
    /// How much more recall weighs than precision.
    pub beta: u32,
    /// Whether case matters.
    pub case: Case,
    /// Whether white space is part of the character n-grams.
    pub whitespace: Whitespace,
    /// What to do with n-gram orders that a text is too short for.
    pub smoothing: ChrfSmoothing,
}

/// Whether white space is part of the character n-grams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Whitespace {
    /// White space is left out.
    #[default]
    Removed,
    /// White space counts as characters.
    Kept,
}

/// What to do with n-gram orders that a text is too short for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChrfSmoothing {
    /// The mean is taken over the orders that exist (sacreBLEU's own way).
    #[default]
    EffectiveOrder,
    /// A missing precision or recall is 1e-16 (chrF++.py, NLTK, Moses).
    Epsilon,
}

impl Default for ChrfOptions {
    fn default() -> Self {
        Self {
            char_order: 6,
            word_order: 0,
            beta: 2,
            case: Case::default(),
            whitespace: Whitespace::default(),
            smoothing: ChrfSmoothing::default(),
        }
    }
}

/// chrF's options and references, ready to score systems.
#[derive(Debug, Clone)]
pub struct ChrfScorer {
    options: ChrfOptions,
    reference_count: Option<usize>,
    vocabulary: Vocabulary,
    segments: Vec<Vec<Reference>>,
}

/// The symbols of one reference; its n-grams, many times as many, are counted when they are needed.
#[derive(Debug, Clone)]
struct Reference {
    chars: Vec<u32>,
    words: Vec<u32>,
}

/// Memory that one thread uses again for every hypothesis.
#[derive(Debug, Default)]
struct Scratch {
    ngrams: NgramTrie,
    matches: MatchScratch,
}

impl ChrfScorer {
    /// Reads the references.
    pub fn new(options: ChrfOptions, references: &References) -> Result<Self, MetricError> {
        options.check()?;
        let mut vocabulary = Vocabulary::default();
        let mut segments = Vec::with_capacity(references.segments().len());
        for refs in references.segments() {
            let reference = |line: &String| Reference {
                chars: options.chars(line),
                words: options.words(line, |word| vocabulary.add(word)),
            };
            segments.push(refs.iter().map(reference).collect());
        }
        Ok(Self {
            segments,
            reference_count: references.count(),
            vocabulary,
            options,
        })
    }

    /// The statistics of one sentence: for every order the n-grams of output, reference and both.
    fn segment_statistics(
        &self,
        line: &str,
        refs: &[Reference],
        scratch: &mut Scratch,
    ) -> Vec<f64> {
        let options = &self.options;
        let chars = options.chars(line);
        let words = options.words(line, |word| self.vocabulary.get(word));
        let mut best = Vec::new();
        let mut best_score = -1.0;
        for reference in refs {
            let mut matches = vec![0.0; options.char_order + options.word_order];
            let (char_matches, word_matches) = matches.split_at_mut(options.char_order);
            scratch.count(&chars, &reference.chars, char_matches);
            scratch.count(&words, &reference.words, word_matches);
            let mut row = Vec::with_capacity(3 * matches.len());
            for (index, found) in matches.into_iter().enumerate() {
                let (output, total) = match index.checked_sub(options.char_order) {
                    None => (
                        ngram_total(chars.len(), index + 1),
                        ngram_total(reference.chars.len(), index + 1),
                    ),
                    Some(n) => (
                        ngram_total(words.len(), n + 1),
                        ngram_total(reference.words.len(), n + 1),
                    ),
                };
                // Orders that the reference is too short for do not count against the output.
                row.extend([if total > 0.0 { output } else { 0.0 }, total, found]);
            }
            let score = f_score(&row, options, Arithmetic::Python).value;
            if score > best_score {
                (best, best_score) = (row, score);
            }
        }
        best
    }
}

impl Scorer for ChrfScorer {
    fn name(&self) -> String {
        self.options.name()
    }

    fn segments(&self) -> usize {
        self.segments.len()
    }

    fn statistics(&self, hypotheses: &[String]) -> Result<Statistics, MetricError> {
        check_lines(hypotheses, self.segments.len())?;
        let row = |scratch: &mut Scratch, (line, refs): (&String, &Vec<Reference>)| {
            self.segment_statistics(line, refs, scratch)
        };
        let pairs = hypotheses.par_iter().zip(&self.segments);
        let rows: Vec<Vec<f64>> = pairs.map_init(Scratch::default, row).collect();
        let width = 3 * (self.options.char_order + self.options.word_order);
        Ok(Statistics::new(width, rows.concat()))
    }

    fn score(&self, totals: &[f64]) -> Score {
        Score {
            name: self.name(),
            value: f_score(totals, &self.options, Arithmetic::Python).value,
            verbose: None,
            confidence: None,
        }
    }

    fn sample(&self, totals: &[f64], arithmetic: Arithmetic) -> Sample {
        f_score(totals, &self.options, arithmetic)
    }

    fn signature(&self) -> Signature {
        Signature::new(self.reference_count, self.options.settings())
    }
}

impl Scratch {
    /// Counts the n-grams that both have, of orders 1 to the length of `matches`.
    fn count(&mut self, output: &[u32], reference: &[u32], matches: &mut [f64]) {
        if !matches.is_empty() {
            self.ngrams.fill(&[reference], matches.len());
            self.ngrams
                .count_matches(output, &mut self.matches, matches);
        }
    }
}

impl ChrfOptions {
    /// The metric's name: `chrF2`, and a plus sign for each word order.
    pub fn name(&self) -> String {
        format!("chrF{}{}", self.beta, "+".repeat(self.word_order))
    }

    /// Refuses values that make no sense.
    pub fn check(&self) -> Result<(), MetricError> {
        if self.char_order + self.word_order > 0 {
            return Ok(());
        }
        Err(MetricError::BadOption {
            option: "chrf-char-order",
            found: "0".to_owned(),
            expected: "1 or more when chrf-word-order is 0",
        })
    }

    fn settings(&self) -> Vec<Setting> {
        let effective = match self.smoothing {
            ChrfSmoothing::EffectiveOrder => "yes",
            ChrfSmoothing::Epsilon => "no",
        };
        let space = match self.whitespace {
            Whitespace::Kept => "yes",
            Whitespace::Removed => "no",
        };
        vec![
            Setting::new("case", "c", self.case.name()),
            Setting::new("eff", "e", effective),
            Setting::new("nc", "nc", self.char_order.to_string()),
            Setting::new("nw", "nw", self.word_order.to_string()),
            Setting::new("space", "s", space),
        ]
    }

    /// The characters that n-grams are made of, as numbers.
    fn chars(&self, line: &str) -> Vec<u32> {
        let lower = self.lowered(line);
        let line = lower.as_deref().unwrap_or(line);
        let kept = |c: &char| self.whitespace == Whitespace::Kept || !python_text::is_space(*c);
        line.chars().filter(kept).map(u32::from).collect()
    }

    /// The words that n-grams are made of, each with one punctuation mark split off, as numbers.
    fn words(&self, line: &str, mut number: impl FnMut(&str) -> u32) -> Vec<u32> {
        let mut words = Vec::new();
        if self.word_order == 0 {
            return words;
        }
        let lower = self.lowered(line);
        for word in python_text::words(lower.as_deref().unwrap_or(line)) {
            let (first, rest) = split_mark(word);
            words.push(number(first));
            words.extend(rest.map(&mut number));
        }
        words
    }

    fn lowered(&self, line: &str) -> Option<String> {
        (self.case == Case::Lower).then(|| line.to_lowercase())
    }
}

/// Splits one ASCII mark off a word: its last character, or else its first. `(hi)` becomes `(hi` and `)`.
fn split_mark(word: &str) -> (&str, Option<&str>) {
    let is_mark = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_punctuation);
    if word.chars().nth(1).is_none() {
        (word, None)
    } else if is_mark(word.as_bytes().last()) {
        let (stem, mark) = word.split_at(word.len() - 1);
        (stem, Some(mark))
    } else if is_mark(word.as_bytes().first()) {
        let (mark, stem) = word.split_at(1);
        (mark, Some(stem))
    } else {
        (word, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_mark_comes_off_and_the_end_goes_first() {
        assert_eq!(split_mark("(hi)"), ("(hi", Some(")")));
        assert_eq!(split_mark("¿qué?"), ("¿qué", Some("?")));
        assert_eq!(split_mark("(ä"), ("(", Some("ä")));
        assert_eq!(split_mark("."), (".", None));
        assert_eq!(split_mark("ä"), ("ä", None));
    }

    #[test]
    fn equal_texts_score_100_and_the_name_tells_the_word_order() {
        let text = vec!["Ein Satz, kurz.".to_owned()];
        let options = ChrfOptions {
            word_order: 2,
            ..ChrfOptions::default()
        };
        let scorer = ChrfScorer::new(options, &References::single(&text).unwrap()).unwrap();
        let score = scorer.corpus_score(&text).unwrap();
        assert_eq!(score.name, "chrF2++");
        assert!((score.value - 100.0).abs() < 1e-9);
    }
}
