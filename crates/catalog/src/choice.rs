//! Which model is meant, and how it is opened and used if nothing else is said.

use std::path::{Path, PathBuf};

use attentive_hub::route::same;
use attentive_hub::{Store, StoredModel};
use attentive_model::directory::{AnyModelDir, ModelDir};
use attentive_model::error::ModelError;
use attentive_models::BuiltIn;
use attentive_runtime::translator::{Lines, TranslatorOptions};
use attentive_text::language::canonical;

use crate::cache;
use crate::error::{CatalogError, Result};
use crate::foreign::{self, Notice};

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
    /// What a name means: a directory; or, if there is none of this name, a built-in model or one that was pulled.
    pub fn of(given: &Path) -> Result<Self> {
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
    pub fn of_any(given: &Path, say: impl FnMut(Notice)) -> Result<Self> {
        match Self::of(given)? {
            Self::Directory(path) if !ModelDir::is_model(&path) => {
                let imported = foreign::imported(&path, cache::folder(), say)?;
                Ok(Self::Directory(imported.unwrap_or(path)))
            }
            choice => Ok(choice),
        }
    }

    /// What it is asked for by.
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

    /// What a line usually is to it: a model that one has trained or imported gets each as it stands, the others get
    /// what people type.
    pub fn lines(&self) -> Lines {
        match self {
            Self::BuiltIn(_) | Self::Pulled(_) => Lines::RawText,
            Self::Directory(_) => Lines::Whole,
            Self::Into(model, _) => model.lines(),
        }
    }

    /// The options that are usual for it; `directory` is what it was opened as.
    pub fn options(&self, directory: &ModelDir) -> Result<TranslatorOptions> {
        let usual = TranslatorOptions::of(directory)?;
        Ok(TranslatorOptions {
            lines: self.lines(),
            source_language: self.source_language().or(usual.source_language),
            target_language: self.target_language().or(usual.target_language),
            ..usual
        })
    }

    /// Opens it; the weights are not read yet.
    pub fn open(&self) -> Result<ModelDir> {
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
            directory.cache = cache::folder();
        }
        Ok(directory)
    }

    /// Opens a model of any family; its weights are not read.
    pub fn open_any(&self) -> Result<AnyModelDir> {
        match self {
            Self::Directory(path) => {
                AnyModelDir::open(path).map_err(|error| with_known_models(error, path))
            }
            named => Ok(named.open()?.into()),
        }
    }
}

/// What is wrong with a path that should be a model; if nothing is there, a name may have been meant.
fn with_known_models(error: ModelError, path: &Path) -> CatalogError {
    if path.exists() {
        return error.into();
    }
    CatalogError::NoSuchModel {
        error: Box::new(error),
        built_in: built_in_names(),
    }
}

/// Makes a model write a language, if that is one of several that it writes, or the only one.
pub fn choose_target(directory: &mut ModelDir, target: &str) -> Result<()> {
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
    Err(CatalogError::Target {
        path: directory.path.clone(),
        target: target.to_owned(),
        known,
    })
}

/// Smaller weights are packed in no time.
const WORTH_CACHING: u64 = 4 << 20;

/// `de-en, en-de`
pub fn built_in_names() -> String {
    let names = attentive_models::ALL.each_ref().map(|model| model.name);
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use attentive_model::fake_dir;

    use super::*;

    #[test]
    fn a_name_is_a_built_in_model_and_a_folder_is_itself() {
        let built_in = Choice::of(Path::new("de-en")).expect("built in");
        assert_eq!(
            (built_in.name(), built_in.lines()),
            ("de-en".to_owned(), Lines::RawText)
        );
        let folder = tempfile::tempdir().expect("a folder");
        fake_dir::write(folder.path()).expect("written");
        let own = Choice::of_any(folder.path(), |notice| panic!("{notice:?}")).expect("a model");
        let directory = own.open().expect("a model");
        assert_eq!(own.options(&directory).expect("sound").lines, Lines::Whole);
    }

    #[test]
    fn what_is_not_there_is_told_with_what_there_is() {
        let missing = Choice::of_any(Path::new("no/such/model"), |_| {}).expect("a path");
        let message = missing.open().unwrap_err().to_string();
        assert!(
            message.contains("no/such/model") && message.contains("de-en, en-de"),
            "{message}"
        );
    }

    #[test]
    fn a_language_that_a_model_does_not_write_is_refused() {
        let german = Choice::of(Path::new("en-de")).expect("built in");
        let french = Choice::Into(Box::new(german), "fr".to_owned());
        let message = french.open().map(|_| ()).unwrap_err().to_string();
        assert!(message.contains("does not translate into fr"), "{message}");
    }
}
