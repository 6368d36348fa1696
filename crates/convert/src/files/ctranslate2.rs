//! CTranslate2's `model.bin`, versions 1 to 6.
//!
//! ```text
//! u32 version; from 2: str spec, u32 revision
//! u32 n, n x {str name, u8 rank, u32 dims[rank], from 4: u8 type, u32 bytes; before: u8 item size, u32 count; data}
//! from 3: u32 n, n x {str alias, str name}            (str: u16 length with the NUL, bytes, NUL)
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use super::bytes::Bytes;
use super::cursor::Cursor;
use super::limits::{self, Budget, MAX_RANK};
use super::{Dtype, Tensor, Tensors};
use crate::error::{ConvertError, Result};

const FORMAT: &str = "CTranslate2 model";
const VERSIONS: std::ops::RangeInclusive<u32> = 1..=6;

/// What a CTranslate2 `model.bin` holds.
#[derive(Debug)]
pub struct Ctranslate2File {
    /// The version of the binary format.
    pub version: u32,
    /// The kind of model, such as `TransformerSpec`; empty in version 1.
    pub spec: String,
    /// The revision of the kind of model; 1 in version 1.
    pub revision: u32,
    /// The variables. Strings are I8 arrays, numbers have no dimension.
    pub tensors: Tensors,
    /// Other names of variables: alias to name.
    pub aliases: BTreeMap<String, String>,
}

impl Ctranslate2File {
    /// The variable with this name or alias.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        let name = self.aliases.get(name).map_or(name, String::as_str);
        self.tensors.get(name)
    }
}

/// Reads a `model.bin` of CTranslate2; the variables stay in the mapped file.
pub fn read(path: &Path) -> Result<Ctranslate2File> {
    let bytes = Bytes::map(path)?;
    let mut budget = Budget::new(path, bytes.len());
    let mut cursor = Cursor::new(path, FORMAT, &bytes);
    let version = cursor.u32("the version")?;
    if !VERSIONS.contains(&version) {
        return Err(ConvertError::Unsupported {
            path: path.to_path_buf(),
            place: "byte 0".to_string(),
            found: format!("version {version} of CTranslate2's format"),
            remedy: format!(
                "versions {} to {} are read; convert the original model again",
                VERSIONS.start(),
                VERSIONS.end()
            ),
        });
    }
    let (spec, revision) = if version >= 2 {
        let spec = string(&mut cursor, "the kind of model")?.to_string();
        (spec, cursor.u32("the revision")?)
    } else {
        (String::new(), 1)
    };
    let mut tensors = Tensors::new(path);
    for _ in 0..cursor.u32("the number of variables")? {
        let name = string(&mut cursor, "the name of a variable")?.to_string();
        let tensor = variable(&mut cursor, &bytes, version, &name)?;
        tensors.insert(&mut budget, name, tensor)?;
    }
    let mut aliases = BTreeMap::new();
    if version >= 3 {
        for _ in 0..cursor.u32("the number of aliases")? {
            let alias = string(&mut cursor, "an alias")?.to_string();
            let name = string(&mut cursor, "the name of a variable")?.to_string();
            let taken = tensors.get(&alias).is_some() || aliases.contains_key(&alias);
            if taken || tensors.get(&name).is_none() {
                let expected = "a new name for one of the variables";
                return Err(cursor.damaged(expected, format!("`{alias}` for `{name}`")));
            }
            let own = alias.len() + name.len() + limits::ENTRY;
            budget.take(own, || format!("alias `{alias}`"))?;
            aliases.insert(alias, name);
        }
    }
    if cursor.left() > 0 {
        return Err(cursor.damaged(
            "the end of the file",
            format!("{} more bytes", cursor.left()),
        ));
    }
    Ok(Ctranslate2File {
        version,
        spec,
        revision,
        tensors,
        aliases,
    })
}

fn variable(cursor: &mut Cursor<'_>, bytes: &Bytes, version: u32, name: &str) -> Result<Tensor> {
    let rank = usize::from(cursor.u8("the number of dimensions")?);
    if rank > MAX_RANK {
        return Err(cursor.damaged(format!("at most {MAX_RANK} dimensions"), rank));
    }
    let mut shape = Vec::with_capacity(rank);
    for _ in 0..rank {
        shape.push(cursor.u32("a dimension")? as usize);
    }
    let code = cursor.u8("the type of the numbers")?;
    let dtype = if version >= 4 {
        dtype(code)
    } else {
        dtype_of_size(code)
    };
    let dtype = dtype.ok_or_else(|| {
        let expected = if version >= 4 {
            "a type from 0 to 5"
        } else {
            "1, 2 or 4 bytes for each number"
        };
        cursor.damaged_at(format!("variable `{name}`"), expected, code)
    })?;
    let count = cursor.u32("the size of the data")? as usize;
    let size = if version >= 4 {
        Some(count)
    } else {
        count.checked_mul(dtype.size())
    };
    let start = cursor.at();
    let data = size
        .map(|size| cursor.take(size, format!("variable `{name}`")))
        .transpose()?;
    let data = data.and_then(|data| bytes.slice(start..start + data.len()));
    let tensor = data.and_then(|data| Tensor::new(dtype, shape.clone(), data));
    tensor.ok_or_else(|| {
        cursor.damaged_at(
            format!("variable `{name}`"),
            format!("as much data as {dtype:?} {shape:?} takes"),
            count,
        )
    })
}

fn string<'a>(cursor: &mut Cursor<'a>, what: &str) -> Result<&'a str> {
    let length = usize::from(cursor.u16(format_args!("the length of {what}"))?);
    let text = cursor.name(length, what)?;
    text.strip_suffix('\0')
        .ok_or_else(|| cursor.damaged(format!("a NUL behind {what}"), "none"))
}

fn dtype(code: u8) -> Option<Dtype> {
    Some(match code {
        0 => Dtype::F32,
        1 => Dtype::I8,
        2 => Dtype::I16,
        3 => Dtype::I32,
        4 => Dtype::F16,
        5 => Dtype::BF16,
        _ => return None,
    })
}

/// Before version 4 the file says only how many bytes a number has.
fn dtype_of_size(size: u8) -> Option<Dtype> {
    Some(match size {
        4 => Dtype::F32,
        2 => Dtype::I16,
        1 => Dtype::I8,
        _ => return None,
    })
}
