//! Tokens that must come, however improbable: those of the prefix, and `</s>` at the length limit.

/// Forbids all tokens but this one, whose log-probability becomes finite so that scores are.
pub(super) fn force(token: u32, log_probs: &mut [f32]) {
    // NaN loses against any number.
    let log_prob = log_probs[token as usize].max(f32::MIN);
    force_at(token, log_prob, log_probs);
}

/// Forbids all tokens but this one, which costs nothing.
pub(super) fn force_free(token: u32, log_probs: &mut [f32]) {
    force_at(token, 0.0, log_probs);
}

fn force_at(token: u32, log_prob: f32, log_probs: &mut [f32]) {
    log_probs.fill(f32::NEG_INFINITY);
    log_probs[token as usize] = log_prob;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_probability_of_a_forced_token_is_the_models_own_and_finite() {
        const NEVER: f32 = f32::NEG_INFINITY;
        for (own, expected) in [(-2.5, -2.5), (NEVER, f32::MIN), (f32::NAN, f32::MIN)] {
            let mut row = [-0.1, own, f32::NAN, -3.0];
            force(1, &mut row);
            assert_eq!(row, [NEVER, expected, NEVER, NEVER]);
        }
    }
}
