//! TER (Snover et al., 2006): how many edits, shifts of phrases included, turn the output into the reference.
//!
//! Text -> words (`tokenizer`) -> fewest edits per segment (`shifts` over `edit_distance`) -> edits per
//! reference word. As in Tercom, the search for shifts is greedy and limited; its limits and its order are
//! part of the metric.

mod edit_distance;
mod shifts;
mod tokenizer;

use rayon::prelude::*;

use crate::bleu_options::Case;
use crate::error::MetricError;
use crate::python_text;
use crate::references::References;
use crate::scorer::{Score, Scorer, check_lines};
use crate::signature::{Setting, Signature};
use crate::statistics::{Arithmetic, Sample, Statistics};
use crate::vocabulary::Vocabulary;
use shifts::ShiftSearch;

/// How TER is computed; the default is sacreBLEU's, which is Tercom's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerOptions {
    /// Whether punctuation is split off and escapes are undone.
    pub normalization: Normalization,
    /// Whether punctuation counts.
    pub punctuation: Punctuation,
    /// Whether Asian characters are treated too where the text is normalized or punctuation removed.
    pub asian: AsianSupport,
    /// Whether case matters.
    pub case: Case,
}

/// Whether punctuation is split off and escapes are undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Normalization {
    /// Words stand between white space.
    #[default]
    None,
    /// Tercom's normalization.
    Tercom,
}

/// Whether punctuation counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Punctuation {
    /// It counts.
    #[default]
    Kept,
    /// It is removed before scoring.
    Removed,
}

/// Whether Chinese and Japanese characters and punctuation are treated specially.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AsianSupport {
    /// They are like any other character.
    #[default]
    Off,
    /// Characters become words, full-width punctuation is punctuation.
    On,
}

impl Default for TerOptions {
    fn default() -> Self {
        Self {
            normalization: Normalization::default(),
            punctuation: Punctuation::default(),
            asian: AsianSupport::default(),
            case: Case::Lower,
        }
    }
}

/// TER's options and references, ready to score systems.
#[derive(Debug, Clone)]
pub struct TerScorer {
    options: TerOptions,
    reference_count: Option<usize>,
    vocabulary: Vocabulary,
    segments: Vec<Vec<Vec<u32>>>,
}

impl TerScorer {
    /// Reads the references.
    pub fn new(options: TerOptions, references: &References) -> Result<Self, MetricError> {
        // sacreBLEU tokenizes a reference twice, which can split more than once does.
        let twice = |line: &String| options.tokenize(&options.tokenize(line));
        let tokenized: Vec<Vec<String>> = references
            .segments()
            .par_iter()
            .map(|refs| refs.iter().map(twice).collect())
            .collect();
        let mut vocabulary = Vocabulary::default();
        let mut segments = Vec::with_capacity(tokenized.len());
        for refs in &tokenized {
            segments.push(refs.iter().map(|line| vocabulary.add_words(line)).collect());
        }
        Ok(Self {
            segments,
            reference_count: references.count(),
            vocabulary,
            options,
        })
    }

    /// The fewest edits over the references and the mean length of the references.
    fn segment_statistics(
        &self,
        line: &str,
        refs: &[Vec<u32>],
        search: &mut ShiftSearch,
    ) -> [f64; 2] {
        let tokenized = self.options.tokenize(line);
        let number = |word| self.vocabulary.get(word);
        let words: Vec<u32> = python_text::words(&tokenized).map(number).collect();
        let edits = refs
            .iter()
            .map(|reference| search.edits(&words, reference))
            .min();
        let length: usize = refs.iter().map(Vec::len).sum();
        [edits.unwrap_or(0) as f64, length as f64 / refs.len() as f64]
    }
}

impl Scorer for TerScorer {
    fn name(&self) -> String {
        "TER".to_owned()
    }

    fn segments(&self) -> usize {
        self.segments.len()
    }

    fn statistics(&self, hypotheses: &[String]) -> Result<Statistics, MetricError> {
        check_lines(hypotheses, self.segments.len())?;
        let row = |search: &mut ShiftSearch, (line, refs): (&String, &Vec<Vec<u32>>)| {
            self.segment_statistics(line, refs, search)
        };
        let pairs = hypotheses.par_iter().zip(&self.segments);
        let rows: Vec<[f64; 2]> = pairs.map_init(ShiftSearch::default, row).collect();
        Ok(Statistics::new(2, rows.concat()))
    }

    fn score(&self, totals: &[f64]) -> Score {
        Score {
            name: self.name(),
            value: self.sample(totals, Arithmetic::Python).value,
            verbose: None,
            confidence: None,
        }
    }

    fn sample(&self, totals: &[f64], arithmetic: Arithmetic) -> Sample {
        let (edits, length) = (totals[0], totals[1]);
        let (value, computed) = if length > 0.0 {
            let rate = arithmetic.round(edits / length);
            (arithmetic.round(100.0 * rate), true)
        } else if edits > 0.0 {
            // Output without any reference text is all wrong.
            (100.0, false)
        } else {
            (0.0, false)
        };
        Sample {
            value,
            single: computed && arithmetic == Arithmetic::Float32,
        }
    }

    fn signature(&self) -> Signature {
        Signature::new(self.reference_count, self.options.settings())
    }
}

impl TerOptions {
    fn settings(&self) -> Vec<Setting> {
        let yes_no = |yes| if yes { "yes" } else { "no" };
        let normalized = self.normalization == Normalization::Tercom;
        let punctuation = self.punctuation == Punctuation::Kept;
        let asian = self.asian == AsianSupport::On;
        vec![
            Setting::new("case", "c", self.case.name()),
            Setting::new("tok", "t", "tercom"),
            Setting::new("norm", "nr", yes_no(normalized)),
            Setting::new("punct", "pn", yes_no(punctuation)),
            Setting::new("asian", "as", yes_no(asian)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(output: &str, reference: &str) -> f64 {
        let references = References::single(&[reference.to_owned()]).unwrap();
        let scorer = TerScorer::new(TerOptions::default(), &references).unwrap();
        scorer.corpus_score(&[output.to_owned()]).unwrap().value
    }

    #[test]
    fn one_shift_is_one_edit() {
        assert_eq!(score("d e a b c", "a b c d e"), 20.0);
    }

    #[test]
    fn empty_texts_have_a_score() {
        assert_eq!(score("", ""), 0.0);
        assert_eq!(score("a b", ""), 100.0);
        assert_eq!(score("", "a b"), 100.0);
    }
}
