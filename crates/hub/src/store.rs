//! The models that were pulled: each a model directory in the user's data folder.
//!
//! ```text
//! STORE/Helsinki-NLP--opus-mt-fr-en/    a model directory; generation.json says which languages, whose, from where
//! STORE/.lock                           held by whoever changes something
//! ```
//!
//! A model appears when it is complete ([`durable::write_folder`]). Before it: [`mod@crate::pull`]; after it:
//! [`crate::route`], `attentive models`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use attentive_model::ModelDir;
use attentive_model::durable::{self, TEMPORARY};
use attentive_model::weights::Weights;

use crate::download::lock;
use crate::error::{self, HubError, Result};
use crate::name::{ModelName, Repository};

/// A folder of models.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

/// A model of the store.
#[derive(Debug, Clone)]
pub struct StoredModel {
    /// The repository that it came from.
    pub name: Repository,
    /// The model directory.
    pub folder: PathBuf,
    /// The languages that it reads and writes, if they are known and no choice.
    pub languages: Option<(String, String)>,
    /// The languages among which a model of several targets lets choose, each with the language that it reads.
    pub choices: Vec<(String, String)>,
    /// What all its files need on the disk.
    pub bytes: u64,
    /// The numbers of its weights: `f32` or `int8`.
    pub precision: &'static str,
    /// Under which licence, if it is known.
    pub license: Option<String>,
    /// What it was made from: `Helsinki-NLP/opus-mt-fr-en@COMMIT`.
    pub origin: Option<String>,
}

/// Where a model comes from.
#[derive(Debug, Clone)]
pub struct Source {
    /// The repository.
    pub name: Repository,
    /// Its commit.
    pub commit: String,
    /// Its licence, if it is known.
    pub license: Option<String>,
}

impl Store {
    /// The folder that `ATTENTIVE_MODELS_DIR` names, else `attentive/models` where the system keeps data of programs.
    pub fn from_env() -> Result<Self> {
        let path = |name: &str| {
            let value = env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        if let Some(folder) = path(VARIABLE) {
            return Ok(Self::at(folder));
        }
        let data = if cfg!(windows) {
            path("LOCALAPPDATA")
        } else if cfg!(target_os = "macos") {
            path("HOME").map(|home| home.join("Library/Application Support"))
        } else {
            let chosen = path("XDG_DATA_HOME").filter(|folder| folder.is_absolute());
            chosen.or_else(|| path("HOME").map(|home| home.join(".local/share")))
        };
        match data {
            Some(data) => Ok(Self::at(data.join("attentive").join("models"))),
            None => Err(HubError::NoFolder { variable: VARIABLE }),
        }
    }

    /// This folder, which need not exist yet.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All models, by name. Each may be damaged, which is told in its place.
    pub fn list(&self) -> Result<Vec<(Repository, Result<StoredModel>)>> {
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        let io = HubError::io("read", &self.folder);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(&io)? {
            let name = entry.map_err(&io)?.file_name();
            names.extend(name.to_str().and_then(Repository::of_folder));
        }
        names.sort();
        let read = |name: Repository| (name.clone(), self.read(&name));
        Ok(names.into_iter().map(read).collect())
    }

    /// The model that a name means; none if it was not pulled.
    pub fn find(&self, name: &ModelName) -> Result<Option<StoredModel>> {
        let stored = name
            .repositories()
            .iter()
            .find(|name| self.path(name).is_dir());
        stored.map(|name| self.read(name)).transpose()
    }

    /// Removes a model; returns which one it was.
    pub fn remove(&self, name: &ModelName) -> Result<Repository> {
        let is_there = |name: &&Repository| self.path(name).is_dir();
        if self.folder.exists() {
            let _lock = self.lock(|| {})?;
            if let Some(name) = name.repositories().iter().find(is_there) {
                let path = self.path(name);
                durable::remove_folder(&path).map_err(HubError::io("remove", &path))?;
                return Ok(name.clone());
            }
        }
        let stored = self.list()?.into_iter().map(|(name, _)| name.to_string());
        Err(HubError::NotStored {
            name: name.to_string(),
            similar: error::similar(&name.repositories()[0].to_string(), stored),
        })
    }

    /// Puts a model into the store, in the place of an older one: `fill` writes the model directory. If the same
    /// commit is there already, nothing is done. `waiting` is called if another process is at work.
    pub fn install<T, E: From<HubError>>(
        &self,
        source: &Source,
        waiting: impl FnOnce(),
        fill: impl FnOnce(&Path) -> std::result::Result<T, E>,
    ) -> std::result::Result<Option<T>, E> {
        let (folder, path) = (&self.folder, self.path(&source.name));
        fs::create_dir_all(folder).map_err(HubError::io("create", folder))?;
        let _lock = self.lock(waiting)?;
        if self.has(source) {
            return Ok(None);
        }
        let io = |action| HubError::io(action, &path);
        let failed = |error| E::from(io("write")(error));
        let filled = durable::write_folder(&path, failed, |unfinished| {
            let filled = fill(unfinished)?;
            source.note(unfinished)?;
            if path.exists() {
                durable::remove_folder(&path).map_err(io("remove"))?;
            }
            Ok::<T, E>(filled)
        })?;
        Ok(Some(filled))
    }

    /// Whether the model is there at this commit.
    pub fn has(&self, source: &Source) -> bool {
        let stored = self.read(&source.name);
        stored.is_ok_and(|stored| stored.origin == Some(source.origin()))
    }

    fn path(&self, name: &Repository) -> PathBuf {
        self.folder.join(name.folder())
    }

    /// Waits until nobody else changes the store, and removes what somebody left who could not finish.
    fn lock(&self, waiting: impl FnOnce()) -> Result<fs::File> {
        let lock = lock(&self.folder.join(".lock"), waiting)?;
        let io = HubError::io("read", &self.folder);
        for entry in fs::read_dir(&self.folder).map_err(&io)? {
            let entry = entry.map_err(&io)?;
            if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
                let path = entry.path();
                fs::remove_dir_all(&path).map_err(HubError::io("remove", &path))?;
            }
        }
        Ok(lock)
    }

    pub(crate) fn read(&self, name: &Repository) -> Result<StoredModel> {
        let folder = self.path(name);
        let generation = ModelDir::generation_of(&folder)?;
        let languages = generation.languages().or_else(|| name.languages());
        let from = generation.source_language.clone();
        let from = from.or_else(|| Some(name.languages()?.0));
        let choice = |to: String| Some((from.clone()?, to));
        let targets = generation.target_languages.into_keys();
        let choices: Vec<_> = targets.filter_map(choice).collect();
        let weights = Weights::open(ModelDir::weights_path(&folder))?;
        Ok(StoredModel {
            name: name.clone(),
            languages: languages.filter(|_| choices.is_empty()),
            choices,
            bytes: bytes_in(&folder)?,
            precision: if weights.is_int8() { "int8" } else { "f32" },
            license: generation.license,
            origin: generation.origin,
            folder,
        })
    }
}

impl Source {
    fn origin(&self) -> String {
        format!("{}@{}", self.name, self.commit)
    }

    /// Adds to a model directory where it comes from.
    fn note(&self, folder: &Path) -> Result<()> {
        let mut generation = ModelDir::generation_of(folder)?;
        generation.origin = Some(self.origin());
        if self.license.is_some() {
            generation.license.clone_from(&self.license);
        }
        Ok(generation.write(folder)?)
    }
}

const VARIABLE: &str = "ATTENTIVE_MODELS_DIR";

fn bytes_in(folder: &Path) -> Result<u64> {
    let io = HubError::io("read", folder);
    let mut bytes = 0;
    for entry in fs::read_dir(folder).map_err(&io)? {
        bytes += entry.and_then(|entry| entry.metadata()).map_err(&io)?.len();
    }
    Ok(bytes)
}
