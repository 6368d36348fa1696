//! One row, one hypothesis: the loop that greedy search and sampling share.
//!
//! They differ only in how the next token of a row is picked. Finished rows leave the batch at once, so
//! that the model never computes a finished sentence. Every list keeps its memory from step to step.

use attentive_text::special::{BOS, EOS};

use super::constraints::Constraints;
use super::{Finish, Hypothesis, Request, SearchModel, SearchOptions, Step, keep_rows};

/// Makes `copies` hypotheses for every request; the answer holds, request by request, all of them.
///
/// `pick(row, log_probs)` gives the next token of a row (rows are numbered request by request) and its
/// log-probability, or nothing when no token is possible.
pub(super) fn extend<M: SearchModel>(
    model: &M,
    requests: &[&Request],
    copies: usize,
    options: &SearchOptions,
    mut pick: impl FnMut(usize, &[f32]) -> Option<(u32, f64)>,
) -> Vec<Vec<Hypothesis>> {
    let mut rows: Vec<Row> = requests
        .iter()
        .flat_map(|request| (0..copies).map(|_| Row::new(request, options)))
        .collect();
    let mut state = model.start(requests);
    let of_request: Vec<usize> = (0..rows.len()).map(|row| row / copies).collect();
    keep_rows(model, &mut state, &of_request, requests.len());

    let mut step = Step::default();
    let mut live: Vec<usize> = (0..rows.len()).collect();
    let mut tokens = vec![BOS; rows.len()];
    let mut unfinished = Vec::with_capacity(rows.len());
    while !live.is_empty() {
        unfinished.clear();
        for (place, log_probs) in step.rows(model, &mut state, &tokens).enumerate() {
            let row = &mut rows[live[place]];
            row.constraints
                .apply(row.tokens.len(), &row.tokens, log_probs);
            row.push(pick(live[place], log_probs));
            if row.finished.is_none() {
                unfinished.push(place);
            }
        }
        keep_rows(model, &mut state, &unfinished, live.len());
        // Places rise, so nothing is overwritten before it is read.
        for (new, &old) in unfinished.iter().enumerate() {
            live[new] = live[old];
        }
        live.truncate(unfinished.len());
        tokens.clear();
        tokens.extend(live.iter().map(|&row| rows[row].last_token()));
    }

    let mut hypotheses = rows.into_iter().map(|row| row.into_hypothesis(options));
    requests
        .iter()
        .map(|_| hypotheses.by_ref().take(copies).collect())
        .collect()
}

struct Row<'a> {
    constraints: Constraints<'a>,
    tokens: Vec<u32>,
    log_prob: f64,
    max_length: usize,
    finished: Option<Finish>,
}

impl<'a> Row<'a> {
    fn new(request: &'a Request, options: &'a SearchOptions) -> Self {
        let constraints = Constraints::new(request, options);
        let max_length = constraints.max_length();
        Self {
            constraints,
            // As many as most sentences need; a longer one doubles the list now and then.
            tokens: Vec::with_capacity(max_length.min(2 * request.source.len() + 8).min(1024)),
            log_prob: 0.0,
            max_length,
            finished: None,
        }
    }

    fn last_token(&self) -> u32 {
        self.tokens.last().copied().unwrap_or(BOS)
    }

    fn push(&mut self, picked: Option<(u32, f64)>) {
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

    fn into_hypothesis(self, options: &SearchOptions) -> Hypothesis {
        let finished = self.finished.unwrap_or(Finish::LengthLimit);
        Hypothesis::new(self.tokens, self.log_prob, finished, options)
    }
}
