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
//! So much for [`BeamRule::Refill`], which is ours. Models of other programs have the rule of their program, so
//! that they say what they say there: the beam shrinks by each complete hypothesis ([`BeamRule::Shrink`]), or
//! twice as many continuations are looked at, of which the first half may be complete, and the beam is filled with
//! live ones ([`BeamRule::Full`], [`BeamRule::FullUntilEnough`]).
//!
//! Hypotheses share their tokens in a tree, and every list keeps its memory from step to step:
//! the loop allocates nothing once the lists have grown. Neighbors: [`super::batch`] runs sentences together.

use attentive_text::special::EOS;

use super::constraints::Constraints;
use super::{
    BeamRule, Finish, Hypothesis, Request, SearchOptions, at_most_zero, best_first, normalized,
    scan,
};

/// The search for one sentence.
pub(super) struct Beam {
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
pub(super) struct Scratch {
    best: Best,
    live: Vec<Live>,
    tokens: Vec<u32>,
}

impl Scratch {
    pub fn new() -> Self {
        Self {
            best: Best::new(),
            live: Vec::new(),
            tokens: Vec::new(),
        }
    }
}

impl Beam {
    pub fn new(request: &Request, size: usize, options: &SearchOptions) -> Self {
        let max_length = Constraints::new(request, options).max_length();
        // As many as most sentences need; a longer one doubles the list now and then.
        let expected = max_length.min(2 * request.source.len() + 8).min(1024) * size.min(16);
        Self {
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

    pub fn width(&self) -> usize {
        self.live.len()
    }

    pub fn each_live(&self, mut show: impl FnMut(usize, u32)) {
        for live in &self.live {
            show(live.parent, self.tree[live.node].token);
        }
    }

    pub fn advance(
        &mut self,
        log_probs: &mut [f32],
        request: &Request,
        options: &SearchOptions,
        scratch: &mut Scratch,
    ) {
        let count = match options.beam_rule {
            BeamRule::Refill => self.size,
            BeamRule::Shrink => self.size - self.ended.len(),
            BeamRule::Full | BeamRule::FullUntilEnough => 2 * self.size,
        };
        scratch.best.begin(count);
        self.candidates(log_probs, Constraints::new(request, options), scratch);
        scratch.live.clear();
        for (place, candidate) in scratch.best.candidates.iter().enumerate() {
            let before = self.live[candidate.parent].node;
            if candidate.token == EOS {
                if place < self.size {
                    self.end(before, candidate.log_prob, Finish::EndOfSentence, options);
                }
            } else if scratch.live.len() < self.size {
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
            self.cut_live(Finish::DeadEnd, options);
        }
        std::mem::swap(&mut self.live, &mut scratch.live);
        self.length += 1;
        if self.length >= self.max_length {
            self.cut_live(Finish::LengthLimit, options);
        }
        if !self.can_improve(options) {
            self.live.clear();
        }
    }

    /// The best continuations over all hypotheses, best first.
    fn candidates(
        &self,
        log_probs: &mut [f32],
        constraints: Constraints<'_>,
        scratch: &mut Scratch,
    ) {
        let rows = log_probs.chunks_exact_mut(log_probs.len() / self.live.len());
        let Scratch { best, tokens, .. } = scratch;
        for (parent, (live, row)) in self.live.iter().zip(rows).enumerate() {
            if constraints.need_tokens() {
                self.tokens_into(live.node, tokens);
            }
            constraints.apply(self.length, tokens, row);
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
    fn can_improve(&self, options: &SearchOptions) -> bool {
        // All live ones are of equal length, so the most probable one has the best score.
        let Some(best) = self.live.first() else {
            return false;
        };
        let enough = self.ended.len() >= self.size;
        match options.beam_rule {
            BeamRule::Refill => {}
            BeamRule::Shrink => return true, // Until no place is left.
            BeamRule::FullUntilEnough => return !enough,
            BeamRule::Full => {
                let bound = normalized(best.log_prob, self.length, options);
                let better = self.ended.iter().filter(|ended| ended.score >= bound);
                return better.count() < self.size;
            }
        }
        let length = if enough { self.length } else { self.max_length };
        let bound = normalized(best.log_prob, length, options);
        let better = self
            .ended
            .iter()
            .filter(|ended| ended.score >= bound)
            .count();
        better < options.n_best
    }

    fn cut_live(&mut self, why: Finish, options: &SearchOptions) {
        for live in std::mem::take(&mut self.live) {
            self.end(live.node, live.log_prob, why, options);
        }
    }

    fn end(&mut self, node: usize, log_prob: f64, finished: Finish, options: &SearchOptions) {
        let length = self.length + usize::from(finished == Finish::EndOfSentence);
        self.ended.push(Ended {
            node,
            length,
            log_prob,
            score: normalized(log_prob, length, options),
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

    pub fn into_hypotheses(mut self, options: &SearchOptions) -> Vec<Hypothesis> {
        best_first(&mut self.ended, options, |ended| {
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
    fn new() -> Self {
        Self {
            candidates: Vec::new(),
            capacity: 0,
            threshold: f64::NEG_INFINITY,
        }
    }

    /// Forgets all, to find so many of the next step.
    fn begin(&mut self, capacity: usize) {
        self.candidates.clear();
        self.capacity = capacity;
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
