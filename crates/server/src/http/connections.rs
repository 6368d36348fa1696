//! Connections: accepted while there is room, served with timeouts, and ended in order.
//!
//! To drain is to accept no more, to answer what has come, and to tell each client with its answer that the connection
//! ends. A connection on which nothing happens is closed a moment later, so that a request that was on its way still
//! gets its answer, even if that is a refusal.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::client::Peer;
use super::timed::Timed;
use crate::app::App;

/// Serves until `stop` turns true, then drains.
pub async fn serve(
    app: Arc<App>,
    router: Router,
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
) {
    let (close, closing) = watch::channel(false);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => admit(&app, &router, stream, &closing, &mut connections),
                // Out of file descriptors, for example: some connection will end.
                Err(_) => sleep(Duration::from_millis(20)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    app.drain();
    refuse_new(&listener);
    // What the system has accepted for us is ours to answer.
    while let Ok(Ok((stream, _))) = timeout(Duration::from_millis(5), listener.accept()).await {
        admit(&app, &router, stream, &closing, &mut connections);
    }
    drop(listener);
    let ended = async {
        let idle = sleep(IDLE_TIME);
        tokio::pin!(idle);
        loop {
            tokio::select! {
                () = &mut idle, if !*closing.borrow() => { let _ = close.send(true); }
                next = connections.join_next() => if next.is_none() { return },
            }
        }
    };
    let _ = timeout(app.options.limits.drain_time, ended).await;
}

/// How long a connection on which nothing happens stays open when the server drains.
const IDLE_TIME: Duration = Duration::from_millis(1000);

/// From now on the system begins no new connection to this socket, and completes those that have begun. Without that,
/// one might be completed between the last `accept` and the end of the socket, and be lost with a request in it.
#[cfg(target_os = "linux")]
fn refuse_new(listener: &TcpListener) {
    use libc::{BPF_ABS, BPF_ALU, BPF_AND, BPF_B, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET};
    use std::os::fd::AsRawFd;
    const FLAGS: u32 = 13; // their place in the TCP header, where the filter's data begin
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    let step = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    // A packet filter that drops a connection's first packet (SYN without ACK) and lets all others pass.
    let mut steps = [
        step(BPF_LD | BPF_B | BPF_ABS, 0, 0, FLAGS),
        step(BPF_ALU | BPF_AND | BPF_K, 0, 0, SYN | ACK),
        step(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYN),
        step(BPF_RET | BPF_K, 0, 0, 0),
        step(BPF_RET | BPF_K, 0, 0, u32::MAX),
    ];
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the program, and both pointers are to values that live until then.
    unsafe {
        libc::setsockopt(
            listener.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        );
    }
}

#[cfg(not(target_os = "linux"))]
fn refuse_new(_: &TcpListener) {}

/// Serves a connection, or says that there are too many.
fn admit(
    app: &Arc<App>,
    router: &Router,
    stream: TcpStream,
    closing: &watch::Receiver<bool>,
    connections: &mut JoinSet<()>,
) {
    // Those that have ended no longer count.
    while connections.try_join_next().is_some() {}
    if connections.len() >= app.options.limits.connections {
        // Whoever cannot take these few bytes at once does without.
        connections.spawn(async move {
            let mut stream = stream;
            let _ = timeout(Duration::from_millis(100), stream.write_all(TOO_MANY)).await;
        });
        return;
    }
    let (app, router, closing) = (Arc::clone(app), router.clone(), closing.clone());
    connections.spawn(async move { connection(app, router, stream, closing).await });
}

const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 2\r\nconnection: close\r\n\
    content-type: application/json\r\ncontent-length: 33\r\n\r\n{\"error\": \"too many connections\"}";

async fn connection(
    app: Arc<App>,
    router: Router,
    stream: TcpStream,
    mut closing: watch::Receiver<bool>,
) {
    let _connection = app.metrics.connection_opened();
    let _ = stream.set_nodelay(true);
    let limits = &app.options.limits;
    let peer = stream.peer_addr().ok().map(|peer| Peer(peer.ip()));
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        router.call(request)
    });
    let stream = TokioIo::new(Timed::new(stream, limits.body_time));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_headers(100)
        .max_buf_size(64 << 10)
        .serve_connection(stream, service);
    tokio::pin!(connection);
    let closes = async {
        let _ = closing.wait_for(|closing| *closing).await;
    };
    tokio::select! {
        // First what has arrived, so that a request is never taken for nothing.
        biased;
        _ = &mut connection => return,
        () = closes => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
