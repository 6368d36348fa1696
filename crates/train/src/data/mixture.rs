//! The mixture of an epoch: which lines it visits, and how often, where files have weights (`data.weights`).
//!
//! A corpus is seldom made of what its users want most. With a weight of 0.3 an epoch visits three tenths of a
//! file's lines, drawn anew every time; with 2 it visits every line twice, each time in a form of its own
//! ([`crate::data::augmentation`]). What is drawn is a pure function of seed, epoch and line, so that a continued
//! run sees what an uninterrupted one saw. Neighbor: [`crate::data::corpus`] encodes the lines of all visits.

use crate::data::random::SplitMix64;

/// How often an epoch goes through each part of a corpus.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mixture {
    /// Where each part ends and its weight; without parts every line is visited once.
    parts: Vec<(usize, f64)>,
}

/// One line in an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    /// Which line.
    pub line: usize,
    /// How often it was visited before in this epoch.
    pub earlier: u64,
}

/// Tells the numbers that draw lines from those that give lines their forms.
const DRAW: u64 = 0x6D69_7874_7572_6521;

impl Mixture {
    /// The lines up to `end` that belong to no part yet have this weight.
    pub fn add(&mut self, end: usize, weight: f64) {
        self.parts.push((end, weight));
    }

    /// The visits of an epoch to a corpus of so many lines, in the order of the lines.
    pub fn visits(&self, lines: usize, seed: u64, epoch: u64) -> Vec<Visit> {
        let once = [(lines, 1.0)];
        let parts = if self.parts.is_empty() {
            &once
        } else {
            &self.parts[..]
        };
        let mut visits = Vec::new();
        let mut line = 0;
        for &(end, weight) in parts {
            for line in line..end {
                let count = visits_of(line, weight, seed, epoch);
                visits.extend((0..count).map(|earlier| Visit { line, earlier }));
            }
            line = end;
        }
        visits
    }
}

/// How often an epoch visits a line of a file with this weight.
pub fn visits_of(line: usize, weight: f64, seed: u64, epoch: u64) -> u64 {
    let whole = weight.floor();
    let mut random = SplitMix64::new(&[seed, epoch, line as u64, DRAW]);
    whole as u64 + u64::from(random.chance(weight - whole))
}

impl Visit {
    /// What gives the line its form.
    pub fn random(self, seed: u64, epoch: u64) -> SplitMix64 {
        let key = [seed, epoch, self.line as u64, self.earlier];
        // The first visit draws what it drew when lines were visited once at most.
        SplitMix64::new(&key[..3 + usize::from(self.earlier > 0)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixture(parts: &[(usize, f64)]) -> Mixture {
        let parts = parts.to_vec();
        Mixture { parts }
    }

    #[test]
    fn without_weights_every_line_is_visited_once() {
        let lines: Vec<usize> = (0..5).collect();
        let visited = Mixture::default().visits(5, 3, 1);
        assert_eq!(visited.iter().map(|v| v.line).collect::<Vec<_>>(), lines);
        assert_eq!(visited, mixture(&[(2, 1.0), (5, 1.0)]).visits(5, 9, 9));
    }

    #[test]
    fn a_weight_is_the_share_of_the_lines_or_how_often_they_are_visited() {
        let mixture = mixture(&[(10_000, 0.3), (20_000, 2.5)]);
        let visits = mixture.visits(20_000, 1, 0);
        let (few, many): (Vec<&Visit>, Vec<&Visit>) =
            visits.iter().partition(|visit| visit.line < 10_000);
        assert!((2_800..3_200).contains(&few.len()), "{}", few.len());
        assert!((24_800..25_200).contains(&many.len()), "{}", many.len());
        assert!(few.iter().all(|visit| visit.earlier == 0));
        for times in 0..2 {
            let reached = many.iter().filter(|visit| visit.earlier == times).count();
            assert_eq!(reached, 10_000, "every line at least twice");
        }
    }

    #[test]
    fn every_epoch_draws_other_lines_and_always_the_same_ones() {
        let mixture = mixture(&[(1_000, 0.5)]);
        assert_eq!(mixture.visits(1_000, 1, 4), mixture.visits(1_000, 1, 4));
        assert_ne!(mixture.visits(1_000, 1, 4), mixture.visits(1_000, 1, 5));
        assert_ne!(mixture.visits(1_000, 1, 4), mixture.visits(1_000, 2, 4));
    }

    #[test]
    fn visits_of_one_line_have_forms_of_their_own() {
        let first = |earlier| Visit { line: 7, earlier }.random(1, 2).next_u64();
        assert_eq!(first(0), SplitMix64::new(&[1, 2, 7]).next_u64());
        assert_ne!(first(0), first(1));
        assert_ne!(first(1), first(2));
    }
}
