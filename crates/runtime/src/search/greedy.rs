//! Greedy search: the most probable token at every step.
//!
//! The simplest neighbour of [`super::beam`], which does the same when its beam is one wide.

use super::allowed::Allowed;
use super::{Hypothesis, SearchModel, SearchOptions, at_most_zero, rows, scan};

/// The greedy translation of every source.
pub(super) fn search<M: SearchModel>(
    model: &M,
    sources: &[Vec<u32>],
    prefixes: &[Vec<u32>],
    options: &SearchOptions,
) -> Vec<Vec<Hypothesis>> {
    rows::follow(
        model,
        sources,
        prefixes,
        1,
        options,
        |_, allowed, log_probs| most_probable(log_probs, allowed),
    )
}

fn most_probable(log_probs: &[f32], allowed: &Allowed) -> Option<(u32, f64)> {
    let mut best = None;
    let mut best_log_prob = f64::NEG_INFINITY;
    scan::each_above(log_probs, best_log_prob, |token, log_prob| {
        let log_prob = at_most_zero(log_prob);
        // "More than" keeps the lower id of equals, and passes over impossible tokens.
        if log_prob > best_log_prob && allowed.permits(token) {
            best_log_prob = log_prob;
            best = Some((token, log_prob));
        }
        best_log_prob
    });
    best
}
