//! Models of other programs that are used as they are: imported into the cache the first time.
//!
//! [`crate::model`] asks for them where `--model` names something that is no model directory. A folder in the cache is
//! named by the path, and by sizes and times of the files in it: where they change, the model is imported again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::Context;
use attentive_convert::{ImportOptions, Imported, detect, import};

use crate::terminal::Terminal;

/// The model directory of another program's model, if `source` is one.
pub fn imported(
    source: &Path,
    cache: Option<PathBuf>,
    terminal: &Terminal,
) -> anyhow::Result<Option<PathBuf>> {
    if !source.exists() || detect(source).is_err() {
        return Ok(None);
    }
    let cache = cache.context(
        "there is no cache folder to import the model into (ATTENTIVE_CACHE is empty): use `attentive import`",
    )?;
    let place = cache.join(format!("imported-{}", key(source)?));
    if place.join("config.json").is_file() {
        return Ok(Some(place));
    }
    terminal.note(format_args!(
        "importing {} into {}",
        source.display(),
        place.display()
    ));
    fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
    let Imported { warnings, .. } = import(source, &place, &ImportOptions::default())?;
    for warning in warnings {
        terminal.warn(warning);
    }
    Ok(Some(place))
}

/// A hash of the path and of the sizes and times of the files.
fn key(source: &Path) -> anyhow::Result<String> {
    let about = |path: &Path| -> anyhow::Result<String> {
        let metadata =
            fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
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
    let source =
        fs::canonicalize(source).with_context(|| format!("cannot read {}", source.display()))?;
    let mut text = format!("{}\n{}\n", env!("CARGO_PKG_VERSION"), about(&source)?);
    // A weights file depends on the vocabularies beside it.
    let folder = if source.is_dir() {
        Some(source.as_path())
    } else {
        source.parent()
    };
    if let Some(folder) = folder {
        let mut files: Vec<PathBuf> = fs::read_dir(folder)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        files.sort();
        for file in files.iter().filter(|file| file.is_file()) {
            text.push_str(&about(file)?);
        }
    }
    Ok(blake3::hash(text.as_bytes()).to_hex()[..16].to_owned())
}
