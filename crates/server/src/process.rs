//! The server as a process: its threads, its signals, its limit of open files.
//!
//! SIGTERM and Ctrl-C drain, a second one ends at once; SIGHUP loads models and keys again.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;

use crate::Server;
use crate::app::{App, Loader};
use crate::error::ServerError;
use crate::options::Options;

/// What happens to a server, for whoever tells people about it.
#[derive(Debug)]
pub enum Event {
    /// Connections are accepted from now on.
    Listening(SocketAddr),
    /// Models and keys were loaded again.
    Reloaded,
    /// They could not be loaded, and those from before are used.
    NotReloaded(ServerError),
    /// It was told to end.
    Draining,
}

/// Runs a server until a signal ends it.
pub fn run(
    options: Options,
    loader: Loader,
    tell: impl Fn(Event) + Send + Sync + 'static,
) -> Result<(), ServerError> {
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // Connections cost little beside search, which has threads of its own.
        .worker_threads(2)
        .enable_all()
        .build()?;
    let ended = runtime.block_on(async {
        let server = Server::bind(options, loader).await?;
        tell(Event::Listening(server.address()?));
        let (stop, stopped) = watch::channel(false);
        let app = Arc::clone(server.app());
        tokio::spawn(signals(app, stop, Arc::new(tell)));
        server.run(stopped).await
    });
    // Work that nobody waits for any more does not keep the process.
    runtime.shutdown_background();
    ended
}

#[cfg(unix)]
async fn signals(
    app: Arc<App>,
    stop: watch::Sender<bool>,
    tell: Arc<impl Fn(Event) + Send + Sync + 'static>,
) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
        signal(SignalKind::hangup()),
    ) else {
        return;
    };
    loop {
        let again = tokio::select! {
            _ = interrupt.recv() => false,
            _ = terminate.recv() => false,
            _ = hangup.recv() => true,
        };
        if again {
            reload(&app, &tell);
        } else if stop.send_replace(true) {
            // The second time somebody means it.
            std::process::exit(130);
        } else {
            tell(Event::Draining);
        }
    }
}

#[cfg(not(unix))]
async fn signals(
    _app: Arc<App>,
    stop: watch::Sender<bool>,
    tell: Arc<impl Fn(Event) + Send + Sync + 'static>,
) {
    while tokio::signal::ctrl_c().await.is_ok() {
        if stop.send_replace(true) {
            std::process::exit(130);
        }
        tell(Event::Draining);
    }
}

#[cfg(unix)]
fn reload(app: &Arc<App>, tell: &Arc<impl Fn(Event) + Send + Sync + 'static>) {
    let (app, tell) = (Arc::clone(app), Arc::clone(tell));
    tokio::task::spawn_blocking(move || match app.load() {
        Ok(()) => tell(Event::Reloaded),
        Err(error) => tell(Event::NotReloaded(error)),
    });
}

/// A connection is an open file, and many systems allow a process no more than 1,024 unless it asks.
#[cfg(unix)]
fn raise_file_limit() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: both calls read or write this one structure, and nothing else.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max.min(1 << 16);
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

#[cfg(not(unix))]
fn raise_file_limit() {}
