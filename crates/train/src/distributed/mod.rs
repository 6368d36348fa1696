//! Training over several processes (ranks): data parallelism.
//!
//! Every process has the whole model and computes a share of each step's batches
//! ([`crate::data::batches::Round`]); the gradients are summed over all of them, and all take the same
//! optimizer step. Process 0 alone writes files.
//!
//! ```text
//! backward pass -> buckets -> reduce-scatter -> all-gather -> optimizer
//!                  \__________ gradients ___________/
//! ```
//!
//! - [`Communicator`] is what processes can say to each other: bytes, from each to each. [`SingleProcess`] is the
//!   communicator of one process, [`threads`] that of processes that are threads, `mpi` (a cargo feature) that of
//!   processes that `mpirun` or `srun` started; [`launch`] knows by whom a process was started.
//! - [`gradients`] sums gradients over all processes while the backward pass goes on, in [`buckets`], as numbers of
//!   [`wire`].
//! - [`round`] is what they tell each other about a round of batches besides.
//! - [`shard`] keeps the optimizer's state of each parameter in one process only (ZeRO-1).
//! - [`setup`] refuses processes that do not belong together, [`pace`] finds those that are slow.

pub mod buckets;
pub mod gradients;
pub mod launch;
#[cfg(feature = "mpi")]
pub mod mpi;
pub mod pace;
pub mod round;
pub mod setup;
pub mod shard;
mod single;
pub mod threads;
pub mod wire;

pub use single::SingleProcess;

/// What processes that train together say to each other.
///
/// Every process must begin the same exchanges; those with the same tag in the same order. A process that fails
/// must end the others, which would wait for it forever.
pub trait Communicator {
    /// Which process this is, from 0.
    fn rank(&self) -> usize;

    /// How many processes there are.
    fn size(&self) -> usize;

    /// What to call the machine of this process.
    fn host(&self) -> String;

    /// Begins to send bytes to every other process and to receive from process `p` as many as `incoming[p]` says.
    /// Several exchanges may go on at once; the tag says which of them belong together.
    fn start(&self, tag: Tag, outgoing: Outgoing, incoming: Vec<usize>) -> Box<dyn Exchange>;

    /// Whether this is the process that writes.
    fn is_root(&self) -> bool {
        self.rank() == 0
    }
}

/// Bytes on their way.
pub trait Exchange {
    /// Whether all of them have arrived, so that waiting takes no time.
    fn ready(&mut self) -> bool;

    /// Waits for them: those of every process, none of this one's own.
    fn wait(self: Box<Self>) -> Vec<Vec<u8>>;
}

/// What to send.
#[derive(Debug, Clone)]
pub enum Outgoing {
    /// The same to every other process.
    ToAll(Vec<u8>),
    /// To each process its own; what this one would send to itself is ignored.
    ToEach(Vec<Vec<u8>>),
}

impl Outgoing {
    /// What goes to a process.
    pub fn to(&self, rank: usize) -> &[u8] {
        match self {
            Outgoing::ToAll(bytes) => bytes,
            Outgoing::ToEach(all) => all.get(rank).map_or(&[], Vec::as_slice),
        }
    }
}

/// Which exchanges belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tag {
    /// One after the other.
    Ordinary,
    /// The numbers of a round of batches.
    Round,
    /// A bucket of gradients, to be summed.
    Reduce(u16),
    /// A bucket of sums, for everybody.
    Gather(u16),
}

impl Tag {
    /// As a number, different for different tags.
    pub fn number(self) -> i32 {
        match self {
            Tag::Ordinary => 0,
            Tag::Round => 1,
            Tag::Reduce(bucket) => 2 + 2 * i32::from(bucket),
            Tag::Gather(bucket) => 3 + 2 * i32::from(bucket),
        }
    }
}

/// The bytes of every process in the order of their ranks, this one's among them.
pub fn all_gather(communicator: &dyn Communicator, own: Vec<u8>) -> Vec<Vec<u8>> {
    let (rank, size) = (communicator.rank(), communicator.size());
    let length = (own.len() as u64).to_le_bytes().to_vec();
    let lengths = communicator
        .start(Tag::Ordinary, Outgoing::ToAll(length), vec![8; size])
        .wait();
    let incoming = lengths
        .iter()
        .map(|length| match length.as_slice().try_into() {
            Ok(length) => u64::from_le_bytes(length) as usize,
            // Its own, which is not sent.
            Err(_) => 0,
        });
    let mut all = communicator
        .start(
            Tag::Ordinary,
            Outgoing::ToAll(own.clone()),
            incoming.collect(),
        )
        .wait();
    all[rank] = own;
    all
}

/// The bytes of every process, in process 0; in the others nothing.
pub fn gather(communicator: &dyn Communicator, own: Vec<u8>) -> Vec<Vec<u8>> {
    let (rank, size) = (communicator.rank(), communicator.size());
    let lengths = all_gather(communicator, own.len().to_string().into_bytes());
    let mut incoming = vec![0; size];
    if rank == 0 {
        for (incoming, length) in incoming.iter_mut().zip(lengths) {
            *incoming = String::from_utf8_lossy(&length).parse().unwrap_or(0);
        }
    }
    let outgoing = Outgoing::ToEach(vec![own.clone()]);
    let mut all = communicator.start(Tag::Ordinary, outgoing, incoming).wait();
    if rank == 0 {
        all[0] = own;
    }
    all
}

/// The bytes of process 0, in each process.
pub fn broadcast(communicator: &dyn Communicator, bytes: Vec<u8>) -> Vec<u8> {
    let own = if communicator.is_root() {
        bytes
    } else {
        Vec::new()
    };
    all_gather(communicator, own).swap_remove(0)
}

/// Waits until every process is here.
pub fn barrier(communicator: &dyn Communicator) {
    all_gather(communicator, Vec::new());
}

/// Whether any process says yes: a decision that all of them take together.
pub fn any(communicator: &dyn Communicator, yes: bool) -> bool {
    let votes = all_gather(communicator, vec![u8::from(yes)]);
    votes.iter().any(|vote| vote == &[1])
}
