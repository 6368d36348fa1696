//! Orthogonalizes a matrix: all singular values become 1.
//!
//! Five steps of a Newton-Schulz iteration instead of a singular value decomposition: matrix products
//! only. Its coefficients (Jordan et al. 2024, "Muon") give up exactness for speed: singular values end
//! between about 0.7 and 1.2, which an optimizer does not notice. On the CPU the products are those of
//! [`super::matrix`], which may be in bf16: accuracy is not needed here.
//! Neighbor: `attentive-train`'s Muon.

use burn::{backend::Flex, tensor::Tensor};

use super::{
    adam::primitive,
    fused::on_cpu,
    matrix::{Matrix, Precision, add_product, product},
};

const STEPS: usize = 5;

/// Coefficients of `x -> a x + b x^3 + c x^5` on every singular value.
const A: f64 = 3.4445;
const B: f64 = -4.7750;
const C: f64 = 2.0315;

/// The matrix of this shape `[rows, columns]`, flattened, with all its singular values moved near 1; a
/// matrix of zeros stays so.
pub fn orthogonalize(matrix: Tensor<1>, shape: [usize; 2], precision: Precision) -> Tensor<1> {
    let norm = matrix
        .clone()
        .powf_scalar(2.0)
        .sum()
        .sqrt()
        .add_scalar(1e-7);
    let matrix = matrix / norm;
    if !on_cpu(&matrix.device()) {
        return composed(matrix.reshape(shape)).reshape([shape[0] * shape[1]]);
    }
    let mut matrix = primitive(matrix);
    fused(matrix.storage_mut::<f32>(), shape, precision);
    Tensor::from_primitive::<Flex>(matrix)
}

fn composed(mut x: Tensor<2>) -> Tensor<2> {
    let [rows, columns] = x.dims();
    if rows > columns {
        // The square matrices below have the size of the first side.
        return composed(x.transpose()).transpose();
    }
    for _ in 0..STEPS {
        let square = x.clone().matmul(x.clone().transpose()); // [rows, rows]
        let mixed = square.clone().mul_scalar(B) + square.clone().matmul(square).mul_scalar(C);
        x = x.clone().mul_scalar(A) + mixed.matmul(x);
    }
    x
}

fn fused(x: &mut [f32], [rows, columns]: [usize; 2], precision: Precision) {
    let tall = rows > columns;
    for _ in 0..STEPS {
        let old = x.to_vec();
        let whole = by_rows(&old, rows, columns);
        // The smaller of the two squares: [rows, rows] or [columns, columns].
        let square = if tall {
            product(whole.transposed(), whole, precision)
        } else {
            product(whole, whole.transposed(), precision)
        };
        let side = rows.min(columns);
        let square = by_rows(&square, side, side);
        let mut mixed = product(square, square, precision);
        for (mixed, square) in mixed.iter_mut().zip(square.values) {
            *mixed = *mixed * C as f32 + *square * B as f32;
        }
        let mixed = by_rows(&mixed, side, side);
        x.iter_mut().for_each(|value| *value *= A as f32);
        if tall {
            add_product(x, whole, mixed, precision);
        } else {
            add_product(x, mixed, whole, precision);
        }
    }
}

fn by_rows(values: &[f32], rows: usize, columns: usize) -> Matrix<'_> {
    Matrix {
        values,
        rows,
        columns,
        row_stride: columns as isize,
        column_stride: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::{floats, random, with_composed_forms};
    use burn::tensor::{Device, TensorData};

    const SHAPES: [[usize; 2]; 4] = [[8, 32], [32, 8], [16, 16], [256, 100]];

    fn matrix([rows, columns]: [usize; 2], size: f32) -> Tensor<1> {
        let values = random([rows, columns], 3)
            .iter()
            .map(|v| v * size)
            .collect();
        Tensor::from_data(TensorData::new(values, [rows * columns]), &Device::flex())
    }

    fn f32(matrix: Tensor<1>, shape: [usize; 2]) -> Tensor<1> {
        orthogonalize(matrix, shape, Precision::F32)
    }

    #[test]
    fn singular_values_end_near_one() {
        for shape in SHAPES {
            let result = f32(matrix(shape, 1.0), shape).reshape(shape);
            let short = if shape[0] > shape[1] {
                result.transpose()
            } else {
                result
            };
            // The trace of the square is the sum of the squares of the singular values.
            let trace: f32 = floats(short.clone().powf_scalar(2.0).sum())[0];
            let mean = trace / shape[0].min(shape[1]) as f32;
            assert!((0.5..1.4).contains(&mean), "{shape:?}: {mean}");
            let [count, _] = short.dims();
            let products = floats(short.clone().matmul(short.transpose()));
            for (i, product) in products.iter().enumerate() {
                let expected = if i % count == i / count { 1.0 } else { 0.0 };
                assert!((product - expected).abs() < 0.6, "{shape:?} {i}: {product}");
            }
        }
    }

    #[test]
    fn the_products_of_the_cpu_give_what_tensors_give() {
        for shape in SHAPES {
            let fused = floats(f32(matrix(shape, 1.0), shape));
            let tensors = with_composed_forms(|| floats(f32(matrix(shape, 1.0), shape)));
            let short = orthogonalize(matrix(shape, 1.0), shape, Precision::Bf16);
            let short = floats(short);
            for ((f, t), b) in fused.iter().zip(&tensors).zip(&short) {
                assert!((f - t).abs() < 1e-4, "{shape:?}: {f} and {t}");
                assert!((b - t).abs() < 0.05, "{shape:?}: {b} and {t}");
            }
        }
    }

    #[test]
    fn the_size_of_the_matrix_does_not_matter_and_zero_stays_zero() {
        let shape = [4, 6];
        let small = floats(f32(matrix(shape, 1e-3), shape));
        let large = floats(f32(matrix(shape, 1.0), shape));
        for (a, b) in small.iter().zip(large) {
            assert!((a - b).abs() < 1e-2, "{a} and {b}");
        }
        let zero = floats(f32(matrix(shape, 0.0), shape));
        assert!(zero.iter().all(|value| *value == 0.0));
    }
}
