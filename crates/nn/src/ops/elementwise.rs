//! Elementwise operations between matrix products: bias, ReLU, dropout and sums, in one pass over memory.
//!
//! [`bias_relu_dropout`] stands inside the feed-forward layer, [`dropout_add`] at every residual
//! connection, and [`add_to_rows`] adds positions, or what an image is about, to all of its tokens. All are bound by
//! memory, so half the passes is half the time.

use burn::{
    backend::flex::FlexTensor,
    tensor::{Tensor, activation::relu},
};
use rayon::prelude::*;

use super::{
    dropout::{Pattern, dropout},
    fused::{CpuOp, apply, contiguous, on_cpu, tensor_like, total},
    simd::simd,
};
use crate::random::Keys;

/// `dropout(max(0, x + bias))` for `x` `[batch, len, width]`, `bias` `[width]`.
pub fn bias_relu_dropout(
    x: Tensor<3>,
    bias: Tensor<1>,
    rate: f64,
    keys: &mut Option<Keys>,
) -> Tensor<3> {
    if !on_cpu(&x.device()) {
        return dropout(relu(x + bias.unsqueeze()), rate, keys);
    }
    let pattern = Pattern::draw(rate, keys);
    let tracked = x.is_autodiff();
    apply(
        BiasRelu(pattern),
        tracked,
        [x.into_dispatch(), bias.into_dispatch()],
    )
}

/// `x + dropout(y)` for tensors of one shape.
pub fn dropout_add(x: Tensor<3>, y: Tensor<3>, rate: f64, keys: &mut Option<Keys>) -> Tensor<3> {
    if !on_cpu(&x.device()) {
        return x + dropout(y, rate, keys);
    }
    let pattern = Pattern::draw(rate, keys);
    let tracked = x.is_autodiff();
    apply(
        Add(pattern),
        tracked,
        [x.into_dispatch(), y.into_dispatch()],
    )
}

/// `x + row` for `x` `[batch, len, width]` and one row for each of the batch, `[batch, 1, width]`.
pub fn add_to_rows(x: Tensor<3>, row: Tensor<3>) -> Tensor<3> {
    if !on_cpu(&x.device()) {
        return x + row;
    }
    let tracked = x.is_autodiff();
    apply(AddToRows, tracked, [x.into_dispatch(), row.into_dispatch()])
}

/// Rows per task; fixed, so that sums over rows do not depend on the number of threads.
const ROWS: usize = 32;

/// Elements per task where rows do not matter.
const CHUNK: usize = 1 << 14;

#[derive(Debug, Clone)]
struct BiasRelu(Option<Pattern>);

impl CpuOp<2> for BiasRelu {
    /// The output, which says where the gradient passes, and the bias for its shape.
    type Saved = (FlexTensor, FlexTensor);

    fn forward(&self, [x, bias]: [FlexTensor; 2]) -> (FlexTensor, Self::Saved) {
        let (mut x, bias) = (contiguous(x), contiguous(bias));
        let values = bias.storage::<f32>();
        let size = ROWS * values.len();
        x.storage_mut::<f32>()
            .par_chunks_mut(size)
            .enumerate()
            .for_each(|(chunk, x)| {
                bias_relu_rows(x, values, self.0, (chunk * size) as u32);
            });
        (x.clone(), (x, bias))
    }

    fn backward(&self, (output, bias): Self::Saved, gradient: FlexTensor) -> [FlexTensor; 2] {
        let mut gradient = contiguous(gradient);
        let width = bias.storage::<f32>().len();
        let keep = self.0.map_or(1.0, |pattern| pattern.keep());
        let partial: Vec<Vec<f32>> = gradient
            .storage_mut::<f32>()
            .par_chunks_mut(ROWS * width)
            .zip(output.storage::<f32>().par_chunks(ROWS * width))
            .map(|(gradient, output)| {
                let mut sums = vec![0.0; width];
                bias_relu_backward_rows(gradient, output, keep, &mut sums);
                sums
            })
            .collect();
        let totals = total(partial, width);
        [gradient, tensor_like(&bias, totals)]
    }
}

#[derive(Debug, Clone)]
struct Add(Option<Pattern>);

impl CpuOp<2> for Add {
    type Saved = ();

    fn forward(&self, [x, y]: [FlexTensor; 2]) -> (FlexTensor, ()) {
        let (x, mut y) = (contiguous(x), contiguous(y));
        let residual = x.storage::<f32>();
        y.storage_mut::<f32>()
            .par_chunks_mut(CHUNK)
            .zip(residual.par_chunks(CHUNK))
            .enumerate()
            .for_each(|(chunk, (y, x))| add_chunk(y, x, self.0, (chunk * CHUNK) as u32));
        (y, ())
    }

    fn backward(&self, (): (), gradient: FlexTensor) -> [FlexTensor; 2] {
        let Some(pattern) = self.0 else {
            return [gradient.clone(), gradient];
        };
        let gradient = contiguous(gradient);
        let dropped = pattern.applied(gradient.storage::<f32>());
        let dropped = tensor_like(&gradient, dropped);
        [gradient, dropped]
    }
}

#[derive(Debug, Clone)]
struct AddToRows;

impl CpuOp<2> for AddToRows {
    /// The rows, for their shape.
    type Saved = FlexTensor;

    fn forward(&self, [x, row]: [FlexTensor; 2]) -> (FlexTensor, FlexTensor) {
        let (mut x, row) = (contiguous(x), contiguous(row));
        let (len, width) = (x.layout().shape()[1], x.layout().shape()[2]);
        let rows = row.storage::<f32>();
        x.storage_mut::<f32>()
            .par_chunks_mut(len * width)
            .zip(rows.par_chunks(width))
            .for_each(|(x, row)| {
                // One of the batch alone is enough for all threads.
                x.par_chunks_mut(ROWS * width).for_each(|x| add_row(x, row));
            });
        (x, row)
    }

    fn backward(&self, row: FlexTensor, gradient: FlexTensor) -> [FlexTensor; 2] {
        let gradient = contiguous(gradient);
        let (len, width) = (gradient.layout().shape()[1], gradient.layout().shape()[2]);
        let sums = gradient.storage::<f32>().par_chunks(len * width);
        let sums = sums
            .flat_map_iter(|gradient| sum_of_rows(gradient, width))
            .collect();
        [gradient, tensor_like(&row, sums)]
    }
}

simd! {
    fn add_row(x: &mut [f32], row: &[f32]) {
        for x in x.chunks_exact_mut(row.len()) {
            x.iter_mut().zip(row).for_each(|(x, row)| *x += row);
        }
    }

    fn sum_of_rows(rows: &[f32], width: usize) -> Vec<f32> {
        let mut sums = vec![0.0; width];
        for row in rows.chunks_exact(width) {
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        sums
    }

    fn bias_relu_rows(x: &mut [f32], bias: &[f32], pattern: Option<Pattern>, first: u32) {
        for (row, x) in x.chunks_exact_mut(bias.len()).enumerate() {
            for (x, bias) in x.iter_mut().zip(bias) {
                let value = *x + bias;
                *x = if value > 0.0 { value } else { 0.0 };
            }
            if let Some(pattern) = pattern {
                let first = first.wrapping_add((row * bias.len()) as u32);
                for (i, x) in x.iter_mut().enumerate() {
                    *x *= pattern.factor(first.wrapping_add(i as u32));
                }
            }
        }
    }

    /// A positive output was neither cut by the ReLU nor dropped.
    fn bias_relu_backward_rows(gradient: &mut [f32], output: &[f32], keep: f32, sums: &mut [f32]) {
        let width = sums.len();
        for (gradient, output) in gradient.chunks_exact_mut(width).zip(output.chunks_exact(width)) {
            for ((gradient, output), sum) in gradient.iter_mut().zip(output).zip(sums.iter_mut()) {
                *gradient = if *output > 0.0 { *gradient * keep } else { 0.0 };
                *sum += *gradient;
            }
        }
    }

    fn add_chunk(y: &mut [f32], x: &[f32], pattern: Option<Pattern>, first: u32) {
        match pattern {
            Some(pattern) => {
                for (i, (y, x)) in y.iter_mut().zip(x).enumerate() {
                    *y = x + *y * pattern.factor(first.wrapping_add(i as u32));
                }
            }
            None => y.iter_mut().zip(x).for_each(|(y, x)| *y += x),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::{assert_same_gradients, random};
    use proptest::prelude::*;

    #[test]
    fn a_fused_sum_with_rows_equals_the_composed_one() {
        for [batch, len, width] in [[1, 1, 1], [3, 5, 7], [2, 196, 48]] {
            assert_same_gradients(
                [random([batch, len, width], 3), random([batch, 1, width], 4)],
                |[x, row]| {
                    add_to_rows(
                        x.reshape([batch, len, width]),
                        row.reshape([batch, 1, width]),
                    )
                },
                |[x, row]| x.reshape([batch, len, width]) + row.reshape([batch, 1, width]),
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn fused_feed_forward_steps_equal_the_composed_ones(
            rows in 1usize..80, width in 1usize..70, seed in 0u64..1000, dropped in proptest::bool::ANY,
        ) {
            let rate = if dropped { 0.3 } else { 0.0 };
            let keys = || Some(Keys::new(seed, 3));
            assert_same_gradients(
                [random([rows, width], seed), random([width], seed + 1)],
                |[x, b]| bias_relu_dropout(x.reshape([1, rows, width]), b.reshape([width]), rate, &mut keys()),
                |[x, b]| {
                    let sum = x.reshape([1, rows, width]) + b.reshape([1, 1, width]);
                    dropout(relu(sum), rate, &mut keys())
                },
            );
            assert_same_gradients(
                [random([rows, width], seed), random([rows, width], seed + 1)],
                |[x, y]| dropout_add(x.reshape([1, rows, width]), y.reshape([1, rows, width]), rate, &mut keys()),
                |[x, y]| x.reshape([1, rows, width]) + dropout(y.reshape([1, rows, width]), rate, &mut keys()),
            );
        }
    }
}
