//! Draft and verify: greedy search that costs fewer steps of the model, for one sentence at a time.
//!
//! A [`Draft`] proposes how a target may go on. The model is fed the whole proposal at once, which takes it little
//! longer than one token, and says for every place which token it would have taken itself. Tokens count as
//! long as they are the model's own, and from the first that is not the rest is forgotten. So a draft decides
//! how soon a translation is found, and never which: every token is the most probable one after the tokens before
//! it, under the same constraints, and its log-probability is that of a step.
//!
//! Neighbors: `greedy` is the same search without a draft, [`super::Elastic`] what it needs of a model.

use std::fmt::Debug;
use std::sync::Arc;

use attentive_model::Shortlist;
use attentive_text::special::{BOS, EOS, PAD};

use super::constraints::Constraints;
use super::rows::Row;
use super::{Elastic, Hypothesis, Next, Request, SearchModel, SearchOptions, greedy};

/// Guesses translations.
pub trait Draft: Debug + Send + Sync {
    /// Begins with a sentence.
    fn begin<'a>(&'a self, request: &Request) -> Box<dyn Proposals + 'a>;

    /// The most tokens that are worth being proposed at once.
    fn most(&self) -> usize;
}

/// Guesses for one sentence.
pub trait Proposals {
    /// Adds at most `count` tokens to `proposal` that may follow `target`, the tokens so far. Guesses may be
    /// anything; what comes after `</s>` is of no use.
    fn propose(&mut self, target: &[u32], count: usize, proposal: &mut Vec<u32>);
}

/// How good a draft was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acceptance {
    /// Steps of the model.
    pub steps: usize,
    /// Tokens that the model was fed as a proposal.
    pub proposed: usize,
    /// Those of them that were its own.
    pub accepted: usize,
}

/// The greedy translation of a request: what [`super::search`] finds with the same options, token by token and
/// bit by bit.
///
/// # Panics
/// If the options ask for something else than greedy search, or the model is not [`Elastic`]; and as
/// [`super::search`].
pub fn search<M: SearchModel>(
    model: &M,
    request: &Request,
    options: &SearchOptions,
    draft: &dyn Draft,
) -> (Hypothesis, Acceptance) {
    options.must_be_sound();
    assert!(options.takes_drafts(), "drafts are for greedy search");
    let elastic = model.elastic().expect("a model that can verify drafts");
    let constraints = Constraints::new(request, options);
    let mut state = model.start(&[request]);
    let mut proposals = draft.begin(request);
    let mut row = Row::new(request, options, None);
    let (mut fed, mut log_probs, mut acceptance) = (Vec::new(), Vec::new(), Acceptance::default());
    let most = draft.most();
    let mut count = most;
    while row.finished.is_none() {
        fed.clear();
        fed.push(row.last_token());
        // The last token that fits is the model's own in any case.
        proposals.propose(&row.tokens, count.min(row.room() - 1), &mut fed);
        fed.truncate(1 + count.min(row.room() - 1));
        let useful = fed[1..]
            .iter()
            .position(|&token| !can_go_on(token, model.vocab()));
        fed.truncate(1 + useful.unwrap_or(fed.len() - 1));

        elastic.extend(&mut state, &fed, &mut log_probs);
        let mut right = 0;
        let width = request.next_tokens(model.vocab());
        for place in 0..fed.len() {
            let mut next = constraints.next(&mut log_probs[place * width..][..width]);
            constraints.apply(row.tokens.len(), &row.tokens, &mut next);
            row.extend(&next, &mut Vec::new());
            let proposed = fed.get(place + 1);
            if row.finished.is_some() || proposed.is_none_or(|&token| token != row.last_token()) {
                break;
            }
            right += 1;
        }
        let proposed = fed.len() - 1;
        elastic.rewind(&mut state, proposed - right);
        acceptance.steps += 1;
        acceptance.proposed += proposed;
        acceptance.accepted += right;
        // One more when all were right, and about as many as were right when not.
        let next = if right == proposed { count } else { right };
        count = (next + 1).min(most);
    }
    (row.into_hypothesis(options), acceptance)
}

/// Whether a model may be fed this token after `<s>`.
fn can_go_on(token: u32, vocab: usize) -> bool {
    (token as usize) < vocab && ![BOS, EOS, PAD].contains(&token)
}

/// A model as a draft: smaller than the one that verifies, of the same vocabularies.
#[derive(Debug)]
pub struct ModelDraft<M> {
    model: M,
    position_limit: Option<usize>,
    shortlist: Option<Arc<Shortlist>>,
    most: usize,
    least_probability: f64,
}

impl<M> ModelDraft<M> {
    /// Few positions cost the CPU's model little more than one. With 5 single sentences were found in 0.61 of the time, with 3
    /// in 0.64 (docs/performance.md); fewer are proposed while they are wrong.
    pub const MOST: usize = 5;

    /// A guess that is not the model's own costs more than none.
    pub const LEAST_PROBABILITY: f64 = 0.4;

    /// A model that knows so many positions (any number, if nothing is given).
    pub fn new(model: M, position_limit: Option<usize>) -> Self {
        Self {
            model,
            position_limit,
            shortlist: None,
            most: Self::MOST,
            least_probability: Self::LEAST_PROBABILITY,
        }
    }

    /// The same draft, which proposes only what it gives more than this probability.
    pub fn with_least_probability(self, least_probability: f64) -> Self {
        Self {
            least_probability,
            ..self
        }
    }

    /// The same draft, which proposes at most so many tokens at once.
    pub fn with_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// The same draft, which guesses only what this shortlist of its vocabularies allows: that costs less.
    pub fn with_shortlist(self, shortlist: Arc<Shortlist>) -> Self {
        let shortlist = Some(shortlist);
        Self { shortlist, ..self }
    }
}

impl<M: SearchModel + Debug + Send + Sync> Draft for ModelDraft<M> {
    fn begin<'a>(&'a self, request: &Request) -> Box<dyn Proposals + 'a> {
        let limit = self.position_limit.unwrap_or(usize::MAX);
        let elastic = self
            .model
            .elastic()
            .filter(|_| request.source.len() <= limit);
        let candidates = self.shortlist.as_ref().map(|shortlist| {
            let candidates = shortlist.candidates(&request.source, &request.prefix);
            Arc::from(candidates)
        });
        let request = Request {
            candidates: candidates.or_else(|| request.candidates.clone()),
            ..Request::new(request.source.clone())
        };
        Box::new(ModelProposals {
            model: &self.model,
            running: elastic.map(|elastic| (elastic, self.model.start(&[&request]))),
            limit,
            least: self.least_probability,
            candidates: request.candidates,
            fed: Vec::new(),
            log_probs: Vec::new(),
        })
    }

    fn most(&self) -> usize {
        self.most
    }
}

struct ModelProposals<'a, M: SearchModel> {
    model: &'a M,
    running: Option<(&'a dyn Elastic<M::State>, M::State)>,
    limit: usize,
    /// What a guess must exceed in probability.
    least: f64,
    candidates: Option<Arc<[u32]>>,
    /// What the model was fed.
    fed: Vec<u32>,
    log_probs: Vec<f32>,
}

impl<M: SearchModel> Proposals for ModelProposals<'_, M> {
    fn propose(&mut self, target: &[u32], count: usize, proposal: &mut Vec<u32>) {
        let Some((elastic, state)) = &mut self.running else {
            return;
        };
        let vocab = self.model.vocab();
        let input = || [BOS].into_iter().chain(target.iter().copied());
        let count = count.min(self.limit.saturating_sub(target.len()));
        if count == 0 || !target.iter().all(|&token| can_go_on(token, vocab)) {
            return;
        }
        // What it was fed last time is right up to the first token that was not accepted.
        let same = input().zip(&self.fed).take_while(|(a, b)| a == *b).count();
        elastic.rewind(state, self.fed.len() - same);
        self.fed.truncate(same);
        let mut new: Vec<u32> = input().skip(same).collect();
        for _ in 0..count {
            elastic.extend(state, &new, &mut self.log_probs);
            self.fed.append(&mut new);
            let candidates = self.candidates.as_deref();
            let last = self.log_probs.len() - candidates.map_or(vocab, <[u32]>::len);
            match greedy::most_probable(&Next::new(&mut self.log_probs[last..], candidates)) {
                Some((token, log_prob))
                    if can_go_on(token, vocab) && log_prob.exp() > self.least =>
                {
                    proposal.push(token);
                    new.push(token);
                }
                _ => return,
            }
        }
    }
}
