//! Tokens that never come: `<s>` and `<blank>`, and `</s>` before the least length.

use attentive_text::special::{BOS, EOS, PAD};

use super::forbid;

/// Forbids them for the token after `length` others.
pub(super) fn suppress(length: usize, min_length: usize, log_probs: &mut [f32]) {
    forbid(BOS, log_probs);
    forbid(PAD, log_probs);
    if length < min_length {
        forbid(EOS, log_probs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_must_wait_for_the_least_length() {
        let allowed = |length| {
            let mut row = [-1.0; 6];
            suppress(length, 2, &mut row);
            row.map(|log_prob| log_prob == -1.0)
        };
        assert_eq!(allowed(1), [false, false, false, true, true, true]);
        assert_eq!(allowed(2), [false, true, false, true, true, true]);
    }
}
