//! Candidates: the target tokens that a request allows, and log-probabilities over them alone.
//!
//! Neighbors: a [`super::Request`] names them, and a [`super::SearchModel`] that computes the whole vocabulary
//! restricts its rows to them here.

/// Makes a row of log-probabilities, one for each token of the vocabulary, one over `candidates` (in rising
/// order): they sum to one, and the others are impossible. Where none of them is possible, all stay so.
///
/// # Panics
/// If the candidates do not rise or lie beyond the vocabulary.
pub fn restrict(log_probs: &mut [f32], candidates: &[u32]) {
    let of_candidates = || candidates.iter().map(|&token| log_probs[token as usize]);
    let largest = of_candidates().fold(f32::NEG_INFINITY, f32::max);
    let total: f32 = of_candidates()
        .map(|log_prob| (log_prob - largest).exp())
        .sum();
    let shift = match largest {
        f32::NEG_INFINITY => 0.0,
        _ => largest + total.ln(),
    };
    let mut next = 0;
    for &token in candidates {
        let token = token as usize;
        log_probs[next..token].fill(f32::NEG_INFINITY);
        log_probs[token] -= shift;
        next = token + 1;
    }
    log_probs[next..].fill(f32::NEG_INFINITY);
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: f32 = f32::NEG_INFINITY;

    #[test]
    fn the_probabilities_of_the_candidates_sum_to_one_and_keep_their_ratios() {
        let mut row = [0.1f32, 0.2, 0.3, 0.4].map(f32::ln);
        restrict(&mut row, &[1, 2]);
        assert_eq!((row[0], row[3]), (NEVER, NEVER));
        assert!((row[1] - 0.4f32.ln()).abs() < 1e-6, "{row:?}");
        assert!((row[2] - 0.6f32.ln()).abs() < 1e-6, "{row:?}");
    }

    #[test]
    fn where_no_candidate_is_possible_nothing_is() {
        let mut row = [0.0, NEVER, NEVER];
        restrict(&mut row, &[1, 2]);
        assert_eq!(row, [NEVER; 3]);
        restrict(&mut row, &[]);
        assert_eq!(row, [NEVER; 3]);
    }

    #[test]
    fn very_improbable_candidates_are_told_apart() {
        let mut row = [0.0, -200.0, -201.0];
        restrict(&mut row, &[1, 2]);
        let expected = -(1.0 + (-1.0f32).exp()).ln();
        assert!((row[1] - expected).abs() < 1e-4, "{row:?}");
        assert!((row[2] - expected + 1.0).abs() < 1e-4, "{row:?}");
    }
}
