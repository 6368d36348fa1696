//! The engine: standing worker threads that all callers share.
//!
//! A caller brings items and what is to be done with each, and waits for the answers. Calls take turns
//! (`queue`), and no more jobs run at once than the engine has threads (`workers`), however many callers
//! there are. So a server with a hundred connections computes on as many threads as one caller.
//! [`crate::translator`] sends tokenization and batches of sentences here.
//!
//! A job runs to its end on one thread, so what is computed for an item never depends on the others. That
//! is why this is no work-stealing pool, which may begin another job in the middle of one.
//!
//! A caller waits until all its jobs have ended, as with [`std::thread::scope`], so jobs borrow what they
//! need and nothing is copied. A single job runs on the caller's own thread if a slot is free: a sentence
//! costs no switch between threads, and a program that translates single sentences never starts a thread.

mod queue;
mod stop;
mod workers;

use std::fmt;
use std::panic::resume_unwind;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

pub use stop::Stop;

use queue::Work;
use workers::Shared;

/// A queue of jobs and the threads that do them. The threads start when they are needed and end when the
/// engine is dropped.
pub struct Engine {
    threads: usize,
    shared: Arc<Shared>,
    workers: Mutex<Vec<JoinHandle<()>>>,
    /// The process that has used the engine first; 0 if none has.
    process: AtomicU32,
}

impl Engine {
    /// An engine that runs at most `threads` jobs at once.
    ///
    /// # Panics
    /// If there are to be no threads.
    pub fn new(threads: usize) -> Self {
        assert!(threads > 0, "an engine needs a thread");
        Self {
            threads,
            shared: Arc::new(Shared::new(threads)),
            workers: Mutex::default(),
            process: AtomicU32::new(0),
        }
    }

    /// How many jobs run at once at most.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Whether jobs wait for a thread. A long job that can end early then should, so that calls take turns.
    pub fn is_contended(&self) -> bool {
        self.shared.has_waiting()
    }

    /// The answer of `work` to each item, in the order of the items, which is also the order in which
    /// they are begun. `work` must not use the engine itself.
    ///
    /// # Panics
    /// If `work` panics, with its panic. Items that have not begun then are left out, and other calls are
    /// not disturbed.
    pub fn map<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
        self.map_until(&Stop::default(), items, work)
    }

    /// As [`Engine::map`], and the thread that waits asks every now and then whether to stop. All the same it waits for
    /// all answers: `work` asks, too, and ends early.
    pub fn map_until<T: Sync, R: Send>(
        &self,
        stop: &Stop,
        items: &[T],
        work: impl Fn(&T) -> R + Sync,
    ) -> Vec<R> {
        if self.is_forked() {
            return items.iter().map(work).collect();
        }
        if let [item] = items
            && let Some(_slot) = self.shared.slot()
        {
            return vec![work(item)];
        }
        let answers: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
        let lock = |number: usize| {
            answers[number]
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        self.run(stop, items.len(), &|number| {
            let answer = work(&items[number]);
            *lock(number) = Some(answer);
        });
        let answer = |number| lock(number).take().expect("every job has ended");
        (0..items.len()).map(answer).collect()
    }

    /// Does the jobs `0..count`, and returns when all have ended.
    fn run(&self, stop: &Stop, count: usize, work: &Work<'_>) {
        // SAFETY: `wait` returns when the call is out of the queue and none of its jobs runs, so nobody
        // uses `work` afterwards. Nothing between `push` and `wait` can unwind, nor can `wait`:
        // what `stop` asks must not.
        let lasting = unsafe { std::mem::transmute::<&Work<'_>, &'static Work<'static>>(work) };
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = self.threads.min(self.shared.unfinished() + count);
        workers::start(&mut workers, wanted, &self.shared);
        if workers.is_empty() {
            return (0..count).for_each(work);
        }
        let call = self.shared.push(count, lasting);
        drop(workers);
        if let Some(panic) = self.shared.wait(call, stop) {
            resume_unwind(panic);
        }
    }

    /// Whether this process was forked from one that had used the engine. Its threads, and perhaps a
    /// locked mutex, stayed behind there, so the caller does everything itself here.
    fn is_forked(&self) -> bool {
        let here = process::id();
        let first = self
            .process
            .compare_exchange(0, here, Ordering::Relaxed, Ordering::Relaxed);
        first.is_err_and(|process| process != here)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let forked = self.is_forked();
        let workers = self.workers.get_mut();
        let workers = workers.unwrap_or_else(PoisonError::into_inner);
        if forked {
            std::mem::forget(std::mem::take(workers));
        } else {
            workers::join(workers, &self.shared);
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}
