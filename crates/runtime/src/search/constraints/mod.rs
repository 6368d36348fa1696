//! Constraints: rules that look at the tokens so far and change the scores of the next one.
//!
//! [`Constraints`] are all rules for one sentence. A search applies them to each row of log-probabilities
//! before it picks tokens, and knows nothing else about them; so a new rule touches no search. (Required [`Terms`] are
//! more than a rule: they also decide which hypotheses share a beam, see `banks`.)

mod ngrams;
mod prefix;
mod suppressed;
mod terms;

use std::fmt::Debug;

use attentive_model::generation::{AtLimit, EarlyEnd};
use attentive_text::special::EOS;

pub use ngrams::NoRepeatedNgrams;
pub use terms::{Term, Terms};

use super::{LengthLimit, Next, Request, SearchOptions};

/// A rule for the next token.
pub trait Constraint: Debug + Send + Sync {
    /// Changes the log-probabilities of what may come next, after `tokens`: the target so far, without `<s>`.
    /// Negative infinity forbids a token; what is above 0 counts as 0.
    ///
    /// Hypotheses branch and are dropped, so a rule keeps no state of its own: whatever it needs to know
    /// is in `tokens`.
    fn apply(&self, tokens: &[u32], next: &mut Next<'_>);
}

/// All rules for one sentence.
pub(super) struct Constraints<'a> {
    request: &'a Request,
    options: &'a SearchOptions,
}

impl<'a> Constraints<'a> {
    pub fn new(request: &'a Request, options: &'a SearchOptions) -> Self {
        Self { request, options }
    }

    /// What may come next, as a model has written it for this sentence.
    pub fn next<'b>(&self, log_probs: &'b mut [f32]) -> Next<'b>
    where
        'a: 'b,
    {
        Next::new(log_probs, self.request.candidates.as_deref())
    }

    /// The most tokens that the target may have, `</s>` included.
    pub fn max_length(&self) -> usize {
        let limit: LengthLimit = self.request.max_length.unwrap_or(self.options.max_length);
        let terms = self.request.terms.as_ref().map_or(0, |terms| terms.total());
        let given = self.request.prefix.len().saturating_add(terms);
        limit.tokens_after(given, self.request.source.len())
    }

    /// The terms that the target must contain, unless it cannot because of its length limit.
    pub fn terms(&self) -> Option<&'a Terms> {
        let terms = self.request.terms.as_deref()?;
        let needed = self.request.prefix.len().saturating_add(terms.total());
        (!terms.is_empty() && needed < self.max_length()).then_some(terms)
    }

    /// Whether the token after `length` others is given.
    pub fn is_prefix(&self, length: usize) -> bool {
        length < self.request.prefix.len()
    }

    /// Whether [`Constraints::apply`] looks at the tokens, and not only at their number.
    pub fn need_tokens(&self) -> bool {
        self.options.no_repeat_ngram.is_some()
            || !self.request.constraints.is_empty()
            || self.request.terms.is_some()
    }

    /// Applies the rules for the token after `length` others. `tokens` are these, if they are needed.
    /// Within the prefix no other rule counts.
    pub fn apply(&self, length: usize, tokens: &[u32], next: &mut Next<'_>) {
        if let Some(&token) = self.request.prefix.get(length) {
            if length < self.request.free_prefix {
                return prefix::force_free(token, next);
            }
            return prefix::force(token, next);
        }
        if self.options.at_limit == AtLimit::ForceEnd && length + 1 >= self.max_length() {
            return prefix::force_free(EOS, next);
        }
        let outlook = self.terms().map(|terms| terms.outlook(tokens));
        let nearer = outlook.as_ref().map(|outlook| outlook.nearer(next));
        if length < self.options.min_length && self.options.early_end == EarlyEnd::LeftOut {
            suppressed::leave_out_end(next);
        }
        suppressed::suppress(length, self.options.min_length, next);
        for &token in &self.options.forbidden {
            next.forbid(token);
        }
        if let Some(n) = self.options.no_repeat_ngram {
            NoRepeatedNgrams(n).apply(tokens, next);
        }
        for constraint in &self.request.constraints {
            constraint.apply(tokens, next);
        }
        // Whoever requires a term wants it more than any other rule.
        if let (Some(outlook), Some(nearer)) = (outlook, nearer) {
            outlook.apply(&nearer, next);
        }
    }
}
