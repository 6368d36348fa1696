//! Search: from a model's next-token probabilities to whole sentences.
//!
//! One small trait, [`SearchModel`], is all that search knows of a model; the Burn Transformer, a
//! CPU kernel or a [`fake`] with hand-written probabilities implement it alike. [`search`] picks
//! the method: `greedy`, `beam` or `sampling`. The [`crate::translator`] calls it batch by
//! batch.

mod beam;
pub mod fake;
mod greedy;
mod options;
mod rows;
mod sampling;

use attentive_text::special::{BOS, EOS, PAD};

pub use options::{LengthLimit, Method, Sampling, SearchOptions};

/// A model that continues target sentences, many rows at a time.
///
/// The calls cannot fail: sources are checked before they get here.
pub trait SearchModel {
    /// Everything that changes while decoding: encoder output, key-value cache.
    type State;

    /// Number of target tokens.
    fn vocab(&self) -> usize;

    /// Encodes the sources (each non-empty, ending in `</s>`); row i of the state is source i.
    fn start(&self, sources: &[Vec<u32>]) -> Self::State;

    /// Feeds one token per row (`<s>` first) and overwrites `log_probs` with the log-probabilities
    /// of the next ones, row-major `[rows * vocab]`. The buffer is the caller's, so that it can be
    /// used again at every step.
    fn step(&self, state: &mut Self::State, tokens: &[u32], log_probs: &mut Vec<f32>);

    /// Row i of the new state is row `rows[i]` of the old: the state grows to beams and shrinks
    /// when sentences finish.
    fn reorder(&self, state: &mut Self::State, rows: &[usize]);
}

/// One sentence that search came up with.
#[derive(Debug, Clone, PartialEq)]
pub struct Hypothesis {
    /// The tokens, without `<s>` and `</s>`.
    pub tokens: Vec<u32>,
    /// The model's log-probability of these tokens, `</s>` included if it was produced.
    pub log_prob: f64,
    /// `log_prob / length^length_penalty`, by which hypotheses are ranked; the length counts
    /// `</s>` if it was produced.
    pub score: f64,
    /// Why the sentence ends where it ends.
    pub finished: Finish,
}

/// Why a sentence ends where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model produced `</s>`.
    EndOfSentence,
    /// The sentence was cut at the [`LengthLimit`].
    LengthLimit,
    /// The model gave no token a probability above zero (or only NaN): it is damaged or diverged.
    DeadEnd,
}

/// Translates the sources together; the answer holds for each source its hypotheses, best first.
///
/// There is at least one hypothesis per source and at most `n_best`. Sentences that ended in `</s>`
/// come before those that were cut. `<s>` and `<blank>` are never produced; of equally probable
/// tokens the one with the lower id wins; NaN counts as probability zero.
///
/// # Panics
/// If the options do not pass [`SearchOptions::check`], or the model returns rows of a wrong size.
pub fn search<M: SearchModel>(
    model: &M,
    sources: &[Vec<u32>],
    options: &SearchOptions,
) -> Vec<Vec<Hypothesis>> {
    if let Err(problems) = options.check() {
        panic!(
            "search options must be checked before searching: {}",
            problems.join("; ")
        );
    }
    if sources.is_empty() {
        return Vec::new();
    }
    match &options.method {
        Method::Greedy => greedy::search(model, sources, options),
        Method::Beam { size } => beam::search(model, sources, options, *size),
        Method::Sample(sampling) => sampling::search(model, sources, options, sampling),
    }
}

impl Hypothesis {
    fn new(tokens: Vec<u32>, log_prob: f64, finished: Finish, options: &SearchOptions) -> Self {
        let length = tokens.len() + usize::from(finished == Finish::EndOfSentence);
        Self {
            score: normalised(log_prob, length, options),
            tokens,
            log_prob,
            finished,
        }
    }
}

/// Length normalisation: without it every further token only costs, and short sentences win.
fn normalised(log_prob: f64, length: usize, options: &SearchOptions) -> f64 {
    log_prob / (length.max(1) as f64).powf(options.length_penalty)
}

/// Sorts best first and keeps `n_best`. A complete sentence beats a cut one whatever their scores,
/// because what runs into the limit is nearly always a model caught in a loop.
fn best_first(mut hypotheses: Vec<Hypothesis>, options: &SearchOptions) -> Vec<Hypothesis> {
    let cut = |hypothesis: &Hypothesis| hypothesis.finished != Finish::EndOfSentence;
    // The sort is stable: of equal scores, the one found first stays first.
    hypotheses.sort_by(|a, b| cut(a).cmp(&cut(b)).then(b.score.total_cmp(&a.score)));
    hypotheses.truncate(options.n_best);
    hypotheses
}

/// Whether `token` may follow a target of `produced` tokens.
fn may_follow(token: u32, produced: usize, options: &SearchOptions) -> bool {
    token != BOS && token != PAD && (token != EOS || produced >= options.min_length)
}

/// A log-probability as search uses it: rounding may have lifted it above 0, which would break the
/// bound that ends beam search. NaN stays NaN and then loses every comparison.
fn at_most_zero(log_prob: f32) -> f64 {
    if log_prob > 0.0 {
        0.0
    } else {
        f64::from(log_prob)
    }
}

/// One step of the model, its answer checked for size.
fn step<M: SearchModel>(model: &M, state: &mut M::State, tokens: &[u32], log_probs: &mut Vec<f32>) {
    model.step(state, tokens, log_probs);
    assert_eq!(
        log_probs.len(),
        tokens.len() * model.vocab(),
        "SearchModel::step must return rows * vocab log-probabilities"
    );
}

/// Tells the model which of its `before` rows go on, unless all of them do.
fn keep_rows<M: SearchModel>(model: &M, state: &mut M::State, rows: &[usize], before: usize) {
    let unchanged = rows.len() == before && rows.iter().enumerate().all(|(new, &old)| new == old);
    if !rows.is_empty() && !unchanged {
        model.reorder(state, rows);
    }
}
