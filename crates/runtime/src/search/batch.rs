//! The running batch: sentences that are searched together, and others that join as they finish.
//!
//! A model is most efficient with a certain number of rows. So the sentences of a batch do not wait for its
//! longest: where one has ended, the [`Feed`] may give another, if the model can take it in
//! ([`super::Elastic`]). Each sentence knows only its own rows, so whatever else is in the batch changes nothing.
//!
//! Neighbors: [`super::beam`] and [`super::rows`] search one sentence each, the translator's queue is a feed.

use std::borrow::Borrow;

use attentive_text::special::BOS;

use super::beam::{self, Beam};
use super::rows::Rows;
use super::sampling::Choice;
use super::{Hypothesis, Method, Request, SearchModel, SearchOptions};

/// Where a search takes its sentences from, and where it leaves what it found.
pub trait Feed {
    /// A request, owned or borrowed.
    type Request: Borrow<Request>;

    /// Adds sentences that shall join a running batch to `joining`, each with a number by which its owner knows
    /// it. It is asked before every step, and the search ends when nothing is running and nothing joins.
    fn refill(&mut self, running: Load, joining: &mut Vec<(usize, Self::Request)>);

    /// Takes the hypotheses of a sentence, best first.
    fn found(&mut self, number: usize, hypotheses: Vec<Hypothesis>);

    /// Whether nobody waits for this sentence any more, so that it leaves the batch without being found. It is
    /// asked before every step.
    fn is_abandoned(&self, number: usize) -> bool {
        let _ = number;
        false
    }
}

/// How much is in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Sentences.
    pub sentences: usize,
    /// Tokens of the longest source.
    pub longest: usize,
}

/// Searches for all sentences that the feed gives, until it gives no more. What is found for a sentence is
/// what [`super::search`] finds for it alone.
///
/// # Panics
/// As [`super::search`].
pub fn search_feed<M: SearchModel, F: Feed>(model: &M, feed: &mut F, options: &SearchOptions) {
    options.must_be_sound();
    let elastic = model.elastic();
    let mut running: Vec<Sentence<F::Request>> = Vec::new();
    let mut joining = Vec::new();
    let mut state = None;
    let (mut tokens, mut parents, mut log_probs) = (Vec::new(), Vec::new(), Vec::new());
    let mut scratch = Scratch::new();
    loop {
        if running.is_empty() {
            state = None; // Its buffers serve the next one.
        }
        if running.is_empty() || elastic.is_some() {
            feed.refill(Load::of(&running), &mut joining);
        }
        if !joining.is_empty() {
            let requests: Vec<&Request> = joining.iter().map(|(_, r)| r.borrow()).collect();
            match (&mut state, elastic) {
                (Some(state), Some(elastic)) => elastic.admit(state, &requests),
                _ => state = Some(model.start(&requests)),
            }
            tokens.resize(tokens.len() + joining.len(), BOS);
            let sentences = joining.drain(..);
            running
                .extend(sentences.map(|(number, request)| Sentence::new(number, request, options)));
        }
        let Some(state) = &mut state else { return };

        model.step(state, &tokens, &mut log_probs);
        let (before, vocab) = (tokens.len(), model.vocab());
        let widths = running
            .iter()
            .map(|sentence| sentence.search.width() * sentence.next(vocab));
        assert_eq!(
            log_probs.len(),
            widths.sum::<usize>(),
            "SearchModel::step must write a log-probability for each token that may come next"
        );
        tokens.clear();
        parents.clear();
        let mut first_row = 0;
        let mut rest = &mut log_probs[..];
        for sentence in &mut running {
            let width = sentence.search.width();
            let (rows, others) = rest.split_at_mut(width * sentence.next(vocab));
            rest = others;
            let request = sentence.request.borrow();
            sentence.abandoned = feed.is_abandoned(sentence.number);
            if !sentence.abandoned {
                sentence
                    .search
                    .advance(rows, request, options, &mut scratch);
                sentence.search.each_live(|parent, token| {
                    parents.push(first_row + parent);
                    tokens.push(token);
                });
            }
            first_row += width;
        }
        keep_rows(model, state, &parents, before);
        running.retain(|sentence| !sentence.abandoned);
        for ended in running.extract_if(.., |sentence| sentence.search.width() == 0) {
            let request = ended.request.borrow();
            let hypotheses = ended.search.into_hypotheses(request, options);
            feed.found(ended.number, hypotheses);
        }
    }
}

/// Tells the model which of its `before` rows go on, unless all of them do.
fn keep_rows<M: SearchModel>(model: &M, state: &mut M::State, rows: &[usize], before: usize) {
    let unchanged = rows.len() == before && rows.iter().enumerate().all(|(new, &old)| new == old);
    if !rows.is_empty() && !unchanged {
        model.reorder(state, rows);
    }
}

impl Load {
    fn of<R: Borrow<Request>>(running: &[Sentence<R>]) -> Self {
        let lengths = running.iter().map(|s| s.request.borrow().source.len());
        Self {
            sentences: running.len(),
            longest: lengths.max().unwrap_or(0),
        }
    }
}

/// A sentence of the batch.
struct Sentence<R> {
    number: usize,
    request: R,
    search: Search,
    abandoned: bool,
}

impl<R: Borrow<Request>> Sentence<R> {
    fn new(number: usize, request: R, options: &SearchOptions) -> Self {
        let search = Search::new(request.borrow(), options);
        Self {
            number,
            request,
            search,
            abandoned: false,
        }
    }

    /// How many tokens may come next.
    fn next(&self, vocab: usize) -> usize {
        self.request.borrow().next_tokens(vocab)
    }
}

/// The search for one sentence.
enum Search {
    Beam(Beam),
    Rows(Rows),
}

/// Lists that all sentences use in turn.
pub(super) struct Scratch {
    pub beam: beam::Scratch,
    pub choices: Vec<Choice>,
}

impl Scratch {
    pub fn new() -> Self {
        Self {
            beam: beam::Scratch::new(),
            choices: Vec::new(),
        }
    }
}

impl Search {
    fn new(request: &Request, options: &SearchOptions) -> Self {
        match options.method {
            // Terms need a beam; how wide it is at least, it knows itself.
            Method::Greedy | Method::Sample(_) if request.terms.is_some() => {
                Self::Beam(Beam::new(request, options.n_best, options))
            }
            Method::Beam { size } => Self::Beam(Beam::new(request, size, options)),
            Method::Greedy | Method::Sample(_) => Self::Rows(Rows::new(request, options)),
        }
    }

    /// How many rows the next step needs; none when the search has ended.
    fn width(&self) -> usize {
        match self {
            Self::Beam(beam) => beam.width(),
            Self::Rows(rows) => rows.width(),
        }
    }

    /// Extends every hypothesis by one token; `log_probs` has a row for each.
    fn advance(
        &mut self,
        log_probs: &mut [f32],
        request: &Request,
        options: &SearchOptions,
        scratch: &mut Scratch,
    ) {
        match self {
            Self::Beam(beam) => beam.advance(log_probs, request, options, &mut scratch.beam),
            Self::Rows(rows) => rows.advance(log_probs, request, options, &mut scratch.choices),
        }
    }

    /// Shows the hypotheses that go on: which row of the last step each continues, and its last token.
    fn each_live(&self, show: impl FnMut(usize, u32)) {
        match self {
            Self::Beam(beam) => beam.each_live(show),
            Self::Rows(rows) => rows.each_live(show),
        }
    }

    fn into_hypotheses(self, request: &Request, options: &SearchOptions) -> Vec<Hypothesis> {
        match self {
            Self::Beam(beam) => beam.into_hypotheses(request, options),
            Self::Rows(rows) => rows.into_hypotheses(options),
        }
    }
}

/// All requests at once.
pub(super) struct Together<'a> {
    waiting: Vec<(usize, &'a Request)>,
    pub found: Vec<Vec<Hypothesis>>,
}

impl<'a> Together<'a> {
    pub fn new(requests: impl Iterator<Item = &'a Request>) -> Self {
        let waiting: Vec<_> = requests.enumerate().collect();
        Self {
            found: vec![Vec::new(); waiting.len()],
            waiting,
        }
    }
}

impl<'a> Feed for Together<'a> {
    type Request = &'a Request;

    fn refill(&mut self, _: Load, joining: &mut Vec<(usize, &'a Request)>) {
        joining.append(&mut self.waiting);
    }

    fn found(&mut self, number: usize, hypotheses: Vec<Hypothesis>) {
        self.found[number] = hypotheses;
    }
}
