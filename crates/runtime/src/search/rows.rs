//! One row, one sentence: the loop that greedy search and sampling share.
//!
//! They differ only in how a row's next token is picked. Rows that end leave the batch at once, so
//! that the model never computes a finished sentence.

use attentive_text::special::{BOS, EOS};

use super::{Finish, Hypothesis, SearchModel, SearchOptions, keep_rows, step};

/// Follows every source `copies` times; the answer holds, source by source, all its copies.
///
/// `pick(row, produced, log_probs)` gives the next token of a row (rows are numbered source by
/// source) and its log-probability, or nothing when no token is possible.
pub(super) fn follow<M: SearchModel>(
    model: &M,
    sources: &[Vec<u32>],
    copies: usize,
    options: &SearchOptions,
    mut pick: impl FnMut(usize, usize, &[f32]) -> Option<(u32, f64)>,
) -> Vec<Vec<Hypothesis>> {
    let mut rows: Vec<Row> = sources
        .iter()
        .flat_map(|source| std::iter::repeat_n(source.len(), copies))
        .map(|src_len| Row::new(options.max_length.tokens(src_len)))
        .collect();
    let mut state = model.start(sources);
    let from_source: Vec<usize> = (0..rows.len()).map(|row| row / copies).collect();
    keep_rows(model, &mut state, &from_source, sources.len());

    let mut live: Vec<usize> = (0..rows.len()).collect();
    let mut log_probs = Vec::new();
    while !live.is_empty() {
        let tokens: Vec<u32> = live.iter().map(|&row| rows[row].last_token()).collect();
        step(model, &mut state, &tokens, &mut log_probs);
        let mut going_on = Vec::with_capacity(live.len());
        for (place, scores) in log_probs.chunks_exact(model.vocab()).enumerate() {
            let row = &mut rows[live[place]];
            row.advance(pick(live[place], row.tokens.len(), scores));
            if row.finished.is_none() {
                going_on.push(place);
            }
        }
        keep_rows(model, &mut state, &going_on, live.len());
        live = going_on.into_iter().map(|place| live[place]).collect();
    }

    let mut hypotheses = rows.into_iter().map(|row| row.into_hypothesis(options));
    sources
        .iter()
        .map(|_| hypotheses.by_ref().take(copies).collect())
        .collect()
}

struct Row {
    tokens: Vec<u32>,
    log_prob: f64,
    limit: usize,
    finished: Option<Finish>,
}

impl Row {
    fn new(limit: usize) -> Self {
        Self {
            tokens: Vec::new(),
            log_prob: 0.0,
            limit,
            finished: None,
        }
    }

    fn last_token(&self) -> u32 {
        self.tokens.last().copied().unwrap_or(BOS)
    }

    fn advance(&mut self, picked: Option<(u32, f64)>) {
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
        if self.tokens.len() >= self.limit {
            self.finished = Some(Finish::LengthLimit);
        }
    }

    fn into_hypothesis(self, options: &SearchOptions) -> Hypothesis {
        let finished = self.finished.unwrap_or(Finish::LengthLimit);
        Hypothesis::new(self.tokens, self.log_prob, finished, options)
    }
}
