//! One queue for the sentences of all clients, and the threads that search for them.
//!
//! ```text
//! call (a client's request) --submit--> queue --refill--> worker: a running batch --found--> answers of the call
//! ```
//!
//! The sentences of different clients are in one batch, if they are for one model and are searched for in one way.
//! Clients take turns, one sentence each, and so do the calls of a client (`queue`): a short text never waits for a
//! long document, and nobody gets more by asking more often. Sentences are not sorted by length: one leaves a batch
//! when it ends, and the CPU model pads none. A call whose receiver is gone has no sentence that is still searched
//! for: whoever drops it cancels. Neighbors: `worker`
//! searches, [`crate::translating`] submits, [`details`] says what each token cost.

pub mod details;
mod queue;
mod worker;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use attentive_runtime::Translator;
use attentive_runtime::translator::{SplitLine, Translation};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::http::client::Client;
use crate::metrics::Metrics;
use details::Details;
use queue::Queue;

/// A sentence that is to be searched for.
#[derive(Debug, Clone)]
pub struct Task {
    /// What the caller knows it by.
    pub place: usize,
    /// The line that it is in.
    pub line: Arc<SplitLine>,
    /// Its number in the line.
    pub sentence: usize,
    /// Target tokens that the translation must start with, besides those of the line.
    pub prefix: Vec<u32>,
    /// How many alternatives to list for each token, if details are wanted.
    pub details: Option<usize>,
}

/// What was found.
#[derive(Debug)]
pub struct Answer {
    /// That of the [`Task`].
    pub place: usize,
    /// The translation of the sentence.
    pub translation: Translation,
    /// What each token cost, if that was asked for.
    pub details: Option<Details>,
}

/// The queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// The sentences of one call, as its workers know them.
#[derive(Debug)]
struct Call {
    client: Client,
    translator: Arc<Translator>,
    answers: UnboundedSender<Answer>,
}

/// The queue and its threads, which end when it is dropped.
#[derive(Debug)]
pub struct Scheduler {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    /// Wakes workers when sentences wait or the scheduler closes.
    changed: Condvar,
    metrics: Arc<Metrics>,
}

impl Scheduler {
    /// Starts the threads. The queue is full when `capacity` calls wait.
    pub fn start(threads: usize, capacity: usize, metrics: Arc<Metrics>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue::new(capacity)),
            changed: Condvar::new(),
            metrics,
        });
        let start = |number: usize| {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name(format!("search-{number}"));
            thread.spawn(move || worker::run(&shared))
        };
        let workers = (0..threads.max(1)).map(start).collect::<Result<_, _>>()?;
        Ok(Self { shared, workers })
    }

    /// Adds the sentences of a call; each gives one answer, in any order. A channel that ends early means that a
    /// search failed.
    pub fn submit(
        &self,
        client: Client,
        translator: &Arc<Translator>,
        tasks: Vec<Task>,
    ) -> Result<UnboundedReceiver<Answer>, Full> {
        let (answers, receiver) = unbounded_channel();
        let call = Arc::new(Call {
            client,
            translator: Arc::clone(translator),
            answers,
        });
        let count = tasks.len();
        self.shared.lock().push(call, tasks)?;
        if count == 1 {
            self.shared.changed.notify_one();
        } else {
            self.shared.changed.notify_all();
        }
        Ok(receiver)
    }

    /// Whether a call of this client would be refused.
    pub fn is_full(&self, client: Client) -> bool {
        self.shared.lock().refuses(client)
    }

    /// How many sentences wait.
    pub fn waiting(&self) -> usize {
        self.shared.lock().waiting()
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.shared.lock().close();
        self.shared.changed.notify_all();
        for worker in self.workers.drain(..) {
            // A worker catches the panics of searches, so there is nothing to hear.
            let _ = worker.join();
        }
    }
}

impl Shared {
    /// No search runs while it is locked, so no panic leaves the queue half changed.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call {
    /// Whether nobody waits for the answers any more.
    fn is_gone(&self) -> bool {
        self.answers.is_closed()
    }
}
