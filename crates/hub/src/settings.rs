//! What the environment decides: where the hub is, who asks, where the cache is, whether there is a network.
//!
//! The variables are those of every program of the hub: `HF_ENDPOINT`, `HF_TOKEN` (else the file that
//! `hf auth login` writes), `HF_HUB_CACHE`, `HF_HOME`, `HF_HUB_OFFLINE`. Used by [`crate::fetch`].

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use hf_hub::Cache;

use crate::error::{HubError, Result};

/// How to talk to the hub.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address of the hub, without a slash at its end.
    pub endpoint: String,
    /// Who asks. It is sent to the endpoint and to no other server.
    pub token: Option<String>,
    /// The folder of the shared cache.
    pub cache: PathBuf,
    /// Whether there is a network.
    pub network: Network,
    /// What to do about errors that may pass.
    pub retry: Retry,
    /// The most bytes that a file of weights may have.
    pub largest_weights: u64,
}

/// Whether there is a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// The server is asked.
    Online,
    /// Only the cache is used.
    Offline,
}

/// What to do about errors that may pass: a lost connection, a busy server.
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    /// How often a request is sent at most.
    pub attempts: u32,
    /// The time before the second attempt; it doubles each time.
    pub wait: Duration,
}

impl Settings {
    /// As the environment says.
    pub fn from_env() -> Result<Self> {
        Self::from_variables(|name| env::var_os(name))
    }

    /// As these variables say.
    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let path = |name: &str| {
            let value = variable(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let text = |name: &'static str| match variable(name).map(OsString::into_string) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
            Some(Err(value)) => Err(HubError::Environment {
                name,
                value: value.to_string_lossy().into_owned(),
                expected: "it must be text",
            }),
        };

        let endpoint = text("HF_ENDPOINT")?.unwrap_or_else(|| HUGGING_FACE.to_owned());
        if !endpoint.starts_with("https://") && !endpoint.starts_with("http://") {
            return Err(HubError::Environment {
                name: "HF_ENDPOINT",
                value: endpoint,
                expected: "it must begin with https:// or http://",
            });
        }
        let home = path("HF_HOME").or_else(|| {
            let caches = path("XDG_CACHE_HOME")
                .or_else(|| Some(path("HOME").or_else(|| path("USERPROFILE"))?.join(".cache")));
            caches.map(|caches| caches.join("huggingface"))
        });
        let hub = home.map(|home| home.join("hub"));
        let token = match text("HF_TOKEN")? {
            Some(token) => Some(token),
            None => hub.as_ref().and_then(|hub| Cache::new(hub.clone()).token()),
        };
        if token
            .as_ref()
            .is_some_and(|token| !token.chars().all(|c| c.is_ascii_graphic()))
        {
            return Err(HubError::Environment {
                name: "HF_TOKEN",
                value: "(not shown)".to_owned(),
                expected: "a token has letters, digits and signs of ASCII only",
            });
        }
        let cache = path("HF_HUB_CACHE").or(hub);
        let offline = text("HF_HUB_OFFLINE")?.unwrap_or_default().to_uppercase();
        Ok(Self {
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            token,
            cache: cache.ok_or(HubError::NoFolder {
                variable: "HF_HUB_CACHE",
            })?,
            network: if ["1", "ON", "YES", "TRUE"].contains(&offline.as_str()) {
                Network::Offline
            } else {
                Network::Online
            },
            retry: Retry {
                attempts: 5,
                wait: Duration::from_millis(500),
            },
            largest_weights: 16 << 30,
        })
    }
}

const HUGGING_FACE: &str = "https://huggingface.co";

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<Settings> {
        Settings::from_variables(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn the_variables_of_the_hub_mean_what_they_mean_elsewhere() {
        let cache = |variables: &[(&str, &str)]| settings(variables).expect("sound").cache;
        assert_eq!(
            cache(&[("HOME", "/h")]),
            PathBuf::from("/h/.cache/huggingface/hub")
        );
        let xdg = ("XDG_CACHE_HOME", "/x");
        assert_eq!(
            cache(&[("HOME", "/h"), xdg]),
            PathBuf::from("/x/huggingface/hub")
        );
        let home = ("HF_HOME", "/f");
        assert_eq!(cache(&[xdg, home]), PathBuf::from("/f/hub"));
        assert_eq!(cache(&[home, ("HF_HUB_CACHE", "/c")]), PathBuf::from("/c"));

        let given = settings(&[
            home,
            ("HF_ENDPOINT", "http://localhost:8000/"),
            ("HF_TOKEN", " secret\n"),
            ("HF_HUB_OFFLINE", "true"),
        ])
        .expect("sound");
        assert_eq!(given.endpoint, "http://localhost:8000");
        assert_eq!(given.token.as_deref(), Some("secret"));
        assert_eq!(given.network, Network::Offline);
        assert_eq!(
            settings(&[home, ("HF_HUB_OFFLINE", "0")])
                .expect("sound")
                .network,
            Network::Online
        );
    }

    #[test]
    fn a_token_may_stand_in_the_file_of_the_login() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("token"), "from-login\n").expect("written");
        let home = ("HF_HOME", folder.path().to_str().expect("plain"));
        let token = |variables: &[_]| settings(variables).expect("sound").token;
        assert_eq!(token(&[home]).as_deref(), Some("from-login"));
        assert_eq!(
            token(&[home, ("HF_TOKEN", "other")]).as_deref(),
            Some("other")
        );
    }

    #[test]
    fn nonsense_is_refused_by_the_name_of_its_variable() {
        let home = ("HF_HOME", "/f");
        for (variables, part) in [
            (&[home, ("HF_ENDPOINT", "ftp://x")][..], "HF_ENDPOINT"),
            (&[home, ("HF_TOKEN", "a\nb")], "HF_TOKEN"),
            (&[], "HF_HUB_CACHE"),
        ] {
            let error = settings(variables).expect_err(part).to_string();
            assert!(error.contains(part) && !error.contains("a\nb"), "{error}");
        }
    }
}
