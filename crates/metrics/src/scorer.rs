//! What BLEU, chrF and TER have in common: text to statistics, statistics to a score, a signature.
//!
//! Reports and significance tests work on this trait and never ask which metric it is.

use crate::error::MetricError;
use crate::signature::Signature;
use crate::statistics::{Arithmetic, Sample, Statistics};

/// A metric with its options and its references, ready to score any number of systems.
pub trait Scorer: Sync {
    /// The metric's name as sacreBLEU prints it: `BLEU`, `chrF2++`, `TER`.
    fn name(&self) -> String;

    /// How many segments the references have.
    fn segments(&self) -> usize;

    /// The statistics of each segment of a system's output.
    fn statistics(&self, hypotheses: &[String]) -> Result<Statistics, MetricError>;

    /// The score of summed statistics.
    fn score(&self, totals: &[f64]) -> Score;

    /// The score of resampled statistics, with the roundings of the arithmetic they were summed in.
    fn sample(&self, totals: &[f64], arithmetic: Arithmetic) -> Sample;

    /// How the scores are made.
    fn signature(&self) -> Signature;

    /// The score of a whole system's output.
    fn corpus_score(&self, hypotheses: &[String]) -> Result<Score, MetricError> {
        Ok(self.score(&self.statistics(hypotheses)?.totals()))
    }
}

/// A score as reports show it.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// The metric's name.
    pub name: String,
    /// The score, from 0 to 100 (TER may be higher).
    pub value: f64,
    /// Details that follow the score in a report: BLEU's precisions and lengths.
    pub verbose: Option<String>,
    /// Where the true score lies, when it was estimated.
    pub confidence: Option<Confidence>,
}

/// A 95% confidence interval from bootstrap resampling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Confidence {
    /// The mean of the resampled scores.
    pub mean: f64,
    /// Half the width of the interval.
    pub half_width: f64,
}

/// Refuses a system's output that does not pair with the references.
pub(crate) fn check_lines(hypotheses: &[String], segments: usize) -> Result<(), MetricError> {
    if hypotheses.len() == segments {
        return Ok(());
    }
    Err(MetricError::UnequalLines {
        what: "the system's output".to_owned(),
        expected: segments,
        found: hypotheses.len(),
    })
}
