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
//! Where terms are required ([`Request::terms`]), the places of the beam are shared out among [`super::banks`], and
//! the rule is always [`BeamRule::Refill`]: others let improbable hypotheses fall out of the beam, those with terms first.
//! A hypothesis that the model would rather end is given up while it lacks terms: otherwise length normalization would
//! reward those that come behind the sentence.
//!
//! Hypotheses share their tokens in a tree, and every list keeps its memory from step to step:
//! the loop allocates nothing once the lists have grown. Neighbors: [`super::batch`] runs sentences together.

use attentive_text::special::EOS;

use super::banks::Banks;
use super::constraints::{Constraints, Terms};
use super::{
    BeamRule, Finish, Hypothesis, Request, SearchOptions, at_most_zero, best_first, greedy,
    normalized,
};

/// The search for one sentence.
pub(super) struct Beam {
    size: usize,
    rule: BeamRule,
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
    banks: Banks,
    live: Vec<Live>,
    tokens: Vec<u32>,
}

impl Scratch {
    pub fn new() -> Self {
        Self {
            best: Best::new(),
            banks: Banks::new(),
            live: Vec::new(),
            tokens: Vec::new(),
        }
    }
}

impl Beam {
    pub fn new(request: &Request, size: usize, options: &SearchOptions) -> Self {
        let constraints = Constraints::new(request, options);
        let max_length = constraints.max_length();
        let (size, rule) = match constraints.terms() {
            Some(terms) => {
                let size = size.max(LEAST_WITH_TERMS);
                // Some places more where there are many tokens, as each may be a bank.
                (size + (terms.total() / 3).min(size), BeamRule::Refill)
            }
            None => (size, options.beam_rule),
        };
        // As many as most sentences need; a longer one doubles the list now and then.
        let expected = max_length.min(2 * request.source.len() + 8).min(1024) * size.min(16);
        Self {
            size,
            rule,
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
        let constraints = Constraints::new(request, options);
        let count = match self.rule {
            BeamRule::Refill => self.size,
            BeamRule::Shrink => self.size - self.ended.len(),
            BeamRule::Full | BeamRule::FullUntilEnough => 2 * self.size,
        };
        scratch.best.begin(count);
        match constraints.terms() {
            None => self.candidates(log_probs, constraints, scratch),
            Some(terms) => self.candidates_by_banks(log_probs, constraints, terms, scratch),
        }
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
        let width = log_probs.len() / self.live.len();
        let Scratch { best, tokens, .. } = scratch;
        for (parent, live) in self.live.iter().enumerate() {
            if constraints.need_tokens() {
                self.tokens_into(live.node, tokens);
            }
            let mut next = constraints.next(&mut log_probs[parent * width..][..width]);
            constraints.apply(self.length, tokens, &mut next);
            let floor = |threshold: f64| threshold - live.log_prob;
            next.each_above(floor(best.threshold), |token, log_prob| {
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

    /// The best continuations of each bank, as many as the beam has places, best first.
    fn candidates_by_banks(
        &self,
        log_probs: &mut [f32],
        constraints: Constraints<'_>,
        terms: &Terms,
        scratch: &mut Scratch,
    ) {
        let width = log_probs.len() / self.live.len();
        let Scratch {
            best,
            banks,
            tokens,
            ..
        } = scratch;
        banks.begin(self.size);
        let least = self.least_missing(terms, tokens);
        for (parent, live) in self.live.iter().enumerate() {
            self.tokens_into(live.node, tokens);
            // What comes behind the end of a sentence is no part of it: where the model would rather end, it is too late
            // for terms, unless no other hypothesis is nearer to having them.
            let mut next = constraints.next(&mut log_probs[parent * width..][..width]);
            let ends = greedy::most_probable(&next).is_some_and(|(token, _)| token == EOS);
            constraints.apply(self.length, tokens, &mut next);
            let outlook = terms.outlook(tokens);
            if ends && outlook.now > least && !constraints.is_prefix(self.length) {
                continue;
            }
            let insert = |banks: &mut Banks, missing, token, log_prob| {
                let log_prob = live.log_prob + at_most_zero(log_prob);
                if log_prob > banks.threshold(missing) {
                    let candidate = Candidate {
                        parent,
                        token,
                        log_prob,
                    };
                    banks.insert(missing, candidate);
                }
            };
            for &(token, missing) in &outlook.next {
                let log_prob = next.get(token);
                next.forbid(token);
                insert(banks, missing, token, log_prob);
            }
            let floor = |banks: &Banks| {
                let thresholds =
                    [outlook.other, outlook.continuing].map(|bank| banks.threshold(bank));
                thresholds[0].min(thresholds[1]) - live.log_prob
            };
            next.each_above(floor(banks), |token, log_prob| {
                insert(banks, outlook.with_other(token), token, log_prob);
                floor(banks)
            });
        }
        banks.choose(&mut best.candidates);
    }

    /// How many tokens of the terms the hypothesis that has most of them lacks.
    fn least_missing(&self, terms: &Terms, tokens: &mut Vec<u32>) -> usize {
        let mut missing = |live: &Live| {
            self.tokens_into(live.node, tokens);
            terms.missing(tokens)
        };
        if self.ended.is_empty() {
            self.live.iter().map(&mut missing).min().unwrap_or(0)
        } else {
            0 // Only those that have all of them end.
        }
    }

    /// Whether a live hypothesis may still get among the `n_best`; see the file's header.
    fn can_improve(&self, options: &SearchOptions) -> bool {
        // All live ones are of equal length, so the most probable one has the best score.
        let Some(best) = self.live.first() else {
            return false;
        };
        let enough = self.ended.len() >= self.size;
        match self.rule {
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

    /// Keeps the hypotheses that lack least. All that ended by themselves have all terms; one that was cut may lack
    /// some.
    fn keep_most_terms(&mut self, terms: &Terms) {
        let mut tokens = Vec::new();
        let mut missing = |node| {
            self.tokens_into(node, &mut tokens);
            terms.missing(&tokens)
        };
        let missing: Vec<usize> = self.ended.iter().map(|ended| missing(ended.node)).collect();
        let least = missing.iter().min().copied();
        let mut missing = missing.into_iter();
        self.ended.retain(|_| missing.next() == least);
    }

    pub fn into_hypotheses(
        mut self,
        request: &Request,
        options: &SearchOptions,
    ) -> Vec<Hypothesis> {
        if let Some(terms) = Constraints::new(request, options).terms() {
            self.keep_most_terms(terms);
        }
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

/// Beams with terms are at least this wide, greedy search included: one hypothesis that has them, one that waits for
/// a better place, and two on the way.
const LEAST_WITH_TERMS: usize = 4;

/// The hypothesis `parent`, continued by `token`; `log_prob` is that of both together.
pub(super) struct Candidate {
    parent: usize,
    token: u32,
    pub log_prob: f64,
}

/// The best candidates seen so far, best first, without ever sorting a vocabulary.
pub(super) struct Best {
    pub candidates: Vec<Candidate>,
    capacity: usize,
    /// What a candidate must exceed to be among them.
    pub threshold: f64,
}

impl Best {
    pub fn new() -> Self {
        Self {
            candidates: Vec::new(),
            capacity: 0,
            threshold: f64::NEG_INFINITY,
        }
    }

    /// Forgets all, to find so many of the next step.
    pub fn begin(&mut self, capacity: usize) {
        self.candidates.clear();
        self.capacity = capacity;
        self.threshold = f64::NEG_INFINITY;
    }

    /// Candidates come in the order of parents and ids, and equals keep that order.
    pub fn insert(&mut self, candidate: Candidate) {
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
