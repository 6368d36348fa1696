//! The sentences of a call that wait for a search, and the searches that take them from there.
//!
//! All threads take from one queue, the longest sources first: a machine with too little memory says so at
//! once, sources of similar length are searched together, and threads end with short ones at about the same
//! time. Neighbors: [`crate::search::search_feed`] asks for more as sentences finish, [`crate::engine`] has the
//! threads.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::options::TranslatorOptions;
use crate::engine::{Engine, Stop};
use crate::search::{Feed, Hypothesis, Load, Request};

/// The waiting sentences of a call.
pub(super) struct Queue<'a> {
    waiting: Mutex<VecDeque<(usize, Cow<'a, Request>)>>,
    engine: &'a Engine,
    options: &'a TranslatorOptions,
    stop: &'a Stop,
}

impl<'a> Queue<'a> {
    /// All requests but those without a source, numbered by their places.
    pub fn new(
        requests: impl Iterator<Item = Option<&'a Request>>,
        engine: &'a Engine,
        options: &'a TranslatorOptions,
        stop: &'a Stop,
    ) -> Self {
        let mut waiting: Vec<_> = (0..)
            .zip(requests)
            .filter_map(|(number, request)| Some((number, Cow::Borrowed(request?))))
            .filter(|(_, request)| !request.source.is_empty())
            .collect();
        waiting.sort_by_key(|(_, request)| Reverse(request.source.len()));
        Self {
            waiting: Mutex::new(waiting.into()),
            engine,
            options,
            stop,
        }
    }

    /// Searches for all of them on the threads of the engine, or until it is stopped. `work` gets a feed and runs
    /// until it is empty; the answers are in no order.
    pub fn drain<R: Send>(
        &self,
        work: impl Fn(&Self) -> Vec<(usize, R)> + Sync,
    ) -> Vec<(usize, R)> {
        let mut answers = Vec::new();
        loop {
            let count = self.len();
            if count == 0 || self.stop.is_asked() {
                return answers;
            }
            let threads = self.engine.threads().min(count.div_ceil(FEW));
            let jobs = vec![(); threads];
            let found = self.engine.map_until(self.stop, &jobs, |()| work(self));
            answers.extend(found.into_iter().flatten());
        }
    }

    /// The sentence that waits, if it is the only one and a draft can help it: terms need a beam.
    pub fn take_only(&self) -> Option<(usize, Cow<'a, Request>)> {
        let mut waiting = self.lock();
        let (_, request) = waiting.front()?;
        let only = waiting.len() == 1 && request.terms.is_none();
        let (number, mut request) = only.then(|| waiting.pop_front())??;
        self.options.add_candidates(&mut request);
        Some((number, request))
    }

    /// A sentence is to be searched for once more.
    pub fn put_back(&self, number: usize, request: Request) {
        self.lock().push_front((number, Cow::Owned(request)));
    }

    fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(usize, Cow<'a, Request>)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves sentences to a running batch, unless it is nearly full, or has run for long enough while others
    /// wait for the engine: then it ends with what it has, and its call goes on when it is its turn again.
    fn refill(&self, running: Load, joining: &mut Vec<(usize, Cow<'a, Request>)>) {
        let most = self.options.sentences_in_batch();
        let full = running.sentences > most - most.div_ceil(REFILL);
        let others_wait = running.sentences > 0 && self.engine.is_contended();
        if full || others_wait || self.stop.is_asked() {
            return;
        }
        let mut waiting = self.lock();
        // The last sentences are for all threads, so that none waits long for another.
        let share = waiting.len().div_ceil(SHARES * self.engine.threads());
        let most = share.max(FEW).min(most);
        let mut longest = running.longest;
        while let Some((_, request)) = waiting.front() {
            let sentences = running.sentences + joining.len();
            longest = longest.max(request.source.len());
            let fits = sentences < most && (sentences + 1) * longest <= self.options.batch_tokens;
            if !fits && sentences > 0 {
                return;
            }
            joining.extend(waiting.pop_front());
        }
    }
}

/// One of so many parts of a batch must be free before others join: sources are encoded faster together.
const REFILL: usize = 2;

/// A thread takes at most this part of its share of the sentences that wait.
const SHARES: usize = 2;

/// Fewer sentences together would cost more than a thread that waits.
const FEW: usize = 8;

/// What one thread takes from the queue, and what becomes of it.
pub(super) struct Worker<'q, 'a, R, A> {
    queue: &'q Queue<'a>,
    /// Makes an answer of what was found, or nothing if the sentence was put back.
    answer: A,
    pub answers: Vec<(usize, R)>,
}

impl<'q, 'a, R, A> Worker<'q, 'a, R, A> {
    pub fn new(queue: &'q Queue<'a>, answer: A) -> Self {
        Self {
            queue,
            answer,
            answers: Vec::new(),
        }
    }
}

impl<'a, R, A: FnMut(usize, Vec<Hypothesis>) -> Option<R>> Feed for Worker<'_, 'a, R, A> {
    type Request = Cow<'a, Request>;

    fn refill(&mut self, running: Load, joining: &mut Vec<(usize, Cow<'a, Request>)>) {
        self.queue.refill(running, joining);
        for (_, request) in joining {
            self.queue.options.add_candidates(request);
        }
    }

    fn found(&mut self, number: usize, hypotheses: Vec<Hypothesis>) {
        let answer = (self.answer)(number, hypotheses);
        self.answers.extend(answer.map(|answer| (number, answer)));
    }

    fn is_abandoned(&self, _: usize) -> bool {
        self.queue.stop.is_asked()
    }
}
