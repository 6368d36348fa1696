//! Tokens that must come, however improbable: those of the prefix, and `</s>` at the length limit.

use super::Next;

/// Forbids all tokens but this one, whose log-probability becomes finite so that scores are.
pub(super) fn force(token: u32, next: &mut Next<'_>) {
    // NaN loses against any number.
    let log_prob = next.get(token).max(f32::MIN);
    force_at(token, log_prob, next);
}

/// Forbids all tokens but this one, which costs nothing.
pub(super) fn force_free(token: u32, next: &mut Next<'_>) {
    force_at(token, 0.0, next);
}

fn force_at(token: u32, log_prob: f32, next: &mut Next<'_>) {
    next.forbid_all();
    next.set(token, log_prob);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_probability_of_a_forced_token_is_the_models_own_and_finite() {
        const NEVER: f32 = f32::NEG_INFINITY;
        for (own, expected) in [(-2.5, -2.5), (NEVER, f32::MIN), (f32::NAN, f32::MIN)] {
            let mut row = [-0.1, own, f32::NAN, -3.0];
            force(1, &mut Next::new(&mut row, None));
            assert_eq!(row, [NEVER, expected, NEVER, NEVER]);
        }
    }
}
