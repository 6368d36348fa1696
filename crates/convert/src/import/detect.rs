//! Which program a folder or a file comes from.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{files_of, json, name_of};
use crate::error::{ConvertError, Result};

/// A program's format, with the files to begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// A folder with a `config.json` that names a `model_type`.
    HuggingFace {
        /// The folder.
        folder: PathBuf,
    },
    /// Weights of Marian, Bergamot's included.
    Marian {
        /// The `.npz` or `.bin` file.
        weights: PathBuf,
    },
    /// A folder with `model.bin` and vocabularies.
    Ctranslate2 {
        /// The folder.
        folder: PathBuf,
    },
    /// An Argos package, unpacked.
    Argos {
        /// The folder with `metadata.json`.
        folder: PathBuf,
    },
    /// An Argos package.
    ArgosPackage {
        /// The `.argosmodel` file.
        package: PathBuf,
    },
    /// A checkpoint of fairseq with its dictionaries.
    Fairseq {
        /// The checkpoint.
        weights: PathBuf,
    },
}

/// Finds out which format a folder or a file has.
pub fn detect(source: &Path) -> Result<Format> {
    if source.is_file() {
        return of_file(source);
    }
    let files = files_of(source)?;
    let has = |name: &str| source.join(name).is_file();
    let ends = |ends: &[&str]| -> Vec<&PathBuf> {
        let fits = |path: &&PathBuf| ends.iter().any(|end| name_of(path).ends_with(end));
        files.iter().filter(fits).collect()
    };
    let folder = source.to_path_buf();
    if has("config.json") && model_type(&source.join("config.json")).is_some() {
        return Ok(Format::HuggingFace { folder });
    }
    if has("metadata.json") && source.join("model/model.bin").is_file() {
        return Ok(Format::Argos { folder });
    }
    if has("model.bin")
        && files
            .iter()
            .any(|path| name_of(path).contains("_vocabulary."))
    {
        return Ok(Format::Ctranslate2 { folder });
    }
    if files.iter().any(|path| is_dictionary(path)) {
        let weights = ends(&[".pt", ".safetensors", ".bin"]);
        let weights = only(source, &weights, "checkpoints")?;
        return Ok(Format::Fairseq { weights });
    }
    let npz = ends(&[".npz"]);
    if !npz.is_empty() {
        let model = npz.iter().find(|path| name_of(path) == "model.npz");
        let weights = match model {
            Some(path) => path.to_path_buf(),
            None => only(source, &npz, ".npz files")?,
        };
        return Ok(Format::Marian { weights });
    }
    let bins: Vec<&PathBuf> = ends(&[".bin", ".bin.gz"])
        .into_iter()
        .filter(|path| !name_of(path).contains(".s2t.") && is_marian(path))
        .collect();
    if !bins.is_empty() {
        let weights = only(source, &bins, "models")?;
        return Ok(Format::Marian { weights });
    }
    // A configuration that cannot be read says more than a list of files.
    if has("config.json") {
        json(&source.join("config.json"))?;
    }
    let names: Vec<&str> = files.iter().take(8).map(|path| name_of(path)).collect();
    let found = match names.len() {
        0 => "it holds no files".to_owned(),
        _ => format!("it holds {}", names.join(", ")),
    };
    Err(unrecognized(source, found))
}

fn of_file(source: &Path) -> Result<Format> {
    let name = name_of(source);
    let weights = source.to_path_buf();
    let folder = super::folder_of(source).to_path_buf();
    if name.ends_with(".argosmodel") {
        Ok(Format::ArgosPackage { package: weights })
    } else if name.ends_with(".npz") || is_marian(source) {
        Ok(Format::Marian { weights })
    } else if files_of(&folder)?.iter().any(|path| is_dictionary(path)) {
        Ok(Format::Fairseq { weights })
    } else if folder.join("config.json").is_file() || name == "model.bin" {
        detect(&folder)
    } else {
        Err(unrecognized(
            source,
            "it is a file of another kind".to_owned(),
        ))
    }
}

fn unrecognized(source: &Path, found: String) -> ConvertError {
    ConvertError::Unrecognized {
        path: source.to_path_buf(),
        found,
    }
}

/// The only file of a kind; with several the user must say which.
fn only(source: &Path, found: &[&PathBuf], what: &str) -> Result<PathBuf> {
    match found {
        [one] => Ok(one.to_path_buf()),
        [] => Err(unrecognized(source, format!("it holds no {what}"))),
        _ => {
            let names: Vec<&str> = found.iter().map(|path| name_of(path)).collect();
            let found = format!(
                "it holds several {what}: {}; name one of them",
                names.join(", ")
            );
            Err(unrecognized(source, found))
        }
    }
}

/// `dict.LANGUAGE.txt` of fairseq.
fn is_dictionary(path: &Path) -> bool {
    let name = name_of(path);
    name.starts_with("dict.") && name.ends_with(".txt")
}

/// What kind of model a `config.json` of Hugging Face names.
fn model_type(path: &Path) -> Option<String> {
    let config = json(path).ok()?;
    Some(config.get("model_type")?.as_str()?.to_owned())
}

/// Whether a `.bin` file begins with the version of Marian's format, or is packed with gzip.
fn is_marian(path: &Path) -> bool {
    let mut start = [0; 8];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && (u64::from_le_bytes(start) == 1 || start.starts_with(&[0x1f, 0x8b]))
}
