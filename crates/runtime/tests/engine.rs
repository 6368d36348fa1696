//! The engine's threads: shared by all callers, never more than configured, gone when it is dropped.

use std::cell::RefCell;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use attentive_runtime::engine::Engine;

/// Counts what happens at the same time.
#[derive(Default)]
struct Together {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Together {
    fn during(&self, work: impl FnOnce()) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        work();
        self.now.fetch_sub(1, Ordering::SeqCst);
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

fn a_moment() {
    thread::sleep(Duration::from_millis(2));
}

#[test]
fn answers_are_in_the_order_of_the_items_on_any_number_of_threads() {
    let items: Vec<usize> = (0..100).collect();
    let squares: Vec<usize> = items.iter().map(|item| item * item).collect();
    for threads in [1, 2, 3, 200] {
        let engine = Engine::new(threads);
        for count in [0, 1, 2, 100] {
            let found = engine.map(&items[..count], |item| item * item);
            assert_eq!(found, squares[..count], "{threads} threads");
        }
    }
}

#[test]
fn as_many_jobs_run_at_once_as_there_are_threads() {
    let barrier = Barrier::new(3);
    let threads = Engine::new(3).map(&[0, 1, 2], |_| {
        barrier.wait(); // Fewer would wait for ever.
        thread::current().id()
    });
    assert_eq!(threads.into_iter().collect::<HashSet<_>>().len(), 3);
}

#[test]
fn a_single_job_stays_on_the_callers_thread() {
    let engine = Engine::new(2);
    let here = thread::current().id();
    assert_eq!(engine.map(&[()], |()| thread::current().id()), [here]);
}

#[test]
fn many_callers_use_no_more_threads_than_configured() {
    for (threads, items) in [(1, 5), (2, 5), (2, 1), (3, 2)] {
        let (engine, together) = (Engine::new(threads), Together::default());
        let workers = Mutex::new(HashSet::new());
        let start = Barrier::new(6);
        thread::scope(|scope| {
            for caller in 0..6 {
                let (engine, together, start, workers) = (&engine, &together, &start, &workers);
                scope.spawn(move || {
                    start.wait();
                    for round in 0..5 {
                        let items: Vec<usize> = (0..items).map(|item| item + round).collect();
                        let found = engine.map(&items, |item| {
                            together.during(a_moment);
                            if items.len() > 1 {
                                workers.lock().unwrap().insert(thread::current().id());
                            }
                            item + caller
                        });
                        let expected: Vec<usize> = items.iter().map(|item| item + caller).collect();
                        assert_eq!(found, expected);
                    }
                });
            }
        });
        assert!(together.most() <= threads, "{}", together.most());
        assert!(workers.into_inner().unwrap().len() <= threads);
    }
}

#[test]
fn a_small_call_does_not_wait_for_a_large_one() {
    let engine = Engine::new(1);
    let done = AtomicUsize::new(0);
    let begun = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            let items: Vec<usize> = (0..200).collect();
            engine.map(&items, |item| {
                if *item == 0 {
                    begun.wait();
                }
                a_moment();
                done.fetch_add(1, Ordering::SeqCst);
            });
        });
        begun.wait();
        engine.map(&[0, 1], |_| a_moment());
        let others = done.load(Ordering::SeqCst);
        assert!(others < 150, "{others} jobs of the large call came first");
    });
    assert_eq!(done.into_inner(), 200);
}

#[test]
fn a_panic_reaches_its_caller_and_nobody_else() {
    let engine = Engine::new(2);
    thread::scope(|scope| {
        let others = scope.spawn(|| {
            let items: Vec<usize> = (0..60).collect();
            engine.map(&items, |item| {
                a_moment();
                *item
            })
        });
        for items in [vec![1], vec![0, 1, 2], (0..50).collect()] {
            let panic = catch_unwind(AssertUnwindSafe(|| {
                engine.map(&items, |item| assert_ne!(*item, 1, "item {item}"));
            }));
            let message = panic.expect_err("item 1 panics");
            let message = message.downcast_ref::<String>().expect("a message");
            assert!(message.contains("item 1"), "{message}");
        }
        assert_eq!(others.join().unwrap(), (0..60).collect::<Vec<_>>());
    });
    assert_eq!(engine.map(&[1, 2, 3], |item| item * 2), [2, 4, 6]);
}

/// Counts down when its thread ends.
struct AtEnd(Arc<AtomicUsize>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

thread_local! {
    static AT_END: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
}

#[test]
fn dropping_the_engine_joins_its_threads() {
    let alive = Arc::new(AtomicUsize::new(0));
    let engine = Engine::new(3);
    let barrier = Barrier::new(3);
    for _ in 0..4 {
        engine.map(&[0, 1, 2], |_| {
            AT_END.with_borrow_mut(|at_end| {
                at_end.get_or_insert_with(|| {
                    alive.fetch_add(1, Ordering::SeqCst);
                    AtEnd(alive.clone())
                });
            });
            barrier.wait();
        });
    }
    assert_eq!(
        alive.load(Ordering::SeqCst),
        3,
        "the same threads each time"
    );
    drop(engine);
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_forked_process_does_its_work_itself() {
    let engine = Engine::new(2);
    let items = [1, 2, 3, 4];
    assert_eq!(engine.map(&items, |item| item * item), [1, 4, 9, 16]);
    // SAFETY: the child uses the engine, which is what is tested, and ends without unwinding.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(20); // Whoever waits for threads that are not there is ended.
            let right = engine.map(&items, |item| item * item) == [1, 4, 9, 16];
            drop(engine);
            libc::_exit(if right { 0 } else { 1 });
        }
        let mut status = 0;
        libc::waitpid(child, &mut status, 0);
        assert_eq!(status, 0);
    }
}
