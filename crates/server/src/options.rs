//! How the server behaves: where it listens, who may use it, and what is too much.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How the server behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen.
    pub address: SocketAddr,
    /// A file with an API key in each line; without one, everybody may translate.
    pub key_file: Option<PathBuf>,
    /// Names by which the server may be addressed, besides its own on this machine.
    pub allowed_hosts: Vec<String>,
    /// The folder of a training run to watch.
    pub run: Option<PathBuf>,
    /// Threads that search.
    pub threads: usize,
    /// What is too much.
    pub limits: Limits,
}

/// What is too much.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a request.
    pub body: usize,
    /// Characters to translate in a request.
    pub characters: usize,
    /// Texts in a request.
    pub texts: usize,
    /// Sentences in a request.
    pub sentences: usize,
    /// Alternative translations.
    pub alternatives: usize,
    /// Requests whose sentences wait for a batch.
    pub queue: usize,
    /// Bytes of the cache of recent sentences; 0 turns it off.
    pub cache: usize,
    /// Connections at a time.
    pub connections: usize,
    /// Time for the headers of a request.
    pub header_time: Duration,
    /// Time between two pieces of a body, and for an answer to be taken.
    pub body_time: Duration,
    /// Time for a translation, in the queue and in search.
    pub translation_time: Duration,
    /// Time that open requests have when the server ends.
    pub drain_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 4 << 20,
            characters: 200_000,
            texts: 1000,
            sentences: 20_000,
            alternatives: 10,
            queue: 512,
            cache: 16 << 20,
            connections: 4096,
            header_time: Duration::from_secs(10),
            body_time: Duration::from_secs(15),
            translation_time: Duration::from_secs(60),
            drain_time: Duration::from_secs(30),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], 5000)),
            key_file: None,
            allowed_hosts: Vec::new(),
            run: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            limits: Limits::default(),
        }
    }
}
