//! Where the numbers of PyTorch's tensors are: entries of a zip archive, or one after the other behind the pickles.
//!
//! A storage is a row of numbers that one or several tensors look at; the pickle names it by a tuple.

use std::collections::HashMap;

use crate::error::{ConvertError, Result};
use crate::files::Dtype;
use crate::files::archive::{Archive, Checksums};
use crate::files::bytes::Bytes;
use crate::files::cursor::Cursor;
use crate::files::limits::{self, Budget};
use crate::files::pickle::{Global, Node, NodeId, Pickle};

use super::allowed;

/// What a pickle says about a storage: `('storage', type, key, location, numel[, view])`.
#[derive(Debug, Clone, Copy)]
pub(super) struct StorageRef<'a> {
    pub dtype: Dtype,
    pub key: &'a str,
    /// How many numbers it has.
    pub count: usize,
    /// Where the part begins that is looked at; only old files have such parts.
    pub offset: usize,
}

impl<'a> StorageRef<'a> {
    /// Reads the tuple, or nothing if it is another one.
    pub fn read(pickle: &Pickle<'a>, tuple: NodeId) -> Option<Self> {
        let (&[word, global, key, _, count], view) = pickle.list(tuple)?.split_first_chunk()?;
        if pickle.text(word) != Some("storage") {
            return None;
        }
        let Node::Global(global) = pickle.node(global) else {
            return None;
        };
        let offset = match view.first().and_then(|&view| pickle.list(view)) {
            Some(&[_, offset, _]) => pickle.size(offset)?,
            Some(_) => return None,
            None => 0,
        };
        Some(Self {
            dtype: dtype(global)?,
            key: pickle.text(key)?,
            count: pickle.size(count)?,
            offset,
        })
    }
}

/// The number format of a class of storages.
pub(super) fn dtype(global: &Global<'_>) -> Option<Dtype> {
    if global.module != "torch" {
        return None;
    }
    Some(match global.name {
        "DoubleStorage" => Dtype::F64,
        "FloatStorage" => Dtype::F32,
        "HalfStorage" => Dtype::F16,
        "BFloat16Storage" => Dtype::BF16,
        "LongStorage" => Dtype::I64,
        "IntStorage" => Dtype::I32,
        "ShortStorage" => Dtype::I16,
        "CharStorage" => Dtype::I8,
        "ByteStorage" => Dtype::U8,
        "BoolStorage" => Dtype::Bool,
        _ => return None,
    })
}

/// The storages of a file.
pub(super) enum Storages<'a> {
    /// Entries of an archive, and those of them that had to be unpacked.
    InArchive {
        archive: &'a Archive<'a>,
        folder: &'a str,
        unpacked: HashMap<String, Bytes>,
    },
    /// Parts of the file by their keys.
    InStream(HashMap<String, Bytes>),
}

impl<'a> Storages<'a> {
    /// The storages beside the pickle in `folder`.
    pub fn in_archive(archive: &'a Archive<'a>, folder: &'a str) -> Self {
        Self::InArchive {
            archive,
            folder,
            unpacked: HashMap::new(),
        }
    }

    /// The storages behind the pickle: a pickle of keys, then the numbers of each with their count.
    pub fn in_stream(
        cursor: &mut Cursor<'a>,
        bytes: &Bytes,
        pickle: &Pickle<'a>,
        budget: &mut Budget,
    ) -> Result<Self> {
        // Only the main pickle says how large the numbers of a storage are.
        let mut sizes = HashMap::new();
        for node in pickle.nodes() {
            if let Node::Persistent(tuple) = node
                && let Some(storage) = StorageRef::read(pickle, *tuple)
            {
                budget.take(limits::ENTRY, || format!("storage `{}`", storage.key))?;
                sizes.insert(storage.key, storage.dtype.size());
            }
        }
        let keys = Pickle::read(cursor, budget, allowed)?;
        let list = keys.list(keys.root());
        let list = list.ok_or_else(|| cursor.damaged("a list of storages", "another value"))?;
        let mut storages = HashMap::new();
        for &key in list {
            let key = keys.text(key).and_then(|key| Some((key, *sizes.get(key)?)));
            let (key, size) =
                key.ok_or_else(|| cursor.damaged("keys of storages that tensors use", "another"))?;
            let count = cursor.size_u64("the size of a storage")?;
            let start = cursor.at();
            let length = count.saturating_mul(size);
            cursor.take(length, format!("storage `{key}`"))?;
            budget.take(key.len() + limits::ENTRY, || format!("storage `{key}`"))?;
            if let Some(part) = bytes.slice(start..start + length) {
                storages.insert(key.to_string(), part);
            }
        }
        if cursor.left() > 0 {
            let found = format!("{} more bytes", cursor.left());
            return Err(cursor.damaged("the end of the file", found));
        }
        Ok(Self::InStream(storages))
    }

    /// The numbers of a storage, if the file has it.
    pub fn get(&mut self, key: &str, budget: &mut Budget) -> Result<Option<Bytes>> {
        match self {
            Self::InStream(storages) => Ok(storages.get(key).cloned()),
            Self::InArchive {
                archive,
                folder,
                unpacked,
            } => {
                if let Some(bytes) = unpacked.get(key) {
                    return Ok(Some(bytes.clone()));
                }
                if key.len() > limits::MAX_NAME {
                    return Ok(None);
                }
                let entry = format!("{folder}data/{key}");
                let bytes = archive.read(&entry, Checksums::Ignored, budget)?;
                if let Some(bytes) = &bytes {
                    budget.take(key.len() + limits::ENTRY, || format!("storage `{key}`"))?;
                    unpacked.insert(key.to_string(), bytes.clone());
                }
                Ok(bytes)
            }
        }
    }
}

/// What is wrong with a tensor whose storage is not as the pickle says.
pub(super) fn mismatch(
    cursor: &Cursor<'_>,
    tensor: &str,
    storage: &StorageRef<'_>,
    found: Option<usize>,
) -> ConvertError {
    let key = &storage.key[..storage.key.floor_char_boundary(limits::MAX_NAME)];
    cursor.damaged_at(
        format!("tensor `{tensor}`"),
        format!(
            "storage `{key}` with {} numbers of {:?}",
            storage.count, storage.dtype
        ),
        found.map_or("none".to_string(), |bytes| format!("{bytes} bytes")),
    )
}
