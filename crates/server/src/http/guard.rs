//! What holds for every request and every answer: names of this server, cross-origin headers, and that the answer to
//! a panic is an answer.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt;

use super::client::{Client, Peer};
use super::{answer, body};
use crate::app::App;
use crate::refusal::Refusal;

/// Checks the request, lets it be answered, counts it and adds the headers.
pub async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let _request = app.metrics.request_begun();
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map_or("other", MatchedPath::as_str).to_owned();
    let mut response = match check_host(&app, &request) {
        Err(refusal) => refusal.error(),
        Ok(()) if request.method() == Method::OPTIONS => answer::status(StatusCode::NO_CONTENT),
        Ok(()) => match check_room(&app, queued_for(&app, &path, &request)).await {
            Err(refusal) => {
                body::forget(request.into_body()).await;
                if path.starts_with("/v2/") {
                    refusal.message()
                } else {
                    refusal.error()
                }
            }
            Ok(()) => {
                let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
                answered.unwrap_or_else(|_panic| Refusal::Failed.error())
            }
        },
    };
    let headers = response.headers_mut();
    let mut set = |name, value| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    set(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
    set(header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST");
    set(
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        "Authorization, Content-Type",
    );
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "no-referrer");
    set(header::CACHE_CONTROL, "no-store");
    if app.is_draining() {
        set(header::CONNECTION, "close");
    }
    let status = response.status().as_u16();
    if response.status() == StatusCode::TOO_MANY_REQUESTS {
        app.metrics.refused();
    }
    app.metrics.request_ended(&path, status, began.elapsed());
    response
}

/// Paths whose requests go to the queue.
const QUEUED: [&str; 6] = [
    "/translate",
    "/translate_file",
    "/v1/alternatives",
    "/v1/translate",
    "/v2/document",
    "/v2/translate",
];

/// For whom a request would go to the queue, if it would and its body is not needed to know that.
fn queued_for(app: &App, path: &str, request: &Request) -> Option<Client> {
    // Where keys are needed, the body may hold the key.
    if app.needs_key() || request.method() != Method::POST || !QUEUED.contains(&path) {
        return None;
    }
    let peer = request.extensions().get::<Peer>().copied();
    Some(Client::of_address(peer, request.headers()))
}

/// Refuses what would find the queue full before its body is read: when most are refused, refusing must be cheap.
async fn check_room(app: &App, client: Option<Client>) -> Result<(), Refusal> {
    match client {
        Some(client) => app.check_room(client).await,
        None => Ok(()),
    }
}

/// A server on this machine alone must be addressed as such: a page of another site whose name was made to mean this
/// machine (DNS rebinding) would otherwise be of the same origin.
fn check_host(app: &App, request: &Request) -> Result<(), Refusal> {
    let options = &app.options;
    if !options.address.ip().is_loopback() && options.allowed_hosts.is_empty() {
        return Ok(());
    }
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok());
    let host = host.or_else(|| {
        request
            .uri()
            .authority()
            .map(|authority| authority.as_str())
    });
    // A client of HTTP/1.0 that names no host is no browser.
    let Some(host) = host else {
        return Ok(());
    };
    let name = without_port(host).to_lowercase();
    let address: Option<IpAddr> = name.trim_matches(['[', ']']).parse().ok();
    let own = name == "localhost"
        || address.is_some_and(|ip| ip.is_loopback() || ip == options.address.ip());
    let allowed = |host: &String| host.eq_ignore_ascii_case(&name);
    if own || options.allowed_hosts.iter().any(allowed) {
        Ok(())
    } else {
        Err(Refusal::WrongHost(name.chars().take(100).collect()))
    }
}

/// `[::1]` of `[::1]:5000`.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.is_empty() => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_no_part_of_a_name() {
        for (host, name) in [
            ("localhost:5000", "localhost"),
            ("[::1]:5000", "[::1]"),
            ("example.org", "example.org"),
            ("127.0.0.1", "127.0.0.1"),
        ] {
            assert_eq!(without_port(host), name);
        }
    }
}
