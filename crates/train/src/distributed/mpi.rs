//! The communicator of processes that `mpirun` or `srun` started: MPI (Open MPI, MPICH).
//!
//! One thread of each process alone calls MPI. It moves bytes while the others compute: most MPI libraries do
//! nothing between two calls, so a message that nobody asks about does not move. And MPI's own waiting keeps a core
//! busy, which here is the core that computes; this thread sleeps between two looks instead.

use std::{
    os::raw::c_int,
    ptr::null_mut,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use mpi_sys::{
    MPI_Abort, MPI_Comm_rank, MPI_Comm_size, MPI_Finalize, MPI_Get_processor_name, MPI_Init_thread,
    MPI_Irecv, MPI_Isend, MPI_Request, MPI_Testall, RSMPI_COMM_WORLD, RSMPI_MAX_PROCESSOR_NAME,
    RSMPI_REQUEST_NULL, RSMPI_STATUSES_IGNORE, RSMPI_THREAD_FUNNELED, RSMPI_UINT8_T,
};

use super::{Communicator, Exchange, Outgoing, Tag};

/// One of the processes that were started together.
#[derive(Debug)]
pub struct Mpi {
    rank: usize,
    size: usize,
    host: String,
    jobs: Sender<Job>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread that talks to MPI can be asked for.
#[derive(Debug)]
enum Job {
    Exchange {
        tag: Tag,
        outgoing: Outgoing,
        incoming: Vec<usize>,
        reply: Sender<Vec<Vec<u8>>>,
    },
    Abort(i32),
    End,
}

/// Bytes of a message, at most: MPI counts them with 31 bits.
const LONGEST_MESSAGE: usize = 1 << 30;

/// How long to look for messages without a pause, and the pause. A bucket takes milliseconds on its way; each look takes
/// a core from those that compute.
const AWAKE: Duration = Duration::from_micros(30);
const PAUSE: Duration = Duration::from_millis(1);

impl Mpi {
    /// Joins the other processes. Nothing if MPI cannot be used by this one.
    pub fn start() -> Option<Self> {
        let (jobs, receiver) = channel();
        let (sender, place) = channel();
        let thread = std::thread::spawn(move || {
            let Some(place) = initialize() else {
                return;
            };
            let rank = place.0;
            if sender.send(place).is_ok() {
                serve(&receiver, rank);
            }
            // SAFETY: this thread has initialized MPI, and nothing is going on any more.
            unsafe {
                MPI_Finalize();
            }
        });
        let (rank, size, host) = place.recv().ok()?;
        Some(Self {
            rank,
            size,
            host,
            jobs,
            thread: Some(thread),
        })
    }

    /// Ends all processes at once.
    pub fn abort(&self, code: i32) -> ! {
        let _ = self.jobs.send(Job::Abort(code));
        // MPI ends this process too; should it not, nobody may wait for this one.
        std::thread::sleep(Duration::from_secs(5));
        std::process::exit(code)
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.abort(101);
        }
        let _ = self.jobs.send(Job::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Communicator for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn host(&self) -> String {
        self.host.clone()
    }

    fn start(&self, tag: Tag, outgoing: Outgoing, mut incoming: Vec<usize>) -> Box<dyn Exchange> {
        incoming[self.rank] = 0;
        let (reply, arrived) = channel();
        let job = Job::Exchange {
            tag,
            outgoing,
            incoming,
            reply,
        };
        self.jobs
            .send(job)
            .expect("the thread that talks to MPI runs");
        Box::new(Arriving {
            arrived,
            found: None,
        })
    }
}

struct Arriving {
    arrived: Receiver<Vec<Vec<u8>>>,
    found: Option<Vec<Vec<u8>>>,
}

impl Exchange for Arriving {
    fn ready(&mut self) -> bool {
        if self.found.is_none() {
            self.found = self.arrived.try_recv().ok();
        }
        self.found.is_some()
    }

    fn wait(self: Box<Self>) -> Vec<Vec<u8>> {
        match self.found {
            Some(found) => found,
            None => self
                .arrived
                .recv()
                .expect("the thread that talks to MPI runs"),
        }
    }
}

/// Joins the others: the rank of this process, how many there are, the name of this machine.
fn initialize() -> Option<(usize, usize, String)> {
    let (mut provided, mut rank, mut size, mut length) = (0, 0, 0, 0);
    // SAFETY: MPI takes no arguments of the program but by null pointers, fills the numbers, and writes at most so many
    // letters as it says.
    let name = unsafe {
        if MPI_Init_thread(null_mut(), null_mut(), RSMPI_THREAD_FUNNELED, &mut provided) != 0 {
            return None;
        }
        let mut name = vec![0; RSMPI_MAX_PROCESSOR_NAME as usize + 1];
        MPI_Comm_rank(RSMPI_COMM_WORLD, &mut rank);
        MPI_Comm_size(RSMPI_COMM_WORLD, &mut size);
        MPI_Get_processor_name(name.as_mut_ptr(), &mut length);
        name
    };
    let name = name
        .iter()
        .take(length as usize)
        .map(|letter| *letter as u8);
    let name = String::from_utf8_lossy(&name.collect::<Vec<u8>>()).into_owned();
    Some((rank as usize, size as usize, name))
}

/// An exchange that is going on: MPI reads and writes these buffers.
struct Going {
    requests: Vec<MPI_Request>,
    _outgoing: Outgoing,
    incoming: Vec<Vec<u8>>,
    reply: Sender<Vec<Vec<u8>>>,
}

/// Does what it is asked for until the end.
fn serve(jobs: &Receiver<Job>, rank: usize) {
    let mut going: Vec<Going> = Vec::new();
    let mut last = Instant::now();
    loop {
        let job = if going.is_empty() {
            jobs.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else if last.elapsed() > AWAKE {
            jobs.recv_timeout(PAUSE)
        } else {
            jobs.try_recv().map_err(|error| match error {
                TryRecvError::Empty => RecvTimeoutError::Timeout,
                TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
            })
        };
        match job {
            Ok(Job::Exchange {
                tag,
                outgoing,
                incoming,
                reply,
            }) => {
                going.push(post(rank, tag, outgoing, incoming, reply));
                last = Instant::now();
            }
            // SAFETY: MPI was initialized by this thread.
            Ok(Job::Abort(code)) => unsafe {
                MPI_Abort(RSMPI_COMM_WORLD, code);
            },
            Ok(Job::End) | Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let before = going.len();
        for exchange in going.extract_if(.., |exchange| is_complete(&mut exchange.requests)) {
            // Whoever asked may have failed since.
            let _ = exchange.reply.send(exchange.incoming);
        }
        if going.len() < before {
            last = Instant::now();
        }
    }
}

/// Hands the messages of an exchange to MPI.
fn post(
    rank: usize,
    tag: Tag,
    outgoing: Outgoing,
    incoming: Vec<usize>,
    reply: Sender<Vec<Vec<u8>>>,
) -> Going {
    let mut requests = Vec::new();
    let mut incoming: Vec<Vec<u8>> = incoming.into_iter().map(|length| vec![0; length]).collect();
    for (from, bytes) in incoming.iter_mut().enumerate() {
        for piece in bytes.chunks_mut(LONGEST_MESSAGE) {
            requests.push(request(|request| {
                // SAFETY: the buffer is on the heap and lives in `Going` until the request is complete; this is the
                // thread that initialized MPI.
                unsafe {
                    MPI_Irecv(
                        piece.as_mut_ptr().cast(),
                        piece.len() as c_int,
                        RSMPI_UINT8_T,
                        from as c_int,
                        tag.number(),
                        RSMPI_COMM_WORLD,
                        request,
                    );
                }
            }));
        }
    }
    for to in 0..incoming.len() {
        // Nobody expects anything of itself.
        if to == rank {
            continue;
        }
        for piece in outgoing.to(to).chunks(LONGEST_MESSAGE) {
            requests.push(request(|request| {
                // SAFETY: as above; MPI only reads this one.
                unsafe {
                    MPI_Isend(
                        piece.as_ptr().cast(),
                        piece.len() as c_int,
                        RSMPI_UINT8_T,
                        to as c_int,
                        tag.number(),
                        RSMPI_COMM_WORLD,
                        request,
                    );
                }
            }));
        }
    }
    Going {
        requests,
        _outgoing: outgoing,
        incoming,
        reply,
    }
}

fn request(begin: impl FnOnce(*mut MPI_Request)) -> MPI_Request {
    // SAFETY: a constant of the library.
    let mut request = unsafe { RSMPI_REQUEST_NULL };
    begin(&mut request);
    request
}

fn is_complete(requests: &mut [MPI_Request]) -> bool {
    let mut complete = 0;
    // SAFETY: the requests are those that MPI gave; complete ones it replaces by nothing.
    unsafe {
        MPI_Testall(
            requests.len() as c_int,
            requests.as_mut_ptr(),
            &mut complete,
            RSMPI_STATUSES_IGNORE,
        );
    }
    complete != 0
}
