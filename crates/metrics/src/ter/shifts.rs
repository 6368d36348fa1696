//! Tercom's greedy search for shifts: the best one is made, again and again, until none helps.
//!
//! A shift moves a phrase of the output to where the reference has it and counts as one edit. Which
//! shifts are tried, how ties are broken and when the search gives up decide the score, so they follow
//! sacreBLEU's TER step by step; only the cost of a candidate is computed in another way.

use super::edit_distance::{Beam, CostMatrix, Row};

/// The longest phrase that is moved.
const MAX_SHIFT_SIZE: usize = 10;
/// The farthest that a phrase may be from its place in the reference.
const MAX_SHIFT_DISTANCE: usize = 50;
/// The search gives up after this many candidates.
const MAX_CANDIDATES: usize = 1000;

/// The search and its memory, which one thread uses again for every sentence.
#[derive(Debug, Default)]
pub(super) struct ShiftSearch {
    beam: Beam,
    forward: CostMatrix,
    backward: CostMatrix,
    rows: (Row, Row),
    alignment: Alignment,
    candidates: usize,
}

/// A shift of `length` words from `start` to before `target`.
#[derive(Debug, Clone, Copy)]
struct Shift {
    gain: u32,
    start: usize,
    length: usize,
    target: usize,
}

impl ShiftSearch {
    /// The number of edits, shifts included, from the output to the reference.
    pub(super) fn edits(&mut self, output: &[u32], reference: &[u32]) -> usize {
        if reference.is_empty() || output.is_empty() {
            return output.len().max(reference.len());
        }
        self.beam.set(output.len(), reference.len());
        self.candidates = 0;
        let mut words = output.to_vec();
        let mut shifts = 0;
        loop {
            self.forward.fill_forward(&words, reference, &self.beam);
            let cost = self.forward.get(words.len(), reference.len());
            let best = self.best_shift(&words, reference, cost);
            match best {
                Some(shift) if self.candidates < MAX_CANDIDATES => {
                    shift.apply(&mut words);
                    shifts += 1;
                }
                _ => return shifts + cost as usize,
            }
        }
    }

    /// The shift that lowers the cost most; of equal ones the longest, then the earliest.
    fn best_shift(&mut self, words: &[u32], reference: &[u32], cost: u32) -> Option<Shift> {
        self.alignment.read(&self.forward, words, reference);
        self.backward.fill_backward(words, reference, &self.beam);
        let mut best: Option<Shift> = None;
        for start in 0..words.len() {
            let first = start.saturating_sub(MAX_SHIFT_DISTANCE);
            let last = reference.len().min(start + MAX_SHIFT_DISTANCE + 1);
            for place in first..last {
                let longest = words.len().min(start + MAX_SHIFT_SIZE) - start;
                let longest = longest.min(reference.len() - place);
                for length in 1..=longest {
                    if words[start + length - 1] != reference[place + length - 1] {
                        break;
                    }
                    if !self.alignment.allows(start, place, length) {
                        continue;
                    }
                    self.try_targets(words, reference, cost, (start, place, length), &mut best);
                    if self.candidates >= MAX_CANDIDATES {
                        return best;
                    }
                }
            }
        }
        best
    }

    /// Tries to move the phrase before, into and behind the words aligned with its place.
    fn try_targets(
        &mut self,
        words: &[u32],
        reference: &[u32],
        cost: u32,
        (start, place, length): (usize, usize, usize),
        best: &mut Option<Shift>,
    ) {
        let mut previous = None;
        for offset in 0..=length {
            let target = match (place + offset).checked_sub(1) {
                None => 0,
                Some(before) if before < reference.len() => self.alignment.target_after(before),
                Some(_) => break,
            };
            if previous.replace(target) == Some(target) {
                continue;
            }
            self.candidates += 1;
            let needed = best.map_or(1, |shift| shift.gain);
            let mut shift = Shift {
                gain: 0,
                start,
                length,
                target,
            };
            if let Some(limit) = cost.checked_sub(needed)
                && let Some(after) = self.cost_after(&shift, words, reference, limit)
            {
                shift.gain = cost - after;
                if best.is_none_or(|best| shift.rank() > best.rank()) {
                    *best = Some(shift);
                }
            }
        }
    }

    /// The cost once the shift is made, if it is at most `limit`.
    fn cost_after(
        &mut self,
        shift: &Shift,
        words: &[u32],
        reference: &[u32],
        limit: u32,
    ) -> Option<u32> {
        let (begin, middle, end) = shift.rotation(words.len());
        let (above, row) = (&mut self.rows.0, &mut self.rows.1);
        above.clear(reference.len());
        row.clear(reference.len());
        let (column, cells) = self.forward.row(begin);
        above.load(column, cells);
        let rotated = words[middle..end].iter().chain(&words[begin..middle]);
        for (i, &word) in rotated.enumerate() {
            let (first, last) = self.beam.row(begin + i + 1);
            if row.step(above, word, reference, first, last) > limit {
                return None;
            }
            std::mem::swap(above, row);
        }
        let cost = above.join(self.backward.row(end));
        (cost <= limit).then_some(cost)
    }
}

impl Shift {
    /// Every shift swaps two neighboring stretches: `begin..middle` and `middle..end`.
    fn rotation(&self, len: usize) -> (usize, usize, usize) {
        let behind = self.start + self.length;
        if self.target < self.start {
            (self.target, self.start, behind)
        } else if self.target > behind {
            (self.start, behind, self.target)
        } else {
            // A target inside the phrase counts from the phrase's end.
            (self.start, behind, len.min(self.length + self.target))
        }
    }

    fn apply(&self, words: &mut [u32]) {
        let (begin, middle, end) = self.rotation(words.len());
        words[begin..end].rotate_left(middle - begin);
    }

    /// What decides between two shifts, the higher wins.
    fn rank(&self) -> (u32, usize, std::cmp::Reverse<(usize, usize)>) {
        (
            self.gain,
            self.length,
            std::cmp::Reverse((self.start, self.target)),
        )
    }
}

/// Which words stand for each other in the cheapest edit, and where the errors are.
#[derive(Debug, Default)]
struct Alignment {
    /// For each reference word how many words of the output stand before or at it.
    targets: Vec<usize>,
    /// Errors among the first n words of the output.
    output_errors: Vec<u32>,
    /// Errors among the first n words of the reference.
    reference_errors: Vec<u32>,
}

impl Alignment {
    /// Follows the cheapest edit back; equal costs prefer a substitution, then a deletion.
    fn read(&mut self, costs: &CostMatrix, words: &[u32], reference: &[u32]) {
        self.targets.clear();
        self.targets.resize(reference.len(), 0);
        self.output_errors.clear();
        self.output_errors.resize(words.len() + 1, 0);
        self.reference_errors.clear();
        self.reference_errors.resize(reference.len() + 1, 0);
        let (mut i, mut j) = (words.len(), reference.len());
        while i > 0 || j > 0 {
            let cost = costs.get(i, j);
            let differs = i > 0 && j > 0 && words[i - 1] != reference[j - 1];
            if i > 0 && j > 0 && cost == costs.get(i - 1, j - 1) + u32::from(differs) {
                self.output_errors[i] = u32::from(differs);
                self.reference_errors[j] = u32::from(differs);
                self.targets[j - 1] = i;
                i -= 1;
                j -= 1;
            } else if i > 0 && (j == 0 || cost == costs.get(i - 1, j) + 1) {
                self.output_errors[i] = 1;
                i -= 1;
            } else {
                self.reference_errors[j] = 1;
                self.targets[j - 1] = i;
                j -= 1;
            }
        }
        accumulate(&mut self.output_errors);
        accumulate(&mut self.reference_errors);
    }

    /// Whether a phrase is wrong where it stands, its place is wrong too, and it is not there already.
    fn allows(&self, start: usize, place: usize, length: usize) -> bool {
        let errors = |sums: &[u32], from: usize| sums[from + length] - sums[from];
        errors(&self.output_errors, start) > 0
            && errors(&self.reference_errors, place) > 0
            && !(start + 1..=start + length).contains(&self.targets[place])
    }

    /// The position behind the words that stand for this reference word.
    fn target_after(&self, place: usize) -> usize {
        self.targets[place]
    }
}

/// Turns errors per word into errors up to each word.
fn accumulate(errors: &mut [u32]) {
    let mut sum = 0;
    for error in errors {
        sum += *error;
        *error = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edits(output: &[u32], reference: &[u32]) -> usize {
        ShiftSearch::default().edits(output, reference)
    }

    #[test]
    fn a_moved_phrase_is_one_edit() {
        assert_eq!(edits(&[4, 5, 6, 1, 2, 3], &[1, 2, 3, 4, 5, 6]), 1);
    }

    #[test]
    fn shifts_and_substitutions_add_up() {
        assert_eq!(edits(&[3, 4, 1, 2, 9], &[1, 2, 3, 4, 5]), 2);
        assert_eq!(edits(&[7, 8], &[1, 2, 3]), 3);
    }

    #[test]
    fn a_target_inside_the_phrase_counts_from_its_end() {
        let shift = |target| Shift {
            gain: 0,
            start: 1,
            length: 2,
            target,
        };
        let mut words = [0, 1, 2, 3, 4];
        shift(2).apply(&mut words);
        assert_eq!(words, [0, 3, 1, 2, 4]);
        let mut words = [0, 1, 2, 3, 4];
        shift(1).apply(&mut words);
        assert_eq!(words, [0, 1, 2, 3, 4]);
        let mut words = [0, 1, 2, 3, 4];
        shift(0).apply(&mut words);
        assert_eq!(words, [1, 2, 0, 3, 4]);
    }
}
