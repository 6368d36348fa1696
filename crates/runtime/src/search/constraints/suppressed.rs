//! Tokens that never come: `<s>` and `<blank>`, and `</s>` before the least length.

use attentive_text::special::{BOS, EOS, PAD};

use super::Next;

/// Forbids them for the token after `length` others.
pub(super) fn suppress(length: usize, min_length: usize, next: &mut Next<'_>) {
    next.forbid(BOS);
    next.forbid(PAD);
    if length < min_length {
        next.forbid(EOS);
    }
}

/// Makes log-probabilities over all tokens but `</s>` of those over all.
pub(super) fn leave_out_end(next: &mut Next<'_>) {
    let others = (-next.get(EOS).exp()).ln_1p();
    next.forbid(EOS);
    // Where `</s>` has all of the probability, nothing is left to share.
    if others.is_finite() {
        next.add(-others);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probability_of_an_end_that_is_left_out_is_shared() {
        let mut row = [0.1f32, 0.2, 0.3, 0.4].map(f32::ln);
        leave_out_end(&mut Next::new(&mut row, None));
        assert_eq!(row[EOS as usize], f32::NEG_INFINITY);
        for (found, expected) in [(row[0], 0.125f32), (row[2], 0.375), (row[3], 0.5)] {
            assert!((found.exp() - expected).abs() < 1e-6, "{row:?}");
        }
        let mut sure = [f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY];
        leave_out_end(&mut Next::new(&mut sure, None));
        assert_eq!(sure, [f32::NEG_INFINITY; 3]);
    }

    #[test]
    fn the_end_must_wait_for_the_least_length() {
        let allowed = |length| {
            let mut row = [-1.0; 6];
            suppress(length, 2, &mut Next::new(&mut row, None));
            row.map(|log_prob| log_prob == -1.0)
        };
        assert_eq!(allowed(1), [false, false, false, true, true, true]);
        assert_eq!(allowed(2), [false, true, false, true, true, true]);
    }
}
