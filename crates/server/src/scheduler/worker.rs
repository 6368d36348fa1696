//! A thread that searches: it runs batches that are filled from the queue while they run.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

use attentive_runtime::Translator;
use attentive_runtime::search::{Feed, Hypothesis, Load, Request};
use attentive_runtime::translator::{First, Found};

use super::details::Details;
use super::queue::{Next, Taken};
use super::{Answer, Shared};

/// The life of a worker.
pub(super) fn run(shared: &Shared) {
    let mut queue = shared.lock();
    loop {
        match queue.begin() {
            Next::Group(id, translator) => {
                drop(queue);
                let mut batch = Batch {
                    shared,
                    group: id,
                    translator: &translator,
                    running: HashMap::new(),
                    again: Vec::new(),
                    next: 0,
                };
                // A search that panics takes the sentences of its batch with it: their callers see that the
                // channel ends. The worker lives on.
                let _ = catch_unwind(AssertUnwindSafe(|| translator.search_feed(&mut batch)));
                drop(batch);
                queue = shared.lock();
                queue.end(id);
            }
            Next::Wait => {
                queue.set_idle(true);
                let waited = shared.changed.wait(queue);
                queue = waited.unwrap_or_else(PoisonError::into_inner);
                queue.set_idle(false);
            }
            Next::End => return,
        }
    }
}

/// The sentences of a running batch.
struct Batch<'a> {
    shared: &'a Shared,
    group: u64,
    translator: &'a Translator,
    running: HashMap<usize, Running>,
    /// Sentences whose first translation repeats itself, or lacks what must be kept.
    again: Vec<(Running, Request)>,
    next: usize,
}

struct Running {
    taken: Taken,
    /// What the first search found, if this is the second.
    first: Option<First>,
}

impl Batch<'_> {
    fn join(&mut self, sentence: Running, request: Request, joining: &mut Vec<(usize, Request)>) {
        joining.push((self.next, request));
        self.running.insert(self.next, sentence);
        self.next += 1;
    }
}

impl Feed for Batch<'_> {
    type Request = Request;

    fn refill(&mut self, running: Load, joining: &mut Vec<(usize, Request)>) {
        for (sentence, request) in std::mem::take(&mut self.again) {
            self.join(sentence, request, joining);
        }
        // Sources are encoded faster together, so half of a batch must be free before others join.
        let most = self.translator.options().sentences_in_batch();
        if running.sentences > most - most.div_ceil(2) || !joining.is_empty() {
            return;
        }
        let mut taken = Vec::new();
        self.shared.lock().take(self.group, running, &mut taken);
        for taken in taken {
            let task = &taken.task;
            let Some(request) = task.line.request(task.sentence) else {
                continue;
            };
            let mut request = request.clone();
            request.prefix.extend_from_slice(&task.prefix);
            let request = self.translator.request(&request);
            self.shared.metrics.sentence_begun(request.source.len());
            let first = None;
            self.join(Running { taken, first }, request, joining);
        }
        if !joining.is_empty() {
            let sentences = running.sentences + joining.len();
            self.shared.metrics.batch_filled(sentences);
        }
    }

    fn found(&mut self, number: usize, hypotheses: Vec<Hypothesis>) {
        let Some(Running { taken, first }) = self.running.remove(&number) else {
            return;
        };
        let Taken { call, task } = &taken;
        let best = hypotheses.first().map(|best| best.tokens.clone());
        let best = best.unwrap_or_default();
        let found = call
            .translator
            .found(&task.line, task.sentence, hypotheses, first);
        match found {
            Found::Translation(translation) => {
                self.shared.metrics.sentence_found(best.len());
                let details = task
                    .details
                    .map(|top| Details::of(&call.translator, task, &best, &translation, top));
                let place = task.place;
                // Whoever is gone gets no answer.
                let _ = call.answers.send(Answer {
                    place,
                    translation,
                    details,
                });
            }
            Found::Again(mut request, first) => {
                request.prefix.extend_from_slice(&task.prefix);
                let first = Some(first);
                self.again.push((Running { taken, first }, request));
            }
        }
    }

    fn is_abandoned(&self, number: usize) -> bool {
        let sentence = self.running.get(&number);
        sentence.is_none_or(|sentence| sentence.taken.call.is_gone())
    }
}
