//! What a checkpoint consists of, with a checksum of every file.
//!
//! `manifest.json` is written last, so a folder that has one was complete; the checksums tell
//! whether it still is. [`crate::run::checkpoint`] writes and checks it.

use std::fs::{self, File};
use std::path::Path;

use attentive_model::durable;
use serde::{Deserialize, Serialize};

use crate::error::StorageError;

/// The manifest's file name.
pub const FILE_NAME: &str = "manifest.json";

const FORMAT: u32 = 1;

/// What a checkpoint consists of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    /// Why it was written.
    pub kind: CheckpointKind,
    /// Every file but the manifest, by name.
    pub files: Vec<FileEntry>,
}

/// Why a checkpoint was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointKind {
    /// An epoch was complete; only these are averaged.
    Epoch,
    /// Steps or minutes had passed, or the run was stopped.
    Interval,
    /// Not a state of training but a finished model, such as an average.
    Model,
}

/// One file of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name in the folder.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its checksum.
    pub blake3: String,
}

impl Manifest {
    /// Describes the files that are in the folder now.
    pub fn of(folder: &Path, kind: CheckpointKind) -> Result<Self, StorageError> {
        let fail = StorageError::io("read", folder);
        let mut files = Vec::new();
        for entry in fs::read_dir(folder).map_err(&fail)? {
            let entry = entry.map_err(&fail)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != FILE_NAME {
                files.push(describe(folder, name)?);
            }
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Manifest {
            format: FORMAT,
            kind,
            files,
        })
    }

    /// Writes `manifest.json` into the folder.
    pub fn write(&self, folder: &Path) -> Result<(), StorageError> {
        let mut text = serde_json::to_string_pretty(self).expect("plain strings and numbers");
        text.push('\n');
        let path = folder.join(FILE_NAME);
        durable::write(&path, text.as_bytes()).map_err(StorageError::io("write", &path))
    }

    /// Reads `manifest.json`; the error is a sentence about what is wrong with it.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let text = match fs::read_to_string(folder.join(FILE_NAME)) {
            Ok(text) => text,
            Err(error) => return Err(format!("{FILE_NAME} cannot be read ({error})")),
        };
        let manifest: Manifest = serde_json::from_str(&text)
            .map_err(|error| format!("{FILE_NAME} is not a manifest ({error})"))?;
        match manifest {
            Manifest { format, .. } if format != FORMAT => Err(format!(
                "{FILE_NAME} has format {format}, and this program reads format {FORMAT}"
            )),
            Manifest { files, .. } if files.is_empty() => {
                Err(format!("{FILE_NAME} lists no files"))
            }
            manifest => Ok(manifest),
        }
    }

    /// One sentence for every file that is not as it was written; none if the folder is intact.
    pub fn problems(&self, folder: &Path) -> Vec<String> {
        self.files
            .iter()
            .filter_map(|expected| problem(folder, expected))
            .collect()
    }
}

fn problem(folder: &Path, expected: &FileEntry) -> Option<String> {
    let name = &expected.name;
    let path = folder.join(name);
    // The size is looked at first: a truncated file need not be read to the end.
    match fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Some(format!(
                "{name} is missing (expected {} bytes)",
                expected.bytes
            ));
        }
        Err(error) => return Some(format!("{name} cannot be read ({error})")),
        Ok(found) if found.len() != expected.bytes => {
            let (want, have) = (expected.bytes, found.len());
            return Some(format!("{name} has {have} bytes, expected {want}"));
        }
        Ok(_) => {}
    }
    match describe(folder, name.clone()) {
        Err(error) => Some(error.to_string()),
        Ok(found) if found.blake3 != expected.blake3 => Some(format!(
            "{name} has checksum {}, expected {}",
            short(&found.blake3),
            short(&expected.blake3)
        )),
        Ok(_) => None,
    }
}

fn describe(folder: &Path, name: String) -> Result<FileEntry, StorageError> {
    let path = folder.join(&name);
    let fail = StorageError::io("read", &path);
    let file = File::open(&path).map_err(&fail)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file).map_err(fail)?;
    let bytes = hasher.count();
    Ok(FileEntry {
        name,
        bytes,
        blake3: hasher.finalize().to_hex().to_string(),
    })
}

/// Enough of a checksum to tell two apart by eye.
fn short(checksum: &str) -> &str {
    checksum.get(..16).unwrap_or(checksum)
}
