//! One row, one hypothesis: greedy search, or samples of one sentence side by side.
//!
//! They differ only in how the next token of a row is picked. All rows of a sentence begin with the same
//! step, so the model computes it once. Neighbors: [`super::batch`] runs sentences together, [`super::greedy`]
//! and [`super::sampling`] pick.

use attentive_text::special::{BOS, EOS};

use super::constraints::Constraints;
use super::options::Method;
use super::sampling::{Choice, Sampler};
use super::{Finish, Hypothesis, Next, Request, SearchOptions, best_first, greedy};

/// The hypotheses of one sentence.
pub(super) struct Rows {
    rows: Vec<Row>,
    /// Those that have not ended: the row of the last step that each continues, and its number.
    live: Vec<(usize, usize)>,
    begun: bool,
}

impl Rows {
    /// One hypothesis with greedy search, `n_best` samples.
    pub fn new(request: &Request, options: &SearchOptions) -> Self {
        let rows: Vec<Row> = match &options.method {
            Method::Sample(sampling) => (0..options.n_best)
                .map(|sample| Sampler::new(sampling, &request.source, sample))
                .map(|sampler| Row::new(request, options, Some(sampler)))
                .collect(),
            _ => vec![Row::new(request, options, None)],
        };
        Self {
            live: (0..rows.len()).map(|row| (0, row)).collect(),
            rows,
            begun: false,
        }
    }

    pub fn width(&self) -> usize {
        if self.begun { self.live.len() } else { 1 }
    }

    pub fn each_live(&self, mut show: impl FnMut(usize, u32)) {
        for &(parent, row) in &self.live {
            show(parent, self.rows[row].last_token());
        }
    }

    pub fn advance(
        &mut self,
        log_probs: &mut [f32],
        request: &Request,
        options: &SearchOptions,
        choices: &mut Vec<Choice>,
    ) {
        let constraints = Constraints::new(request, options);
        let width = log_probs.len() / self.width();
        for (place, (parent, number)) in self.live.iter_mut().enumerate() {
            let row = &mut self.rows[*number];
            *parent = if self.begun { place } else { 0 };
            let log_probs = &mut log_probs[*parent * width..][..width];
            let mut next = constraints.next(log_probs);
            constraints.apply(row.tokens.len(), &row.tokens, &mut next);
            row.extend(&next, choices);
        }
        self.begun = true;
        self.live
            .retain(|&(_, row)| self.rows[row].finished.is_none());
    }

    pub fn into_hypotheses(self, options: &SearchOptions) -> Vec<Hypothesis> {
        let rows = self.rows.into_iter();
        let mut found = rows.map(|row| row.into_hypothesis(options)).collect();
        best_first(&mut found, options, |found| (found.finished, found.score));
        found
    }
}

/// A hypothesis that grows.
pub(super) struct Row {
    pub tokens: Vec<u32>,
    /// Why it has ended, if it has.
    pub finished: Option<Finish>,
    log_prob: f64,
    max_length: usize,
    /// Draws the next token; without it the most probable one is taken.
    sampler: Option<Sampler>,
}

impl Row {
    pub fn new(request: &Request, options: &SearchOptions, sampler: Option<Sampler>) -> Self {
        let max_length = Constraints::new(request, options).max_length();
        Self {
            // As many as most sentences need; a longer one doubles the list now and then.
            tokens: Vec::with_capacity(max_length.min(2 * request.source.len() + 8).min(1024)),
            finished: None,
            log_prob: 0.0,
            max_length,
            sampler,
        }
    }

    /// What the model is fed next.
    pub fn last_token(&self) -> u32 {
        self.tokens.last().copied().unwrap_or(BOS)
    }

    /// How many tokens it may still get.
    pub fn room(&self) -> usize {
        self.max_length - self.tokens.len()
    }

    /// Picks one of the tokens that may come next.
    pub fn extend(&mut self, next: &Next<'_>, choices: &mut Vec<Choice>) {
        let picked = match &mut self.sampler {
            Some(sampler) => sampler.draw(next, choices),
            None => greedy::most_probable(next),
        };
        let Some((token, log_prob)) = picked else {
            self.finished = Some(Finish::DeadEnd);
            return;
        };
        self.log_prob += log_prob;
        if token == EOS {
            self.finished = Some(Finish::EndOfSentence);
            return;
        }
        self.tokens.push(token);
        if self.tokens.len() >= self.max_length {
            self.finished = Some(Finish::LengthLimit);
        }
    }

    pub fn into_hypothesis(self, options: &SearchOptions) -> Hypothesis {
        let finished = self.finished.unwrap_or(Finish::LengthLimit);
        Hypothesis::new(self.tokens, self.log_prob, finished, options)
    }
}
