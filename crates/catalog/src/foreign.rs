//! Models of other programs that are used as they are: imported into the cache the first time.
//!
//! [`crate::choice`] asks for them where something is no model directory. A folder in the cache is named by the path, and
//! by sizes and times of the files in it: where they change, the model is imported again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use attentive_convert::{ImportOptions, Imported, detect, import};

use crate::error::{CatalogError, Result};

/// What there is to say about an import.
#[derive(Debug)]
pub enum Notice {
    /// It begins, and takes a moment.
    Importing {
        /// The other program's model.
        source: PathBuf,
        /// The folder in the cache.
        place: PathBuf,
    },
    /// Something is not as in the other program.
    Warning(String),
}

/// The model directory of another program's model, if `source` is one.
pub fn imported(
    source: &Path,
    cache: Option<PathBuf>,
    mut say: impl FnMut(Notice),
) -> Result<Option<PathBuf>> {
    if !source.exists() || detect(source).is_err() {
        return Ok(None);
    }
    let cache = cache.ok_or(CatalogError::NoCache)?;
    let place = cache.join(format!("imported-{}", key(source)?));
    if place.join("config.json").is_file() {
        return Ok(Some(place));
    }
    say(Notice::Importing {
        source: source.to_owned(),
        place: place.clone(),
    });
    fs::create_dir_all(&cache).map_err(failed("create", &cache))?;
    let Imported { warnings, .. } = match import(source, &place, &ImportOptions::default()) {
        Ok(imported) => imported,
        // Another process imported it meanwhile. A folder appears whole, so that it is what we were about to write.
        Err(_) if place.join("config.json").is_file() => return Ok(Some(place)),
        Err(error) => return Err(error.into()),
    };
    for warning in warnings {
        say(Notice::Warning(warning.to_string()));
    }
    Ok(Some(place))
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> CatalogError {
    let path = path.to_owned();
    move |source| CatalogError::Io {
        action,
        path,
        source,
    }
}

/// A hash of the path and of the sizes and times of the files.
fn key(source: &Path) -> Result<String> {
    let about = |path: &Path| -> Result<String> {
        let metadata = fs::metadata(path).map_err(failed("read", path))?;
        let modified = metadata
            .modified()
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Ok(format!(
            "{}\0{}\0{modified:?}\n",
            path.display(),
            metadata.len()
        ))
    };
    let source = fs::canonicalize(source).map_err(failed("read", source))?;
    let mut text = format!("{}\n{}\n", env!("CARGO_PKG_VERSION"), about(&source)?);
    // A weights file depends on the vocabularies beside it.
    let folder = if source.is_dir() {
        Some(source.as_path())
    } else {
        source.parent()
    };
    if let Some(folder) = folder {
        let mut files: Vec<PathBuf> = fs::read_dir(folder)
            .map_err(failed("read", folder))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        files.sort();
        for file in files.iter().filter(|file| file.is_file()) {
            text.push_str(&about(file)?);
        }
    }
    Ok(blake3::hash(text.as_bytes()).to_hex()[..16].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy of one of the importer's fixtures.
    fn model() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../convert/tests/fixtures/huggingface/marian");
        for entry in fs::read_dir(fixture).expect("a fixture") {
            let path = entry.expect("a file").path();
            fs::copy(&path, folder.path().join(path.file_name().expect("a name"))).expect("copied");
        }
        folder
    }

    /// Asks for the model; says where it is and how often it was imported for that.
    fn ask(source: &Path, cache: &Path) -> (PathBuf, usize) {
        let mut imports = 0;
        let place = imported(source, Some(cache.to_owned()), |notice| {
            imports += usize::from(matches!(notice, Notice::Importing { .. }));
        });
        (
            place.expect("it can be imported").expect("a model"),
            imports,
        )
    }

    #[test]
    fn a_model_is_imported_once_and_again_after_a_change() {
        let (source, cache) = (model(), tempfile::tempdir().expect("a folder"));
        let (first, imports) = ask(source.path(), cache.path());
        assert_eq!(imports, 1);
        assert_eq!(ask(source.path(), cache.path()), (first.clone(), 0));
        let config = source.path().join("generation_config.json");
        let text = fs::read_to_string(&config).expect("read");
        fs::write(&config, text + "\n").expect("written");
        let (second, imports) = ask(source.path(), cache.path());
        assert_eq!(imports, 1);
        assert_ne!(first, second);
        assert_eq!(ask(source.path(), cache.path()), (second, 0));
    }

    #[test]
    fn a_model_that_another_process_imports_meanwhile_is_there() {
        let (source, cache) = (model(), tempfile::tempdir().expect("a folder"));
        let folder = || Some(cache.path().to_owned());
        let mut meanwhile = None;
        let place = imported(source.path(), folder(), |_| {
            meanwhile = imported(source.path(), folder(), |_| {}).expect("the first of both");
        });
        let place = place.expect("the second of both");
        assert!(place.is_some());
        assert_eq!(place, meanwhile);
    }

    #[test]
    fn what_cannot_be_imported_is_said_every_time() {
        let (source, cache) = (model(), tempfile::tempdir().expect("a folder"));
        fs::write(source.path().join("vocab.json"), "{}").expect("written");
        for _ in 0..2 {
            let result = imported(source.path(), Some(cache.path().to_owned()), |_| {});
            let message = result.expect_err("no vocabulary").to_string();
            assert!(message.contains("vocab.json"), "{message}");
        }
    }
}
