//! What can keep the server from starting.

use std::net::SocketAddr;
use std::path::PathBuf;

/// What can keep the server from starting; each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address is in use, or not ours.
    #[error("cannot listen on {address}: {source}; --host and --port choose another address")]
    Listen {
        /// Where it should have listened.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file with the API keys cannot be read.
    #[error("cannot read the API keys in {}: {source}", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file with the API keys is empty.
    #[error("{} holds no key: write one into each line", .0.display())]
    NoKeys(PathBuf),
    /// The system gives no threads or no signals.
    #[error("cannot start the server: {0}")]
    System(#[from] std::io::Error),
    /// The models cannot be loaded.
    #[error("{0}")]
    Models(#[source] Box<dyn std::error::Error + Send + Sync>),
}
