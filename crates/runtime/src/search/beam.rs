//! Beam search with length normalisation (§6.1): the best `size` beginnings side by side.
//!
//! At every step the best `size` continuations of a sentence are kept. One that ends in `</s>` is
//! complete and takes its place for this step only: the others fan out to `size` again. (A beam of
//! one is therefore [`super::greedy`]: when its only place ends, nothing is live any more.)
//!
//! The search of a sentence ends, apart from the length limit where live beginnings are cut,
//! - when `n_best` sentences are complete and no live beginning can still become better than they
//!   are. This loses nothing: log-probabilities are at most 0, so a beginning's can only fall, and
//!   no length divides it by more than the longest one allowed;
//! - or when `size` sentences are complete and no live beginning is better than the best `n_best`
//!   of them by its present length. (Counting alone would not do: a model that is very sure of a
//!   long sentence completes `size` poor ones on the way there.)

use attentive_text::special::{BOS, EOS};

use super::{
    Finish, Hypothesis, SearchModel, SearchOptions, at_most_zero, best_first, keep_rows,
    may_follow, normalised, step,
};

/// The `n_best` translations of every source that a beam of `size` finds.
pub(super) fn search<M: SearchModel>(
    model: &M,
    sources: &[Vec<u32>],
    options: &SearchOptions,
    size: usize,
) -> Vec<Vec<Hypothesis>> {
    let mut beams: Vec<Beam> = sources
        .iter()
        .map(|source| Beam::new(source.len(), size, options))
        .collect();
    let mut state = model.start(sources);
    let mut tokens = vec![BOS; sources.len()];
    let mut log_probs = Vec::new();
    while !tokens.is_empty() {
        step(model, &mut state, &tokens, &mut log_probs);
        let mut rows = log_probs.chunks_exact(model.vocab());
        let mut parents = Vec::with_capacity(tokens.len());
        let mut next_tokens = Vec::with_capacity(tokens.len());
        let mut first_row = 0;
        for beam in beams.iter_mut().filter(|beam| !beam.live.is_empty()) {
            let width = beam.live.len();
            let kept = beam.advance(rows.by_ref().take(width));
            parents.extend(kept.into_iter().map(|parent| first_row + parent));
            next_tokens.extend(beam.live.iter().filter_map(|live| live.tokens.last()));
            first_row += width;
        }
        keep_rows(model, &mut state, &parents, tokens.len());
        tokens = next_tokens;
    }
    beams
        .into_iter()
        .map(|beam| best_first(beam.ended, options))
        .collect()
}

/// The search for one sentence.
struct Beam<'a> {
    options: &'a SearchOptions,
    size: usize,
    /// The most tokens a sentence may have, `</s>` included.
    limit: usize,
    /// Beginnings of equal length, most probable first; empty when the search has ended.
    live: Vec<Live>,
    ended: Vec<Hypothesis>,
}

struct Live {
    tokens: Vec<u32>,
    log_prob: f64,
}

impl<'a> Beam<'a> {
    fn new(src_len: usize, size: usize, options: &'a SearchOptions) -> Self {
        let limit = options.max_length.tokens(src_len);
        let live = vec![Live {
            tokens: Vec::new(),
            log_prob: 0.0,
        }];
        Self {
            options,
            size,
            limit,
            live,
            ended: Vec::new(),
        }
    }

    /// Lengthens every beginning by one token; `rows` holds one row of log-probabilities for each.
    /// Returns for every beginning that is live now which of the old ones it continues.
    fn advance<'r>(&mut self, rows: impl Iterator<Item = &'r [f32]>) -> Vec<usize> {
        let mut parents = Vec::with_capacity(self.size);
        let mut live = Vec::with_capacity(self.size);
        for Candidate {
            parent,
            token,
            log_prob,
        } in self.candidates(rows)
        {
            let mut tokens = self.live[parent].tokens.clone();
            if token == EOS {
                self.end(tokens, log_prob, Finish::EndOfSentence);
            } else {
                tokens.push(token);
                live.push(Live { tokens, log_prob });
                parents.push(parent);
            }
        }
        if live.is_empty() && self.ended.is_empty() {
            self.cut_live(Finish::DeadEnd);
        }
        self.live = live;
        if self
            .live
            .first()
            .is_some_and(|first| first.tokens.len() >= self.limit)
        {
            self.cut_live(Finish::LengthLimit);
        }
        if !self.can_improve() {
            self.live.clear();
        }
        parents.truncate(self.live.len());
        parents
    }

    /// The best `size` continuations over all beginnings, best first.
    fn candidates<'r>(&self, rows: impl Iterator<Item = &'r [f32]>) -> Vec<Candidate> {
        let mut best = Best::new(self.size);
        for (parent, (live, row)) in self.live.iter().zip(rows).enumerate() {
            for (token, &log_prob) in (0..).zip(row) {
                let log_prob = live.log_prob + at_most_zero(log_prob);
                // Nearly every token fails the first test, so the rest hardly costs.
                if log_prob > best.threshold && may_follow(token, live.tokens.len(), self.options) {
                    best.insert(Candidate {
                        parent,
                        token,
                        log_prob,
                    });
                }
            }
        }
        best.candidates
    }

    /// Whether a live beginning may still get among the `n_best`; see the file's header.
    fn can_improve(&self) -> bool {
        // All beginnings are of equal length, so the most probable one has the best score.
        let Some(best) = self.live.first() else {
            return false;
        };
        let enough = self.ended.len() >= self.size;
        let length = if enough {
            best.tokens.len()
        } else {
            self.limit
        };
        let bound = normalised(best.log_prob, length, self.options);
        let better = self
            .ended
            .iter()
            .filter(|ended| ended.score >= bound)
            .count();
        better < self.options.n_best
    }

    fn cut_live(&mut self, why: Finish) {
        for live in std::mem::take(&mut self.live) {
            self.end(live.tokens, live.log_prob, why);
        }
    }

    fn end(&mut self, tokens: Vec<u32>, log_prob: f64, why: Finish) {
        self.ended
            .push(Hypothesis::new(tokens, log_prob, why, self.options));
    }
}

/// The beginning `parent`, continued by `token`; `log_prob` is that of both together.
struct Candidate {
    parent: usize,
    token: u32,
    log_prob: f64,
}

/// The best candidates seen so far, best first, without ever sorting a vocabulary.
struct Best {
    candidates: Vec<Candidate>,
    capacity: usize,
    /// What a candidate must exceed to be among them.
    threshold: f64,
}

impl Best {
    fn new(capacity: usize) -> Self {
        Self {
            candidates: Vec::new(),
            capacity,
            threshold: f64::NEG_INFINITY,
        }
    }

    /// Candidates come in the order of parents and ids, and equals keep that order.
    fn insert(&mut self, candidate: Candidate) {
        let place = self
            .candidates
            .partition_point(|seen| seen.log_prob >= candidate.log_prob);
        self.candidates.truncate(self.capacity - 1);
        self.candidates.insert(place, candidate);
        if let Some(worst) = self.candidates.get(self.capacity - 1) {
            self.threshold = worst.log_prob;
        }
    }
}
