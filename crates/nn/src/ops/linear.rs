//! `x W` and `x W + b` on the CPU, straight into the memory of the result.
//!
//! The CPU backend's own product fills its result with zeros and copies it before it computes; for the
//! logits of a batch that is more than a hundred megabytes of traffic for nothing. Here the bias is the
//! first value of the result, and the gradient of a transposed weight (a tied embedding) is laid out
//! like the weight itself. Neighbors: [`super::matrix`] multiplies; [`crate::layers::linear`] and the
//! feed-forward layer are made of these.

use burn::{
    backend::flex::FlexTensor,
    tensor::{FloatDType, Tensor, TensorData},
};
use rayon::prelude::*;

use super::{
    fused::{CpuOp, apply, contiguous, joined, on_cpu, tensor_like, total},
    matrix::{Matrix, Precision, add_product, dense, product, product_and_bias},
    simd::simd,
};

/// `x W + b` over the last axis: `x` `[.., d_input]`, `weight` `[d_input, d_output]`.
pub fn affine<const D: usize>(
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    precision: Precision,
) -> Tensor<D> {
    if on_cpu(&x.device()) {
        let tracked = x.is_autodiff();
        let inputs = [
            x.into_dispatch(),
            weight.into_dispatch(),
            bias.into_dispatch(),
        ];
        return apply(Affine(precision), tracked, inputs);
    }
    let shape = output_shape(&x, &weight);
    (composed_product(rows(x), weight, precision) + bias.unsqueeze()).reshape(shape)
}

/// `x W` over the last axis: `x` `[.., d_input]`, `weight` `[d_input, d_output]`.
pub fn project<const D: usize>(x: Tensor<D>, weight: Tensor<2>, precision: Precision) -> Tensor<D> {
    if on_cpu(&x.device()) {
        let tracked = x.is_autodiff();
        let inputs = [x.into_dispatch(), weight.into_dispatch()];
        return apply(Project(precision), tracked, inputs);
    }
    let shape = output_shape(&x, &weight);
    composed_product(rows(x), weight, precision).reshape(shape)
}

/// The product on other devices.
fn composed_product(x: Tensor<2>, weight: Tensor<2>, precision: Precision) -> Tensor<2> {
    match precision {
        Precision::F32 => x.matmul(weight),
        Precision::Bf16 => {
            let [x, weight] = [x, weight].map(|factor| factor.cast(FloatDType::BF16));
            x.matmul(weight).cast(FloatDType::F32)
        }
    }
}

fn output_shape<const D: usize>(x: &Tensor<D>, weight: &Tensor<2>) -> [usize; D] {
    let mut shape = x.dims();
    shape[D - 1] = weight.dims()[1];
    shape
}

/// One large product is faster than a batch of small ones.
fn rows<const D: usize>(x: Tensor<D>) -> Tensor<2> {
    let shape = x.dims();
    let width = shape[D - 1];
    x.reshape([shape.iter().product::<usize>() / width, width])
}

#[derive(Debug, Clone)]
struct Project(Precision);

impl CpuOp<2> for Project {
    type Saved = [FlexTensor; 2];

    fn forward(&self, [x, weight]: [FlexTensor; 2]) -> (FlexTensor, Self::Saved) {
        let (x, weight) = (contiguous(x), dense(weight));
        let output = product(Matrix::of_rows(&x), Matrix::of(&weight), self.0);
        (with_width_of(&weight, &x, output), [x, weight])
    }

    fn backward(&self, saved: Self::Saved, gradient: FlexTensor) -> [FlexTensor; 2] {
        self.backward_onto(saved, gradient, [None, None])
    }

    fn backward_onto(
        &self,
        [x, weight]: Self::Saved,
        gradient: FlexTensor,
        known: [Option<FlexTensor>; 2],
    ) -> [FlexTensor; 2] {
        input_gradients(&x, &weight, &contiguous(gradient), known, self.0)
    }
}

#[derive(Debug, Clone)]
struct Affine(Precision);

impl CpuOp<3> for Affine {
    type Saved = [FlexTensor; 3];

    fn forward(&self, [x, weight, bias]: [FlexTensor; 3]) -> (FlexTensor, Self::Saved) {
        let (x, weight, bias) = (contiguous(x), dense(weight), contiguous(bias));
        let (left, right) = (Matrix::of_rows(&x), Matrix::of(&weight));
        let output = product_and_bias(left, right, bias.storage::<f32>(), self.0);
        (with_width_of(&weight, &x, output), [x, weight, bias])
    }

    fn backward(&self, saved: Self::Saved, gradient: FlexTensor) -> [FlexTensor; 3] {
        self.backward_onto(saved, gradient, [None, None, None])
    }

    fn backward_onto(
        &self,
        [x, weight, bias]: Self::Saved,
        gradient: FlexTensor,
        [known_x, known_weight, known_bias]: [Option<FlexTensor>; 3],
    ) -> [FlexTensor; 3] {
        let gradient = contiguous(gradient);
        let known = [known_x, known_weight];
        let [d_x, d_weight] = input_gradients(&x, &weight, &gradient, known, self.0);
        let d_bias = column_sums(gradient.storage::<f32>(), bias.storage::<f32>().len());
        let d_bias = joined(known_bias, tensor_like(&bias, d_bias));
        [d_x, d_weight, d_bias]
    }
}

/// `dX = dY Wᵀ` and `dW = Xᵀ dY`, the latter in the memory order of the weight. What is known of `dX` is what
/// other maps of the same input have found: the product is added to it.
fn input_gradients(
    x: &FlexTensor,
    weight: &FlexTensor,
    gradient: &FlexTensor,
    [known_x, known_weight]: [Option<FlexTensor>; 2],
    precision: Precision,
) -> [FlexTensor; 2] {
    let (left, right) = (Matrix::of_rows(x), Matrix::of(weight));
    let output = Matrix::of_rows(gradient);
    let d_x = match known_x {
        Some(known) => {
            let mut known = contiguous(known);
            let sum = known.storage_mut::<f32>();
            add_product(sum, output, right.transposed(), precision);
            known
        }
        None => tensor_like(x, product(output, right.transposed(), precision)),
    };
    let d_weight = if weight.is_contiguous() {
        tensor_like(weight, product(left.transposed(), output, precision))
    } else {
        let transposed = weight.transpose(0, 1);
        tensor_like(&transposed, product(output.transposed(), left, precision)).transpose(0, 1)
    };
    [d_x, joined(known_weight, d_weight)]
}

/// `output` as a tensor of the shape of `x` but for the last axis, which is that of `weight`.
fn with_width_of(weight: &FlexTensor, x: &FlexTensor, output: Vec<f32>) -> FlexTensor {
    let mut shape = x.layout().shape().clone();
    let last = shape.num_dims() - 1;
    shape[last] = weight.layout().shape()[1];
    FlexTensor::from_data(TensorData::new(output, shape))
}

/// Rows per task; fixed, so that sums over rows do not depend on the number of threads.
const ROWS: usize = 64;

/// The sum of each column of a matrix by rows.
pub(super) fn column_sums(values: &[f32], width: usize) -> Vec<f32> {
    let partial: Vec<Vec<f32>> = values
        .par_chunks(ROWS * width)
        .map(|chunk| {
            let mut sums = vec![0.0; width];
            add_rows(chunk, &mut sums);
            sums
        })
        .collect();
    total(partial, width)
}

simd! {
    fn add_rows(rows: &[f32], sums: &mut [f32]) {
        for row in rows.chunks_exact(sums.len()) {
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::{assert_same_gradients, floats, random};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn fused_linear_maps_equal_the_composed_ones(
            batch in 1usize..4, len in 1usize..70, d_input in 1usize..40, d_output in 1usize..50,
            transposed in proptest::bool::ANY, seed in 0u64..1000,
        ) {
            // A tied embedding arrives as the transposed view of `[d_output, d_input]`.
            let weight = |w: Tensor<1>| if transposed {
                w.reshape([d_output, d_input]).transpose()
            } else {
                w.reshape([d_input, d_output])
            };
            let x3 = |x: Tensor<1>| x.reshape([batch, len, d_input]);
            let composed = |x: Tensor<1>, w: Tensor<1>| {
                x.reshape([batch * len, d_input]).matmul(weight(w)).reshape([batch, len, d_output])
            };
            let inputs = [
                random([batch, len, d_input], seed),
                random([d_input, d_output], seed + 1),
                random([d_output], seed + 2),
            ];
            assert_same_gradients(
                inputs.clone(),
                |[x, w, b]| affine(x3(x), weight(w), b.reshape([d_output]), Precision::F32),
                |[x, w, b]| composed(x, w) + b.reshape([1, 1, d_output]),
            );
            let [x, w, _] = inputs;
            assert_same_gradients(
                [x, w],
                |[x, w]| project(x3(x), weight(w), Precision::F32),
                |[x, w]| composed(x, w),
            );
        }
    }

    #[test]
    fn mixed_precision_rounds_the_factors_and_nothing_else() {
        let device = burn::tensor::Device::flex().autodiff();
        let tensor = |shape: [usize; 2], seed| {
            let values = TensorData::new(random(shape, seed), shape);
            Tensor::<2>::from_data(values, &device).require_grad()
        };
        let run = |precision| {
            let (x, weight) = (tensor([9, 40], 1), tensor([40, 7], 2));
            let product = composed_product(x.clone(), weight.clone(), precision);
            assert_eq!(product.dtype(), burn::tensor::DType::F32);
            let gradients = product.clone().powi_scalar(2).sum().backward();
            let gradient = |of: &Tensor<2>| floats(of.grad(&gradients).expect("a gradient"));
            [floats(product), gradient(&x), gradient(&weight)]
        };
        for (exact, mixed) in run(Precision::F32).iter().zip(run(Precision::Bf16)) {
            let largest = exact.iter().fold(0.0f32, |max, value| max.max(value.abs()));
            let differences = exact
                .iter()
                .zip(&mixed)
                .map(|(a, b)| (a - b).abs() / largest);
            let worst = differences.fold(0.0f32, f32::max);
            assert!((1e-5..0.02).contains(&worst), "{worst}");
        }
    }

    #[test]
    fn a_part_of_a_larger_tensor_is_read_as_that_part() {
        let whole = Tensor::<2>::from_floats(
            [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
            &burn::tensor::Device::flex(),
        );
        let x = whole.clone().narrow(0, 1, 2);
        let weight = whole.narrow(0, 0, 2);
        let y = project(x, weight, Precision::F32);
        let y: Vec<f32> = y.into_data().iter::<f32>().collect();
        assert_eq!(y, [15.0, 22.0, 23.0, 34.0]);
    }
}
