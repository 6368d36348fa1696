//! The queue: calls whose jobs wait for a worker. It counts and never blocks; `workers` has it in a mutex.
//!
//! Calls take turns, one job each, so that a small call among large ones is done soon. And no more jobs
//! run at once than there are slots, on whichever threads.

use std::any::Any;
use std::collections::VecDeque;
use std::thread::{self, Thread};

/// Does the job of a number.
pub(super) type Work<'a> = dyn Fn(usize) + Sync + 'a;

/// What a panic left behind.
pub(super) type Panic = Box<dyn Any + Send>;

/// All calls that are not done.
pub(super) struct Queue {
    calls: VecDeque<Call>,
    slots: usize,
    running: usize,
    next_id: u64,
}

/// Jobs that one caller waits for.
struct Call {
    id: u64,
    caller: Thread,
    work: &'static Work<'static>,
    /// The jobs from here on have not begun.
    next: usize,
    count: usize,
    running: usize,
    panic: Option<Panic>,
}

/// A job that has begun.
pub(super) struct Job {
    pub call: u64,
    pub number: usize,
    pub work: &'static Work<'static>,
}

impl Queue {
    pub fn new(slots: usize) -> Self {
        Self {
            calls: VecDeque::new(),
            slots,
            running: 0,
            next_id: 0,
        }
    }

    /// Adds a call of `count` jobs that this thread waits for; returns its id.
    pub fn push(&mut self, count: usize, work: &'static Work<'static>) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.calls.push_back(Call {
            id,
            caller: thread::current(),
            work,
            next: 0,
            count,
            running: 0,
            panic: None,
        });
        id
    }

    /// How many jobs run or wait.
    pub fn unfinished(&self) -> usize {
        self.running + self.calls.iter().map(Call::waiting).sum::<usize>()
    }

    /// Takes a slot for a job that never waited, unless another job should have it.
    pub fn take_slot(&mut self) -> bool {
        let free = self.unfinished() < self.slots;
        self.running += usize::from(free);
        free
    }

    /// Gives that slot back; returns whether a waiting job can have it.
    pub fn release_slot(&mut self) -> bool {
        self.running -= 1;
        self.has_waiting()
    }

    /// Whether a job waits.
    pub fn has_waiting(&self) -> bool {
        self.calls.iter().any(|call| call.waiting() > 0)
    }

    /// Begins the job whose turn it is, if there is one and a slot for it.
    pub fn begin(&mut self) -> Option<Job> {
        if self.running == self.slots {
            return None;
        }
        let turn = self.calls.iter().position(|call| call.waiting() > 0)?;
        let mut call = self.calls.remove(turn)?;
        let job = Job {
            call: call.id,
            number: call.next,
            work: call.work,
        };
        call.next += 1;
        call.running += 1;
        self.running += 1;
        self.calls.push_back(call);
        Some(job)
    }

    /// Ends a job; returns who waits for its call, if that is done now. After a panic no other job of the
    /// call begins.
    pub fn end(&mut self, call: u64, panic: Option<Panic>) -> Option<&Thread> {
        self.running -= 1;
        let call = self.calls.iter_mut().find(|other| other.id == call)?;
        call.running -= 1;
        if panic.is_some() {
            call.count = call.next;
            call.panic = call.panic.take().or(panic);
        }
        call.is_done().then_some(&call.caller)
    }

    /// Takes a call out if it is done: the first panic of its jobs, if one panicked.
    pub fn take_done(&mut self, call: u64) -> Option<Option<Panic>> {
        let place = self
            .calls
            .iter()
            .position(|other| other.id == call && other.is_done())?;
        self.calls.remove(place).map(|call| call.panic)
    }
}

impl Call {
    fn waiting(&self) -> usize {
        self.count - self.next
    }

    fn is_done(&self) -> bool {
        self.running + self.waiting() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: &Work<'static> = &|_| {};

    fn begun(queue: &mut Queue) -> Option<(u64, usize)> {
        queue.begin().map(|job| (job.call, job.number))
    }

    #[test]
    fn calls_take_turns() {
        let mut queue = Queue::new(9);
        queue.push(4, NOTHING);
        queue.push(1, NOTHING);
        assert_eq!(begun(&mut queue), Some((0, 0)));
        queue.push(2, NOTHING);
        let order: Vec<_> = std::iter::from_fn(|| begun(&mut queue)).collect();
        assert_eq!(order, [(1, 0), (0, 1), (2, 0), (0, 2), (2, 1), (0, 3)]);
    }

    #[test]
    fn no_more_jobs_run_than_there_are_slots() {
        let mut queue = Queue::new(2);
        let call = queue.push(3, NOTHING);
        assert_eq!(begun(&mut queue), Some((call, 0)));
        assert_eq!(begun(&mut queue), Some((call, 1)));
        assert_eq!(begun(&mut queue), None);
        assert!(queue.end(call, None).is_none());
        assert_eq!(begun(&mut queue), Some((call, 2)));
        assert!(queue.end(call, None).is_none(), "one job is running");
        assert!(queue.take_done(call).is_none());
        assert!(queue.end(call, None).is_some());
        assert!(matches!(queue.take_done(call), Some(None)));
        assert!(queue.calls.is_empty() && queue.running == 0);
    }

    #[test]
    fn a_free_slot_is_given_away_only_if_no_job_waits_for_it() {
        let mut queue = Queue::new(2);
        assert!(queue.take_slot());
        let call = queue.push(1, NOTHING);
        assert!(!queue.take_slot());
        assert!(queue.release_slot(), "somebody waits for it");
        assert_eq!(begun(&mut queue), Some((call, 0)));
        assert!(queue.take_slot());
        assert!(!queue.take_slot());
        assert!(!queue.release_slot());
    }

    #[test]
    fn after_a_panic_no_other_job_of_that_call_begins() {
        let mut queue = Queue::new(9);
        let (bad, good) = (queue.push(5, NOTHING), queue.push(1, NOTHING));
        queue.begin();
        queue.end(bad, Some(Box::new("first")));
        assert_eq!(begun(&mut queue), Some((good, 0)));
        assert_eq!(begun(&mut queue), None);
        let panic = queue.take_done(bad).flatten().expect("it panicked");
        assert_eq!(panic.downcast_ref(), Some(&"first"));
    }
}
