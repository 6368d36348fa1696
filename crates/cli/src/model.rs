//! A model as something that translates: chosen, opened, loaded, ready.
//!
//! A model is a directory, or one that has a name because it is part of the program (`attentive-models`) or was
//! pulled (`attentive-hub`).
//! On the CPU the runtime's own model translates; on other devices, and where more is asked than
//! translating, it is the network of `attentive-nn` (`network.rs`).

use std::env;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use attentive_hub::route::same;
use attentive_hub::{Store, StoredModel};
use attentive_model::directory::{AnyModelDir, ModelDir};
use attentive_model::error::ModelError;
use attentive_models::BuiltIn;
use attentive_runtime::RuntimeError;
use attentive_runtime::translator::{Translator, TranslatorOptions};
use attentive_text::language::canonical;

use crate::decoding::ComputeKind;
use crate::exit::Ending;
use crate::foreign;
use crate::terminal::Terminal;

/// Which model.
#[derive(Debug, Clone)]
pub enum Choice {
    /// That of a directory, or the best one of a training run.
    Directory(PathBuf),
    /// One that is part of the program.
    BuiltIn(&'static BuiltIn),
    /// One that was pulled.
    Pulled(StoredModel),
    /// A model of several target languages, and the code of one of them.
    Into(Box<Choice>, String),
}

impl Choice {
    /// What `--model` means: a directory; or, if there is none of this name, a built-in model or one that was pulled.
    pub fn of(given: &Path) -> anyhow::Result<Self> {
        let name = given.to_str().filter(|_| !given.exists());
        if let Some(model) = name.and_then(attentive_models::named) {
            return Ok(Self::BuiltIn(model));
        }
        if let Some(name) = name.and_then(|name| name.parse().ok())
            && let Ok(store) = Store::from_env()
            && let Some(model) = store.find(&name)?
        {
            return Ok(Self::Pulled(model));
        }
        Ok(Self::Directory(given.to_owned()))
    }

    /// As [`Choice::of`], for models of other programs too: they are imported into the cache the first time.
    pub fn of_any(given: &Path, terminal: &Terminal) -> anyhow::Result<Self> {
        match Self::of(given)? {
            Self::Directory(path) if !ModelDir::is_model(&path) => {
                let imported = foreign::imported(&path, cache_folder(), terminal)?;
                Ok(Self::Directory(imported.unwrap_or(path)))
            }
            choice => Ok(choice),
        }
    }

    /// What `--model` would call it.
    pub fn name(&self) -> String {
        match self {
            Self::BuiltIn(model) => model.name.to_owned(),
            Self::Directory(path) => path.display().to_string(),
            Self::Pulled(model) => model.name.to_string(),
            Self::Into(model, _) => model.name(),
        }
    }

    /// The code of the language that it reads, if that is known before it is opened.
    pub fn source_language(&self) -> Option<String> {
        match self {
            Self::BuiltIn(model) => Some(model.from.code().to_owned()),
            Self::Directory(_) => None,
            Self::Pulled(model) => {
                let languages = model.languages.as_ref().or(model.choices.first());
                languages.map(|(from, _)| from.clone())
            }
            Self::Into(model, _) => model.source_language(),
        }
    }

    /// The code of the language that it writes, if that is known before its weights are read.
    pub fn target_language(&self) -> Option<String> {
        match self {
            Self::BuiltIn(model) => Some(model.to.code().to_owned()),
            Self::Directory(path) => ModelDir::generation_of(path).ok()?.target_language,
            Self::Pulled(model) => model.languages.clone().map(|(_, to)| to),
            Self::Into(_, target) => Some(target.clone()),
        }
    }

    /// Opens it; the weights are not read yet.
    pub fn open(&self) -> anyhow::Result<ModelDir> {
        let path = match self {
            Self::BuiltIn(model) => return Ok(model.open()?),
            Self::Directory(path) => path,
            Self::Pulled(model) => &model.folder,
            Self::Into(model, target) => {
                let mut directory = model.open()?;
                choose_target(&mut directory, target)?;
                return Ok(directory);
            }
        };
        let mut directory = ModelDir::open(path).map_err(|error| with_known_models(error, path))?;
        if directory.weights_bytes()? >= WORTH_CACHING {
            directory.cache = cache_folder();
        }
        Ok(directory)
    }

    /// Opens a model of any family; its weights are not read.
    pub fn open_any(&self) -> anyhow::Result<AnyModelDir> {
        match self {
            Self::Directory(path) => {
                AnyModelDir::open(path).map_err(|error| with_known_models(error, path))
            }
            named => Ok(named.open()?.into()),
        }
    }
}

/// What is wrong with a path that should be a model; if nothing is there, a name may have been meant.
fn with_known_models(error: ModelError, path: &Path) -> anyhow::Error {
    if path.exists() {
        return error.into();
    }
    anyhow!(
        "{error} Built-in models: {}. `attentive pull` fetches others, `attentive models` lists them.",
        built_in_names()
    )
}

/// Makes a model write a language, if that is one of several that it writes, or the only one.
pub fn choose_target(directory: &mut ModelDir, target: &str) -> anyhow::Result<()> {
    if directory.generation.choose_target(target) {
        return Ok(());
    }
    let generation = &directory.generation;
    let several: Vec<&str> = generation
        .target_languages
        .keys()
        .map(String::as_str)
        .collect();
    let known = match (&generation.target_language, &several[..]) {
        (Some(own), []) if same(&canonical(own), target) => return Ok(()),
        (Some(own), []) => own.clone(),
        (None, []) => "a language that its directory does not name".to_owned(),
        (_, several) => several.join(", "),
    };
    let path = directory.path.display();
    let problem = format!("{path} does not translate into {target}; it writes {known}");
    Err(Ending::Usage(problem).into())
}

/// The CPU's translator for a model.
pub fn translator(
    directory: ModelDir,
    compute: ComputeKind,
    options: TranslatorOptions,
) -> anyhow::Result<Translator> {
    Translator::of_model(directory, compute.into(), options).map_err(named_usage)
}

/// Smaller weights are packed in no time.
const WORTH_CACHING: u64 = 4 << 20;

/// Where f32 weights are kept in the form in which they load fastest: in the folder that `ATTENTIVE_CACHE` names,
/// nowhere if it is empty, and without it where the system keeps such things.
fn cache_folder() -> Option<PathBuf> {
    let path = |name| env::var_os(name).map(PathBuf::from);
    if let Some(folder) = path("ATTENTIVE_CACHE") {
        return Some(folder).filter(|folder| !folder.as_os_str().is_empty());
    }
    let caches = if cfg!(windows) {
        path("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        path("HOME").map(|home| home.join("Library/Caches"))
    } else {
        let chosen = path("XDG_CACHE_HOME").filter(|folder| folder.is_absolute());
        chosen.or_else(|| path("HOME").map(|home| home.join(".cache")))
    };
    caches
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("attentive"))
}

/// `de-en, en-de`
pub fn built_in_names() -> String {
    let names = attentive_models::ALL.each_ref().map(|model| model.name);
    names.join(", ")
}

/// An option that makes no sense with `--device`.
pub fn only_for_the_cpu(what: &str) -> anyhow::Error {
    Ending::Usage(format!("{what} for the CPU: leave out --device")).into()
}

/// Options that make no sense are the user's, and so the wrong usage.
pub fn named_usage(error: RuntimeError) -> anyhow::Error {
    match error {
        RuntimeError::Options(problems) => Ending::Usage(problems.join("\n")).into(),
        other => other.into(),
    }
}
