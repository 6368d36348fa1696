//! The readers under test, all called alike, and what must hold whatever the file is.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use attentive_convert::error::Result;
use attentive_convert::files::shortlist_bin::BergamotShortlist;
use attentive_convert::files::{
    Tensors, ctranslate2, marian_bin, npz, safetensors, shortlist_bin, torch,
};
use tempfile::TempDir;

use crate::allocation::peak;

/// What a reader gives.
pub enum Contents {
    Tensors(Tensors),
    Shortlist(BergamotShortlist),
    /// A vocabulary, which its reader has looked at.
    Text,
}

impl Contents {
    /// Whether both hold the same, to the last bit.
    pub fn equals(&self, other: &Contents) -> bool {
        match (self, other) {
            (Contents::Tensors(some), Contents::Tensors(others)) => {
                let all = |tensors: &Tensors| -> Vec<_> {
                    let about = tensors.iter().map(|(name, tensor)| {
                        let bytes = tensor.bytes().to_vec();
                        (name.to_string(), tensor.dtype, tensor.shape.clone(), bytes)
                    });
                    about.collect()
                };
                all(some) == all(others)
            }
            (Contents::Shortlist(some), Contents::Shortlist(other)) => some == other,
            _ => false,
        }
    }
}

/// A reader of one format.
pub type Reader = fn(&Path) -> Result<Contents>;

pub fn safetensors(path: &Path) -> Result<Contents> {
    safetensors::read(path).map(Contents::Tensors)
}

pub fn torch(path: &Path) -> Result<Contents> {
    let (tensors, _) = torch::read_with_values(path)?;
    Ok(Contents::Tensors(tensors))
}

pub fn npz(path: &Path) -> Result<Contents> {
    npz::read(path).map(Contents::Tensors)
}

pub fn marian(path: &Path) -> Result<Contents> {
    marian_bin::read(path).map(|file| Contents::Tensors(file.tensors))
}

pub fn ctranslate2(path: &Path) -> Result<Contents> {
    ctranslate2::read(path).map(|file| Contents::Tensors(file.tensors))
}

pub fn shortlist(path: &Path) -> Result<Contents> {
    shortlist_bin::read(path).map(Contents::Shortlist)
}

/// Memory that any file may take besides twice its size.
const CONSTANT: usize = 16 << 20;

/// A folder in which hostile files are written and read.
pub struct Attempts {
    folder: TempDir,
}

impl Attempts {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder for temporary files"),
        }
    }

    /// Reads `bytes` as a file. It must not panic, must not take too much memory, and gives what is consistent or
    /// an error that names the file. Also gives the memory that was used at most.
    pub fn read(&self, what: &str, reader: Reader, bytes: &[u8]) -> (Result<Contents>, usize) {
        let path = self.folder.path().join("model");
        // A new file each time: file systems flush one that is written over to the disk, which takes long.
        let _ = fs::remove_file(&path);
        fs::write(&path, bytes).expect("a temporary file");
        let read = AssertUnwindSafe(|| peak(|| reader(&path)));
        let (result, peak) =
            catch_unwind(read).unwrap_or_else(|_| panic!("reading it panicked: {what}"));
        let limit = 2 * bytes.len() + CONSTANT;
        assert!(
            peak <= limit,
            "{what}: {peak} bytes of memory, {limit} allowed"
        );
        match &result {
            Ok(Contents::Tensors(tensors)) => {
                for (name, tensor) in tensors.iter() {
                    let size: usize = tensor.shape.iter().product();
                    assert_eq!(tensor.len(), size, "{what}: {name}");
                    let bytes = tensor.bytes().len();
                    assert_eq!(bytes, size * tensor.dtype.size(), "{what}: {name}");
                }
            }
            Ok(Contents::Shortlist(list)) => {
                assert!(list.offsets.is_sorted(), "{what}");
                assert_eq!(
                    list.offsets.last(),
                    Some(&(list.ids.len() as u64)),
                    "{what}"
                );
            }
            Ok(Contents::Text) => {}
            Err(error) => {
                let message = error.to_string();
                let named = message.contains(&path.display().to_string());
                assert!(named, "{what}: the file is not named: {message}");
                assert!(message.len() < 10_000, "{what}: {} letters", message.len());
            }
        }
        (result, peak)
    }

    /// As [`Attempts::read`], for a file that must be refused; gives the message.
    pub fn refuse(&self, what: &str, reader: Reader, bytes: &[u8]) -> String {
        let (result, _) = self.read(what, reader, bytes);
        match result {
            Ok(_) => panic!("{what}: the file was accepted"),
            Err(error) => error.to_string(),
        }
    }

    /// The names of what is in the folder besides the file.
    pub fn leftovers(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("the folder is there");
        let names = entries.map(|entry| entry.expect("readable").file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        names.filter(|name| name != "model").collect()
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}
