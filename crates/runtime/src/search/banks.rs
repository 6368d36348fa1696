//! Banks: the places of a beam, shared among hypotheses that lack more or fewer tokens of the required terms.
//!
//! A hypothesis that takes a term is less probable than one that has put it off, until that one must take it too. So
//! only those that lack equally many tokens compete (dynamic beam allocation, Post & Vilar 2018): each bank has its
//! share of the beam, and places that it cannot fill go to the most probable of all others.
//!
//! Paper: candidates are the best of the whole beam, and besides, for each hypothesis, its best token and the next
//! ones of its constraints. Here: the best of each bank, so that every place is given to the best there is.
//! If there are more banks than places, those that lack least and most keep theirs: the terms do come, and the
//! model's own path waits for a better place for them.
//!
//! Neighbors: [`super::beam`] fills and asks them, [`super::constraints`] says what a hypothesis lacks.

use super::beam::{Best, Candidate};

/// The candidates of one step, by the number of tokens that they lack.
pub(super) struct Banks {
    banks: Vec<Best>,
    size: usize,
}

impl Banks {
    pub fn new() -> Self {
        Self {
            banks: Vec::new(),
            size: 0,
        }
    }

    /// Forgets all, to find candidates for so many places.
    pub fn begin(&mut self, size: usize) {
        self.size = size;
        self.banks.iter_mut().for_each(|bank| bank.begin(size));
    }

    /// What a candidate must exceed to be among the best of a bank.
    pub fn threshold(&self, missing: usize) -> f64 {
        let bank = self.banks.get(missing);
        bank.map_or(f64::NEG_INFINITY, |bank| bank.threshold)
    }

    pub fn insert(&mut self, missing: usize, candidate: Candidate) {
        while self.banks.len() <= missing {
            let mut bank = Best::new();
            bank.begin(self.size);
            self.banks.push(bank);
        }
        self.banks[missing].insert(candidate);
    }

    /// Gives the places of the beam away: adds the candidates that get one to `chosen`, best first.
    pub fn choose(&mut self, chosen: &mut Vec<Candidate>) {
        let banks = || self.banks.iter().filter(|bank| !bank.candidates.is_empty());
        let count = banks().count();
        let enough = count <= self.size;
        let share = if enough { self.size / count.max(1) } else { 1 };
        let mut ranked = Vec::new();
        let filled = self
            .banks
            .iter_mut()
            .filter(|bank| !bank.candidates.is_empty());
        for (number, bank) in filled.enumerate() {
            let outermost = number == 0 || number + 1 == count;
            for (place, candidate) in bank.candidates.drain(..).enumerate() {
                let rank = if place >= share {
                    2
                } else if enough || outermost {
                    0
                } else {
                    1
                };
                ranked.push((rank, candidate));
            }
        }
        ranked.sort_by(|(a_rank, a), (b_rank, b)| {
            let by_probability = b.log_prob.total_cmp(&a.log_prob);
            a_rank.cmp(b_rank).then(by_probability)
        });
        ranked.truncate(self.size);
        chosen.extend(ranked.into_iter().map(|(_, candidate)| candidate));
        chosen.sort_by(|a, b| b.log_prob.total_cmp(&a.log_prob));
    }
}
