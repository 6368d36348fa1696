//! Requests to the hub: redirects, the token, and errors that may pass.
//!
//! The client of `hf-hub` is not used, only its knowledge of the cache's layout. Version 0.5 sends the token to whatever
//! server the hub redirects to, follows relative redirects without end, makes paths out of the ETag and the commit
//! that the server sends, appends whatever comes to the file, and checks no checksum; a second process that wants
//! the same file gives up after five seconds. Version 1.0 neither resumes nor checks, and brings some 280 crates.
//! So requests are made here, with `ureq`, which waits for answers in the calling thread and needs no system
//! library. `repository` and `download` say what to ask for.

use std::io::Read;
use std::thread;
use std::time::Duration;

use ureq::http::{Response, StatusCode, Uri, header};
use ureq::{Agent, Body};

use crate::error::{HubError, Result};
use crate::fetch::Event;
use crate::name::Repository;
use crate::settings::Settings;

/// Who asks the hub.
pub(crate) struct Client<'a> {
    agent: Agent,
    pub settings: &'a Settings,
    observe: &'a dyn Fn(Event<'_>),
}

/// Which redirects are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follow {
    /// Those to the hub itself: what it says about a file stands in its own answer.
    Hub,
    /// Those to any server.
    Anywhere,
}

impl<'a> Client<'a> {
    pub fn new(settings: &'a Settings, observe: &'a dyn Fn(Event<'_>)) -> Self {
        let config = Agent::config_builder()
            .user_agent(concat!("attentive/", env!("CARGO_PKG_VERSION")))
            // Numbers of bytes are those of the file, not of something compressed.
            .accept_encoding("identity")
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_resolve(Some(PATIENCE))
            .timeout_connect(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .timeout_per_read(Some(PATIENCE));
        Self {
            agent: config.build().into(),
            settings,
            observe,
        }
    }

    pub fn observe(&self, event: Event<'_>) {
        (self.observe)(event);
    }

    /// What the hub says about a file.
    pub fn head(&self, url: &str) -> Result<Response<Body>> {
        self.request(url, Follow::Hub, None)
    }

    /// The bytes of a file from one on, from whichever server has them.
    pub fn get_from(&self, url: &str, first: u64) -> Result<Response<Body>> {
        self.request(url, Follow::Anywhere, Some(first))
    }

    /// A small JSON document of the hub; the status is the caller's to judge.
    pub fn get_json(&self, url: &str) -> Result<(StatusInfo, Option<serde_json::Value>)> {
        let response = self.request(url, Follow::Anywhere, Some(0))?;
        let status = StatusInfo::of(&response);
        if !status.status.is_success() {
            return Ok((status, None));
        }
        let mut text = Vec::new();
        let mut body = response.into_body().into_reader().take(LARGEST_JSON + 1);
        body.read_to_end(&mut text)
            .map_err(|error| self.lost(url, &error.to_string(), 1))?;
        if text.len() as u64 > LARGEST_JSON {
            return Err(HubError::TooLarge {
                url: url.to_owned(),
                found: text.len() as u64,
                limit: LARGEST_JSON,
            });
        }
        match serde_json::from_slice(&text) {
            Ok(value) => Ok((status, Some(value))),
            Err(error) => Err(bad_answer(url, format!("the answer is no JSON ({error})"))),
        }
    }

    /// Sends a request until there is an answer that will not pass, and follows where it leads.
    fn request(&self, url: &str, follow: Follow, first: Option<u64>) -> Result<Response<Body>> {
        let mut at = url.to_owned();
        for _ in 0..MOST_REDIRECTS {
            let response = self.persistently(&at, first)?;
            if !is_redirect(response.status()) {
                return Ok(response);
            }
            let next = next_url(&at, &response)?;
            if follow == Follow::Hub && !self.is_hub(&next) {
                return Ok(response);
            }
            at = next;
        }
        let reason = format!("more than {MOST_REDIRECTS} redirects");
        Err(bad_answer(url, reason))
    }

    /// One request, several times if need be.
    fn persistently(&self, url: &str, first: Option<u64>) -> Result<Response<Body>> {
        let most = self.settings.retry.attempts;
        let mut attempt = 1;
        loop {
            let (reason, error, asked_to_wait) = match self.once(url, first) {
                Ok(response) if !may_pass(response.status()) => return Ok(response),
                Ok(response) => {
                    let status = response.status().as_u16();
                    let error = HubError::Status {
                        url: url.to_owned(),
                        status,
                        attempts: attempt,
                    };
                    (format!("HTTP {status}"), error, retry_after(&response))
                }
                Err(error) => {
                    let reason = error.to_string();
                    let lost = self.lost(url, &reason, attempt);
                    // A name that does not exist will not exist in a second.
                    if matches!(error, ureq::Error::HostNotFound | ureq::Error::BadUri(_)) {
                        return Err(lost);
                    }
                    (reason, lost, None)
                }
            };
            let wait = asked_to_wait.unwrap_or_else(|| self.wait_before(attempt + 1));
            if attempt >= most || wait > PATIENCE {
                return Err(error);
            }
            self.pause(&reason, wait);
            attempt += 1;
        }
    }

    /// Waits after something went wrong, and says so.
    pub fn pause(&self, reason: &str, wait: Duration) {
        self.observe(Event::Retry { reason, wait });
        thread::sleep(wait);
    }

    /// How long to wait before an attempt, counted from 1.
    pub fn wait_before(&self, attempt: u32) -> Duration {
        let doubled = 1 << attempt.saturating_sub(2).min(16);
        self.settings
            .retry
            .wait
            .saturating_mul(doubled)
            .min(PATIENCE)
    }

    fn once(
        &self,
        url: &str,
        first: Option<u64>,
    ) -> std::result::Result<Response<Body>, ureq::Error> {
        let mut request = match first {
            None => self.agent.head(url),
            Some(0) => self.agent.get(url),
            Some(first) => self
                .agent
                .get(url)
                .header(header::RANGE, format!("bytes={first}-")),
        };
        if let Some(token) = &self.settings.token
            && self.is_hub(url)
        {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        request.call()
    }

    /// Whether an address is on the server of the hub, as scheme, host and port say.
    fn is_hub(&self, url: &str) -> bool {
        let origin = |url: &str| {
            let uri: Uri = url.parse().ok()?;
            let authority = uri.authority()?.as_str().to_lowercase();
            Some((uri.scheme()?.clone(), authority))
        };
        origin(url).is_some_and(|origin_of| Some(origin_of) == origin(&self.settings.endpoint))
    }

    pub fn lost(&self, url: &str, reason: &str, attempts: u32) -> HubError {
        HubError::Network {
            url: url.to_owned(),
            reason: reason.to_owned(),
            attempts,
        }
    }
}

/// How the hub judged a request.
pub(crate) struct StatusInfo {
    pub status: StatusCode,
    /// The hub answers 401, not 404, to a stranger who asks for something that is not there; this header tells.
    code: Option<String>,
}

impl StatusInfo {
    pub fn of(response: &Response<Body>) -> Self {
        Self {
            status: response.status(),
            code: text_header(response, "x-error-code"),
        }
    }

    pub fn is_missing(&self) -> bool {
        let not_found = ["RepoNotFound", "EntryNotFound", "RevisionNotFound"];
        self.status == StatusCode::NOT_FOUND
            || self.status.is_client_error()
                && not_found.contains(&self.code.as_deref().unwrap_or_default())
    }

    /// The error for a status that is no success.
    pub fn error(&self, url: &str, repository: &Repository, has_token: bool) -> HubError {
        let (url, status) = (url.to_owned(), self.status.as_u16());
        let remedy = match self.status {
            _ if self.code.as_deref() == Some("GatedRepo") => {
                "its owner asks for an agreement: accept it on the page of the model, and name your token in HF_TOKEN"
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if has_token => {
                "the token (HF_TOKEN, or that of `hf auth login`) does not open it"
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                "name a token that may read it in HF_TOKEN"
            }
            _ if self.is_missing() => {
                let repository = repository.to_string();
                let reason = format!("{url} is not there");
                return HubError::NoModel { repository, reason };
            }
            _ => {
                let attempts = 1;
                return HubError::Status {
                    url,
                    status,
                    attempts,
                };
            }
        };
        HubError::Denied {
            url,
            status,
            remedy,
        }
    }
}

/// A header that is text.
pub(crate) fn text_header(response: &Response<Body>, name: &str) -> Option<String> {
    let value = response.headers().get(name)?.to_str().ok()?;
    Some(value.trim().to_owned())
}

pub(crate) fn bad_answer(url: &str, reason: impl Into<String>) -> HubError {
    HubError::BadAnswer {
        url: url.to_owned(),
        reason: reason.into(),
    }
}

/// No connection is waited for longer than this, and no server is obeyed that asks for more.
const PATIENCE: Duration = Duration::from_secs(60);

const MOST_REDIRECTS: usize = 10;

/// The description of a model with thousands of files is smaller.
const LARGEST_JSON: u64 = 8 << 20;

pub(crate) fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Whether the same request may succeed later.
fn may_pass(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
}

fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let seconds = text_header(response, "retry-after")?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Where a redirect leads to.
fn next_url(url: &str, response: &Response<Body>) -> Result<String> {
    let Some(location) = text_header(response, "location") else {
        return Err(bad_answer(url, "it redirects to nowhere"));
    };
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
    let next = if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        let host = rest.split('/').next().unwrap_or_default();
        format!("{scheme}://{host}{location}")
    } else {
        location
    };
    let secure = next.starts_with("https://");
    if !(secure || next.starts_with("http://") && scheme == "http") || next.parse::<Uri>().is_err()
    {
        return Err(bad_answer(url, format!("it redirects to {next:?}")));
    }
    Ok(next)
}
