//! One sentence that is to be translated: everything that search must know about it alone.
//!
//! [`super::SearchOptions`] says how to search for all sentences of a call.

use std::sync::Arc;

use super::{Constraint, LengthLimit, Terms};

/// One sentence to search a translation for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The source tokens; the last one is `</s>`.
    pub source: Vec<u32>,
    /// The tokens that every hypothesis must start with. They are part of the hypothesis, and their
    /// log-probabilities are part of its own.
    pub prefix: Vec<u32>,
    /// So many tokens of the prefix cost nothing: they are the model's frame, not its answer.
    pub free_prefix: usize,
    /// The target tokens that may be produced, in rising order; all if nothing is given. The log-probabilities
    /// are over these alone. Without `</s>` among them a target ends at its length limit only. A prefix may
    /// hold others.
    pub candidates: Option<Arc<[u32]>>,
    /// The longest target, if not that of the [`super::SearchOptions`].
    pub max_length: Option<LengthLimit>,
    /// What the target must contain. Such a sentence is searched for with a beam, whatever the method. The terms come
    /// on top of the length limit, up to its cap; where they cannot fit, none is required ([`Terms::lacking`] says
    /// which a hypothesis lacks).
    pub terms: Option<Arc<Terms>>,
    /// Rules for this sentence, besides those of the [`super::SearchOptions`].
    pub constraints: Vec<Arc<dyn Constraint>>,
}

impl Request {
    /// A source without a prefix, limits or constraints of its own.
    pub fn new(source: Vec<u32>) -> Self {
        Self {
            source,
            ..Self::default()
        }
    }

    /// How many tokens of a vocabulary of this size may come next.
    pub fn next_tokens(&self, vocab: usize) -> usize {
        self.candidates.as_deref().map_or(vocab, <[u32]>::len)
    }
}
