//! Detects translations that repeat themselves.
//!
//! Transformers sometimes fall into a loop and produce the same few tokens until the length limit. That
//! is seen from the tokens alone: a short block of them follows itself several times.

use std::sync::Arc;

use crate::search::{NoRepeatedNgrams, Request};

/// In the second search no n-gram of this many tokens may occur twice.
const BLOCKED_NGRAM: usize = 3;

const LONGEST_BLOCK: usize = 20;
const TIMES: usize = 4;
/// Shorter repetitions are what language does too: "no, no, no, no", "1,000,000,000".
const LEAST_TOKENS: usize = 12;

/// The same sentence for the second search.
pub(super) fn blocked(request: &Request) -> Request {
    let mut request = request.clone();
    request
        .constraints
        .push(Arc::new(NoRepeatedNgrams(BLOCKED_NGRAM)));
    request
}

/// Whether a block of at most [`LONGEST_BLOCK`] tokens occurs at least [`TIMES`] times in a row.
pub(super) fn is_repetitive(tokens: &[u32]) -> bool {
    (1..=LONGEST_BLOCK.min(tokens.len() / TIMES)).any(|block| {
        let enough = (block * TIMES).max(LEAST_TOKENS) - block;
        let mut equal = 0;
        tokens.iter().zip(&tokens[block..]).any(|(before, token)| {
            equal = if before == token { equal + 1 } else { 0 };
            equal >= enough
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeated(block: &[u32], times: usize) -> Vec<u32> {
        block.repeat(times)
    }

    #[test]
    fn blocks_that_follow_themselves_are_repetition() {
        assert!(is_repetitive(&repeated(&[7], 12)));
        assert!(is_repetitive(&repeated(&[7, 8], 6)));
        assert!(is_repetitive(&repeated(&[7, 8, 9], 4)));
        let long: Vec<u32> = (0..20).collect();
        assert!(is_repetitive(&repeated(&long, 4)));
        let inside = [vec![1, 2, 3], repeated(&[7, 8, 9], 5), vec![4, 5]].concat();
        assert!(is_repetitive(&inside));
    }

    #[test]
    fn what_people_say_is_not() {
        assert!(!is_repetitive(&[]));
        assert!(!is_repetitive(&repeated(&[7], 11)));
        assert!(!is_repetitive(&repeated(&[7, 8, 9], 3)));
        assert!(!is_repetitive(&(0..200).collect::<Vec<u32>>()));
        // The same words again, but never the same block four times in a row.
        let refrain: Vec<u32> = (0..40).flat_map(|verse| [1, 2, 3, 100 + verse]).collect();
        assert!(!is_repetitive(&refrain));
    }
}
