//! Matrix products on the CPU, straight into the memory of the result.
//!
//! In f32 the product is the `gemm` crate's, the same that the CPU backend uses; in bf16 it is ours
//! ([`super::bf16`]). The caller says which of them runs ([`crate::pass::Pass::precision`]), and an operation
//! remembers it for its backward pass. Neighbor: [`super::linear`].

use std::mem::MaybeUninit;

use burn::{
    backend::flex::FlexTensor,
    tensor::{Device, FloatDType},
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::fused::{contiguous, on_cpu};

/// How precise the factors of matrix products with weights are. Everything else is in f32; so are the sums on the CPU,
/// while other devices round a product in bf16 to bf16 again (mixed precision).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// As they are.
    #[default]
    F32,
    /// Rounded to bf16: faster on devices that have it ([`Precision::available_on`]); on other CPUs this is f32.
    Bf16,
}

impl Precision {
    /// Whether this processor has it.
    pub fn available(self) -> bool {
        match self {
            Precision::F32 => true,
            #[cfg(target_arch = "x86_64")]
            Precision::Bf16 => super::bf16::supported(),
            #[cfg(not(target_arch = "x86_64"))]
            Precision::Bf16 => false,
        }
    }
}

impl Precision {
    /// Whether a device has it.
    pub fn available_on(self, device: &Device) -> bool {
        match self {
            Precision::F32 => true,
            Precision::Bf16 if on_cpu(device) => self.available(),
            Precision::Bf16 => device.supports_dtype(FloatDType::BF16),
        }
    }
}

/// A matrix somewhere in memory.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    pub(super) values: &'a [f32],
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) row_stride: isize,
    pub(super) column_stride: isize,
}

impl<'a> Matrix<'a> {
    /// The tensor's storage is exactly this matrix, by rows or by columns (see [`dense`]).
    pub(super) fn of(tensor: &'a FlexTensor) -> Self {
        let (shape, strides) = (tensor.layout().shape(), tensor.layout().strides());
        Self {
            values: tensor.storage::<f32>(),
            rows: shape[0],
            columns: shape[1],
            row_stride: strides[0],
            column_stride: strides[1],
        }
    }

    /// All axes but the last are rows. The tensor is contiguous and covers its storage.
    pub(super) fn of_rows(tensor: &'a FlexTensor) -> Self {
        let shape = tensor.layout().shape();
        let columns = shape[shape.num_dims() - 1];
        Self::by_rows(tensor.storage::<f32>(), columns)
    }

    /// A matrix by rows.
    pub(super) fn by_rows(values: &'a [f32], columns: usize) -> Self {
        Self {
            values,
            rows: values.len() / columns,
            columns,
            row_stride: columns as isize,
            column_stride: 1,
        }
    }

    /// Some rows of a matrix by rows.
    pub(super) fn some_rows(self, first: usize, count: usize) -> Self {
        let values = &self.values[first * self.columns..][..count * self.columns];
        Self::by_rows(values, self.columns)
    }

    pub(super) fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }
}

/// The tensor with its storage covered exactly, by rows or by columns; copied only if it must be.
pub(super) fn dense(weight: FlexTensor) -> FlexTensor {
    let transposed = weight.transpose(0, 1);
    let whole = transposed.layout().num_elements() * size_of::<f32>() == transposed.bytes().len();
    if whole && transposed.is_contiguous() {
        weight
    } else {
        contiguous(weight)
    }
}

/// What becomes of what stands in the destination of a product.
#[derive(Clone, Copy)]
pub(super) enum Destination<'a> {
    /// It is replaced.
    Replace,
    /// The product is added to it.
    Add,
    /// It is replaced by this row, to each row of which the product is added.
    Bias(&'a [f32]),
}

/// A place in the memory of a result, of which threads write disjoint parts.
#[derive(Clone, Copy)]
pub(super) struct Output(pub(super) *mut f32);

// SAFETY: it is only an address; who writes to it vouches for that.
unsafe impl Send for Output {}
unsafe impl Sync for Output {}

impl Output {
    pub(super) fn row(self, row: usize, columns: usize) -> Self {
        Self(self.0.wrapping_add(row * columns))
    }

    pub(super) fn column(self, column: usize) -> Self {
        Self(self.0.wrapping_add(column))
    }
}

/// A new matrix by rows.
pub(super) fn product(left: Matrix, right: Matrix, precision: Precision) -> Vec<f32> {
    new_product(left, right, Destination::Replace, precision)
}

/// A new matrix by rows, with `bias` added to each row.
pub(super) fn product_and_bias(
    left: Matrix,
    right: Matrix,
    bias: &[f32],
    precision: Precision,
) -> Vec<f32> {
    assert_eq!(bias.len(), right.columns);
    new_product(left, right, Destination::Bias(bias), precision)
}

fn new_product(
    left: Matrix,
    right: Matrix,
    destination: Destination,
    precision: Precision,
) -> Vec<f32> {
    let size = left.rows * right.columns;
    let mut output = Vec::with_capacity(size);
    // SAFETY: the capacity holds `size` elements, all of which are written.
    unsafe {
        multiply(output.as_mut_ptr(), left, right, destination, precision);
        output.set_len(size);
    }
    output
}

/// Adds a product to a matrix by rows.
pub(super) fn add_product(output: &mut [f32], left: Matrix, right: Matrix, precision: Precision) {
    write_product(output, left, right, Destination::Add, precision);
}

/// Writes a product into a matrix by rows.
pub(super) fn write_product(
    output: &mut [f32],
    left: Matrix,
    right: Matrix,
    destination: Destination,
    precision: Precision,
) {
    assert_eq!(output.len(), left.rows * right.columns);
    // SAFETY: just asserted.
    unsafe { multiply(output.as_mut_ptr(), left, right, destination, precision) }
}

/// The right factor of many small products, which are computed on the thread that asks: for tasks that run side by
/// side already. In bf16 it is packed once for all of them.
pub(super) struct Factor<'a> {
    matrix: Matrix<'a>,
    precision: Precision,
    #[cfg(target_arch = "x86_64")]
    panels: Option<Vec<MaybeUninit<u32>>>,
}

impl<'a> Factor<'a> {
    pub(super) fn new(matrix: Matrix<'a>, precision: Precision) -> Self {
        Self {
            matrix,
            precision,
            #[cfg(target_arch = "x86_64")]
            panels: (precision == Precision::Bf16 && precision.available())
                // SAFETY: the processor was just asked.
                .then(|| unsafe { super::bf16::pack_right(matrix) }),
        }
    }

    /// Writes `left` times this into a matrix by rows.
    pub(super) fn write_product(&self, output: &mut [f32], left: Matrix, destination: Destination) {
        assert_eq!(output.len(), left.rows * self.matrix.columns);
        assert_eq!(left.columns, self.matrix.rows);
        let output = output.as_mut_ptr();
        #[cfg(target_arch = "x86_64")]
        if let Some(panels) = &self.panels {
            let output = Output(output);
            // SAFETY: just asserted; the panels are those of the matrix.
            unsafe {
                super::bf16::multiply_packed(output, left, self.matrix, panels, destination);
            }
            return;
        }
        // SAFETY: just asserted.
        unsafe {
            let threads = Threads::One;
            multiply_on(
                output,
                left,
                self.matrix,
                destination,
                self.precision,
                threads,
            );
        }
    }
}

/// Who computes a product.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Threads {
    One,
    All,
}

/// Products smaller than this run on one thread.
const PARALLEL: usize = 192 * 192 * 192;

/// # Safety
/// `output` has room for `left.rows * right.columns` numbers, by rows; with [`Destination::Add`] they are
/// initialized.
unsafe fn multiply(
    output: *mut f32,
    left: Matrix,
    right: Matrix,
    destination: Destination,
    precision: Precision,
) {
    let large = left.rows * right.columns * left.columns >= PARALLEL;
    let threads = if large { Threads::All } else { Threads::One };
    // SAFETY: the caller vouches for the output.
    unsafe { multiply_on(output, left, right, destination, precision, threads) }
}

/// # Safety
/// As [`multiply`].
unsafe fn multiply_on(
    output: *mut f32,
    left: Matrix,
    right: Matrix,
    destination: Destination,
    precision: Precision,
    threads: Threads,
) {
    assert_eq!(
        left.columns, right.rows,
        "a product of matrices that do not fit"
    );
    assert_eq!(left.values.len(), left.rows * left.columns);
    assert_eq!(right.values.len(), right.rows * right.columns);
    let (m, n, k) = (left.rows, right.columns, left.columns);
    let parallel = threads == Threads::All;
    #[cfg(target_arch = "x86_64")]
    if precision == Precision::Bf16 && precision.available() {
        // SAFETY: the caller vouches for the output, and the processor was just asked.
        return unsafe {
            super::bf16::multiply(Output(output), left, right, destination, parallel)
        };
    }
    let _ = precision;
    if let Destination::Bias(bias) = destination {
        // SAFETY: there is room for all rows.
        let output =
            unsafe { std::slice::from_raw_parts_mut(output.cast::<MaybeUninit<f32>>(), m * n) };
        let fill = |row: &mut [MaybeUninit<f32>]| {
            row.write_copy_of_slice(bias);
        };
        if parallel {
            output.par_chunks_mut(n).for_each(fill);
        } else {
            output.chunks_mut(n).for_each(fill);
        }
    }
    // SAFETY: both inputs cover their whole slices (asserted above, and their strides are a permutation
    // of a dense matrix's); the caller vouches for the output.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            output,
            1,
            n as isize,
            !matches!(destination, Destination::Replace),
            left.values.as_ptr(),
            left.column_stride,
            left.row_stride,
            right.values.as_ptr(),
            right.column_stride,
            right.row_stride,
            1.0f32,
            1.0f32,
            false,
            false,
            false,
            if parallel {
                gemm::Parallelism::Rayon(0)
            } else {
                gemm::Parallelism::None
            },
        );
    }
}
