//! NumPy's .npz, in which Marian keeps its models: a zip archive of .npy files, one for each tensor.

use std::path::Path;

use super::archive::{Archive, Checksums};
use super::bytes::Bytes;
use super::cursor::Cursor;
use super::limits::{Budget, MAX_RANK};
use super::strided::View;
use super::{Dtype, Tensor, Tensors, byte_count};
use crate::error::{ConvertError, Result};

const FORMAT: &str = "NumPy .npz";
const MAGIC: &[u8] = b"\x93NUMPY";

/// Reads the arrays of an .npz file, stored or deflated; their names have no `.npy`. Stored ones stay in the mapped
/// file.
pub fn read(path: &Path) -> Result<Tensors> {
    let bytes = Bytes::map(path)?;
    let mut budget = Budget::new(path, bytes.len());
    let archive = Archive::open(path, &bytes, &mut budget)?;
    let mut tensors = Tensors::new(path);
    for entry in archive.names() {
        let array = archive.read(entry, Checksums::Verified, &mut budget)?;
        let name = entry.strip_suffix(".npy");
        let (Some(array), Some(name)) = (array, name) else {
            return Err(ConvertError::Unsupported {
                path: path.to_path_buf(),
                place: format!("entry `{entry}`"),
                found: "an entry that is no .npy array".to_string(),
                remedy: "give a model as Marian or numpy.savez wrote it".to_string(),
            });
        };
        let tensor = array_of(path, entry, &array, &mut budget)?;
        tensors.insert(&mut budget, name.to_string(), tensor)?;
    }
    Ok(tensors)
}

/// Reads a .npy file: magic, version, and a Python dictionary that says what the rest is.
fn array_of(path: &Path, entry: &str, bytes: &Bytes, budget: &mut Budget) -> Result<Tensor> {
    let mut cursor = Cursor::of_part(path, FORMAT, entry, bytes);
    let magic = cursor.take(MAGIC.len(), "NumPy's magic word")?;
    if magic != MAGIC {
        return Err(cursor.damaged("NumPy's magic word", "other bytes"));
    }
    let [major, _] = cursor.array("a version")?;
    let length = if major == 1 {
        cursor.u16("the length of the header")?.into()
    } else {
        cursor.u32("the length of the header")? as usize
    };
    let header = cursor.name(length, "the header")?;
    let Header {
        descr,
        fortran,
        shape,
    } = parse(header).ok_or_else(|| {
        cursor.damaged(
            "a header with descr, fortran_order and shape",
            format!("{header:?}"),
        )
    })?;
    let dtype = dtype(descr).ok_or_else(|| ConvertError::Unsupported {
        path: path.to_path_buf(),
        place: format!("array `{entry}`"),
        found: format!("NumPy's number format {descr:?}"),
        remedy: "save it as little-endian float16, float32, float64 or signed integers".to_string(),
    })?;
    if byte_count(dtype, &shape) != Some(cursor.left()) {
        return Err(cursor.damaged(
            format!("as many bytes as {dtype:?} {shape:?} takes"),
            cursor.left(),
        ));
    }
    let data = bytes.slice(cursor.at()..bytes.len());
    let tensor = match data {
        Some(data) if fortran => match View::fortran(shape) {
            Some(view) => view.tensor(dtype, &data, budget, entry)?,
            None => None,
        },
        Some(data) => Tensor::new(dtype, shape, data),
        None => None,
    };
    tensor.ok_or_else(|| cursor.damaged("data that fits its shape", cursor.left()))
}

struct Header<'a> {
    descr: &'a str,
    fortran: bool,
    shape: Vec<usize>,
}

/// Reads the dictionary `{'descr': '<f4', 'fortran_order': False, 'shape': (8000, 256), }`.
fn parse(header: &str) -> Option<Header<'_>> {
    let value = |key: &str| -> Option<&str> {
        let (_, behind) = header.split_once(key)?;
        Some(behind.trim_start().strip_prefix(':')?.trim_start())
    };
    let (descr, _) = value("'descr'")?.strip_prefix('\'')?.split_once('\'')?;
    let fortran = value("'fortran_order'")?;
    let fortran = match (fortran.starts_with("True"), fortran.starts_with("False")) {
        (true, _) => true,
        (_, true) => false,
        _ => return None,
    };
    let (sizes, _) = value("'shape'")?.strip_prefix('(')?.split_once(')')?;
    let sizes = sizes
        .split(',')
        .map(str::trim)
        .filter(|size| !size.is_empty());
    let shape: Vec<usize> = sizes
        .take(MAX_RANK + 1)
        .map(|size| size.parse().ok())
        .collect::<Option<_>>()?;
    (shape.len() <= MAX_RANK).then_some(Header {
        descr,
        fortran,
        shape,
    })
}

fn dtype(descr: &str) -> Option<Dtype> {
    Some(match descr {
        "<f8" => Dtype::F64,
        "<f4" => Dtype::F32,
        "<f2" => Dtype::F16,
        "<i8" => Dtype::I64,
        "<i4" => Dtype::I32,
        "<i2" => Dtype::I16,
        // NumPy writes `|` for single bytes, Marian `<`.
        "|i1" | "<i1" => Dtype::I8,
        "|u1" | "<u1" => Dtype::U8,
        "|b1" => Dtype::Bool,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_numpy_and_of_marian_are_read() {
        let numpy = parse("{'descr': '|i1', 'fortran_order': True, 'shape': (3,), }    \n");
        let numpy = numpy.expect("valid");
        assert_eq!(
            (numpy.descr, numpy.fortran, numpy.shape),
            ("|i1", true, vec![3])
        );
        let scalar = parse("{'descr':'<f4','fortran_order':False,'shape':()}").expect("valid");
        assert!(scalar.shape.is_empty());
        assert!(!scalar.fortran);
        for bad in [
            "",
            "{'descr': '<f4', 'fortran_order': None, 'shape': (3,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3",
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
        ] {
            assert!(parse(bad).is_none(), "{bad}");
        }
    }
}
