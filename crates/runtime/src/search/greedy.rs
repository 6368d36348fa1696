//! Greedy search: the most probable token at every step.
//!
//! The simplest neighbour of [`super::beam`], which does the same when its beam is one wide.

use super::{Hypothesis, SearchModel, SearchOptions, at_most_zero, may_follow, rows};

/// The greedy translation of every source.
pub(super) fn search<M: SearchModel>(
    model: &M,
    sources: &[Vec<u32>],
    options: &SearchOptions,
) -> Vec<Vec<Hypothesis>> {
    rows::follow(model, sources, 1, options, |_, produced, log_probs| {
        most_probable(log_probs, produced, options)
    })
}

fn most_probable(
    log_probs: &[f32],
    produced: usize,
    options: &SearchOptions,
) -> Option<(u32, f64)> {
    let mut best = None;
    let mut best_log_prob = f64::NEG_INFINITY;
    for (token, &log_prob) in (0..).zip(log_probs) {
        let log_prob = at_most_zero(log_prob);
        // "More than" keeps the lower id of equals, and passes over NaN and impossible tokens.
        if log_prob > best_log_prob && may_follow(token, produced, options) {
            best_log_prob = log_prob;
            best = Some((token, log_prob));
        }
    }
    best
}
