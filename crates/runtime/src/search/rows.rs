//! One row, one sentence: the loop that greedy search and sampling share.
//!
//! They differ only in how a row's next token is picked. Rows that end leave the batch at once, so
//! that the model never computes a finished sentence. Every list keeps its memory from step to step.

use attentive_text::special::{BOS, EOS};

use super::allowed::Allowed;
use super::{Finish, Hypothesis, SearchModel, SearchOptions, Step, forced, keep_rows};

/// Follows every source `copies` times; the answer holds, source by source, all its copies.
///
/// `pick(row, allowed, log_probs)` gives the next token of a row (rows are numbered source by
/// source) and its log-probability, or nothing when no token is possible.
pub(super) fn follow<M: SearchModel>(
    model: &M,
    sources: &[Vec<u32>],
    prefixes: &[Vec<u32>],
    copies: usize,
    options: &SearchOptions,
    mut pick: impl FnMut(usize, &Allowed, &[f32]) -> Option<(u32, f64)>,
) -> Vec<Vec<Hypothesis>> {
    let mut rows: Vec<Row> = sources
        .iter()
        .zip(prefixes)
        .flat_map(|(source, prefix)| (0..copies).map(|_| Row::new(source.len(), prefix, options)))
        .collect();
    let mut state = model.start(sources);
    let from_source: Vec<usize> = (0..rows.len()).map(|row| row / copies).collect();
    keep_rows(model, &mut state, &from_source, sources.len());

    let mut step = Step::default();
    let mut banned = Vec::new();
    let mut live: Vec<usize> = (0..rows.len()).collect();
    let mut tokens = vec![BOS; rows.len()];
    let mut going_on = Vec::with_capacity(rows.len());
    while !live.is_empty() {
        going_on.clear();
        for (place, scores) in step.rows(model, &mut state, &tokens).enumerate() {
            let row = &mut rows[live[place]];
            let picked = match row.prefix.get(row.tokens.len()) {
                Some(&token) => Some((token, forced(scores, token))),
                None => {
                    let allowed =
                        Allowed::after(row.tokens.len(), &row.tokens, &mut banned, options);
                    pick(live[place], &allowed, scores)
                }
            };
            row.advance(picked);
            if row.finished.is_none() {
                going_on.push(place);
            }
        }
        keep_rows(model, &mut state, &going_on, live.len());
        // Places rise, so nothing is overwritten before it is read.
        for (new, &old) in going_on.iter().enumerate() {
            live[new] = live[old];
        }
        live.truncate(going_on.len());
        tokens.clear();
        tokens.extend(live.iter().map(|&row| rows[row].last_token()));
    }

    let mut hypotheses = rows.into_iter().map(|row| row.into_hypothesis(options));
    sources
        .iter()
        .map(|_| hypotheses.by_ref().take(copies).collect())
        .collect()
}

struct Row<'a> {
    prefix: &'a [u32],
    tokens: Vec<u32>,
    log_prob: f64,
    limit: usize,
    finished: Option<Finish>,
}

impl<'a> Row<'a> {
    fn new(src_len: usize, prefix: &'a [u32], options: &SearchOptions) -> Self {
        let limit = options.max_length.tokens_after(prefix.len(), src_len);
        Self {
            prefix,
            // As many as most sentences need; a longer one doubles the list now and then.
            tokens: Vec::with_capacity(limit.min(2 * src_len + 8).min(1024)),
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
