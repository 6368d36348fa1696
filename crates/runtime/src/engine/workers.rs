//! The worker threads: started when jobs wait for them, and joined when the engine is dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use super::queue::{Job, Panic, Queue, Work};
use super::stop::{INTERVAL, Stop};

/// What workers and callers share.
pub(super) struct Shared {
    state: Mutex<State>,
    /// Wakes workers when jobs wait or the engine closes.
    changed: Condvar,
}

struct State {
    queue: Queue,
    closed: bool,
}

/// The right to run a job on the caller's own thread.
pub(super) struct Slot<'a>(&'a Shared);

impl Shared {
    pub fn new(slots: usize) -> Self {
        let queue = Queue::new(slots);
        let closed = false;
        Self {
            state: Mutex::new(State { queue, closed }),
            changed: Condvar::new(),
        }
    }

    /// No job runs while it is locked, so no panic leaves the state half changed.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn unfinished(&self) -> usize {
        self.lock().queue.unfinished()
    }

    pub fn has_waiting(&self) -> bool {
        self.lock().queue.has_waiting()
    }

    /// A slot for the caller's thread, if nobody else waits for it.
    pub fn slot(&self) -> Option<Slot<'_>> {
        let taken = self.lock().queue.take_slot();
        taken.then(|| Slot(self))
    }

    /// Adds a call of `count` jobs; returns its id.
    pub fn push(&self, count: usize, work: &'static Work<'static>) -> u64 {
        let call = self.lock().queue.push(count, work);
        self.changed.notify_all();
        call
    }

    /// Waits until all jobs of a call have ended; returns the first panic among them.
    pub fn wait(&self, call: u64, stop: &Stop) -> Option<Panic> {
        loop {
            if let Some(done) = self.lock().queue.take_done(call) {
                return done;
            }
            if stop.is_never() {
                thread::park();
            } else {
                thread::park_timeout(INTERVAL);
                stop.is_asked(); // The jobs hear of it.
            }
        }
    }

    /// The life of a worker.
    fn work(&self) {
        let mut state = self.lock();
        while !state.closed {
            let Some(job) = state.queue.begin() else {
                let waited = self.changed.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            let call = job.call;
            let panic = run(job);
            state = self.lock();
            if let Some(caller) = state.queue.end(call, panic) {
                caller.unpark();
            }
        }
    }
}

/// Runs a job; a panic is for its caller to know, and the worker lives on.
fn run(job: Job) -> Option<Panic> {
    catch_unwind(AssertUnwindSafe(|| (job.work)(job.number))).err()
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        if self.0.lock().queue.release_slot() {
            self.0.changed.notify_one();
        }
    }
}

/// Starts workers until there are `count`, or until the system refuses.
pub(super) fn start(workers: &mut Vec<JoinHandle<()>>, count: usize, shared: &Arc<Shared>) {
    while workers.len() < count {
        let shared = shared.clone();
        let worker = thread::Builder::new().name("engine-worker".to_owned());
        match worker.spawn(move || shared.work()) {
            Ok(worker) => workers.push(worker),
            Err(_) => return,
        }
    }
}

/// Ends all workers and waits for them. No call is under way then: each borrows the engine.
pub(super) fn join(workers: &mut Vec<JoinHandle<()>>, shared: &Shared) {
    shared.lock().closed = true;
    shared.changed.notify_all();
    for worker in workers.drain(..) {
        let _ = worker.join(); // Jobs cannot make it panic.
    }
}
