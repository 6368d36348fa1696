//! Processes that are threads of one program: for tests, and for trying what several processes would compute.
//!
//! Each thread has its own model; bytes go through channels. Neighbor: `mpi` does the same between real processes.

use std::{
    cell::RefCell,
    collections::{HashMap, VecDeque},
    rc::Rc,
    sync::mpsc::{Receiver, Sender, channel},
};

use super::{Communicator, Exchange, Outgoing, Tag};

type Message = (Tag, Vec<u8>);

/// One of several threads that train together.
#[derive(Debug)]
pub struct Thread {
    rank: usize,
    /// To every thread.
    to: Vec<Sender<Message>>,
    from: Vec<Rc<RefCell<Mailbox>>>,
}

/// The communicators of so many threads, each to be moved to its own: `start` makes it there.
#[derive(Debug)]
pub struct Seat {
    rank: usize,
    to: Vec<Sender<Message>>,
    from: Vec<Receiver<Message>>,
}

/// Places for so many threads.
pub fn seats(size: usize) -> Vec<Seat> {
    let mut seats: Vec<Seat> = (0..size)
        .map(|rank| Seat {
            rank,
            to: Vec::new(),
            from: Vec::new(),
        })
        .collect();
    for from in 0..size {
        for to in 0..size {
            let (sender, receiver) = channel();
            seats[from].to.push(sender);
            seats[to].from.push(receiver);
        }
    }
    seats
}

impl Seat {
    /// The communicator of the thread that takes this place.
    pub fn take(self) -> Thread {
        let mailbox = |channel| {
            Rc::new(RefCell::new(Mailbox {
                channel,
                waiting: HashMap::new(),
            }))
        };
        Thread {
            rank: self.rank,
            to: self.to,
            from: self.from.into_iter().map(mailbox).collect(),
        }
    }
}

/// What one thread has sent to another.
#[derive(Debug)]
struct Mailbox {
    channel: Receiver<Message>,
    /// What came while something else was waited for.
    waiting: HashMap<Tag, VecDeque<Vec<u8>>>,
}

impl Mailbox {
    fn take(&mut self, tag: Tag) -> Vec<u8> {
        loop {
            if let Some(bytes) = self.waiting.get_mut(&tag).and_then(VecDeque::pop_front) {
                return bytes;
            }
            let (tag, bytes) = self.channel.recv().expect("the other thread has failed");
            self.waiting.entry(tag).or_default().push_back(bytes);
        }
    }
}

impl Communicator for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn host(&self) -> String {
        "this machine".to_owned()
    }

    fn start(&self, tag: Tag, outgoing: Outgoing, incoming: Vec<usize>) -> Box<dyn Exchange> {
        for (rank, to) in self.to.iter().enumerate() {
            let bytes = outgoing.to(rank);
            if rank != self.rank && !bytes.is_empty() {
                // A thread that has failed is found by whoever waits for it.
                let _ = to.send((tag, bytes.to_vec()));
            }
        }
        let expects = |(rank, length): (usize, usize)| {
            (rank != self.rank && length > 0).then(|| (Rc::clone(&self.from[rank]), length))
        };
        Box::new(Arriving {
            tag,
            from: incoming.into_iter().enumerate().map(expects).collect(),
        })
    }
}

struct Arriving {
    tag: Tag,
    from: Vec<Option<(Rc<RefCell<Mailbox>>, usize)>>,
}

impl Exchange for Arriving {
    fn ready(&mut self) -> bool {
        false
    }

    fn wait(self: Box<Self>) -> Vec<Vec<u8>> {
        let take = |(mailbox, length): (Rc<RefCell<Mailbox>>, usize)| {
            let bytes = mailbox.borrow_mut().take(self.tag);
            assert_eq!(
                bytes.len(),
                length,
                "sent and expected under {:?}",
                self.tag
            );
            bytes
        };
        self.from
            .into_iter()
            .map(|from| from.map(take).unwrap_or_default())
            .collect()
    }
}
