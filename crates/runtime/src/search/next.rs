//! What may come next: the log-probabilities of a hypothesis' next token.
//!
//! A [`super::SearchModel`] writes one for each token of the vocabulary, or, where the request has candidates, for these
//! alone: a shortlist leaves a few hundred of tens of thousands of tokens, and nobody fills, moves or reads the others.
//! [`super::Constraint`]s change them here by token, and a search reads them.

use super::scan;

/// The log-probabilities of the next token.
#[derive(Debug)]
pub struct Next<'a> {
    log_probs: &'a mut [f32],
    /// The tokens that they belong to, rising; all of the vocabulary if nothing is given.
    candidates: Option<&'a [u32]>,
    /// Tokens that a constraint wants although they are no candidates.
    wanted: Vec<(u32, f32)>,
}

impl<'a> Next<'a> {
    /// One log-probability for each token of the vocabulary, or for each candidate (in rising order).
    ///
    /// # Panics
    /// If there are more or fewer candidates than log-probabilities.
    pub fn new(log_probs: &'a mut [f32], candidates: Option<&'a [u32]>) -> Self {
        if let Some(candidates) = candidates {
            assert_eq!(candidates.len(), log_probs.len(), "one for each candidate");
        }
        Self {
            log_probs,
            candidates,
            wanted: Vec::new(),
        }
    }

    /// The log-probability of a token; minus infinity where it cannot come.
    pub fn get(&self, token: u32) -> f32 {
        let wanted = self.wanted.iter().find(|(other, _)| *other == token);
        match (wanted, self.place(token)) {
            (Some((_, log_prob)), _) => *log_prob,
            (None, Some(place)) => self.log_probs[place],
            (None, None) => f32::NEG_INFINITY,
        }
    }

    /// Changes the log-probability of a token.
    pub fn set(&mut self, token: u32, log_prob: f32) {
        self.wanted.retain(|(other, _)| *other != token);
        match self.place(token) {
            Some(place) => self.log_probs[place] = log_prob,
            None => self.wanted.push((token, log_prob)),
        }
    }

    /// Forbids a token; one that cannot come is forbidden anyway.
    pub fn forbid(&mut self, token: u32) {
        self.wanted.retain(|(other, _)| *other != token);
        if let Some(place) = self.place(token) {
            self.log_probs[place] = f32::NEG_INFINITY;
        }
    }

    /// Forbids all tokens.
    pub fn forbid_all(&mut self) {
        self.wanted.clear();
        self.log_probs.fill(f32::NEG_INFINITY);
    }

    /// Adds `shift` to the log-probabilities of all tokens.
    pub fn add(&mut self, shift: f32) {
        let wanted = self.wanted.iter_mut().map(|(_, log_prob)| log_prob);
        for log_prob in self.log_probs.iter_mut().chain(wanted) {
            *log_prob += shift;
        }
    }

    /// All tokens with their log-probabilities; those that cannot come may be left out.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f32)> {
        let numbered = self.log_probs.iter().enumerate();
        let rows = numbered.map(|(place, log_prob)| (self.token(place), *log_prob));
        rows.chain(self.wanted.iter().copied())
    }

    /// Calls `look(token, log_prob)` for every token above `floor`, lower ids first; `look` returns the floor for what
    /// follows. See [`scan::each_above`].
    pub(crate) fn each_above(&self, floor: f64, mut look: impl FnMut(u32, f32) -> f64) {
        let mut last = floor;
        scan::each_above(self.log_probs, floor, |place, log_prob| {
            last = look(self.token(place as usize), log_prob);
            last
        });
        for &(token, log_prob) in &self.wanted {
            if f64::from(log_prob) > last {
                last = look(token, log_prob);
            }
        }
    }

    fn token(&self, place: usize) -> u32 {
        self.candidates
            .map_or(place as u32, |candidates| candidates[place])
    }

    fn place(&self, token: u32) -> Option<usize> {
        match self.candidates {
            None => Some(token as usize).filter(|&place| place < self.log_probs.len()),
            Some(candidates) => candidates.binary_search(&token).ok(),
        }
    }
}

/// Makes rows of log-probabilities over the whole vocabulary what [`super::SearchModel::step`] is to write: where a row
/// has candidates (in rising order), only theirs are left, and they sum to one.
///
/// # Panics
/// If candidates lie beyond the vocabulary.
pub fn restrict<'a>(
    log_probs: &mut Vec<f32>,
    vocab: usize,
    candidates: impl Iterator<Item = Option<&'a [u32]>>,
) {
    let mut end = 0;
    for (row, candidates) in candidates.enumerate() {
        let first = row * vocab;
        let Some(candidates) = candidates else {
            log_probs.copy_within(first..first + vocab, end);
            end += vocab;
            continue;
        };
        // Candidates rise, so none is overwritten before it is read.
        for (place, &token) in candidates.iter().enumerate() {
            assert!((token as usize) < vocab, "a candidate of the vocabulary");
            log_probs[end + place] = log_probs[first + token as usize];
        }
        normalize(&mut log_probs[end..][..candidates.len()]);
        end += candidates.len();
    }
    log_probs.truncate(end);
}

/// Makes the probabilities sum to one. Where nothing is possible, it stays so.
fn normalize(log_probs: &mut [f32]) {
    let largest = log_probs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if largest == f32::NEG_INFINITY {
        return;
    }
    let total: f32 = log_probs.iter().map(|value| (value - largest).exp()).sum();
    let shift = largest + total.ln();
    log_probs.iter_mut().for_each(|value| *value -= shift);
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: f32 = f32::NEG_INFINITY;

    fn restricted(row: &[f32], candidates: &[u32]) -> Vec<f32> {
        let mut rows = [row, row, row].concat();
        let all = [Some(candidates), None, Some(candidates)];
        restrict(&mut rows, row.len(), all.into_iter());
        let (first, rest) = rows.split_at(candidates.len());
        assert_eq!(&rest[..row.len()], row, "the row without candidates");
        assert_eq!(&rest[row.len()..], first, "the last row");
        first.to_vec()
    }

    #[test]
    fn the_probabilities_of_the_candidates_sum_to_one_and_keep_their_ratios() {
        let row = restricted(&[0.1f32, 0.2, 0.3, 0.4].map(f32::ln), &[1, 2]);
        assert!((row[0] - 0.4f32.ln()).abs() < 1e-6, "{row:?}");
        assert!((row[1] - 0.6f32.ln()).abs() < 1e-6, "{row:?}");
    }

    #[test]
    fn where_no_candidate_is_possible_nothing_is() {
        assert_eq!(restricted(&[0.0, NEVER, NEVER], &[1, 2]), [NEVER; 2]);
        assert!(restricted(&[0.0, -1.0], &[]).is_empty());
    }

    #[test]
    fn very_improbable_candidates_are_told_apart() {
        let row = restricted(&[0.0, -200.0, -201.0], &[1, 2]);
        let expected = -(1.0 + (-1.0f32).exp()).ln();
        assert!((row[0] - expected).abs() < 1e-4, "{row:?}");
        assert!((row[1] - expected + 1.0).abs() < 1e-4, "{row:?}");
    }

    #[test]
    fn tokens_are_found_among_candidates_as_in_a_whole_vocabulary() {
        let (mut all, mut some) = ([-5.0, -1.0, -2.0, -3.0, -4.0], [-1.0, -3.0]);
        let mut all = Next::new(&mut all, None);
        let mut some = Next::new(&mut some, Some(&[1, 3]));
        for next in [&mut all, &mut some] {
            assert_eq!((next.get(1), next.get(3)), (-1.0, -3.0));
            next.forbid(1);
            next.forbid(900);
            next.set(4, -0.5);
            next.add(-1.0);
            assert_eq!((next.get(1), next.get(3), next.get(4)), (NEVER, -4.0, -1.5));
            assert_eq!(next.get(900), NEVER);
            let mut seen = Vec::new();
            next.each_above(-3.5, |token, log_prob| {
                seen.push((token, log_prob));
                -3.5
            });
            seen.retain(|(token, _)| *token != 2);
            assert_eq!(seen, [(4, -1.5)]);
        }
        assert_eq!(some.get(2), NEVER, "no candidate");
        let possible: Vec<u32> = some
            .iter()
            .filter(|(_, p)| *p > NEVER)
            .map(|(t, _)| t)
            .collect();
        assert_eq!(possible, [3, 4]);
        some.forbid_all();
        assert!(some.iter().all(|(_, log_prob)| log_prob == NEVER));
    }
}
