//! Search: from a model's next-token probabilities to whole sentences.
//!
//! One small trait, [`SearchModel`], is all that search knows of a model; the Burn Transformer, a
//! CPU kernel or a [`fake`] with hand-written probabilities implement it alike. [`search`] picks
//! the method: `greedy`, `beam` or `sampling`. The [`crate::translator`] calls it batch by
//! batch.

mod allowed;
mod beam;
pub mod fake;
mod greedy;
mod options;
mod rows;
mod sampling;
mod scan;

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

    /// Feeds one token per row (`<s>` first) and writes the log-probabilities of the next ones into
    /// `log_probs`, row-major `[rows * vocab]`, in place of whatever it held.
    fn step(&self, state: &mut Self::State, tokens: &[u32], log_probs: &mut Vec<f32>);

    /// Row i of the new state is row `rows[i]` of the old: the state grows to beams and shrinks
    /// when sentences finish.
    fn reorder(&self, state: &mut Self::State, rows: &[usize]);

    /// How much each step of a given target looks at each source token, `[tgt_len + 1, src_len]`
    /// row-major: row t belongs to the step that gives `target[t]`, the last row to that of `</s>`.
    /// Nothing, unless the model can say.
    fn cross_attention(&self, source: &[u32], target: &[u32]) -> Option<Vec<f32>> {
        let _ = (source, target);
        None
    }
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
    search_after(model, sources, &vec![Vec::new(); sources.len()], options)
}

/// As [`search`], with the tokens that each target must start with: `prefixes[i]` is that of source
/// i. Hypotheses hold these tokens and count their log-probabilities.
///
/// # Panics
/// As [`search`], and if there are not as many prefixes as sources.
pub fn search_after<M: SearchModel>(
    model: &M,
    sources: &[Vec<u32>],
    prefixes: &[Vec<u32>],
    options: &SearchOptions,
) -> Vec<Vec<Hypothesis>> {
    if let Err(problems) = options.check() {
        panic!(
            "search options must be checked before searching: {}",
            problems.join("; ")
        );
    }
    assert_eq!(sources.len(), prefixes.len(), "one prefix for each source");
    if sources.is_empty() {
        return Vec::new();
    }
    match &options.method {
        Method::Greedy => greedy::search(model, sources, prefixes, options),
        Method::Beam { size } => beam::search(model, sources, prefixes, options, *size),
        Method::Sample(sampling) => sampling::search(model, sources, prefixes, options, sampling),
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
fn best_first<T>(found: &mut Vec<T>, options: &SearchOptions, rank: impl Fn(&T) -> (Finish, f64)) {
    // The sort is stable: of equal scores, the one found first stays first.
    found.sort_by(|a, b| {
        let ((a_end, a_score), (b_end, b_score)) = (rank(a), rank(b));
        let cut = |finish| finish != Finish::EndOfSentence;
        cut(a_end)
            .cmp(&cut(b_end))
            .then(b_score.total_cmp(&a_score))
    });
    found.truncate(options.n_best);
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

/// The log-probability of a token that must come, however improbable; finite, so that scores are.
fn forced(log_probs: &[f32], token: u32) -> f64 {
    let log_prob = log_probs.get(token as usize).copied();
    at_most_zero(log_prob.unwrap_or(f32::MIN)).max(f64::from(f32::MIN))
}

/// The memory that a model's answers are written into, step by step.
#[derive(Default)]
struct Step {
    log_probs: Vec<f32>,
}

impl Step {
    /// One step of the model, its answer checked for size; a row for each token.
    fn rows<M: SearchModel>(
        &mut self,
        model: &M,
        state: &mut M::State,
        tokens: &[u32],
    ) -> std::slice::ChunksExact<'_, f32> {
        model.step(state, tokens, &mut self.log_probs);
        assert_eq!(
            self.log_probs.len(),
            tokens.len() * model.vocab(),
            "SearchModel::step must write rows * vocab log-probabilities"
        );
        self.log_probs.chunks_exact(model.vocab())
    }
}

/// Tells the model which of its `before` rows go on, unless all of them do.
fn keep_rows<M: SearchModel>(model: &M, state: &mut M::State, rows: &[usize], before: usize) {
    let unchanged = rows.len() == before && rows.iter().enumerate().all(|(new, &old)| new == old);
    if !rows.is_empty() && !unchanged {
        model.reorder(state, rows);
    }
}
