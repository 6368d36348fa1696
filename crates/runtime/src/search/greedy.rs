//! Greedy search: the most probable token at every step.
//!
//! The simplest neighbor of [`super::beam`], which does the same with a beam size of 1. [`super::rows`] and
//! [`super::draft`] call it.

use super::{Next, at_most_zero};

/// The most probable token and its log-probability, or nothing when no token is possible.
pub(super) fn most_probable(next: &Next<'_>) -> Option<(u32, f64)> {
    let mut best = None;
    let mut best_log_prob = f64::NEG_INFINITY;
    next.each_above(best_log_prob, |token, log_prob| {
        let log_prob = at_most_zero(log_prob);
        // "More than" keeps the lower id of equals, and passes over impossible tokens.
        if log_prob > best_log_prob {
            best_log_prob = log_prob;
            best = Some((token, log_prob));
        }
        best_log_prob
    });
    best
}
