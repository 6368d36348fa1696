//! PyTorch's files: `pytorch_model.bin`, `.pt` and `.pth`, of both kinds.
//!
//! ```text
//! zip (since 1.6):   NAME/data.pkl, NAME/data/KEY ...       the pickle refers to the storages by key
//! stream (before):   magic, protocol, system, pickle, keys  as pickles; then for each key u64 n and n numbers
//! ```
//!
//! The pickle is a dictionary of tensors, or a checkpoint (fairseq's, for example) of nested dictionaries with
//! settings beside the tensors. `storage.rs` finds the numbers, `walk.rs` collects tensors and settings.

mod storage;
mod walk;

use std::path::Path;

use serde_json::Value;

use super::Tensors;
use super::archive::{Archive, Checksums};
use super::bytes::Bytes;
use super::cursor::Cursor;
use super::limits::Budget;
use super::pickle::{Global, Node, Pickle};
use crate::error::{ConvertError, Result};
use storage::Storages;
use walk::Walk;

const FORMAT: &str = "PyTorch";

/// The bytes of the number with which a stream of pickles begins.
const MAGIC: &[u8] = b"\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
const PROTOCOL: i64 = 1001;

/// Reads the tensors of a PyTorch file. Names of nested dictionaries are joined with dots.
pub fn read(path: &Path) -> Result<Tensors> {
    Ok(read_with_values(path)?.0)
}

/// As [`read`], with everything beside the tensors that JSON can express: numbers, texts, lists, dictionaries and
/// the fields of an `argparse.Namespace`. Other objects are `null`, and tensors are left out.
pub fn read_with_values(path: &Path) -> Result<(Tensors, Value)> {
    let bytes = Bytes::map(path)?;
    let mut budget = Budget::new(path, bytes.len());
    if bytes.starts_with(b"PK") {
        read_zip(path, &bytes, &mut budget)
    } else {
        read_stream(path, &bytes, &mut budget)
    }
}

fn read_zip(path: &Path, bytes: &Bytes, budget: &mut Budget) -> Result<(Tensors, Value)> {
    const PICKLE: &str = "data.pkl";
    let archive = Archive::open(path, bytes, budget)?;
    let damaged = |expected: &str| ConvertError::Damaged {
        path: path.to_path_buf(),
        format: FORMAT,
        place: "the archive".to_string(),
        expected: expected.to_string(),
        found: "none".to_string(),
    };
    let found = archive.names().find_map(|name| {
        let folder = name.strip_suffix(PICKLE)?;
        (folder.is_empty() || folder.ends_with('/')).then_some((name, folder))
    });
    let (name, folder) = found.ok_or_else(|| damaged("an entry data.pkl"))?;
    let order = archive.read(&format!("{folder}byteorder"), Checksums::Ignored, budget)?;
    if order.is_some_and(|order| *order != *b"little") {
        return Err(big_endian(path));
    }
    let data = archive.read(name, Checksums::Ignored, budget)?;
    let data = data.ok_or_else(|| damaged("an entry data.pkl"))?;
    let mut cursor = Cursor::of_part(path, FORMAT, name, &data);
    let pickle = Pickle::read(&mut cursor, budget, allowed)?;
    let storages = Storages::in_archive(&archive, folder);
    Walk::new(&cursor, &pickle, storages, budget).run()
}

fn read_stream(path: &Path, bytes: &Bytes, budget: &mut Budget) -> Result<(Tensors, Value)> {
    let mut cursor = Cursor::new(path, FORMAT, bytes);
    if !bytes.starts_with(b"\x80") {
        return Err(cursor.damaged("a zip archive or a stream of pickles", "other bytes"));
    }
    let magic = Pickle::read(&mut cursor, budget, allowed)?;
    if !matches!(magic.node(magic.root()), Node::LongInt(number) if *number == MAGIC) {
        return Err(cursor.damaged("PyTorch's magic number", "another pickle"));
    }
    let protocol = Pickle::read(&mut cursor, budget, allowed)?;
    if !matches!(protocol.node(protocol.root()), Node::Int(PROTOCOL)) {
        return Err(cursor.damaged(format!("protocol {PROTOCOL}"), "another"));
    }
    let system = Pickle::read(&mut cursor, budget, allowed)?;
    if let Node::Dict(items) = system.node(system.root()) {
        let is_order = |key| system.text(key) == Some("little_endian");
        let order = items.iter().find(|&&(key, _)| is_order(key));
        if order.is_some_and(|&(_, value)| matches!(system.node(value), Node::Bool(false))) {
            return Err(big_endian(path));
        }
    }
    let pickle = Pickle::read(&mut cursor, budget, allowed)?;
    let storages = Storages::in_stream(&mut cursor, bytes, &pickle, budget)?;
    Walk::new(&cursor, &pickle, storages, budget).run()
}

fn big_endian(path: &Path) -> ConvertError {
    ConvertError::Unsupported {
        path: path.to_path_buf(),
        place: "the byte order".to_string(),
        found: "a file with big-endian numbers".to_string(),
        remedy: "save it again on an ordinary machine, best as safetensors".to_string(),
    }
}

/// Which names may occur in a pickle. Those of tensors and dictionaries have a meaning; the others belong to
/// settings and counters that training programs keep beside the weights, and are only stepped over.
fn allowed(global: &Global<'_>) -> bool {
    let Global { module, name } = *global;
    if storage::dtype(global).is_some() {
        return true;
    }
    match module {
        "torch._utils" => matches!(
            name,
            "_rebuild_tensor" | "_rebuild_tensor_v2" | "_rebuild_parameter"
        ),
        "torch" => matches!(
            name,
            "Size"
                | "device"
                | "float64"
                | "float32"
                | "float16"
                | "bfloat16"
                | "int64"
                | "int32"
                | "int16"
                | "int8"
                | "uint8"
                | "bool"
        ),
        "collections" => matches!(name, "OrderedDict" | "defaultdict"),
        "argparse" => name == "Namespace",
        "builtins" | "__builtin__" => matches!(
            name,
            "int"
                | "long"
                | "float"
                | "bool"
                | "str"
                | "unicode"
                | "bytes"
                | "list"
                | "tuple"
                | "dict"
                | "set"
                | "frozenset"
                | "object"
        ),
        "copyreg" | "copy_reg" => name == "_reconstructor",
        "_codecs" => name == "encode",
        "numpy" => matches!(name, "dtype" | "ndarray"),
        "numpy.core.multiarray" | "numpy._core.multiarray" => {
            matches!(name, "scalar" | "_reconstruct")
        }
        "typing" => name == "Any",
        _ => matches!(module.split('.').next(), Some("fairseq" | "omegaconf")),
    }
}
