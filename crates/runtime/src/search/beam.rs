//! Beam search with length normalisation (§6.1): the best `size` beginnings side by side.
//!
//! At every step the best `size` continuations of a sentence are kept. One that ends in `</s>` is
//! complete and takes its place for this step only: the others fan out to `size` again. (A beam of
//! one is therefore [`super::greedy`]: when its only place ends, nothing is live any more.)
//!
//! The search of a sentence ends, apart from the length limit where live beginnings are cut, when
//! `size` sentences are complete and no live beginning is better than the best `n_best` of them by
//! its present length. (Counting alone would not do: a model that is very sure of a long sentence
//! completes `size` poor ones on the way there.)
//!
//! It ends earlier where that provably changes nothing: when `n_best` sentences are complete and
//! none that is still to come can be among the best `n_best`. Let `p` be the largest log-probability
//! of a live beginning. Every sentence to come continues a live beginning, and each of its tokens
//! adds a log-probability of at most 0, so its own is at most `p`; it has at most `limit` tokens, and
//! `p <= 0`, so its score is at most `p / limit^alpha`. Where `n_best` complete ones reach that, it
//! comes after them: best first keeps those of equal score that were found first. A cut sentence
//! comes after every complete one in any case. So going on could not change the answer.
//!
//! Beginnings share their tokens in a tree, and every list keeps its memory from step to step:
//! the loop allocates nothing once the lists have grown.

use attentive_text::special::{BOS, EOS};

use super::allowed::Allowed;
use super::{
    Finish, Hypothesis, SearchModel, SearchOptions, Step, at_most_zero, best_first, forced,
    keep_rows, normalised, scan,
};

/// The `n_best` translations of every source that a beam of `size` finds.
pub(super) fn search<M: SearchModel>(
    model: &M,
    sources: &[Vec<u32>],
    prefixes: &[Vec<u32>],
    options: &SearchOptions,
    size: usize,
) -> Vec<Vec<Hypothesis>> {
    let mut beams: Vec<Beam> = sources
        .iter()
        .zip(prefixes)
        .map(|(source, prefix)| Beam::new(source.len(), prefix, size, options))
        .collect();
    let mut state = model.start(sources);
    let mut step = Step::default();
    let mut tokens = vec![BOS; sources.len()];
    let mut parents = Vec::with_capacity(sources.len() * size);
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
    options: &'a SearchOptions,
    size: usize,
    /// The most tokens a sentence may have, `</s>` included.
    limit: usize,
    /// What every beginning must start with.
    prefix: &'a [u32],
    /// The tokens of all beginnings.
    tree: Vec<Node>,
    /// How many tokens every live beginning has.
    length: usize,
    /// Beginnings of equal length, most probable first; empty when the search has ended.
    live: Vec<Live>,
    ended: Vec<Ended>,
}

/// A token and the one before it, by its place in the tree; the first has none.
struct Node {
    before: usize,
    token: u32,
}

/// Stands for "nothing before": the empty beginning.
const ROOT: usize = usize::MAX;

struct Live {
    node: usize,
    log_prob: f64,
    /// Which of the live beginnings of the step before this one continues.
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
    history: Vec<u32>,
    banned: Vec<u32>,
}

impl Scratch {
    fn new(size: usize) -> Self {
        Self {
            best: Best::new(size),
            live: Vec::new(),
            history: Vec::new(),
            banned: Vec::new(),
        }
    }
}

impl<'a> Beam<'a> {
    fn new(src_len: usize, prefix: &'a [u32], size: usize, options: &'a SearchOptions) -> Self {
        let limit = options.max_length.tokens_after(prefix.len(), src_len);
        // As many as most sentences need; a longer one doubles the list now and then.
        let expected = limit.min(2 * src_len + 8).min(1024) * size.min(16);
        Self {
            options,
            size,
            limit,
            prefix,
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

    /// Lengthens every beginning by one token; `rows` holds one row of log-probabilities for each.
    fn advance<'r>(&mut self, rows: impl Iterator<Item = &'r [f32]>, scratch: &mut Scratch) {
        match self.prefix.get(self.length) {
            Some(&token) => self.force(token, rows, &mut scratch.best),
            None => self.candidates(rows, scratch),
        }
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
        if self.length >= self.limit {
            self.cut_live(Finish::LengthLimit);
        }
        if !self.can_improve() {
            self.live.clear();
        }
    }

    /// The best `size` continuations over all beginnings, best first.
    fn candidates<'r>(&self, rows: impl Iterator<Item = &'r [f32]>, scratch: &mut Scratch) {
        let Scratch {
            best,
            history,
            banned,
            ..
        } = scratch;
        best.clear();
        for (parent, (live, row)) in self.live.iter().zip(rows).enumerate() {
            if self.options.no_repeat_ngram.is_some() {
                self.tokens_into(live.node, history);
            }
            let allowed = Allowed::after(self.length, history, banned, self.options);
            let floor = |threshold: f64| threshold - live.log_prob;
            scan::each_above(row, floor(best.threshold), |token, log_prob| {
                let log_prob = live.log_prob + at_most_zero(log_prob);
                if log_prob > best.threshold && allowed.permits(token) {
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

    /// The one continuation that the prefix demands.
    fn force<'r>(&self, token: u32, rows: impl Iterator<Item = &'r [f32]>, best: &mut Best) {
        best.clear();
        for (parent, (live, row)) in self.live.iter().zip(rows).enumerate() {
            best.insert(Candidate {
                parent,
                token,
                log_prob: live.log_prob + forced(row, token),
            });
        }
    }

    /// Whether a live beginning may still get among the `n_best`; see the file's header.
    fn can_improve(&self) -> bool {
        // All beginnings are of equal length, so the most probable one has the best score.
        let Some(best) = self.live.first() else {
            return false;
        };
        let enough = self.ended.len() >= self.size;
        let length = if enough { self.length } else { self.limit };
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
            self.end(live.node, live.log_prob, why);
        }
    }

    fn end(&mut self, node: usize, log_prob: f64, finished: Finish) {
        let length = self.length + usize::from(finished == Finish::EndOfSentence);
        self.ended.push(Ended {
            node,
            length,
            log_prob,
            score: normalised(log_prob, length, self.options),
            finished,
        });
    }

    /// The tokens of a beginning, last first.
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
