//! The files of a model that are needed, from the hub into the shared cache; or, without a network, out of it.
//!
//! ```text
//! CACHE/models--ORG--NAME/refs/main               the newest commit
//! CACHE/models--ORG--NAME/snapshots/COMMIT/FILE   links to blobs
//! ```
//!
//! Of a repository only the configuration, the tokenizers and one form of the weights are fetched: the same weights lie
//! there for other programs too, and safetensors are preferred because reading them executes nothing. Before it:
//! `repository`; after it: [`mod@crate::pull`].

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use attentive_model::durable;
use hf_hub::{Cache, CacheRepo, Repo};

use crate::download::RemoteFile;
use crate::error::{HubError, Result};
use crate::http::Client;
use crate::name::{ModelName, Repository};
use crate::repository::{self, Description};
use crate::settings::{Network, Settings};

/// What happens on the way.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The repository was found.
    Found(&'a Found),
    /// All files together have so many bytes, and are about to be fetched.
    Fetching {
        /// Bytes.
        total: u64,
    },
    /// So many of them are there; fewer than before if something must be fetched again.
    Progress {
        /// Bytes.
        done: u64,
    },
    /// Something went wrong that may pass.
    Retry {
        /// What.
        reason: &'a str,
        /// When it is tried again.
        wait: Duration,
    },
    /// Another process is at work on the same thing, and is waited for.
    Waiting,
    /// All files are there, and are being converted.
    Converting,
}

/// A model of the hub at a commit.
#[derive(Debug, Clone)]
pub struct Found {
    /// Where it is.
    pub repository: Repository,
    /// Its newest commit, or that in the cache if there is no network.
    pub commit: String,
    /// Under which licence, if the hub says so.
    pub license: Option<String>,
    files: Vec<String>,
}

/// The hub and the cache.
pub struct Hub<'a> {
    client: Client<'a>,
    cache: Cache,
}

impl<'a> Hub<'a> {
    /// Nothing is asked yet.
    pub fn new(settings: &'a Settings, observe: &'a dyn Fn(Event<'_>)) -> Self {
        Self {
            client: Client::new(settings, observe),
            cache: Cache::new(settings.cache.clone()),
        }
    }

    /// The model that a name means.
    pub fn find(&self, name: &ModelName) -> Result<Found> {
        let description = match self.client.settings.network {
            Network::Online => repository::describe(&self.client, name)?,
            Network::Offline => self.describe_from_cache(name)?,
        };
        let found = Found {
            files: needed(&description)?,
            repository: description.repository,
            commit: description.commit,
            license: description.license,
        };
        self.client.observe(Event::Found(&found));
        Ok(found)
    }

    /// The folder with the files of a model, which are fetched if they are not there.
    pub fn fetch(&self, found: &Found) -> Result<PathBuf> {
        let folder = self.cached(&found.repository).pointer_path(&found.commit);
        if self.client.settings.network == Network::Offline {
            return Ok(folder);
        }
        let limit = |file: &str| {
            if OTHERS.contains(&file) || file.ends_with(INDEX) {
                LARGEST_OTHER
            } else {
                self.client.settings.largest_weights
            }
        };
        let remote = |file: &String| {
            let (endpoint, repository) = (&self.client.settings.endpoint, &found.repository);
            let url = format!("{endpoint}/{repository}/resolve/{}/{file}", found.commit);
            RemoteFile::find(&self.client, repository, url, limit(file))
                .map(|remote| (file.clone(), remote))
        };
        let files: Vec<_> = found.files.iter().map(remote).collect::<Result<_>>()?;

        let total = files.iter().map(|(_, remote)| remote.size).sum();
        self.client.observe(Event::Fetching { total });
        let before = Cell::new(0);
        let progress = |now: u64| {
            let done = before.get() + now;
            self.client.observe(Event::Progress { done });
        };
        let own = self.cache.path().join(folder_name(&found.repository));
        let locks = self
            .cache
            .path()
            .join(".locks")
            .join(folder_name(&found.repository));
        for (file, remote) in &files {
            let blob = remote.download(&self.client, &own.join("blobs"), &locks, &progress)?;
            link(&folder.join(file), &blob)?;
            before.set(before.get() + remote.size);
        }
        let main = own.join("refs").join(BRANCH);
        create_folder_of(&main)?;
        durable::write(&main, found.commit.as_bytes()).map_err(HubError::io("write", &main))?;
        Ok(folder)
    }

    fn cached(&self, repository: &Repository) -> CacheRepo {
        self.cache.repo(Repo::model(repository.to_string()))
    }

    /// The first repository that may be meant and is in the cache.
    fn describe_from_cache(&self, name: &ModelName) -> Result<Description> {
        for repository in name.repositories() {
            let Some(config) = self.cached(repository).get(CONFIG) else {
                continue;
            };
            let folder = config.parent().unwrap_or(Path::new("."));
            let entries = fs::read_dir(folder).map_err(HubError::io("read", folder))?;
            let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            let commit = folder.file_name().unwrap_or_default();
            return Ok(Description {
                repository: repository.clone(),
                commit: commit.to_string_lossy().into_owned(),
                files: names.collect(),
                license: None,
            });
        }
        Err(HubError::Offline {
            repository: name.repositories()[0].to_string(),
            file: CONFIG.to_owned(),
            cache: self.cache.path().clone(),
        })
    }
}

const CONFIG: &str = "config.json";

/// Configurations and tokenizers of the formats that can be converted.
const OTHERS: [&str; 16] = [
    CONFIG,
    "generation_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "source.spm",
    "target.spm",
    "vocab.json",
    "target_vocab.json",
    "sentencepiece.bpe.model",
    "merges.txt",
    "shared_vocabulary.json",
    "shared_vocabulary.txt",
    "source_vocabulary.json",
    "source_vocabulary.txt",
    "target_vocabulary.json",
    "target_vocabulary.txt",
];

/// Files of weights, the best first; the last is that of CTranslate2.
const WEIGHTS: [&str; 3] = ["model.safetensors", "pytorch_model.bin", "model.bin"];

/// The largest tokenizers have a tenth of this.
const LARGEST_OTHER: u64 = 256 << 20;

const BRANCH: &str = "main";

/// What weights in several files have behind their name: which tensor is in which of them.
const INDEX: &str = ".index.json";

/// The largest models of the kinds that are read have a tenth of this many files.
const MOST_SHARDS: usize = 100;

/// The files to fetch. Their names are made of the lists above and never the server's, so that none leads elsewhere.
fn needed(description: &Description) -> Result<Vec<String>> {
    let is_there = |file: &str| description.files.iter().any(|name| name == file);
    let others = OTHERS.iter().filter(|file| is_there(file));
    let mut files: Vec<String> = others.map(|file| (*file).to_owned()).collect();
    if let Some(weights) = WEIGHTS.iter().find(|file| is_there(file)) {
        files.push((*weights).to_owned());
        return Ok(files);
    }
    for weights in WEIGHTS {
        let index = format!("{weights}{INDEX}");
        let of_count = |count: usize| -> Vec<String> {
            let (name, end) = weights.split_once('.').unwrap_or((weights, ""));
            (1..=count)
                .map(|number| format!("{name}-{number:05}-of-{count:05}.{end}"))
                .collect()
        };
        let shards = (1..=MOST_SHARDS).map(of_count);
        let whole = |shards: &Vec<String>| shards.iter().all(|file| is_there(file));
        if let Some(shards) = shards.filter(|_| is_there(&index)).find(whole) {
            files.push(index);
            files.extend(shards);
            return Ok(files);
        }
    }
    Err(HubError::NoModel {
        repository: description.repository.to_string(),
        reason: format!(
            "it has none of {}, nor all of the several files that an index names",
            WEIGHTS.join(", ")
        ),
    })
}

fn folder_name(repository: &Repository) -> String {
    Repo::model(repository.to_string()).folder_name()
}

fn create_folder_of(path: &Path) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(HubError::io("create", folder))
}

/// Makes the file of a snapshot point to its blob, which lies two folders above, in `blobs`.
fn link(file: &Path, blob: &Path) -> Result<()> {
    create_folder_of(file)?;
    let io = HubError::io("write", file);
    if cfg!(unix) {
        let name = blob.file_name().unwrap_or_default();
        let target = Path::new("../../blobs").join(name);
        if fs::read_link(file).is_ok_and(|found| found == target) {
            return Ok(());
        }
        durable::replace_link(file, &target).map_err(io)
    } else {
        // Links to files need a privilege elsewhere.
        let _ = fs::remove_file(file);
        fs::hard_link(blob, file).map_err(io)
    }
}
