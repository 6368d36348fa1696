//! The 3 x 3 positions around each position of an image, side by side: a convolution is a linear map of them.
//!
//! Composed, nine shifted copies are cut out and put together, and the backward pass adds nine of them up. Here each
//! row of an image is copied once for each of its neighbors. Neighbor: [`crate::models::diffusion`].

use burn::{
    backend::flex::FlexTensor,
    tensor::{Tensor, TensorData},
};
use rayon::prelude::*;

use super::fused::{CpuOp, apply, contiguous, on_cpu};

/// `[batch, side * side, width]` -> `[batch, side * side, 9 * width]`: row by row what stands around each position,
/// itself in the middle, and zeros outside of the image.
pub fn neighborhoods(x: Tensor<3>, side: usize) -> Tensor<3> {
    if on_cpu(&x.device()) {
        let tracked = x.is_autodiff();
        return apply(Neighborhoods { side }, tracked, [x.into_dispatch()]);
    }
    composed(x, side)
}

fn composed(x: Tensor<3>, side: usize) -> Tensor<3> {
    let [batch, _, width] = x.dims();
    let device = x.device();
    let image = x.reshape([batch, side, side, width]);
    let row = Tensor::<4>::zeros([batch, 1, side, width], &device);
    let image = Tensor::cat(vec![row.clone(), image, row], 1);
    let column = Tensor::<4>::zeros([batch, side + 2, 1, width], &device);
    let image = Tensor::cat(vec![column.clone(), image, column], 2);
    let shifted = (0..9).map(|i| {
        let rows = image.clone().narrow(1, i / 3, side);
        rows.narrow(2, i % 3, side)
    });
    Tensor::cat(shifted.collect(), 3).reshape([batch, side * side, 9 * width])
}

#[derive(Debug, Clone)]
struct Neighborhoods {
    side: usize,
}

impl Neighborhoods {
    /// For each of the nine directions and each row of an image: the positions of it whose neighbor there is, the
    /// first of these neighbors, and how many there are.
    fn runs(&self) -> impl Iterator<Item = (usize, usize, usize, usize)> {
        let side = self.side;
        (0..9 * side).filter_map(move |i| {
            let (direction, row) = (i % 9, i / 9);
            let (dy, dx) = (direction / 3, direction % 3);
            let other = (row + dy).checked_sub(1).filter(|other| *other < side)?;
            let first = usize::from(dx == 0);
            let count = side - usize::from(dx != 1);
            let (at, from) = (row * side + first, other * side + (first + dx) - 1);
            (count > 0).then_some((direction, at, from, count))
        })
    }
}

impl CpuOp<1> for Neighborhoods {
    /// The width of a position.
    type Saved = usize;

    fn forward(&self, [x]: [FlexTensor; 1]) -> (FlexTensor, usize) {
        let x = contiguous(x);
        let shape = x.layout().shape();
        let (batch, len, width) = (shape[0], shape[1], shape[2]);
        let mut output = vec![0.0; batch * len * 9 * width];
        output
            .par_chunks_mut(len * 9 * width)
            .zip(x.storage::<f32>().par_chunks(len * width))
            .for_each(|(output, x)| {
                for (direction, at, from, count) in self.runs() {
                    let to = output[at * 9 * width..].chunks_exact_mut(9 * width);
                    let from = x[from * width..].chunks_exact(width);
                    for (to, from) in to.zip(from).take(count) {
                        to[direction * width..][..width].copy_from_slice(from);
                    }
                }
            });
        let output = TensorData::new(output, [batch, len, 9 * width]);
        (FlexTensor::from_data(output), width)
    }

    fn backward(&self, width: usize, gradient: FlexTensor) -> [FlexTensor; 1] {
        let gradient = contiguous(gradient);
        let shape = gradient.layout().shape();
        let (batch, len) = (shape[0], shape[1]);
        let mut sums = vec![0.0; batch * len * width];
        sums.par_chunks_mut(len * width)
            .zip(gradient.storage::<f32>().par_chunks(len * 9 * width))
            .for_each(|(sums, gradient)| {
                for (direction, at, from, count) in self.runs() {
                    let found = gradient[at * 9 * width..].chunks_exact(9 * width);
                    let sums = sums[from * width..].chunks_exact_mut(width);
                    for (sums, found) in sums.zip(found).take(count) {
                        let found = &found[direction * width..][..width];
                        sums.iter_mut().zip(found).for_each(|(s, f)| *s += f);
                    }
                }
            });
        let sums = TensorData::new(sums, [batch, len, width]);
        [FlexTensor::from_data(sums)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::{assert_same_gradients, random};

    #[test]
    fn fused_neighborhoods_equal_the_composed_ones() {
        for (batch, side, width) in [(1, 1, 1), (2, 2, 3), (3, 5, 4), (1, 14, 17)] {
            let shape = [batch, side * side, width];
            assert_same_gradients(
                [random(shape, side as u64)],
                |[x]| neighborhoods(x.reshape(shape), side),
                |[x]| composed(x.reshape(shape), side),
            );
        }
    }
}
