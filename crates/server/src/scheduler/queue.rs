//! The waiting sentences: in groups that can be in one batch, and within a group call by call in turn.
//!
//! It counts and never blocks; [`super`] has it in a mutex.

use std::collections::VecDeque;
use std::sync::Arc;

use attentive_runtime::Translator;
use attentive_runtime::search::{Load, SearchOptions};

use super::{Call, Full, Task};

/// All sentences that no worker has taken yet.
#[derive(Debug)]
pub(super) struct Queue {
    /// The one that was served last is at the end.
    groups: Vec<Group>,
    next_group: u64,
    /// Sentences of all groups.
    waiting: usize,
    /// The most calls that wait.
    capacity: usize,
    idle: usize,
    closed: bool,
}

/// Sentences for one model that are searched for in one way.
#[derive(Debug)]
struct Group {
    id: u64,
    translator: Arc<Translator>,
    turns: VecDeque<(Arc<Call>, VecDeque<Task>)>,
    waiting: usize,
    workers: usize,
}

/// A sentence that a worker has taken.
#[derive(Debug)]
pub(super) struct Taken {
    pub call: Arc<Call>,
    pub task: Task,
}

/// What a worker does next.
pub(super) enum Next {
    /// Sentences of this group.
    Group(u64, Arc<Translator>),
    /// Nothing waits.
    Wait,
    /// The scheduler is closed.
    End,
}

impl Queue {
    pub fn new(capacity: usize) -> Self {
        Self {
            groups: Vec::new(),
            next_group: 0,
            waiting: 0,
            capacity,
            idle: 0,
            closed: false,
        }
    }

    pub fn waiting(&self) -> usize {
        self.waiting
    }

    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Adds the sentences of a call, unless as many calls wait as may. Calls count, not sentences, because they take
    /// turns: behind a long document a short text waits no longer than behind another short one.
    pub fn push(&mut self, call: Arc<Call>, tasks: Vec<Task>) -> Result<(), Full> {
        if self.refuses() {
            return Err(Full);
        }
        let count = tasks.len();
        let group = self.group(&call.translator);
        group.waiting += count;
        group.turns.push_back((call, tasks.into()));
        self.waiting += count;
        Ok(())
    }

    /// Whether a call is refused: as many wait as may, and somebody waits for each of them.
    pub fn refuses(&mut self) -> bool {
        if self.is_full() {
            self.forget_gone();
        }
        self.is_full()
    }

    fn is_full(&self) -> bool {
        let calls: usize = self.groups.iter().map(|group| group.turns.len()).sum();
        calls >= self.capacity || self.waiting >= MOST_SENTENCES
    }

    /// The group of sentences that are searched for as this translator does, which may be new.
    fn group(&mut self, translator: &Arc<Translator>) -> &mut Group {
        let fits = |group: &Group| alike(&group.translator, translator);
        let place = self.groups.iter().position(fits).unwrap_or_else(|| {
            self.groups.push(Group {
                id: self.next_group,
                translator: Arc::clone(translator),
                turns: VecDeque::new(),
                waiting: 0,
                workers: 0,
            });
            self.next_group += 1;
            self.groups.len() - 1
        });
        &mut self.groups[place]
    }

    /// Leaves out calls that nobody waits for.
    fn forget_gone(&mut self) {
        for group in &mut self.groups {
            group.turns.retain(|(call, _)| !call.is_gone());
            group.waiting = group.turns.iter().map(|(_, tasks)| tasks.len()).sum();
        }
        self.waiting = self.groups.iter().map(|group| group.waiting).sum();
    }

    /// Gives a worker the group that has the fewest workers; of equals the one that was served longest ago.
    pub fn begin(&mut self) -> Next {
        let waiting = self.groups.iter().enumerate();
        let waiting = waiting.filter(|(_, group)| group.waiting > 0);
        match waiting.min_by_key(|(_, group)| group.workers) {
            Some((place, _)) => {
                let mut group = self.groups.remove(place);
                group.workers += 1;
                let next = Next::Group(group.id, Arc::clone(&group.translator));
                self.groups.push(group);
                next
            }
            None if self.closed => Next::End,
            None => Next::Wait,
        }
    }

    /// A worker has nothing running any more.
    pub fn end(&mut self, id: u64) {
        if let Some(group) = self.groups.iter_mut().find(|group| group.id == id) {
            group.workers -= 1;
        }
        self.groups
            .retain(|group| group.workers > 0 || group.waiting > 0);
    }

    /// A worker begins or ends to wait.
    pub fn set_idle(&mut self, idle: bool) {
        if idle {
            self.idle += 1;
        } else {
            self.idle -= 1;
        }
    }

    /// Takes sentences of a group for a batch, calls in turn. A batch that runs while another group waits for a
    /// worker gets none, so that it ends.
    pub fn take(&mut self, id: u64, running: Load, taken: &mut Vec<Taken>) {
        let unserved = |group: &Group| group.waiting > 0 && group.workers == 0;
        if running.sentences > 0 && self.groups.iter().any(unserved) {
            return;
        }
        let idle = self.idle;
        let Some(group) = self.groups.iter_mut().find(|group| group.id == id) else {
            return;
        };
        let options = group.translator.options();
        let (most, most_tokens) = (options.sentences_in_batch(), options.batch_tokens);
        // Threads that wait get their part.
        let share = group.waiting.div_ceil(idle + 1);
        let most = most.min(running.sentences + share.max(1));
        let mut longest = running.longest;
        while let Some((call, mut tasks)) = group.turns.pop_front() {
            if call.is_gone() {
                group.waiting -= tasks.len();
                self.waiting -= tasks.len();
                continue;
            }
            let sentences = running.sentences + taken.len();
            let length = tasks.front().map_or(0, Task::tokens);
            longest = longest.max(length);
            let fits = sentences < most && (sentences + 1) * longest <= most_tokens;
            if !fits && sentences > 0 {
                group.turns.push_front((call, tasks));
                return;
            }
            if let Some(task) = tasks.pop_front() {
                group.waiting -= 1;
                self.waiting -= 1;
                let call = Arc::clone(&call);
                taken.push(Taken { call, task });
            }
            if !tasks.is_empty() {
                group.turns.push_back((call, tasks));
            }
        }
    }
}

impl Task {
    /// How many tokens its source has.
    fn tokens(&self) -> usize {
        let request = self.line.request(self.sentence);
        request.map_or(0, |request| request.source.len())
    }
}

/// More sentences than this take too much memory, whoever they are of.
const MOST_SENTENCES: usize = 100_000;

/// Whether sentences for both can be in one batch.
fn alike(a: &Translator, b: &Translator) -> bool {
    let search = |translator: &Translator| -> SearchOptions { translator.options().search.clone() };
    std::ptr::eq(a.model(), b.model()) && search(a) == search(b)
}
