//! A model with hand-written probabilities, for tests of everything that searches.
//!
//! It stands where the Transformer stands, so that the search, the translator, the binary and the
//! server can be tested in milliseconds and with answers one can work out on paper.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use attentive_text::special::{BOS, EOS, PAD};

use super::{Elastic, Request, SearchModel, restrict};

/// A model whose probabilities are a function of the source and the target so far.
pub struct FakeModel {
    vocab: usize,
    log_probs: Box<LogProbs>,
    rows_fed: AtomicUsize,
}

/// Source and target so far (without `<s>`) -> the log-probabilities of the next token.
type LogProbs = dyn Fn(&[u32], &[u32]) -> Vec<f32> + Send + Sync;

/// What a [`FakeModel`] remembers of a row: its request and what it was fed.
#[derive(Debug, Clone)]
pub struct FakeRow {
    source: Vec<u32>,
    candidates: Option<Arc<[u32]>>,
    fed: Vec<u32>,
}

impl FakeModel {
    /// A model that answers with `log_probs(source, target so far)`, `vocab` values.
    pub fn new(
        vocab: usize,
        log_probs: impl Fn(&[u32], &[u32]) -> Vec<f32> + Send + Sync + 'static,
    ) -> Self {
        Self {
            vocab,
            log_probs: Box::new(log_probs),
            rows_fed: AtomicUsize::new(0),
        }
    }

    /// As [`FakeModel::new`] with `(token, probability)` pairs; tokens not named have none.
    pub fn from_probabilities(
        vocab: usize,
        probabilities: impl Fn(&[u32], &[u32]) -> Vec<(u32, f32)> + Send + Sync + 'static,
    ) -> Self {
        Self::new(vocab, move |source, target| {
            let mut row = vec![f32::NEG_INFINITY; vocab];
            for (token, probability) in probabilities(source, target) {
                row[token as usize] = probability.ln();
            }
            row
        })
    }

    /// A model that copies the source, token by token, almost surely.
    pub fn copying(vocab: usize) -> Self {
        let others = (0.01 / vocab as f32).ln();
        Self::new(vocab, move |source, target| {
            let mut row = vec![others; vocab];
            row[source.get(target.len()).copied().unwrap_or(EOS) as usize] = 0.99f32.ln();
            row
        })
    }

    /// A model with arbitrary but fixed probabilities for every source and target.
    pub fn random(vocab: usize, seed: u64) -> Self {
        Self::new(vocab, move |source, target| {
            let mut hasher = DefaultHasher::new();
            (seed, source, target).hash(&mut hasher);
            let score = |token: usize| {
                let mut hasher = hasher.clone();
                token.hash(&mut hasher);
                (hasher.finish() >> 40) as f32 / (1 << 22) as f32
            };
            let scores: Vec<f32> = (0..vocab).map(score).collect();
            let total: f32 = scores.iter().map(|score| score.exp()).sum();
            scores.iter().map(|score| score - total.ln()).collect()
        })
    }

    /// How many rows all steps so far were fed: the work that a real model would have done.
    pub fn rows_fed(&self) -> usize {
        self.rows_fed.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for FakeModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeModel")
            .field("vocab", &self.vocab)
            .finish_non_exhaustive()
    }
}

impl SearchModel for FakeModel {
    type State = Vec<FakeRow>;

    fn vocab(&self) -> usize {
        self.vocab
    }

    fn start(&self, requests: &[&Request]) -> Self::State {
        let mut state = Vec::new();
        self.admit(&mut state, requests);
        state
    }

    /// Refuses, by panicking, what would make a real model compute nonsense.
    fn step(&self, state: &mut Self::State, tokens: &[u32], log_probs: &mut Vec<f32>) {
        assert_eq!(state.len(), tokens.len(), "one token per row");
        self.rows_fed.fetch_add(tokens.len(), Ordering::Relaxed);
        log_probs.clear();
        for (row, &token) in state.iter_mut().zip(tokens) {
            assert_eq!(
                token == BOS,
                row.fed.is_empty(),
                "<s> comes first and only first"
            );
            assert!(
                token != EOS && token != PAD,
                "a finished row must leave the batch"
            );
            row.fed.push(token);
            log_probs.extend((self.log_probs)(&row.source, &row.fed[1..]));
        }
        let candidates = state.iter().map(|row| row.candidates.as_deref());
        restrict(log_probs, self.vocab, candidates);
    }

    fn reorder(&self, state: &mut Self::State, rows: &[usize]) {
        *state = rows.iter().map(|&row| state[row].clone()).collect();
    }

    fn elastic(&self) -> Option<&dyn Elastic<Self::State>> {
        Some(self)
    }

    /// Each step looks at the source token of its own place.
    fn cross_attention(&self, source: &[u32], target: &[u32]) -> Option<Vec<f32>> {
        let mut weights = vec![0.0; (target.len() + 1) * source.len()];
        for (step, row) in weights.chunks_exact_mut(source.len()).enumerate() {
            row[step.min(source.len() - 1)] = 1.0;
        }
        Some(weights)
    }
}

impl Elastic<Vec<FakeRow>> for FakeModel {
    fn admit(&self, state: &mut Vec<FakeRow>, requests: &[&Request]) {
        state.extend(requests.iter().map(|request| FakeRow {
            source: request.source.clone(),
            candidates: request.candidates.clone(),
            fed: Vec::new(),
        }));
    }

    fn extend(&self, state: &mut Vec<FakeRow>, tokens: &[u32], log_probs: &mut Vec<f32>) {
        let mut row = Vec::new();
        log_probs.clear();
        for &token in tokens {
            self.step(state, &[token], &mut row);
            log_probs.append(&mut row);
        }
    }

    fn rewind(&self, state: &mut Vec<FakeRow>, count: usize) {
        assert_eq!(state.len(), 1, "the only row");
        let left = state[0].fed.len() - count;
        state[0].fed.truncate(left);
    }
}
