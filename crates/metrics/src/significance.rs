//! Is one system better than another, or is it chance? Confidence intervals and paired tests.
//!
//! Bootstrap resampling (Koehn, 2004) draws segments with replacement; approximate randomization (Riezler
//! and Maxwell, 2005) swaps segments between the baseline and a system. Draws, sums and roundings are
//! sacreBLEU's, so p-values and intervals are the same for the same seed.

use std::fmt;
use std::str::FromStr;

use crate::error::MetricError;
use crate::numpy::{Generator, mean};
use crate::resampling::{Swaps, bootstrap};
use crate::scorer::{Confidence, Score, Scorer};
use crate::signature::Signature;
use crate::statistics::{Arithmetic, Sample, Statistics};

/// Where random numbers start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seed {
    /// The same draws every time.
    Fixed(u64),
    /// Other draws every time.
    Random,
}

/// A paired test and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairedTest {
    /// Paired bootstrap resampling.
    Bootstrap {
        /// How many samples are drawn.
        samples: usize,
    },
    /// Paired approximate randomization.
    Randomization {
        /// How many times segments are swapped.
        trials: usize,
        /// Bootstrap samples for a confidence interval beside, if wanted.
        confidence: Option<usize>,
    },
}

/// One metric's column of a paired test.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricResults {
    /// The metric's name.
    pub name: String,
    /// How scores and p-values were made.
    pub signature: Signature,
    /// One result per system, the baseline first.
    pub results: Vec<TestResult>,
}

/// What a paired test says about one system under one metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TestResult {
    /// The system's score.
    pub score: f64,
    /// The probability of such a difference from the baseline by chance; the baseline has none.
    pub p_value: Option<f64>,
    /// Where the true score lies, if it was estimated.
    pub confidence: Option<Confidence>,
}

/// Scores a system and estimates a 95% confidence interval from `samples` bootstrap samples.
pub fn score_with_confidence(
    scorer: &dyn Scorer,
    hypotheses: &[String],
    samples: usize,
    seed: Seed,
) -> Result<(Score, Signature), MetricError> {
    let statistics = scorer.statistics(hypotheses)?;
    let mut score = scorer.score(&statistics.totals());
    let mut signature = scorer.signature();
    if samples > 1 {
        let resample = |_: usize, sums: &[f64]| scorer.sample(sums, Arithmetic::Float32);
        let drawn = bootstrap(&[&statistics], samples, &mut seed.generator(), resample);
        score.confidence = drawn
            .first()
            .map(|samples| Samples::new(samples).exact_interval());
        signature = signature
            .with_bootstrap(samples)
            .with_seed(seed.to_string());
    }
    Ok((score, signature))
}

/// Compares every system with the first one, the baseline, under every metric.
pub fn paired_test(
    scorers: &[&dyn Scorer],
    systems: &[&[String]],
    test: PairedTest,
    seed: Seed,
) -> Result<Vec<MetricResults>, MetricError> {
    if systems.len() < 2 {
        return Err(MetricError::TooFewSystems {
            found: systems.len(),
        });
    }
    let seed = NamedSeed {
        value: seed.value(),
        name: seed,
    };
    scorers
        .iter()
        .map(|&scorer| test_metric(scorer, systems, test, seed))
        .collect()
}

/// A seed that was decided on, and the name it has in signatures.
#[derive(Clone, Copy)]
struct NamedSeed {
    value: u64,
    name: Seed,
}

fn test_metric(
    scorer: &dyn Scorer,
    systems: &[&[String]],
    test: PairedTest,
    seed: NamedSeed,
) -> Result<MetricResults, MetricError> {
    let mut tables = Vec::with_capacity(systems.len());
    for system in systems {
        tables.push(scorer.statistics(system)?);
    }
    let tables: Vec<&Statistics> = tables.iter().collect();
    let scores: Vec<f64> = tables
        .iter()
        .map(|table| scorer.score(&table.totals()).value)
        .collect();
    let signature = scorer.signature().with_seed(seed.name.to_string());
    let (results, signature) = match test {
        PairedTest::Bootstrap { samples } => (
            bootstrap_results(scorer, &tables, &scores, samples, seed),
            signature.with_bootstrap(samples),
        ),
        PairedTest::Randomization { trials, confidence } => {
            let signature = signature.with_randomization(trials);
            let results =
                randomization_results(scorer, &tables, &scores, (trials, confidence), seed);
            (
                results,
                match confidence {
                    Some(samples) => signature.with_bootstrap(samples),
                    None => signature,
                },
            )
        }
    };
    Ok(MetricResults {
        name: scorer.name(),
        signature,
        results,
    })
}

fn bootstrap_results(
    scorer: &dyn Scorer,
    tables: &[&Statistics],
    scores: &[f64],
    samples: usize,
    seed: NamedSeed,
) -> Vec<TestResult> {
    let resample = |_: usize, sums: &[f64]| scorer.sample(sums, Arithmetic::Float32);
    let drawn = bootstrap(tables, samples, &mut Generator::new(seed.value), resample);
    let drawn: Vec<Samples> = drawn.iter().map(|samples| Samples::new(samples)).collect();
    let result = |(index, samples): (usize, &Samples)| TestResult {
        score: scores[index],
        p_value: (index > 0).then(|| {
            let real = (scores[0] - scores[index]).abs();
            samples.p_value_against(&drawn[0], real)
        }),
        confidence: Some(samples.interval()),
    };
    drawn.iter().enumerate().map(result).collect()
}

fn randomization_results(
    scorer: &dyn Scorer,
    tables: &[&Statistics],
    scores: &[f64],
    (trials, confidence): (usize, Option<usize>),
    seed: NamedSeed,
) -> Vec<TestResult> {
    let mut generator = Generator::new(seed.value);
    let swaps = Swaps::draw(tables[0].segments(), trials, &mut generator);
    let resample = |_: usize, sums: &[f64]| scorer.sample(sums, Arithmetic::Float32);
    let interval = |tables: &[&Statistics], generator: &mut Generator| -> Vec<Confidence> {
        let drawn = bootstrap(tables, confidence.unwrap_or(0), generator, resample);
        drawn
            .iter()
            .map(|samples| Samples::new(samples).interval())
            .collect()
    };
    // The baseline's samples are drawn first of all, the systems' after the swaps.
    let mut intervals = Vec::new();
    if confidence.is_some() {
        intervals = interval(&tables[..1], &mut Generator::new(seed.value));
        intervals.extend(interval(&tables[1..], &mut generator));
    }
    let value = |sums: &[f64]| scorer.sample(sums, Arithmetic::Int64).value;
    let difference = |a: &[f64], b: &[f64]| (value(a) - value(b)).abs();
    let result = |(index, table): (usize, &&Statistics)| TestResult {
        score: scores[index],
        p_value: (index > 0).then(|| {
            let real = (scores[0] - scores[index]).abs();
            let differences = swaps.score(tables[0], table, difference);
            p_value(
                differences.iter().filter(|&&found| found > real).count(),
                trials,
            )
        }),
        confidence: intervals.get(index).copied(),
    };
    tables.iter().enumerate().map(result).collect()
}

/// Resampled scores, in the precision that numpy holds them in.
struct Samples {
    values: Vec<f64>,
    precision: Arithmetic,
}

impl Samples {
    fn new(samples: &[Sample]) -> Self {
        let single = samples.iter().all(|sample| sample.single);
        Self {
            values: samples.iter().map(|sample| sample.value).collect(),
            precision: if single {
                Arithmetic::Float32
            } else {
                Arithmetic::Python
            },
        }
    }

    /// Mean and half of the middle 95%, as numpy computes them.
    fn interval(&self) -> Confidence {
        let sorted = self.sorted();
        Confidence {
            mean: mean(&sorted, |value| self.precision.round(value)),
            half_width: self.half_width(&sorted),
        }
    }

    /// The same with Python's `statistics.mean`, which rounds once only.
    fn exact_interval(&self) -> Confidence {
        let sorted = self.sorted();
        let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
        for value in &sorted {
            let next = sum + value;
            lost += if sum.abs() >= value.abs() {
                (sum - next) + value
            } else {
                (value - next) + sum
            };
            sum = next;
        }
        Confidence {
            mean: self.precision.round((sum + lost) / sorted.len() as f64),
            half_width: self.half_width(&sorted),
        }
    }

    fn half_width(&self, sorted: &[f64]) -> f64 {
        let outside = sorted.len() / 40;
        let spread = sorted[sorted.len() - outside - 1] - sorted[outside];
        self.precision.round(0.5 * self.precision.round(spread))
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// How probable a difference as large as the real one is by chance.
    fn p_value_against(&self, baseline: &Samples, real: f64) -> f64 {
        let precision = match (self.precision, baseline.precision) {
            (Arithmetic::Float32, Arithmetic::Float32) => Arithmetic::Float32,
            _ => Arithmetic::Python,
        };
        let round = |value| precision.round(value);
        let pairs = self.values.iter().zip(&baseline.values);
        let differences: Vec<f64> = pairs.map(|(a, b)| round(a - b).abs()).collect();
        let expected = mean(&differences, round);
        let real = round(real);
        let above = |&&difference: &&f64| round(difference - expected) > real;
        p_value(differences.iter().filter(above).count(), differences.len())
    }
}

/// The share of trials that differ more, counting the real outcome as one of them.
fn p_value(above: usize, trials: usize) -> f64 {
    (above + 1) as f64 / (trials + 1) as f64
}

impl Seed {
    /// sacreBLEU's usual seed.
    pub const DEFAULT: Self = Self::Fixed(12345);

    fn generator(self) -> Generator {
        Generator::new(self.value())
    }

    fn value(self) -> u64 {
        use std::hash::{BuildHasher, RandomState};
        match self {
            Self::Fixed(value) => value,
            Self::Random => RandomState::new().hash_one(0),
        }
    }
}

impl FromStr for Seed {
    type Err = MetricError;

    fn from_str(text: &str) -> Result<Self, MetricError> {
        if text.eq_ignore_ascii_case("none") {
            return Ok(Self::Random);
        }
        text.parse()
            .map(Self::Fixed)
            .map_err(|_| MetricError::BadOption {
                option: "seed",
                found: text.to_owned(),
                expected: "a whole number of 0 or more, or `none`",
            })
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(value) => write!(f, "{value}"),
            Self::Random => f.write_str("none"),
        }
    }
}
