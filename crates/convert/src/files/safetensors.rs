//! Safetensors: a header in JSON that says where each tensor is, then the tensors back to back.
//!
//! The header is read here and not with the `safetensors` library, which is made for headers that one trusts: it
//! keeps the whole header a second time as loose values, and adds up sizes without looking whether the sum still fits
//! into a number. `attentive-model` reads our own files with it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::bytes::Bytes;
use super::cursor::Cursor;
use super::limits::{Budget, MAX_NAME, MAX_RANK};
use super::{Dtype, Tensor, Tensors};
use crate::error::{ConvertError, Result};

const FORMAT: &str = "safetensors";

/// How much memory a byte of the header may become at most: a dimension takes two bytes there, and eight in a
/// vector that has three times its contents while it grows.
const BYTES_PER_HEADER_BYTE: usize = 12;

/// Reads the tensors of a safetensors file; they stay in the mapped file.
pub fn read(path: &Path) -> Result<Tensors> {
    let bytes = Bytes::map(path)?;
    let mut budget = Budget::new(path, bytes.len());
    let mut cursor = Cursor::new(path, FORMAT, &bytes);
    let length = cursor.size_u64("the length of the header")?;
    let header = cursor.take(length, "the header")?;
    budget.take(length.saturating_mul(BYTES_PER_HEADER_BYTE), || {
        "the header".to_string()
    })?;
    let header: Header = serde_json::from_slice(header).map_err(|error| {
        cursor.damaged_at("the header".to_string(), "JSON that lists tensors", error)
    })?;
    check_places(&cursor, &header)?;

    let mut tensors = Tensors::new(path);
    for (name, info) in header.0 {
        let dtype = dtype(&info.dtype).ok_or_else(|| ConvertError::Unsupported {
            path: path.to_path_buf(),
            place: format!("tensor `{name}`"),
            found: format!("the number format {:?}", info.dtype),
            remedy: "save the model with ordinary floating-point weights".to_string(),
        })?;
        let (start, end) = info.data_offsets;
        let data = bytes.slice(cursor.at() + start..cursor.at() + end);
        let tensor = data.and_then(|data| Tensor::new(dtype, info.shape.clone(), data));
        let tensor = tensor.ok_or_else(|| {
            cursor.damaged_at(
                format!("tensor `{name}`"),
                format!("as many bytes as {dtype:?} {:?} takes", info.shape),
                end - start,
            )
        })?;
        tensors.insert(&mut budget, name, tensor)?;
    }
    Ok(tensors)
}

/// Tensors follow each other without gaps from the end of the header to the end of the file.
fn check_places(cursor: &Cursor<'_>, header: &Header) -> Result<()> {
    let mut places: Vec<_> = header.0.iter().collect();
    places.sort_by_key(|(_, info)| info.data_offsets);
    let mut end = 0;
    for (name, info) in places {
        let place = || format!("tensor `{}`", &name[..name.floor_char_boundary(MAX_NAME)]);
        if info.shape.len() > MAX_RANK || name.len() > MAX_NAME {
            let expected = format!("at most {MAX_RANK} dimensions and {MAX_NAME} bytes of name");
            let found = format!("{} and {}", info.shape.len(), name.len());
            return Err(cursor.damaged_at(place(), expected, found));
        }
        let (first, last) = info.data_offsets;
        if first != end || last < first {
            let expected = format!("data from byte {end} on");
            return Err(cursor.damaged_at(place(), expected, format!("{first}..{last}")));
        }
        end = last;
    }
    if end != cursor.left() {
        return Err(cursor.damaged(
            format!("{end} bytes of tensors"),
            format!("{} bytes", cursor.left()),
        ));
    }
    Ok(())
}

fn dtype(name: &str) -> Option<Dtype> {
    Some(match name {
        "F64" => Dtype::F64,
        "F32" => Dtype::F32,
        "F16" => Dtype::F16,
        "BF16" => Dtype::BF16,
        "I64" => Dtype::I64,
        "I32" => Dtype::I32,
        "I16" => Dtype::I16,
        "I8" => Dtype::I8,
        "U8" => Dtype::U8,
        "BOOL" => Dtype::Bool,
        _ => return None,
    })
}

/// What the header says, without the notes that it may hold.
struct Header(BTreeMap<String, Info>);

#[derive(Deserialize)]
struct Info {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with an entry for each tensor")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Header, A::Error> {
                let mut tensors = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        let info = map.next_value()?;
                        if tensors.insert(name, info).is_some() {
                            return Err(A::Error::custom("a name occurs twice"));
                        }
                    }
                }
                Ok(Header(tensors))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}
