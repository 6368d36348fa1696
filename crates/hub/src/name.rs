//! What the user calls a model, and which repositories of the hub may be meant.
//!
//! A pair of languages (`fr-en`) means a model of OPUS-MT; anything else is the name of a repository,
//! `ORGANIZATION/NAME`. Names become parts of addresses and of paths, so they are checked first, by the hub's
//! own rules. Before it: the command line; after it: [`crate::fetch`] and [`crate::store`].

use std::fmt;
use std::str::FromStr;

use crate::error::{HubError, Result};

/// A model as a user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName {
    given: String,
    repositories: Vec<Repository>,
}

/// A repository of the hub: `Helsinki-NLP/opus-mt-fr-en`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Repository {
    organization: String,
    name: String,
}

impl ModelName {
    /// The repositories that may be meant, the likeliest first; at least one.
    pub fn repositories(&self) -> &[Repository] {
        &self.repositories
    }
}

impl FromStr for ModelName {
    type Err = HubError;

    fn from_str(given: &str) -> Result<Self> {
        let repositories = if is_pair(given) {
            let opus = |kind| Repository {
                organization: OPUS_MT.to_owned(),
                name: format!("{kind}-{given}"),
            };
            vec![opus("opus-mt"), opus("opus-mt-tc-big")]
        } else {
            vec![given.parse()?]
        };
        Ok(Self {
            given: given.to_owned(),
            repositories,
        })
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.given)
    }
}

impl Repository {
    /// Whose it is.
    pub fn organization(&self) -> &str {
        &self.organization
    }

    /// Its name within the organization.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its name as that of a folder; no two repositories have the same.
    pub fn folder(&self) -> String {
        format!("{}--{}", self.organization, self.name)
    }

    /// The repository whose [`Repository::folder`] this is.
    pub fn of_folder(folder: &str) -> Option<Self> {
        folder.replacen("--", "/", 1).parse().ok()
    }

    /// The languages that the name of an OPUS-MT model states: `opus-mt-tc-big-fr-en` is `fr` to `en`.
    pub fn languages(&self) -> Option<(String, String)> {
        let pair = self.name.strip_prefix("opus-mt-")?;
        let pair = pair.strip_prefix("tc-big-").unwrap_or(pair);
        let (from, to) = pair.split_once('-').filter(|_| is_pair(pair))?;
        Some((from.to_owned(), to.to_owned()))
    }
}

impl FromStr for Repository {
    type Err = HubError;

    fn from_str(given: &str) -> Result<Self> {
        let bad = |reason: &str| HubError::Name {
            name: given.to_owned(),
            reason: reason.to_owned(),
        };
        let Some((organization, name)) = given.split_once('/') else {
            return Err(bad(
                "it is neither a pair of languages nor ORGANIZATION/NAME",
            ));
        };
        for part in [organization, name] {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if part.is_empty() || part.len() > LONGEST {
                return Err(bad("each part has 1 to 96 characters"));
            }
            if !part.chars().all(allowed) {
                return Err(bad("each part has letters, digits and -_. only"));
            }
            if part.starts_with(['-', '.']) || part.ends_with(['-', '.']) {
                return Err(bad("no part begins or ends with - or ."));
            }
            if part.contains("--") || part.contains("..") {
                return Err(bad("no part holds -- or .."));
            }
        }
        Ok(Self {
            organization: organization.to_owned(),
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.organization, self.name)
    }
}

/// The organization of the OPUS-MT models.
const OPUS_MT: &str = "Helsinki-NLP";

/// The hub's limit.
const LONGEST: usize = 96;

/// `fr-en`, `en-ROMANCE`, `en-pt_br`
fn is_pair(name: &str) -> bool {
    let language = |code: &str| {
        let letters = code.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
        (2..=24).contains(&code.len()) && letters && !code.starts_with('_') && !code.ends_with('_')
    };
    name.split_once('-')
        .is_some_and(|(from, to)| language(from) && language(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repositories(name: &str) -> Vec<String> {
        let name: ModelName = name.parse().expect("a sound name");
        name.repositories()
            .iter()
            .map(Repository::to_string)
            .collect()
    }

    #[test]
    fn a_pair_is_a_model_of_opus_mt_and_a_name_with_a_slash_is_taken_as_it_is() {
        let pair = [
            "Helsinki-NLP/opus-mt-fr-en",
            "Helsinki-NLP/opus-mt-tc-big-fr-en",
        ];
        assert_eq!(repositories("fr-en"), pair);
        assert_eq!(repositories("me/fr-en"), ["me/fr-en"]);
        assert_eq!(
            repositories("en-ROMANCE")[0],
            "Helsinki-NLP/opus-mt-en-ROMANCE"
        );
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in [
            "",
            "/",
            "fr",
            "a/",
            "/b",
            "../b",
            "a/..",
            "a/b/c",
            "/etc/passwd",
            "a\\b",
            "a/b\0",
            "a/b c",
            "a/.git",
            "a/b--c",
            "a--b/c",
            "-a/b",
            "a/b?x=1",
            "a/b#c",
            "a/%2e%2e",
            "a/ü",
            "fr-en/..",
            "https://x/y",
            "fr--en",
            &format!("a/{}", "b".repeat(97)),
        ] {
            let error = name.parse::<ModelName>().expect_err(name).to_string();
            assert!(error.contains("ORGANIZATION/NAME"), "{error}");
        }
    }

    #[test]
    fn folders_and_repositories_are_one_to_one() {
        for name in ["Helsinki-NLP/opus-mt-fr-en", "a/b", "a.b/c_d-e.f"] {
            let repository: Repository = name.parse().expect("a sound name");
            assert_eq!(
                Repository::of_folder(&repository.folder()),
                Some(repository)
            );
        }
        assert_eq!(Repository::of_folder(".tmp-x"), None);
        assert_eq!(Repository::of_folder("a--.."), None);
    }

    #[test]
    fn the_name_of_an_opus_model_states_its_languages() {
        let languages = |name: &str| {
            let repository: Repository = name.parse().expect("a sound name");
            repository.languages()
        };
        let pair = |from: &str, to: &str| Some((from.to_owned(), to.to_owned()));
        assert_eq!(languages("Helsinki-NLP/opus-mt-fr-en"), pair("fr", "en"));
        assert_eq!(
            languages("Helsinki-NLP/opus-mt-tc-big-tr-en"),
            pair("tr", "en")
        );
        assert_eq!(languages("facebook/m2m100_418M"), None);
    }
}
