//! Beam search with length normalization (§6.1): the best `size` hypotheses side by side.
//!
//! At every step the best `size` continuations of a sentence's hypotheses are kept. One that ends in
//! `</s>` is complete and takes its place in the beam for this step only: the others branch to `size`
//! again. (A beam size of 1 is therefore [`super::greedy`]: when its only hypothesis is complete, none is
//! live any more.)
//!
//! The search of a sentence ends, apart from the length limit where live hypotheses are cut, when
//! `size` hypotheses are complete and no live one is better than the best `n_best` of them by its
//! present length. (Counting alone would not do: a model that is very sure of a long sentence completes
//! `size` poor ones on the way there.)
//!
//! It ends earlier where that provably changes nothing: when `n_best` hypotheses are complete and
//! none that is still to come can be among the best `n_best`. Let `p` be the largest log-probability
//! of a live hypothesis. Every hypothesis to come continues a live one, and each of its tokens adds a
//! log-probability of at most 0, so its own is at most `p`; it has at most `max_length` tokens, and
//! `p <= 0`, so its score is at most `p / max_length^alpha`. Where `n_best` complete ones reach that, it
//! comes after them: best first keeps those of equal score that were found first. A cut hypothesis
//! comes after every complete one in any case. So going on could not change the answer.
//!
//! Hypotheses share their tokens in a tree, and every list keeps its memory from step to step:
//! the loop allocates nothing once the lists have grown.

use attentive_text::special::{BOS, EOS};

use super::constraints::Constraints;
use super::{
    Finish, Hypothesis, Request, SearchModel, SearchOptions, Step, at_most_zero, best_first,
    keep_rows, normalized, scan,
};

/// The `n_best` translations of every request that a beam of `size` finds.
pub(super) fn search<M: SearchModel>(
    model: &M,
    requests: &[&Request],
    options: &SearchOptions,
    size: usize,
) -> Vec<Vec<Hypothesis>> {
    let mut beams: Vec<Beam> = requests
        .iter()
        .map(|request| Beam::new(request, size, options))
        .collect();
    let mut state = model.start(requests);
    let mut step = Step::default();
    let mut tokens = vec![BOS; requests.len()];
    let mut parents = Vec::with_capacity(requests.len() * size);
    let mut scratch = Scratch::new(size);
    while !tokens.is_empty() {
        let mut rows = step.rows(model, &mut state, &tokens);
        let before = tokens.len();
        tokens.clear();
        parents.clear();
        let mut first_row = 0;
        for beam in beams.iter_mut().filter(|beam| !beam.live.is_empty()) {
            let width = beam.live.len();
            beam.advance(rows.by_ref().take(width), &mut scratch);
            for live in &beam.live {
                parents.push(first_row + live.parent);
                tokens.push(beam.tree[live.node].token);
            }
            first_row += width;
        }
        keep_rows(model, &mut state, &parents, before);
    }
    beams.into_iter().map(Beam::into_hypotheses).collect()
}

/// The search for one sentence.
struct Beam<'a> {
    constraints: Constraints<'a>,
    options: &'a SearchOptions,
    size: usize,
    /// The most tokens a hypothesis may have, `</s>` included.
    max_length: usize,
    /// The tokens of all hypotheses.
    tree: Vec<Node>,
    /// How many tokens every live hypothesis has.
    length: usize,
    /// Hypotheses of equal length, most probable first; empty when the search has ended.
    live: Vec<Live>,
    ended: Vec<Ended>,
}

/// A token and the one before it, by its place in the tree; the first has none.
struct Node {
    before: usize,
    token: u32,
}

/// Stands for "nothing before": the empty hypothesis.
const ROOT: usize = usize::MAX;

struct Live {
    node: usize,
    log_prob: f64,
    /// Which of the live hypotheses of the step before this one continues.
    parent: usize,
}

struct Ended {
    node: usize,
    length: usize,
    log_prob: f64,
    score: f64,
    finished: Finish,
}

/// Lists that all beams use in turn.
struct Scratch {
    best: Best,
    live: Vec<Live>,
    tokens: Vec<u32>,
}

impl Scratch {
    fn new(size: usize) -> Self {
        Self {
            best: Best::new(size),
            live: Vec::new(),
            tokens: Vec::new(),
        }
    }
}

impl<'a> Beam<'a> {
    fn new(request: &'a Request, size: usize, options: &'a SearchOptions) -> Self {
        let constraints = Constraints::new(request, options);
        let max_length = constraints.max_length();
        // As many as most sentences need; a longer one doubles the list now and then.
        let expected = max_length.min(2 * request.source.len() + 8).min(1024) * size.min(16);
        Self {
            constraints,
            options,
            size,
            max_length,
            tree: Vec::with_capacity(expected),
            length: 0,
            live: vec![Live {
                node: ROOT,
                log_prob: 0.0,
                parent: 0,
            }],
            ended: Vec::with_capacity(2 * size.min(16)),
        }
    }

    /// Extends every hypothesis by one token; `rows` holds one row of log-probabilities for each.
    fn advance<'r>(&mut self, rows: impl Iterator<Item = &'r mut [f32]>, scratch: &mut Scratch) {
        self.candidates(rows, scratch);
        scratch.live.clear();
        for candidate in &scratch.best.candidates {
            let before = self.live[candidate.parent].node;
            if candidate.token == EOS {
                self.end(before, candidate.log_prob, Finish::EndOfSentence);
            } else {
                scratch.live.push(Live {
                    node: self.tree.len(),
                    log_prob: candidate.log_prob,
                    parent: candidate.parent,
                });
                self.tree.push(Node {
                    before,
                    token: candidate.token,
                });
            }
        }
        if scratch.live.is_empty() && self.ended.is_empty() {
            self.cut_live(Finish::DeadEnd);
        }
        std::mem::swap(&mut self.live, &mut scratch.live);
        self.length += 1;
        if self.length >= self.max_length {
            self.cut_live(Finish::LengthLimit);
        }
        if !self.can_improve() {
            self.live.clear();
        }
    }

    /// The best `size` continuations over all hypotheses, best first.
    fn candidates<'r>(&self, rows: impl Iterator<Item = &'r mut [f32]>, scratch: &mut Scratch) {
        let Scratch { best, tokens, .. } = scratch;
        best.clear();
        for (parent, (live, row)) in self.live.iter().zip(rows).enumerate() {
            if self.constraints.need_tokens() {
                self.tokens_into(live.node, tokens);
            }
            self.constraints.apply(self.length, tokens, row);
            let floor = |threshold: f64| threshold - live.log_prob;
            scan::each_above(row, floor(best.threshold), |token, log_prob| {
                let log_prob = live.log_prob + at_most_zero(log_prob);
                if log_prob > best.threshold {
                    best.insert(Candidate {
                        parent,
                        token,
                        log_prob,
                    });
                }
                floor(best.threshold)
            });
        }
    }

    /// Whether a live hypothesis may still get among the `n_best`; see the file's header.
    fn can_improve(&self) -> bool {
        // All live ones are of equal length, so the most probable one has the best score.
        let Some(best) = self.live.first() else {
            return false;
        };
        let enough = self.ended.len() >= self.size;
        let length = if enough { self.length } else { self.max_length };
        let bound = normalized(best.log_prob, length, self.options);
        let better = self
            .ended
            .iter()
            .filter(|ended| ended.score >= bound)
            .count();
        better < self.options.n_best
    }

    fn cut_live(&mut self, why: Finish) {
        for live in std::mem::take(&mut self.live) {
            self.end(live.node, live.log_prob, why);
        }
    }

    fn end(&mut self, node: usize, log_prob: f64, finished: Finish) {
        let length = self.length + usize::from(finished == Finish::EndOfSentence);
        self.ended.push(Ended {
            node,
            length,
            log_prob,
            score: normalized(log_prob, length, self.options),
            finished,
        });
    }

    /// The tokens of a hypothesis, last first.
    fn path(&self, node: usize) -> impl Iterator<Item = u32> {
        let mut node = node;
        std::iter::from_fn(move || {
            let Node { before, token } = *self.tree.get(node)?;
            node = before;
            Some(token)
        })
    }

    fn tokens_into(&self, node: usize, tokens: &mut Vec<u32>) {
        tokens.clear();
        tokens.extend(self.path(node));
        tokens.reverse();
    }

    fn into_hypotheses(mut self) -> Vec<Hypothesis> {
        best_first(&mut self.ended, self.options, |ended| {
            (ended.finished, ended.score)
        });
        let hypothesis = |ended: &Ended| {
            let mut tokens = Vec::with_capacity(ended.length);
            self.tokens_into(ended.node, &mut tokens);
            Hypothesis {
                tokens,
                log_prob: ended.log_prob,
                score: ended.score,
                finished: ended.finished,
            }
        };
        self.ended.iter().map(hypothesis).collect()
    }
}

/// The hypothesis `parent`, continued by `token`; `log_prob` is that of both together.
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
            candidates: Vec::with_capacity(capacity.min(64)),
            capacity,
            threshold: f64::NEG_INFINITY,
        }
    }

    fn clear(&mut self) {
        self.candidates.clear();
        self.threshold = f64::NEG_INFINITY;
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
