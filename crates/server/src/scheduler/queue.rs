//! The waiting sentences: in groups that can be in one batch, within a group client by client in turn, and within a
//! client call by call.
//!
//! It counts and never blocks; [`super`] has it in a mutex.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use attentive_runtime::Translator;
use attentive_runtime::search::Load;

use super::{Call, Full, Task};
use crate::http::client::Client;

/// All sentences that no worker has taken yet.
#[derive(Debug)]
pub(super) struct Queue {
    /// The one that was served last is at the end.
    groups: Vec<Group>,
    next_group: u64,
    /// What waits in all groups, and of whom.
    waiting: Waiting,
    clients: HashMap<Client, Waiting>,
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
    turns: VecDeque<Turn>,
    /// Sentences.
    waiting: usize,
    workers: usize,
}

/// The calls of a client, whose turn it is at the front.
#[derive(Debug)]
struct Turn {
    client: Client,
    calls: VecDeque<(Arc<Call>, VecDeque<Task>)>,
}

/// How much waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Waiting {
    calls: usize,
    sentences: usize,
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
            waiting: Waiting::default(),
            clients: HashMap::new(),
            capacity,
            idle: 0,
            closed: false,
        }
    }

    /// How many sentences wait.
    pub fn waiting(&self) -> usize {
        self.waiting.sentences
    }

    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Adds the sentences of a call, unless it is refused. Calls count, not sentences, because they take turns:
    /// behind a long document a short text waits no longer than behind another short one.
    pub fn push(&mut self, call: Arc<Call>, tasks: Vec<Task>) -> Result<(), Full> {
        let client = call.client;
        if tasks.is_empty() {
            return Ok(());
        }
        if self.refuses(client) {
            return Err(Full);
        }
        self.count(client, |waiting| {
            waiting.calls += 1;
            waiting.sentences += tasks.len();
        });
        let group = self.group(&call.translator);
        group.waiting += tasks.len();
        let call = (call, tasks.into());
        match group.turns.iter_mut().find(|turn| turn.client == client) {
            Some(turn) => turn.calls.push_back(call),
            None => group.turns.push_back(Turn {
                client,
                calls: VecDeque::from([call]),
            }),
        }
        Ok(())
    }

    /// Whether a call of this client is refused: as many wait as may, somebody waits for each of them, and this
    /// client has its share of them. So nobody can fill the queue for all others.
    pub fn refuses(&mut self, client: Client) -> bool {
        if !self.is_full() {
            return false;
        }
        self.forget_gone();
        if !self.is_full() {
            return false;
        }
        let own = self.clients.get(&client).copied().unwrap_or_default();
        let clients = self.clients.len() + usize::from(own == Waiting::default());
        own.calls >= self.capacity / clients || own.sentences >= MOST_SENTENCES / clients
    }

    fn is_full(&self) -> bool {
        self.waiting.calls >= self.capacity || self.waiting.sentences >= MOST_SENTENCES
    }

    /// Changes what waits of a client.
    fn count(&mut self, client: Client, change: impl Fn(&mut Waiting)) {
        change(&mut self.waiting);
        let own = self.clients.entry(client).or_default();
        change(own);
        if *own == Waiting::default() {
            self.clients.remove(&client);
        }
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
        (self.waiting, self.clients) = Default::default();
        for group in &mut self.groups {
            group.waiting = 0;
            for turn in &mut group.turns {
                turn.calls.retain(|(call, _)| !call.is_gone());
                let sentences: usize = turn.calls.iter().map(|(_, tasks)| tasks.len()).sum();
                group.waiting += sentences;
                for waiting in [
                    &mut self.waiting,
                    self.clients.entry(turn.client).or_default(),
                ] {
                    waiting.calls += turn.calls.len();
                    waiting.sentences += sentences;
                }
            }
            group.turns.retain(|turn| !turn.calls.is_empty());
        }
        self.clients.retain(|_, own| *own != Waiting::default());
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

    /// Takes sentences of a group for a batch, clients in turn. A batch that runs while another group waits for a
    /// worker gets none, so that it ends.
    pub fn take(&mut self, id: u64, running: Load, taken: &mut Vec<Taken>) {
        let unserved = |group: &Group| group.waiting > 0 && group.workers == 0;
        if running.sentences > 0 && self.groups.iter().any(unserved) {
            return;
        }
        let idle = self.idle;
        let Some(place) = self.groups.iter().position(|group| group.id == id) else {
            return;
        };
        let options = self.groups[place].translator.options();
        let (most, most_tokens) = (options.sentences_in_batch(), options.batch_tokens);
        // Threads that wait get their part.
        let share = self.groups[place].waiting.div_ceil(idle + 1);
        let most = most.min(running.sentences + share.max(1));
        let mut longest = running.longest;
        loop {
            let sentences = running.sentences + taken.len();
            let fits = |task: &Task| {
                let longest = longest.max(task.tokens());
                sentences == 0 || (sentences < most && (sentences + 1) * longest <= most_tokens)
            };
            let Some(next) = self.next(place, fits) else {
                return;
            };
            longest = longest.max(next.task.tokens());
            taken.push(next);
        }
    }

    /// The sentence of a group whose turn it is, if it fits.
    fn next(&mut self, group: usize, fits: impl Fn(&Task) -> bool) -> Option<Taken> {
        loop {
            let group = &mut self.groups[group];
            let mut turn = group.turns.pop_front()?;
            let (call, mut tasks) = turn.calls.pop_front()?;
            let client = turn.client;
            let mut next = None;
            let left = if call.is_gone() {
                tasks.len()
            } else if tasks.front().is_some_and(&fits) {
                next = tasks.pop_front();
                1
            } else {
                turn.calls.push_front((call, tasks));
                group.turns.push_front(turn);
                return None;
            };
            group.waiting -= left;
            let done = next.is_none() || tasks.is_empty();
            if !done {
                turn.calls.push_back((Arc::clone(&call), tasks));
            }
            if !turn.calls.is_empty() {
                group.turns.push_back(turn);
            }
            self.count(client, |waiting| {
                waiting.calls -= usize::from(done);
                waiting.sentences -= left;
            });
            if let Some(task) = next {
                return Some(Taken { call, task });
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
    std::ptr::eq(a, b)
        || std::ptr::eq(a.model(), b.model()) && a.options().search == b.options().search
}

#[cfg(test)]
mod tests {
    use attentive_model::{ModelDir, fake_dir};
    use attentive_runtime::cpu::Compute;
    use attentive_runtime::translator::TranslatorOptions;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::super::Answer;
    use super::*;

    /// A queue for one model, and a way to ask.
    struct Scene {
        queue: Queue,
        translator: Arc<Translator>,
        waiting: Vec<UnboundedReceiver<Answer>>,
    }

    impl Scene {
        fn new(capacity: usize) -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            fake_dir::write(folder.path()).expect("written");
            let directory = ModelDir::open(folder.path()).expect("sound");
            let options = TranslatorOptions::default();
            let translator = Translator::of_model(directory, Compute::Auto, options);
            Self {
                queue: Queue::new(capacity),
                translator: Arc::new(translator.expect("sound")),
                waiting: Vec::new(),
            }
        }

        /// A call of a client with so many sentences, which are known by their places from `first` on.
        fn ask(&mut self, client: &str, first: usize, sentences: usize) -> Result<(), Full> {
            let (answers, receiver) = unbounded_channel();
            let call = Arc::new(Call {
                client: Client::of_key(client),
                translator: Arc::clone(&self.translator),
                answers,
            });
            let line = Arc::new(self.translator.split(&"a b"));
            let task = |place| Task {
                place,
                line: Arc::clone(&line),
                sentence: 0,
                prefix: Vec::new(),
                details: None,
            };
            let tasks = (first..first + sentences).map(task).collect();
            self.queue.push(call, tasks)?;
            self.waiting.push(receiver);
            Ok(())
        }

        /// The places in the order in which a worker gets them.
        fn order(&mut self) -> Vec<usize> {
            let Next::Group(id, _) = self.queue.begin() else {
                return Vec::new();
            };
            let mut order = Vec::new();
            let nothing = Load {
                sentences: 0,
                longest: 0,
            };
            loop {
                let mut taken = Vec::new();
                self.queue.take(id, nothing, &mut taken);
                if taken.is_empty() {
                    self.queue.end(id);
                    return order;
                }
                order.extend(taken.iter().map(|taken| taken.task.place));
            }
        }

        fn assert_empty(&self) {
            assert_eq!(self.queue.waiting, Waiting::default());
            assert!(self.queue.clients.is_empty() && self.queue.groups.is_empty());
        }
    }

    #[test]
    fn clients_take_turns_and_so_do_their_calls() {
        let mut scene = Scene::new(9);
        scene.ask("many", 0, 3).expect("room");
        scene.ask("many", 10, 2).expect("room");
        scene.ask("many", 20, 1).expect("room");
        scene.ask("one", 30, 3).expect("room");
        // However often the first has asked, the other has every second turn.
        assert_eq!(scene.order(), [0, 30, 10, 31, 20, 32, 1, 11, 2]);
        scene.assert_empty();
    }

    #[test]
    fn nobody_fills_the_queue_for_the_others() {
        let mut scene = Scene::new(4);
        for place in 0..4 {
            scene.ask("many", place, 1).expect("room");
        }
        assert!(scene.ask("many", 4, 1).is_err());
        // Another client has a share of its own, and a third one.
        scene.ask("one", 10, 1).expect("its share");
        scene.ask("one", 11, 1).expect("its share");
        assert!(scene.ask("one", 12, 1).is_err());
        scene.ask("two", 20, 1).expect("its share");
        assert!(scene.ask("two", 21, 1).is_err());
        assert!(scene.ask("many", 5, 1).is_err());
        assert_eq!(scene.order().len(), 7);
        scene.assert_empty();
    }

    #[test]
    fn what_nobody_waits_for_is_left_out_and_makes_room() {
        let mut scene = Scene::new(2);
        scene.ask("a", 0, 50).expect("room");
        scene.ask("a", 100, 1).expect("room");
        assert!(scene.ask("a", 200, 1).is_err());
        scene.waiting.remove(0);
        scene.ask("a", 200, 1).expect("the first is gone");
        assert_eq!(scene.queue.waiting(), 2);
        scene.waiting.remove(0);
        assert_eq!(scene.order(), [200]);
        scene.assert_empty();
    }
}
