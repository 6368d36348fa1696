//! Several threads for one product: what makes a sentence that is translated alone be found sooner.
//!
//! A batch of sentences keeps every thread busy with a search of its own ([`crate::engine`]). A single search would
//! leave all threads but one idle; so they help with its products, each with some of the outputs
//! ([`super::matrix`] cuts them into parts). Every output is computed by one thread as it would be without help, so
//! no bit depends on it (intra-op parallelism, as other programs call it).
//!
//! A product takes microseconds, too short to wake a thread for. So helpers spin for a moment between products, and
//! sleep when none comes. The thread that searches takes parts as the helpers do: a helper that comes late, or not at
//! all (in a process that was forked, its threads are gone), costs nothing. One that is interrupted in the midst of
//! a part makes the search wait; then the machine has other work to do, and the next searches go without help.

use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{self, AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};

/// Threads that help the only search of a model.
#[derive(Debug, Default)]
pub(crate) struct Team {
    /// How many threads help at most.
    helpers: usize,
    /// Started when the first product can use them.
    threads: OnceLock<Vec<Arc<Helper>>>,
    board: Arc<Board>,
    /// How many searches the model has under way.
    searches: AtomicUsize,
    /// Whether a product is being shared out.
    leading: AtomicBool,
    /// So many searches go without help.
    pause: AtomicU32,
    /// How many do so the next time that a helper is interrupted.
    next_pause: AtomicU32,
    /// How many searches in a row had help that was not interrupted.
    undisturbed: AtomicU32,
}

/// A search that is under way.
#[derive(Debug)]
pub(crate) struct Membership(Arc<Team>);

/// What a leader and the helpers know of the product at hand.
#[derive(Debug, Default)]
struct Board {
    /// What is to be taken next. All of it in one number: a helper that comes from the product before must not see
    /// parts of the next one.
    turn: AtomicU64,
    done: AtomicU32,
    work: AtomicPtr<Work<'static>>,
    failed: AtomicBool,
    over: AtomicBool,
}

/// A product's number, in how many parts it is cut, and which one is to be taken next, as [`Board::turn`] holds them.
#[derive(Debug, Clone, Copy)]
struct Turn {
    product: u32,
    parts: u16,
    next: u16,
}

impl From<u64> for Turn {
    fn from(bits: u64) -> Self {
        Self {
            product: (bits >> 32) as u32,
            parts: (bits >> 16) as u16,
            next: bits as u16,
        }
    }
}

impl From<Turn> for u64 {
    fn from(turn: Turn) -> Self {
        Self::from(turn.product) << 32 | Self::from(turn.parts) << 16 | Self::from(turn.next)
    }
}

/// Computes the part of a number.
struct Work<'a>(&'a (dyn Fn(usize) + Sync));

#[derive(Debug)]
struct Helper {
    thread: OnceLock<Thread>,
    asleep: AtomicBool,
}

/// More would spend more time on taking parts than they save.
const MOST_HELPERS: usize = 3;

/// Looks at the board before a helper sleeps: some 50 microseconds, longer than what lies between two products.
const LOOKS: u32 = 2000;

/// Looks after which a leader gives its core away, in case that a helper waits for it.
const PATIENCE: u32 = 4000;

/// The most searches that go without help after an interruption.
const LONGEST_PAUSE: u32 = 256;

/// After so many searches without an interruption the next pause is half as long.
const CALM: u32 = 32;

impl Team {
    /// So many threads in all, the one that searches included.
    pub fn of(threads: usize) -> Self {
        let mut team = Self::default();
        team.helpers = threads.saturating_sub(1).min(MOST_HELPERS);
        team.next_pause = AtomicU32::new(1);
        team
    }

    /// Counts a search until the membership is dropped.
    pub fn enter(self: &Arc<Self>) -> Membership {
        self.searches.fetch_add(1, Relaxed);
        Membership(self.clone())
    }

    /// Whether parts of a product would be computed by several threads.
    pub fn helps(&self) -> bool {
        self.helpers > 0 && self.searches.load(Relaxed) == 1 && self.pause.load(Relaxed) == 0
    }

    /// Does `work` for each part `0..parts` and returns when all are done, on several threads if the team
    /// [helps](Team::helps).
    pub fn share(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        let alone = parts < 2 || !self.helps() || self.leading.swap(true, Acquire);
        if alone {
            return (0..parts).for_each(work);
        }
        let leader = Leader::new(self, parts, work);
        leader.announce();
        self.wake();
        leader.lead();
    }

    fn wake(&self) {
        let threads = self.threads.get_or_init(|| self.start());
        for helper in threads {
            if helper.asleep.load(SeqCst)
                && helper.asleep.swap(false, SeqCst)
                && let Some(thread) = helper.thread.get()
            {
                thread.unpark();
            }
        }
    }

    /// As many helpers as the system gives.
    fn start(&self) -> Vec<Arc<Helper>> {
        let start = |_| {
            let helper = Arc::new(Helper {
                thread: OnceLock::new(),
                asleep: AtomicBool::new(false),
            });
            let (own, board) = (helper.clone(), self.board.clone());
            let thread = thread::Builder::new().name("product-helper".to_owned());
            let spawned = thread.spawn(move || board.help(&own)).ok()?;
            let _ = helper.thread.set(spawned.thread().clone());
            Some(helper)
        };
        (0..self.helpers).map_while(start).collect()
    }

    /// A helper was interrupted: ever more searches go without help while that happens.
    fn go_without(&self) {
        let searches = self.next_pause.load(Relaxed);
        self.pause.store(searches, Relaxed);
        self.next_pause
            .store((2 * searches).min(LONGEST_PAUSE), Relaxed);
        self.undisturbed.store(0, Relaxed);
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        // The threads end by themselves: in a forked process there are none to wait for.
        self.board.over.store(true, SeqCst);
        if self.threads.get().is_some() {
            self.wake();
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let team = &self.0;
        team.searches.fetch_sub(1, Relaxed);
        let pause = team.pause.load(Relaxed);
        if pause > 0 {
            team.pause.store(pause - 1, Relaxed);
        } else if team.undisturbed.fetch_add(1, Relaxed) == CALM {
            let next = team.next_pause.load(Relaxed);
            team.next_pause.store(next.div_ceil(2), Relaxed);
            team.undisturbed.store(0, Relaxed);
        }
    }
}

/// A product that is being shared out. No part is under way any more when it is dropped.
struct Leader<'a> {
    team: &'a Team,
    work: Work<'a>,
    parts: u16,
    product: u32,
}

impl<'a> Leader<'a> {
    fn new(team: &'a Team, parts: usize, work: &'a (dyn Fn(usize) + Sync)) -> Self {
        let last = Turn::from(team.board.turn.load(Relaxed)).product;
        Self {
            team,
            work: Work(work),
            parts: u16::try_from(parts).expect("few parts"),
            product: last.wrapping_add(1),
        }
    }

    /// Tells the helpers, before they are woken: one that falls asleep in between has seen it.
    fn announce(&self) {
        let board = &*self.team.board;
        board.done.store(0, Relaxed);
        let work: *const Work<'_> = &self.work;
        board.work.store(work.cast_mut().cast(), Relaxed);
        let first = Turn {
            product: self.product,
            parts: self.parts,
            next: 0,
        };
        board.turn.store(first.into(), SeqCst);
    }

    /// Computes parts until all are taken; the leader stays where it was announced.
    fn lead(&self) {
        let board = &*self.team.board;
        while let Some(part) = board.take(self.product) {
            (self.work.0)(part);
            board.done.fetch_add(1, Release);
        }
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        let board = &*self.team.board;
        // After a panic there may be some left.
        let mut left = 0;
        while board.take(self.product).is_some() {
            left += 1;
        }
        // The part that panicked is not done either.
        left += u32::from(thread::panicking());
        let mut looks = 0;
        while board.done.load(Acquire) + left < u32::from(self.parts) {
            spin_loop();
            looks += 1;
            if looks == PATIENCE {
                self.team.go_without();
            }
            if looks >= PATIENCE {
                thread::yield_now();
            }
        }
        board.work.store(ptr::null_mut(), Relaxed);
        self.team.leading.store(false, Release);
        if board.failed.swap(false, Relaxed) && !thread::panicking() {
            panic!("a part of a product failed");
        }
    }
}

impl Board {
    /// The next part of this product, if there is one.
    fn take(&self, product: u32) -> Option<usize> {
        let mut bits = self.turn.load(Acquire);
        loop {
            let turn = Turn::from(bits);
            if turn.product != product || turn.next >= turn.parts {
                return None;
            }
            // Where it succeeds the product is the same as above: it cannot end before this part is done.
            match self
                .turn
                .compare_exchange_weak(bits, bits + 1, AcqRel, Acquire)
            {
                Ok(_) => return Some(turn.next.into()),
                Err(now) => bits = now,
            }
        }
    }

    fn product(&self, order: atomic::Ordering) -> u32 {
        Turn::from(self.turn.load(order)).product
    }

    /// The life of a helper.
    fn help(&self, own: &Helper) {
        let (mut last, mut looks) = (0, 0);
        while !self.over.load(Relaxed) {
            let product = self.product(Acquire);
            if product != last {
                while let Some(part) = self.take(product) {
                    self.compute(part);
                }
                (last, looks) = (product, 0);
                continue;
            }
            spin_loop();
            looks += 1;
            if looks == LOOKS {
                own.asleep.store(true, SeqCst);
                // Whoever shared a product out before that did not see it asleep.
                if self.product(SeqCst) == last && !self.over.load(SeqCst) {
                    thread::park();
                }
                own.asleep.store(false, SeqCst);
                looks = 0;
            }
        }
    }

    /// Computes a part that was taken.
    fn compute(&self, part: usize) {
        // SAFETY: the leader keeps the work alive until all parts that were taken are done.
        let work = unsafe { &*self.work.load(Relaxed) };
        if catch_unwind(AssertUnwindSafe(|| (work.0)(part))).is_err() {
            self.failed.store(true, Relaxed);
        }
        self.done.fetch_add(1, Release);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::{Duration, Instant};

    use super::*;

    /// Far longer than a busy machine keeps a thread waiting.
    const LONG: Duration = Duration::from_secs(120);

    /// How often each part was computed, and by how many threads.
    fn counted(team: &Team, parts: usize, spins: usize) -> (Vec<usize>, usize) {
        let counts: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
        let threads = Mutex::new(std::collections::HashSet::new());
        team.share(parts, &|part| {
            counts[part].fetch_add(1, Relaxed);
            threads
                .lock()
                .expect("no panic")
                .insert(thread::current().id());
            (0..spins).for_each(|_| spin_loop());
        });
        let threads = threads.into_inner().expect("no panic").len();
        (
            counts.into_iter().map(AtomicUsize::into_inner).collect(),
            threads,
        )
    }

    #[test]
    fn every_part_is_computed_once_whoever_computes_it() {
        let team = Arc::new(Team::of(3));
        for round in 0..3000 {
            // Others join now and then, and a pause would hide what is tested.
            team.pause.store(0, Relaxed);
            let _search = team.enter();
            for parts in [1, 2, 3, 17] {
                let (counts, _) = counted(&team, parts, round % 50);
                assert_eq!(counts, vec![1; parts]);
            }
        }
    }

    #[test]
    fn helpers_take_part_and_wake_from_their_sleep() {
        let team = Arc::new(Team::of(2));
        let _search = team.enter();
        for round in 0..3 {
            team.pause.store(0, Relaxed);
            let (waiting, began) = (AtomicUsize::new(0), Instant::now());
            // Neither part is done before the other is taken: one thread alone would wait here.
            team.share(2, &|_| {
                waiting.fetch_add(1, Relaxed);
                while waiting.load(Relaxed) < 2 {
                    assert!(began.elapsed() < LONG, "nobody helped in round {round}");
                    thread::yield_now();
                }
            });
            let helper = &team.threads.get().expect("started")[0];
            while !helper.asleep.load(SeqCst) {
                assert!(began.elapsed() < LONG, "the helper never slept");
                thread::yield_now();
            }
        }
    }

    #[test]
    fn two_searches_have_a_thread_each() {
        let team = Arc::new(Team::of(2));
        let one = team.enter();
        assert!(team.helps());
        let two = team.enter();
        assert!(!team.helps());
        assert_eq!(counted(&team, 9, 100), (vec![1; 9], 1));
        drop(one);
        assert!(team.helps());
        drop(two);
        assert!(!Team::of(1).helps());
    }

    #[test]
    fn a_panic_reaches_who_shared_the_product_out_and_ends_no_helper() {
        let team = Arc::new(Team::of(2));
        let _search = team.enter();
        for bad in [0, 1, 7] {
            team.pause.store(0, Relaxed);
            let shared = catch_unwind(AssertUnwindSafe(|| {
                team.share(8, &|part| assert_ne!(part, bad, "the bad part"));
            }));
            assert!(shared.is_err(), "part {bad}");
            assert_eq!(counted(&team, 8, 100).0, vec![1; 8]);
        }
    }

    #[test]
    fn searches_go_without_help_for_longer_the_more_often_it_was_interrupted() {
        let team = Arc::new(Team::of(2));
        let mut helped = Vec::new();
        for search in 0..12 {
            let _search = team.enter();
            helped.push(team.helps());
            if team.helps() && search < 8 {
                team.go_without();
            }
        }
        let expected = [1, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0].map(|helps| helps == 1);
        assert_eq!(helped, expected);
    }
}
