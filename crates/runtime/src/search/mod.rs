//! Search: from a model's next-token probabilities to whole sentences.
//!
//! One small trait, [`SearchModel`], is all that search knows of a model; the Burn Transformer, the
//! CPU model or a [`fake`] with hand-written probabilities implement it alike. A [`Request`] is one
//! sentence, [`SearchOptions`] say how to search: `greedy`, `beam` or `sampling`. [`Constraint`]s change the
//! probabilities before a token is picked, and [`Terms`] are phrases that must come. [`search_feed`] searches for sentences as they come, [`search`] for
//! some that are known, and [`draft`] for one at a time, with a draft that is checked. The
//! [`crate::translator`] feeds the sentences of a call to several of them.

mod banks;
mod batch;
mod beam;
mod constraints;
pub mod draft;
pub mod fake;
mod greedy;
mod next;
mod options;
mod request;
mod rows;
mod sampling;
mod scan;

use std::borrow::Borrow;

pub use attentive_model::generation::{AtLimit, BeamRule, EarlyEnd};
pub use batch::{Feed, Load, search_feed};
pub use constraints::{Constraint, NoRepeatedNgrams, Term, Terms};
pub use next::{Next, restrict};
pub use options::{LengthLimit, Method, Sampling, SearchOptions};
pub use request::Request;
pub use sampling::{Choice, Sampler};
pub(crate) use scan::each_above;

/// A model that continues target sentences, many rows at a time.
///
/// The calls cannot fail: sources are checked before they get here.
pub trait SearchModel {
    /// Everything that changes while decoding: encoder output, key-value cache.
    type State;

    /// Number of target tokens.
    fn vocab(&self) -> usize;

    /// Encodes the sources (each non-empty, ending in `</s>`); row i of the state is request i. Of a request
    /// the model uses the source and the candidates.
    fn start(&self, requests: &[&Request]) -> Self::State;

    /// Feeds one token per row (`<s>` first) and writes the log-probabilities of the next ones into
    /// `log_probs`, one row behind the other, in place of whatever it held: `vocab` of them for a row, or, where its request has
    /// candidates, one for each of these, over them alone (see [`restrict`]).
    fn step(&self, state: &mut Self::State, tokens: &[u32], log_probs: &mut Vec<f32>);

    /// Row i of the new state is row `rows[i]` of the old: the state grows to beams and shrinks
    /// when sentences finish.
    fn reorder(&self, state: &mut Self::State, rows: &[usize]);

    /// What else a running search of this model can do, if it can.
    fn elastic(&self) -> Option<&dyn Elastic<Self::State>> {
        None
    }

    /// How much each step of a given target looks at each source token, `[tgt_len + 1, src_len]`
    /// row-major: row t belongs to the step that gives `target[t]`, the last row to that of `</s>`.
    /// Nothing, unless the model can say.
    fn cross_attention(&self, source: &[u32], target: &[u32]) -> Option<Vec<f32>> {
        let _ = (source, target);
        None
    }
}

/// A model whose running searches can take in sentences, and tokens that they may have to forget again.
pub trait Elastic<S> {
    /// Adds requests, in new rows behind the others, as if they had been there from the start.
    fn admit(&self, state: &mut S, requests: &[&Request]);

    /// Feeds several tokens, one after the other, to the only row of a state. `log_probs` gets what
    /// [`SearchModel::step`] would have given after each.
    fn extend(&self, state: &mut S, tokens: &[u32], log_probs: &mut Vec<f32>);

    /// Forgets the last `count` tokens of the only row of a state.
    fn rewind(&self, state: &mut S, count: usize);
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

/// Translates the requests together; the answer holds for each request its hypotheses, best first.
///
/// There is at least one hypothesis per request and at most `n_best`. Hypotheses that ended in `</s>`
/// come before those that were cut. `<s>` and `<blank>` are never produced; of equally probable
/// tokens the one with the lower id wins; NaN counts as probability zero.
///
/// # Panics
/// If the options do not pass [`SearchOptions::check`], a prefix, terms or candidates hold tokens beyond the vocabulary,
/// or the model returns rows of a wrong size.
pub fn search<M: SearchModel, R: Borrow<Request>>(
    model: &M,
    requests: &[R],
    options: &SearchOptions,
) -> Vec<Vec<Hypothesis>> {
    let mut together = batch::Together::new(requests.iter().map(Borrow::borrow));
    search_feed(model, &mut together, options);
    together.found
}

impl Hypothesis {
    fn new(tokens: Vec<u32>, log_prob: f64, finished: Finish, options: &SearchOptions) -> Self {
        let length = tokens.len() + usize::from(finished == Finish::EndOfSentence);
        Self {
            score: normalized(log_prob, length, options),
            tokens,
            log_prob,
            finished,
        }
    }
}

/// Length normalization: without it every further token only costs, and short sentences win.
fn normalized(log_prob: f64, length: usize, options: &SearchOptions) -> f64 {
    log_prob / (length.max(1) as f64).powf(options.length_penalty)
}

/// Sorts best first and keeps `n_best`. A complete sentence beats a cut one whatever their scores,
/// because what runs into the limit is nearly always a model that repeats itself; by the rules of other programs
/// both are alike.
fn best_first<T>(found: &mut Vec<T>, options: &SearchOptions, rank: impl Fn(&T) -> (Finish, f64)) {
    // The sort is stable: of equal scores, the one found first stays first.
    found.sort_by(|a, b| {
        let ((a_end, a_score), (b_end, b_score)) = (rank(a), rank(b));
        let ours = options.beam_rule == BeamRule::Refill;
        let cut = |finish| ours && finish != Finish::EndOfSentence;
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
