//! Marian's binary format, in which Bergamot's (Firefox's) int8 models come too, often packed with gzip.
//!
//! ```text
//! u64 version 1, u64 n, n x {u64 name_len, u64 type, u64 rank, u64 data_len}, names (each with a NUL),
//! shapes (i32), u64 padding, the padding, data
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use super::bytes::Bytes;
use super::cursor::Cursor;
use super::limits::{self, MAX_RANK};
use super::{Dtype, Tensor, Tensors, byte_count};
use crate::error::{ConvertError, Result};

const FORMAT: &str = "Marian .bin";
const VERSION: u64 = 1;

/// The tensors of a Marian .bin file.
#[derive(Debug)]
pub struct MarianBin {
    /// All tensors. An int8 matrix has the shape of its bytes: `[out, in]`, and `[vocab, d_model]` for embeddings
    /// (names with `Wemb`).
    pub tensors: Tensors,
    /// The multiplier of each int8 tensor: the real value is the integer divided by it.
    pub intgemm: BTreeMap<String, f32>,
}

/// What a number in the file's `type` field means.
#[derive(Debug, Clone, Copy)]
enum Type {
    Plain(Dtype),
    Intgemm8,
}

/// One entry of the list at the beginning of the file.
struct Header {
    name_len: usize,
    code: u64,
    rank: usize,
    data_len: usize,
}

/// Reads a Marian .bin file, also one that is packed with gzip.
pub fn read(path: &Path) -> Result<MarianBin> {
    let (bytes, mut budget) = Bytes::map_or_unpack(path)?;
    let mut cursor = Cursor::new(path, FORMAT, &bytes);
    let version = cursor.u64("the version")?;
    if version != VERSION {
        return Err(cursor.damaged(format!("version {VERSION}"), version));
    }
    let headers = headers(&mut cursor, &mut budget)?;
    let mut names = Vec::with_capacity(headers.len());
    for header in &headers {
        let name = cursor.name(header.name_len, "the name of a tensor")?;
        let name = name.strip_suffix('\0').filter(|name| !name.contains('\0'));
        names.push(name.ok_or_else(|| cursor.damaged("a name that ends with NUL", "another"))?);
    }
    let mut shapes = Vec::with_capacity(headers.len());
    for header in &headers {
        shapes.push(shape(&mut cursor, header.rank)?);
    }
    let padding = cursor.size_u64("the length of the padding")?;
    cursor.take(padding, "padding")?;

    let mut tensors = Tensors::new(path);
    let mut intgemm = BTreeMap::new();
    for ((header, name), shape) in headers.iter().zip(names).zip(shapes) {
        let start = cursor.at();
        let data = cursor.take(header.data_len, format!("tensor `{name}`"))?;
        let kind = kind(header.code).ok_or_else(|| unsupported(path, name, header.code))?;
        let (dtype, trailer) = match kind {
            Type::Plain(dtype) => (dtype, 0),
            Type::Intgemm8 => (Dtype::I8, size_of::<f32>()),
        };
        // Data is padded, so that there may be more of it than the shape asks for, but never less.
        let count = byte_count(dtype, &shape).filter(|count| {
            count
                .checked_add(trailer)
                .is_some_and(|all| all <= data.len())
        });
        let wrong = |expected: &str| {
            let found = format!("{} bytes for {shape:?}", data.len());
            cursor.damaged_at(format!("tensor `{name}`"), expected, found)
        };
        let count = count.ok_or_else(|| wrong("as many bytes as its shape asks for"))?;
        let shape = if let Type::Intgemm8 = kind {
            let multiplier = data[count..].first_chunk().map(|&m| f32::from_le_bytes(m));
            let multiplier = multiplier.filter(|&multiplier| multiplier > 0.0);
            let multiplier = multiplier.ok_or_else(|| wrong("a positive multiplier"))?;
            budget.take(name.len() + limits::ENTRY, || format!("tensor `{name}`"))?;
            intgemm.insert(name.to_string(), multiplier);
            match shape[..] {
                [rows, columns] if name.contains("Wemb") => vec![rows, columns],
                [input, output] => vec![output, input],
                _ => return Err(wrong("two dimensions")),
            }
        } else {
            shape
        };
        let part = bytes.slice(start..start + count);
        let tensor = part.and_then(|part| Tensor::new(dtype, shape, part));
        let tensor = tensor.ok_or_else(|| {
            cursor.damaged_at(
                format!("tensor `{name}`"),
                "data that fits its shape",
                count,
            )
        })?;
        tensors.insert(&mut budget, name.to_string(), tensor)?;
    }
    if cursor.left() > 0 {
        return Err(cursor.damaged(
            "the end of the file",
            format!("{} more bytes", cursor.left()),
        ));
    }
    Ok(MarianBin { tensors, intgemm })
}

/// The list of headers. Its length is compared with the file before memory is taken for it.
fn headers(cursor: &mut Cursor<'_>, budget: &mut limits::Budget) -> Result<Vec<Header>> {
    const HEADER: usize = 4 * size_of::<u64>();
    /// A header, a name and a shape in memory, the names and shapes themselves aside.
    const IN_MEMORY: usize = size_of::<Header>() + size_of::<&str>() + size_of::<Vec<usize>>();
    let count = cursor.size_u64("the number of tensors")?;
    if count > cursor.left() / HEADER {
        return Err(cursor.damaged(format!("at most {} tensors", cursor.left() / HEADER), count));
    }
    budget.take(count * IN_MEMORY, || "the list of tensors".to_string())?;
    let mut headers = Vec::with_capacity(count);
    for _ in 0..count {
        let header = Header {
            name_len: cursor.size_u64("the length of a name")?,
            code: cursor.u64("a type")?,
            rank: cursor.size_u64("a number of dimensions")?,
            data_len: cursor.size_u64("the length of the data")?,
        };
        if header.rank > MAX_RANK {
            return Err(cursor.damaged(format!("at most {MAX_RANK} dimensions"), header.rank));
        }
        budget.take(header.rank * size_of::<usize>(), || cursor.place())?;
        headers.push(header);
    }
    Ok(headers)
}

fn shape(cursor: &mut Cursor<'_>, rank: usize) -> Result<Vec<usize>> {
    let mut shape = Vec::with_capacity(rank);
    for _ in 0..rank {
        let dimension = i32::from_le_bytes(cursor.array("a dimension")?);
        let size = usize::try_from(dimension);
        shape
            .push(size.map_err(|_| cursor.damaged("a dimension that is not negative", dimension))?);
    }
    Ok(shape)
}

/// Marian's numbers of types: the class (signed, unsigned, float, int8 for intgemm) and the size of an element.
fn kind(code: u64) -> Option<Type> {
    Some(match code {
        0x408 => Type::Plain(Dtype::F64),
        0x404 => Type::Plain(Dtype::F32),
        0x402 => Type::Plain(Dtype::F16),
        0x108 => Type::Plain(Dtype::I64),
        0x104 => Type::Plain(Dtype::I32),
        0x102 => Type::Plain(Dtype::I16),
        0x101 => Type::Plain(Dtype::I8),
        0x201 => Type::Plain(Dtype::U8),
        // Bergamot's number, and that of Marian itself.
        0x4101 | 0x10001 => Type::Intgemm8,
        _ => return None,
    })
}

fn unsupported(path: &Path, name: &str, code: u64) -> ConvertError {
    ConvertError::Unsupported {
        path: path.to_path_buf(),
        place: format!("tensor `{name}`"),
        found: format!("Marian's type {code:#x}"),
        remedy: "convert the .npz file that it was made from, or a .bin file of f32 or intgemm8"
            .to_string(),
    }
}
