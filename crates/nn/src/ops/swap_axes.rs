//! Two axes of a tensor change places while what lies behind them stays together.
//!
//! Composed, Burn's CPU backend copies a permuted tensor number by number. Here each stretch behind the two axes is
//! copied as one. Neighbors: [`crate::models::vit`] cuts images into
//! patches with it, [`crate::models::diffusion`] makes one position of squares of them and goes back.

use burn::{
    backend::flex::FlexTensor,
    tensor::{Tensor, TensorData},
};
use rayon::prelude::*;

use super::fused::{CpuOp, apply, contiguous, on_cpu};

/// `[outer, rows, columns, stretch]` -> `[outer, columns, rows, stretch]`.
pub fn swap_axes(x: Tensor<4>) -> Tensor<4> {
    if on_cpu(&x.device()) {
        let tracked = x.is_autodiff();
        return apply(SwapAxes, tracked, [x.into_dispatch()]);
    }
    composed(x)
}

fn composed(x: Tensor<4>) -> Tensor<4> {
    x.swap_dims(1, 2)
}

#[derive(Debug, Clone)]
struct SwapAxes;

impl CpuOp<1> for SwapAxes {
    type Saved = ();

    fn forward(&self, [x]: [FlexTensor; 1]) -> (FlexTensor, ()) {
        (swapped(x), ())
    }

    fn backward(&self, (): (), gradient: FlexTensor) -> [FlexTensor; 1] {
        [swapped(gradient)]
    }
}

fn swapped(x: FlexTensor) -> FlexTensor {
    let x = contiguous(x);
    let shape = x.layout().shape();
    let [outer, rows, columns, stretch] = [shape[0], shape[1], shape[2], shape[3]];
    let block = rows * columns * stretch;
    let mut output = vec![0.0; outer * block];
    output
        .par_chunks_mut(block.max(1))
        .zip(x.storage::<f32>().par_chunks(block.max(1)))
        .for_each(|(output, x)| {
            for (place, to) in output.chunks_exact_mut(stretch).enumerate() {
                let (column, row) = (place / rows, place % rows);
                to.copy_from_slice(&x[(row * columns + column) * stretch..][..stretch]);
            }
        });
    FlexTensor::from_data(TensorData::new(output, [outer, columns, rows, stretch]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::{assert_same_gradients, random};

    #[test]
    fn fused_swapping_equals_the_composed_one() {
        for shape in [[1, 1, 1, 1], [2, 3, 4, 5], [5, 2, 7, 1]] {
            assert_same_gradients(
                [random(shape, 7)],
                |[x]| swap_axes(x.reshape(shape)),
                |[x]| composed(x.reshape(shape)),
            );
        }
    }
}
