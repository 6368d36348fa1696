//! What the hub says about a model: its newest commit, its files, its licence; and which models have similar names.
//!
//! Before it: [`crate::name`]; after it: [`crate::fetch`], which downloads the files that are needed.

use serde::Deserialize;

use crate::error::{self, HubError, Result};
use crate::http::{Client, bad_answer};
use crate::name::{ModelName, Repository};

/// A repository at its newest commit.
#[derive(Debug)]
pub(crate) struct Description {
    pub repository: Repository,
    /// 40 hexadecimal digits.
    pub commit: String,
    /// Names as the server gave them; none of them may become a path.
    pub files: Vec<String>,
    pub license: Option<String>,
}

/// The first repository that may be meant and exists.
pub(crate) fn describe(client: &Client<'_>, name: &ModelName) -> Result<Description> {
    for repository in name.repositories() {
        if let Some(description) = describe_one(client, repository)? {
            return Ok(description);
        }
    }
    let repositories = name.repositories();
    Err(HubError::NotFound {
        endpoint: client.settings.endpoint.clone(),
        names: repositories.iter().map(Repository::to_string).collect(),
        similar: similar(client, &repositories[0]),
    })
}

/// The part of the hub's answer that is used.
#[derive(Deserialize)]
struct Answer {
    sha: String,
    #[serde(default)]
    siblings: Vec<Sibling>,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
}

fn describe_one(client: &Client<'_>, repository: &Repository) -> Result<Option<Description>> {
    let settings = client.settings;
    let url = format!(
        "{}/api/models/{repository}/revision/main",
        settings.endpoint
    );
    let (status, answer) = client.get_json(&url)?;
    let Some(answer) = answer else {
        if status.is_missing() {
            return Ok(None);
        }
        return Err(status.error(&url, repository, settings.token.is_some()));
    };
    let Answer {
        sha,
        siblings,
        tags,
    } = serde_json::from_value(answer).map_err(|error| bad_answer(&url, error.to_string()))?;
    if sha.len() != 40 || !sha.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(bad_answer(&url, format!("{sha:?} is no commit")));
    }
    let license = tags.iter().find_map(|tag| tag.strip_prefix("license:"));
    Ok(Some(Description {
        repository: repository.clone(),
        commit: sha,
        files: siblings.into_iter().map(|file| file.rfilename).collect(),
        license: license.map(str::to_owned),
    }))
}

/// Models of the same organization with similar names. That none are found, or the server does not know, is no error
/// beside the one that is about to be reported.
fn similar(client: &Client<'_>, repository: &Repository) -> Vec<String> {
    #[derive(Deserialize)]
    struct Model {
        id: String,
    }
    let (organization, name) = (repository.organization(), repository.name());
    // The hub finds parts of names, so the last part, where the mistake usually is, is left out.
    let part = name.rsplit_once(['-', '_']).map_or(name, |(part, _)| part);
    let url = format!(
        "{}/api/models?author={organization}&search={part}&limit=1000",
        client.settings.endpoint
    );
    let answer = client.get_json(&url).ok().and_then(|(_, answer)| answer);
    let models: Vec<Model> = answer
        .and_then(|answer| serde_json::from_value(answer).ok())
        .unwrap_or_default();
    // Only what could be asked for is repeated.
    let names = models
        .into_iter()
        .filter(|model| model.id.parse::<Repository>().is_ok());
    error::similar(&repository.to_string(), names.map(|model| model.id))
}
