//! Work spread over threads.
//!
//! Threads of our own and not rayon's: each takes the next item when it is free and keeps it to the
//! end, so that what is computed for an item never depends on the others. Starting them costs some
//! dozens of microseconds, next to whole batches of sentences.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The answer of `work` to each item, in the order of the items, which is also the order in which
/// they are begun. One thread, or one item, stays on the calling thread.
pub(super) fn in_parallel<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    if threads <= 1 || items.len() <= 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else {
                return done;
            };
            done.push((index, work(item)));
        }
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(items.len()))
            .map(|_| scope.spawn(worker))
            .collect();
        let mut done = worker();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, answer)| answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_in_the_order_of_the_items_on_any_number_of_threads() {
        let items: Vec<usize> = (0..100).collect();
        let squares: Vec<usize> = items.iter().map(|item| item * item).collect();
        for threads in [1, 2, 3, 200] {
            assert_eq!(in_parallel(threads, &items, |item| item * item), squares);
        }
        assert!(in_parallel(2, &[], |(): &()| ()).is_empty());
    }

    #[test]
    fn every_thread_works() {
        let here = thread::current().id();
        let barrier = std::sync::Barrier::new(2);
        let threads = in_parallel(2, &[0, 1], |_| {
            barrier.wait();
            thread::current().id()
        });
        assert_ne!(threads[0], threads[1]);
        assert!(threads.contains(&here), "the caller works too");
    }

    #[test]
    #[should_panic(expected = "item 1")]
    fn a_panic_reaches_the_caller() {
        in_parallel(2, &[0, 1], |item| assert_eq!(*item, 0, "item {item}"));
    }
}
