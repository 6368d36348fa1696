//! BLEU (Papineni et al., 2002): how many n-grams of the output are in the references.
//!
//! Text -> words (`bleu_tokenizers`) -> matching n-grams per segment (`ngrams`) -> one score from the
//! sums. [`corpus_bleu`] is the whole way in one call; [`BleuScorer`] keeps the references and scores
//! many systems.

use std::fmt;

use rayon::prelude::*;

use crate::bleu_formula::bleu_from_counts;
use crate::bleu_options::{BleuOptions, Case};
use crate::error::MetricError;
use crate::ngrams::{MatchScratch, NgramTrie, ngram_total};
use crate::python_text;
use crate::references::References;
use crate::scorer::{Score, Scorer, check_lines};
use crate::signature::Signature;
use crate::statistics::{Arithmetic, Sample, Statistics};
use crate::vocabulary::Vocabulary;

/// A BLEU score with everything it was computed from.
#[derive(Debug, Clone, PartialEq)]
pub struct Bleu {
    /// The score, 0 to 100.
    pub score: f64,
    /// Matching n-grams of order 1, 2, ...; add-k smoothing shows in them, so they may be fractions.
    pub counts: Vec<f64>,
    /// All n-grams of the output of order 1, 2, ...
    pub totals: Vec<f64>,
    /// Precision in percent of order 1, 2, ..., after smoothing.
    pub precisions: Vec<f64>,
    /// The brevity penalty, 0 to 1.
    pub bp: f64,
    /// Words of the output.
    pub sys_len: usize,
    /// Words of the references, the closest in length of each segment.
    pub ref_len: usize,
}

/// Corpus BLEU with one reference and sacreBLEU's defaults: tokenizer `13a`, `exp` smoothing, mixed case.
///
/// Line `i` of `hyps` is scored against line `i` of `refs`; lines without a partner, and an empty corpus,
/// score 0 against what is there. Use [`BleuScorer`] to have unequal lengths refused instead.
pub fn corpus_bleu(hyps: &[String], refs: &[String]) -> Bleu {
    let lines = hyps.len().max(refs.len());
    let padded = |text: &[String]| {
        let mut text = text.to_vec();
        text.resize(lines, String::new());
        text
    };
    let options = BleuOptions::default();
    let segments = padded(refs).into_iter().map(|line| vec![line]).collect();
    References::from_segments(segments)
        .and_then(|references| BleuScorer::new(options, &references))
        .and_then(|scorer| scorer.corpus(&padded(hyps)))
        .unwrap_or_else(|_| {
            bleu_from_counts(&[0.0; 10], &BleuOptions::default(), Arithmetic::Python)
        })
}

/// BLEU's options and references, ready to score systems.
#[derive(Debug, Clone)]
pub struct BleuScorer {
    options: BleuOptions,
    reference_count: Option<usize>,
    /// Numbers of the words that any reference has.
    vocabulary: Vocabulary,
    segments: Vec<Segment>,
}

/// What the references of one segment say.
#[derive(Debug, Clone)]
struct Segment {
    ngrams: NgramTrie,
    lengths: Vec<usize>,
}

impl BleuScorer {
    /// Reads the references.
    pub fn new(options: BleuOptions, references: &References) -> Result<Self, MetricError> {
        options.check()?;
        let mut vocabulary = Vocabulary::default();
        let tokenized: Vec<Vec<String>> = references
            .segments()
            .par_iter()
            .map(|refs| refs.iter().map(|line| options.tokenize(line)).collect())
            .collect();
        let numbered: Vec<Vec<Vec<u32>>> = tokenized
            .iter()
            .map(|lines| {
                lines
                    .iter()
                    .map(|line| vocabulary.add_words(line))
                    .collect()
            })
            .collect();
        let segment = |sequences: &Vec<Vec<u32>>| {
            let slices: Vec<&[u32]> = sequences.iter().map(Vec::as_slice).collect();
            Segment {
                ngrams: NgramTrie::new(&slices, options.max_order),
                lengths: sequences.iter().map(Vec::len).collect(),
            }
        };
        Ok(Self {
            segments: numbered.par_iter().map(segment).collect(),
            reference_count: references.count(),
            vocabulary,
            options,
        })
    }

    /// The score of a system's output.
    pub fn corpus(&self, hypotheses: &[String]) -> Result<Bleu, MetricError> {
        Ok(self.bleu(&self.statistics(hypotheses)?.totals()))
    }

    /// The score of summed statistics.
    pub fn bleu(&self, totals: &[f64]) -> Bleu {
        bleu_from_counts(totals, &self.options, Arithmetic::Python)
    }

    fn segment_statistics(&self, line: &str, segment: &Segment, scratch: &mut Scratch) -> Vec<f64> {
        let order = self.options.max_order;
        let tokenized = self.options.tokenize(line);
        let number = |word| self.vocabulary.get(word);
        scratch.words.clear();
        scratch
            .words
            .extend(python_text::words(&tokenized).map(number));
        let length = scratch.words.len();
        let mut row = vec![0.0; 2 + 2 * order];
        row[0] = length as f64;
        row[1] = closest_length(length, &segment.lengths) as f64;
        let (counts, totals) = row[2..].split_at_mut(order);
        segment
            .ngrams
            .count_matches(&scratch.words, &mut scratch.matches, counts);
        for (n, total) in totals.iter_mut().enumerate() {
            *total = ngram_total(length, n + 1);
        }
        row
    }
}

impl Scorer for BleuScorer {
    fn name(&self) -> String {
        "BLEU".to_owned()
    }

    fn segments(&self) -> usize {
        self.segments.len()
    }

    fn statistics(&self, hypotheses: &[String]) -> Result<Statistics, MetricError> {
        check_lines(hypotheses, self.segments.len())?;
        let row = |scratch: &mut Scratch, (line, segment): (&String, &Segment)| {
            self.segment_statistics(line, segment, scratch)
        };
        let pairs = hypotheses.par_iter().zip(&self.segments);
        let rows: Vec<Vec<f64>> = pairs.map_init(Scratch::default, row).collect();
        Ok(Statistics::new(
            2 + 2 * self.options.max_order,
            rows.concat(),
        ))
    }

    fn score(&self, totals: &[f64]) -> Score {
        self.bleu(totals).into()
    }

    fn sample(&self, totals: &[f64], arithmetic: Arithmetic) -> Sample {
        Sample {
            value: bleu_from_counts(totals, &self.options, arithmetic).score,
            single: false,
        }
    }

    fn signature(&self) -> Signature {
        Signature::new(self.reference_count, self.options.settings())
    }
}

/// Whether 100 lines or more end in ` .`, as text does that was not detokenized before scoring.
pub fn looks_tokenized(hypotheses: &[String]) -> bool {
    hypotheses
        .iter()
        .filter(|line| line.ends_with(" ."))
        .count()
        >= 100
}

impl From<Bleu> for Score {
    fn from(bleu: Bleu) -> Self {
        Self {
            name: "BLEU".to_owned(),
            value: bleu.score,
            verbose: Some(bleu.verbose()),
            confidence: None,
        }
    }
}

impl Bleu {
    /// The score of summed statistics: the lengths of output and references, the matching n-grams of each order, and all
    /// n-grams of each order.
    ///
    /// # Panics
    /// If there are not as many numbers as the options want.
    pub fn of_totals(totals: &[f64], options: &BleuOptions) -> Self {
        assert_eq!(totals.len(), 2 + 2 * options.max_order);
        bleu_from_counts(totals, options, Arithmetic::Python)
    }

    /// Precisions, brevity penalty and lengths, as sacreBLEU prints them after the score.
    pub fn verbose(&self) -> String {
        let precisions: Vec<String> = self.precisions.iter().map(|p| format!("{p:.1}")).collect();
        let ratio = match self.ref_len {
            0 => 0.0,
            length => self.sys_len as f64 / length as f64,
        };
        format!(
            "{} (BP = {:.3} ratio = {ratio:.3} hyp_len = {} ref_len = {})",
            precisions.join("/"),
            self.bp,
            self.sys_len,
            self.ref_len
        )
    }
}

impl fmt::Display for Bleu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BLEU = {:.2} {}", self.score, self.verbose())
    }
}

impl BleuOptions {
    /// The sentence as words separated by white space.
    fn tokenize(&self, line: &str) -> String {
        match self.case {
            Case::Mixed => self
                .tokenizer
                .tokenize(python_text::trim_end(line))
                .into_owned(),
            Case::Lower => {
                let lower = line.to_lowercase();
                self.tokenizer
                    .tokenize(python_text::trim_end(&lower))
                    .into_owned()
            }
        }
    }
}

/// Memory that one thread uses again for every hypothesis.
#[derive(Default)]
struct Scratch {
    words: Vec<u32>,
    matches: MatchScratch,
}

/// The reference length closest to the hypothesis; of two equally close the shorter.
fn closest_length(length: usize, references: &[usize]) -> usize {
    let closeness = |&&candidate: &&usize| (candidate.abs_diff(length), candidate);
    references
        .iter()
        .min_by_key(closeness)
        .copied()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[&str]) -> Vec<String> {
        text.iter().map(|line| line.to_string()).collect()
    }

    #[test]
    fn a_perfect_translation_scores_100() {
        let text = lines(&["The quick brown fox jumps.", "Over the lazy dog, again."]);
        let bleu = corpus_bleu(&text, &text);
        assert!((bleu.score - 100.0).abs() < 1e-9);
        assert_eq!(bleu.counts, bleu.totals);
    }

    #[test]
    fn of_two_equally_close_references_the_shorter_counts() {
        assert_eq!(closest_length(5, &[7, 3]), 3);
        assert_eq!(closest_length(5, &[6, 3]), 6);
    }

    #[test]
    fn nothing_to_score_is_zero_and_not_a_panic() {
        assert_eq!(corpus_bleu(&[], &[]).score, 0.0);
        assert_eq!(corpus_bleu(&lines(&[""]), &lines(&[""])).score, 0.0);
        assert_eq!(corpus_bleu(&lines(&["a b"]), &[]).sys_len, 2);
    }

    #[test]
    fn a_scorer_refuses_output_of_another_length() {
        let references = References::single(&lines(&["a", "b"])).unwrap();
        let scorer = BleuScorer::new(BleuOptions::default(), &references).unwrap();
        let error = scorer.corpus(&lines(&["a"])).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("has 1 lines but 2 were expected")
        );
    }
}
