//! Tensors whose elements are not in C order (transposed and repeated views, Fortran order), brought into it.
//!
//! Used by the readers of PyTorch's and NumPy's files. A view that is in C order is borrowed, any other is copied.

use super::bytes::Bytes;
use super::limits::Budget;
use super::{Dtype, Tensor, byte_count};
use crate::error::Result;

/// How the elements of a tensor lie in a storage; all in elements, not in bytes.
#[derive(Debug)]
pub(crate) struct View {
    /// Where the first element is.
    pub offset: usize,
    /// The size of each dimension.
    pub shape: Vec<usize>,
    /// How far the next element of each dimension is.
    pub strides: Vec<usize>,
}

impl View {
    /// The strides of a shape in Fortran order, in which the first dimension varies fastest.
    pub fn fortran(shape: Vec<usize>) -> Option<Self> {
        let mut step = Some(1usize);
        let strides = shape.iter().map(|&dimension| {
            let stride = step;
            step = step.and_then(|step| step.checked_mul(dimension));
            stride
        });
        let strides = strides.collect::<Option<_>>()?;
        Some(Self {
            offset: 0,
            shape,
            strides,
        })
    }

    /// The tensor that is seen through this view, or nothing if the view reaches beyond the storage.
    pub fn tensor(
        &self,
        dtype: Dtype,
        storage: &Bytes,
        budget: &mut Budget,
        name: &str,
    ) -> Result<Option<Tensor>> {
        let (Some(bytes), Some(end)) = (byte_count(dtype, &self.shape), self.end()) else {
            return Ok(None);
        };
        if end > storage.len() / dtype.size() {
            return Ok(None);
        }
        let data = if bytes == 0 {
            Bytes::from(Vec::new())
        } else if self.is_c_order() {
            let start = self.offset * dtype.size();
            let Some(data) = storage.slice(start..start + bytes) else {
                return Ok(None);
            };
            data
        } else {
            budget.take(bytes, || format!("tensor `{name}`"))?;
            Bytes::from(self.gather(storage, dtype.size(), bytes))
        };
        Ok(Tensor::new(dtype, self.shape.clone(), data))
    }

    /// One behind the last element, unless that is too far to count.
    fn end(&self) -> Option<usize> {
        if self.shape.len() != self.strides.len() {
            return None;
        }
        if self.shape.contains(&0) {
            return Some(0);
        }
        let mut last = self.offset;
        for (&dimension, &stride) in self.shape.iter().zip(&self.strides) {
            last = last.checked_add((dimension - 1).checked_mul(stride)?)?;
        }
        last.checked_add(1)
    }

    fn is_c_order(&self) -> bool {
        let mut step = 1;
        for (&dimension, &stride) in self.shape.iter().zip(&self.strides).rev() {
            // The stride of a dimension of one element is never used, and programs write anything there.
            if dimension != 1 && stride != step {
                return false;
            }
            step *= dimension;
        }
        true
    }

    /// Copies the elements, `size` bytes each, in C order.
    fn gather(&self, storage: &[u8], size: usize, bytes: usize) -> Vec<u8> {
        let mut gathered = Vec::with_capacity(bytes);
        let mut index = vec![0; self.shape.len()];
        let mut place = self.offset;
        while gathered.len() < bytes {
            gathered.extend_from_slice(&storage[place * size..][..size]);
            for axis in (0..index.len()).rev() {
                index[axis] += 1;
                place += self.strides[axis];
                if index[axis] < self.shape[axis] {
                    break;
                }
                place -= index[axis] * self.strides[axis];
                index[axis] = 0;
            }
        }
        gathered
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn seen(offset: usize, shape: &[usize], strides: &[usize]) -> Option<Vec<f32>> {
        let storage = Bytes::from((0..12).collect::<Vec<u8>>());
        let view = View {
            offset,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
        };
        let mut budget = Budget::new(Path::new("m"), 12);
        let tensor = view.tensor(Dtype::U8, &storage, &mut budget, "t");
        tensor.expect("little memory").map(|tensor| tensor.to_f32())
    }

    #[test]
    fn every_view_comes_back_in_c_order() {
        assert_eq!(seen(1, &[2, 2], &[2, 1]).unwrap(), [1., 2., 3., 4.]);
        assert_eq!(seen(0, &[2, 3], &[1, 4]).unwrap(), [0., 4., 8., 1., 5., 9.]);
        assert_eq!(seen(3, &[2, 2], &[0, 1]).unwrap(), [3., 4., 3., 4.]);
        assert_eq!(
            seen(0, &[2, 2, 2], &[1, 2, 6]).unwrap(),
            [0., 6., 2., 8., 1., 7., 3., 9.]
        );
        assert_eq!(seen(5, &[], &[]).unwrap(), [5.]);
        assert_eq!(seen(50, &[0, 3], &[3, 1]).unwrap(), [0.; 0]);
        assert_eq!(seen(2, &[1, 3], &[999, 1]).unwrap(), [2., 3., 4.]);
    }

    #[test]
    fn a_view_beyond_the_storage_is_refused() {
        assert!(seen(0, &[3, 4], &[4, 1]).is_some());
        assert!(seen(1, &[3, 4], &[4, 1]).is_none());
        assert!(seen(0, &[3, 4], &[1, 5]).is_none());
        assert!(seen(0, &[2], &[usize::MAX]).is_none());
        assert!(seen(usize::MAX, &[2], &[1]).is_none());
        assert!(seen(0, &[2, 3], &[1]).is_none());
    }

    #[test]
    fn an_element_that_is_repeated_for_ever_takes_no_memory() {
        let storage = Bytes::from(vec![0; 12]);
        let view = View {
            offset: 0,
            shape: vec![1 << 40],
            strides: vec![0],
        };
        let mut budget = Budget::new(Path::new("m"), 12);
        view.tensor(Dtype::U8, &storage, &mut budget, "t")
            .expect_err("too large");
    }
}
