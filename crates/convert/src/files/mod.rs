//! Readers of other programs' weight files: each turns a file into [`Tensors`], named arrays of numbers.
//!
//! The readers trust nothing that a file says. Large data is mapped and borrowed, whatever must be copied is
//! counted (`limits.rs`), so that reading takes at most twice the size of the file and 16 MB of memory. What the
//! tensors mean is not known here: that is what converting a format into a model directory is about.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{ConvertError, Result};

pub(crate) mod archive;
pub mod bytes;
pub mod ctranslate2;
mod cursor;
pub(crate) mod limits;
pub mod marian_bin;
pub mod npz;
mod pickle;
pub mod safetensors;
pub mod shortlist_bin;
mod strided;
pub mod torch;

use bytes::Bytes;
use limits::Budget;

/// How the bytes of a tensor are to be read; all little endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    /// IEEE double precision.
    F64,
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// The upper half of a single-precision number.
    BF16,
    /// Signed, 8 bytes.
    I64,
    /// Signed, 4 bytes.
    I32,
    /// Signed, 2 bytes.
    I16,
    /// Signed, 1 byte.
    I8,
    /// Unsigned, 1 byte.
    U8,
    /// One byte, 0 or 1.
    Bool,
}

impl Dtype {
    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Dtype::F64 | Dtype::I64 => 8,
            Dtype::F32 | Dtype::I32 => 4,
            Dtype::F16 | Dtype::BF16 | Dtype::I16 => 2,
            Dtype::I8 | Dtype::U8 | Dtype::Bool => 1,
        }
    }
}

/// An array of numbers in C order (the last dimension varies fastest).
#[derive(Debug, Clone)]
pub struct Tensor {
    /// How the bytes are to be read.
    pub dtype: Dtype,
    /// The size of each dimension; empty for a single number.
    pub shape: Vec<usize>,
    bytes: Bytes,
}

impl Tensor {
    /// A tensor over `bytes`, or nothing if shape and type ask for another number of bytes.
    pub fn new(dtype: Dtype, shape: Vec<usize>, bytes: Bytes) -> Option<Self> {
        (byte_count(dtype, &shape)? == bytes.len()).then_some(Self {
            dtype,
            shape,
            bytes,
        })
    }

    /// The numbers as they are stored; they begin wherever the file has them, so they may not be aligned.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many numbers there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.size()
    }

    /// Whether there are no numbers, because a dimension is 0.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The numbers as f32: exact for F32, F16, BF16, I16, I8, U8 and Bool, rounded for the others. Scales that a
    /// format keeps beside its integers are not applied.
    pub fn to_f32(&self) -> Vec<f32> {
        let bytes = self.bytes();
        match self.dtype {
            Dtype::F64 => each(bytes, |b| f64::from_le_bytes(b) as f32),
            Dtype::F32 => each(bytes, f32::from_le_bytes),
            Dtype::F16 => each(bytes, |b| f16_to_f32(u16::from_le_bytes(b))),
            Dtype::BF16 => each(bytes, |b| {
                f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16)
            }),
            Dtype::I64 => each(bytes, |b| i64::from_le_bytes(b) as f32),
            Dtype::I32 => each(bytes, |b| i32::from_le_bytes(b) as f32),
            Dtype::I16 => each(bytes, |b| f32::from(i16::from_le_bytes(b))),
            Dtype::I8 => each(bytes, |b| f32::from(i8::from_le_bytes(b))),
            Dtype::U8 | Dtype::Bool => each(bytes, |b| f32::from(u8::from_le_bytes(b))),
        }
    }
}

/// The tensors of a file, ordered by name.
#[derive(Debug)]
pub struct Tensors {
    path: PathBuf,
    tensors: BTreeMap<String, Tensor>,
}

impl Tensors {
    /// No tensors yet, of the file at `path`.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            tensors: BTreeMap::new(),
        }
    }

    /// Adds a tensor; a name that is there already is an error of the file.
    pub(crate) fn insert(
        &mut self,
        budget: &mut Budget,
        name: String,
        tensor: Tensor,
    ) -> Result<()> {
        let own = name.len() + tensor.shape.len() * size_of::<usize>() + limits::ENTRY;
        budget.take(own, || format!("tensor `{name}`"))?;
        if self.tensors.contains_key(&name) {
            return Err(self.twice(&name));
        }
        self.tensors.insert(name, tensor);
        Ok(())
    }

    /// Adds some of the tensors of another file of the same weights; a name that is there already is an error.
    pub(crate) fn extend(&mut self, other: Tensors, wanted: impl Fn(&str) -> bool) -> Result<()> {
        for (name, tensor) in other.tensors {
            if !wanted(&name) {
                continue;
            }
            if self.tensors.contains_key(&name) {
                return Err(self.twice(&name));
            }
            self.tensors.insert(name, tensor);
        }
        Ok(())
    }

    fn twice(&self, name: &str) -> ConvertError {
        ConvertError::Damaged {
            path: self.path.clone(),
            format: "weights",
            place: format!("tensor `{name}`"),
            expected: "each name once".to_string(),
            found: "the name twice".to_string(),
        }
    }

    /// The file they came from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Their names in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Names and tensors in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.tensors
            .iter()
            .map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// The tensor of this name, if there is one.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.tensors.get(name)
    }

    /// The tensor of this name, which must have this shape and hold at least one number.
    pub fn require(&self, name: &str, shape: &[usize]) -> Result<&Tensor> {
        let tensor = self.get(name).ok_or_else(|| ConvertError::MissingTensor {
            path: self.path.clone(),
            name: name.to_string(),
            count: self.len(),
        })?;
        if tensor.shape != shape {
            return Err(ConvertError::WrongShape {
                path: self.path.clone(),
                name: name.to_string(),
                expected: shape.to_vec(),
                found: tensor.shape.clone(),
            });
        }
        if tensor.is_empty() {
            return Err(ConvertError::Damaged {
                path: self.path.clone(),
                format: "weights",
                place: format!("tensor `{name}`"),
                expected: "numbers".to_string(),
                found: format!("none: its shape is {shape:?}"),
            });
        }
        Ok(tensor)
    }
}

/// How many bytes a tensor takes, unless they are too many to count.
pub(crate) fn byte_count(dtype: Dtype, shape: &[usize]) -> Option<usize> {
    // A dimension of 0 makes the tensor empty, whatever the others are.
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(dtype.size(), |bytes, &dimension| {
        bytes.checked_mul(dimension)
    })
}

fn each<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    let (chunks, _) = bytes.as_chunks();
    chunks.iter().map(|&chunk| read(chunk)).collect()
}

fn f16_to_f32(half: u16) -> f32 {
    let (exponent, mantissa) = ((half >> 10) & 0x1f, half & 0x3ff);
    let magnitude = match exponent {
        0 => f32::from(mantissa) * (-24f32).exp2(),
        0x1f => f32::from_bits(0x7f80_0000 | u32::from(mantissa) << 13),
        _ => f32::from_bits((u32::from(exponent) + 112) << 23 | u32::from(mantissa) << 13),
    };
    if half & 0x8000 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(dtype: Dtype, bytes: &[u8]) -> Tensor {
        let shape = vec![bytes.len() / dtype.size()];
        Tensor::new(dtype, shape, Bytes::from(bytes.to_vec())).expect("it fits")
    }

    #[test]
    fn every_number_format_becomes_f32() {
        let cases: [(Dtype, &[u8], &[f32]); 10] = [
            (Dtype::F64, &(-2.5f64).to_le_bytes(), &[-2.5]),
            (Dtype::F32, &(0.1f32).to_le_bytes(), &[0.1]),
            (Dtype::F16, &[0x00, 0x3c, 0x00, 0xc5], &[1.0, -5.0]),
            (Dtype::BF16, &[0x80, 0x3f, 0x40, 0xc0], &[1.0, -3.0]),
            (Dtype::I64, &(-7i64).to_le_bytes(), &[-7.0]),
            (Dtype::I32, &(70_000i32).to_le_bytes(), &[70_000.0]),
            (Dtype::I16, &(-300i16).to_le_bytes(), &[-300.0]),
            (Dtype::I8, &[0x81, 5], &[-127.0, 5.0]),
            (Dtype::U8, &[255], &[255.0]),
            (Dtype::Bool, &[0, 1], &[0.0, 1.0]),
        ];
        for (dtype, bytes, expected) in cases {
            assert_eq!(tensor(dtype, bytes).to_f32(), expected, "{dtype:?}");
        }
    }

    #[test]
    fn half_precision_is_exact_at_its_borders() {
        let cases = [
            (0x0001, 2f32.powi(-24)),
            (0x03ff, 1023.0 * 2f32.powi(-24)),
            (0x0400, 2f32.powi(-14)),
            (0x7bff, 65504.0),
            (0x8000, -0.0),
            (0x7c00, f32::INFINITY),
            (0xfc00, f32::NEG_INFINITY),
        ];
        for (half, expected) in cases {
            assert_eq!(f16_to_f32(half).to_bits(), expected.to_bits(), "{half:#x}");
        }
        assert!(f16_to_f32(0x7e00).is_nan());
    }

    #[test]
    fn a_shape_that_does_not_fit_is_refused() {
        let bytes = Bytes::from(vec![0; 8]);
        assert!(Tensor::new(Dtype::F32, vec![2], bytes.clone()).is_some());
        assert!(Tensor::new(Dtype::F32, vec![3], bytes.clone()).is_none());
        assert!(Tensor::new(Dtype::F32, vec![usize::MAX, 2], bytes).is_none());
        assert!(Tensor::new(Dtype::F32, vec![usize::MAX, 2, 0], Bytes::from(vec![])).is_some());
    }

    #[test]
    fn a_missing_tensor_and_a_wrong_shape_are_named() {
        let path = Path::new("folder/model.bin");
        let mut tensors = Tensors::new(path);
        let mut budget = Budget::new(path, 100);
        let scale = tensor(Dtype::I8, &[1, 2, 3]);
        tensors
            .insert(&mut budget, "scale".to_string(), scale.clone())
            .expect("it is new");
        assert_eq!(
            tensors.require("scale", &[3]).expect("it is there").len(),
            3
        );
        let missing = tensors.require("bias", &[3]).expect_err("it is not there");
        assert!(
            missing
                .to_string()
                .starts_with("folder/model.bin has no tensor `bias` among its 1")
        );
        let wrong = tensors
            .require("scale", &[1, 3])
            .expect_err("another shape");
        assert!(
            wrong
                .to_string()
                .contains("tensor `scale` has shape [3], expected [1, 3]")
        );
        let twice = tensors.insert(&mut budget, "scale".to_string(), scale);
        assert!(
            twice
                .expect_err("twice")
                .to_string()
                .contains("tensor `scale`")
        );
    }
}
