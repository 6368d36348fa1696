//! The numbers behind `attentive.score`: text to statistics, statistics to scores. `score.py` has sacreBLEU's objects.

use attentive_metrics::bleu::{Bleu, BleuScorer};
use attentive_metrics::bleu_options::{BleuOptions, Case, NgramOrder, Smoothing};
use attentive_metrics::chrf::{ChrfOptions, ChrfScorer, ChrfSmoothing, Whitespace};
use attentive_metrics::error::MetricError;
use attentive_metrics::references::References;
use attentive_metrics::significance::{Seed, score_with_confidence};
use attentive_metrics::ter::{AsianSupport, Normalization, Punctuation, TerOptions, TerScorer};
use pyo3::prelude::*;

use crate::error::raise;
use crate::interrupt::on_all_processors;

/// A metric with its options and references.
#[pyclass(frozen, module = "attentive._attentive")]
pub struct Scorer(Metric);

enum Metric {
    Bleu(Box<BleuScorer>),
    Chrf(Box<ChrfScorer>),
    Ter(Box<TerScorer>),
}

/// Score, counts, totals, precisions and brevity penalty.
type BleuNumbers = (f64, Vec<f64>, Vec<f64>, Vec<f64>, f64);

impl Scorer {
    fn scorer(&self) -> &(dyn attentive_metrics::scorer::Scorer + Send + Sync) {
        match &self.0 {
            Metric::Bleu(scorer) => &**scorer,
            Metric::Chrf(scorer) => &**scorer,
            Metric::Ter(scorer) => &**scorer,
        }
    }
}

#[pymethods]
impl Scorer {
    /// The statistics of each line of a system's output.
    fn statistics(&self, py: Python<'_>, hypotheses: Vec<String>) -> PyResult<Vec<Vec<f64>>> {
        let scorer = self.scorer();
        let found = on_all_processors(py, || scorer.statistics(&hypotheses))?.map_err(raise)?;
        Ok(found.rows().map(<[f64]>::to_vec).collect())
    }

    /// The sums of the statistics of all lines.
    fn totals(&self, py: Python<'_>, hypotheses: Vec<String>) -> PyResult<Vec<f64>> {
        let scorer = self.scorer();
        let found = on_all_processors(py, || scorer.statistics(&hypotheses))?.map_err(raise)?;
        Ok(found.totals())
    }

    /// The score of summed statistics.
    fn score(&self, totals: Vec<f64>) -> f64 {
        self.scorer().score(&totals).value
    }

    /// The mean of so many bootstrap samples, and half the width of the 95% confidence interval.
    fn confidence(
        &self,
        py: Python<'_>,
        hypotheses: Vec<String>,
        samples: usize,
        seed: Option<u64>,
    ) -> PyResult<Option<(f64, f64)>> {
        let scorer = self.scorer();
        let seed = seed.map_or(Seed::Random, Seed::Fixed);
        let (score, _) = on_all_processors(py, || {
            score_with_confidence(scorer, &hypotheses, samples, seed)
        })?
        .map_err(raise)?;
        Ok(score.confidence.map(|found| (found.mean, found.half_width)))
    }
}

fn case(lowercase: bool) -> Case {
    if lowercase { Case::Lower } else { Case::Mixed }
}

fn bleu_options(
    method: &str,
    value: Option<f64>,
    effective_order: bool,
    max_order: usize,
) -> Result<BleuOptions, MetricError> {
    Ok(BleuOptions {
        smoothing: Smoothing::new(method, value)?,
        order: if effective_order {
            NgramOrder::Effective
        } else {
            NgramOrder::Full
        },
        max_order,
        ..BleuOptions::default()
    })
}

/// BLEU against the references of each line.
#[pyfunction]
#[pyo3(signature = (references, *, tokenize, lowercase, smooth_method, smooth_value, effective_order, max_order))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub fn bleu_scorer(
    py: Python<'_>,
    references: Vec<Vec<String>>,
    tokenize: &str,
    lowercase: bool,
    smooth_method: &str,
    smooth_value: Option<f64>,
    effective_order: bool,
    max_order: usize,
) -> PyResult<Scorer> {
    let options = bleu_options(smooth_method, smooth_value, effective_order, max_order);
    let options = BleuOptions {
        tokenizer: tokenize.parse().map_err(raise)?,
        case: case(lowercase),
        ..options.map_err(raise)?
    };
    let scorer = on_all_processors(py, || {
        BleuScorer::new(options, &References::from_segments(references)?)
    })?;
    Ok(Scorer(Metric::Bleu(Box::new(scorer.map_err(raise)?))))
}

/// BLEU of its statistics: lengths of output and references, matching n-grams, all n-grams.
#[pyfunction]
#[pyo3(signature = (totals, *, smooth_method, smooth_value, effective_order, max_order))]
pub fn compute_bleu(
    totals: Vec<f64>,
    smooth_method: &str,
    smooth_value: Option<f64>,
    effective_order: bool,
    max_order: usize,
) -> PyResult<BleuNumbers> {
    let options = bleu_options(smooth_method, smooth_value, effective_order, max_order);
    let options = options.map_err(raise)?;
    options.check().map_err(raise)?;
    if totals.len() != 2 + 2 * max_order {
        return Err(raise(format!(
            "there are {} numbers; expected two lengths, {max_order} counts and {max_order} totals",
            totals.len()
        )));
    }
    let bleu = Bleu::of_totals(&totals, &options);
    Ok((
        bleu.score,
        bleu.counts,
        bleu.totals,
        bleu.precisions,
        bleu.bp,
    ))
}

/// chrF against the references of each line.
#[pyfunction]
#[pyo3(signature = (references, *, char_order, word_order, beta, lowercase, whitespace, eps_smoothing))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub fn chrf_scorer(
    py: Python<'_>,
    references: Vec<Vec<String>>,
    char_order: usize,
    word_order: usize,
    beta: u32,
    lowercase: bool,
    whitespace: bool,
    eps_smoothing: bool,
) -> PyResult<Scorer> {
    let options = ChrfOptions {
        char_order,
        word_order,
        beta,
        case: case(lowercase),
        whitespace: if whitespace {
            Whitespace::Kept
        } else {
            Whitespace::Removed
        },
        smoothing: if eps_smoothing {
            ChrfSmoothing::Epsilon
        } else {
            ChrfSmoothing::EffectiveOrder
        },
    };
    let scorer = on_all_processors(py, || {
        ChrfScorer::new(options, &References::from_segments(references)?)
    })?;
    Ok(Scorer(Metric::Chrf(Box::new(scorer.map_err(raise)?))))
}

/// TER against the references of each line.
#[pyfunction]
#[pyo3(signature = (references, *, normalized, no_punct, asian_support, case_sensitive))]
pub fn ter_scorer(
    py: Python<'_>,
    references: Vec<Vec<String>>,
    normalized: bool,
    no_punct: bool,
    asian_support: bool,
    case_sensitive: bool,
) -> PyResult<Scorer> {
    let options = TerOptions {
        normalization: if normalized {
            Normalization::Tercom
        } else {
            Normalization::None
        },
        punctuation: if no_punct {
            Punctuation::Removed
        } else {
            Punctuation::Kept
        },
        asian: if asian_support {
            AsianSupport::On
        } else {
            AsianSupport::Off
        },
        case: case(!case_sensitive),
    };
    let scorer = on_all_processors(py, || {
        TerScorer::new(options, &References::from_segments(references)?)
    })?;
    Ok(Scorer(Metric::Ter(Box::new(scorer.map_err(raise)?))))
}
