//! Answers: JSON, text and files.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;

/// A body of a type.
pub fn of_type(kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// JSON.
pub fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(text) => of_type("application/json", text),
        Err(_) => status(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

/// Nothing but a status.
pub fn status(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// A file that a browser stores and never shows: what was translated may be a page with scripts.
pub fn file(name: &str, bytes: Vec<u8>) -> Response {
    let mut response = of_type("application/octet-stream", bytes);
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name: String = name.chars().map(safe).collect();
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
        response
            .headers_mut()
            .insert(header::CONTENT_DISPOSITION, value);
    }
    response
}

/// A page; `script` and `style` say where a page may take these from.
pub fn page(html: impl Into<Body>, script: &str, style: &str) -> Response {
    let mut response = of_type("text/html; charset=utf-8", html);
    let policy = format!(
        "default-src 'none'; script-src {script}; style-src {style}; img-src 'self' data:; connect-src 'self'; \
         frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    // A page that opened this one, or is opened by it, gets no hold of it.
    let alone = HeaderValue::from_static("same-origin");
    headers.insert("cross-origin-opener-policy", alone);
    response
}
