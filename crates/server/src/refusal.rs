//! Why a request gets no translation: a status, a message, and when to try again.
//!
//! Each API has its own form for it: `{"error": ...}` or, for DeepL's clients, `{"message": ...}`.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::json;

/// Why there is no translation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// No key, or a wrong one.
    #[error("Invalid API key")]
    Forbidden,
    /// Something that this server does not do for anyone.
    #[error("{0}")]
    Disabled(&'static str),
    /// The server is known by other names.
    #[error("this server is not known as {0}: start it with --allow-host to allow that name")]
    WrongHost(String),
    /// There is no such thing.
    #[error("{0}")]
    NotFound(&'static str),
    /// The path is right, the method is not.
    #[error("Method Not Allowed")]
    Method,
    /// The body is too long.
    #[error("the request is longer than {0} bytes")]
    TooLarge(usize),
    /// The body came too slowly.
    #[error("the request did not arrive in time")]
    Slow,
    /// Something is not ready yet.
    #[error("{0}")]
    NotReady(&'static str),
    /// The queue is full.
    #[error("Slowdown: the server is busy; try again in a few seconds")]
    Busy,
    /// The server is about to end.
    #[error("the server is shutting down")]
    Draining,
    /// The translation took too long.
    #[error("the translation took too long; try again, or send less text")]
    TimedOut,
    /// Our own fault.
    #[error("the translation failed")]
    Failed,
}

impl Refusal {
    /// The status.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Forbidden | Self::Disabled(_) | Self::WrongHost(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Busy => StatusCode::TOO_MANY_REQUESTS,
            Self::NotReady(_) | Self::Draining | Self::TimedOut => StatusCode::SERVICE_UNAVAILABLE,
            Self::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The answer of LibreTranslate's API, and of ours.
    pub fn error(&self) -> Response {
        self.response("error")
    }

    /// The answer of DeepL's API.
    pub fn message(&self) -> Response {
        self.response("message")
    }

    fn response(&self, key: &str) -> Response {
        let body = json!({ key: self.to_string() });
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        let retry = match self {
            Self::Busy | Self::NotReady(_) => Some("2"),
            Self::Draining | Self::TimedOut => Some("10"),
            _ => None,
        };
        if let Some(seconds) = retry {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(seconds));
        }
        response
    }
}

/// A request that makes no sense.
pub fn invalid(problem: impl Into<String>) -> Refusal {
    Refusal::Invalid(problem.into())
}
