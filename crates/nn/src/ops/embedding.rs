//! Token vectors times a factor, plus positions, with dropout: what a stack reads, in one pass (§3.4, §5.4).
//!
//! Composed, the gradient of a table is a new tensor of its size for each side, most of it zeros, and a tied table
//! adds three of them up; here the rows of a batch are added to what is known. Neighbor: the embeddings of
//! [`crate::models::transformer`].

use std::ops::Range;

use burn::{
    backend::flex::FlexTensor,
    tensor::{Int, Tensor, TensorData, module::embedding},
};
use rayon::prelude::*;

use super::{
    dropout::{Pattern, dropout},
    fused::{CpuOp, apply, contiguous, on_cpu, tensor_like},
    matrix::Output,
    simd::simd,
};
use crate::random::Keys;

/// `dropout(table[tokens] * scale + positions)`: `table` `[vocab, d_model]`, `tokens` `[batch, len]`,
/// `positions` `[len, d_model]`, which get no gradient -> `[batch, len, d_model]`.
pub fn embed(
    table: Tensor<2>,
    tokens: Tensor<2, Int>,
    scale: f64,
    positions: Tensor<2>,
    rate: f64,
    keys: &mut Option<Keys>,
) -> Tensor<3> {
    if !on_cpu(&table.device()) {
        let embedded = embedding(table, tokens).mul_scalar(scale) + positions.unsqueeze();
        return dropout(embedded, rate, keys);
    }
    let op = Embed {
        shape: tokens.dims(),
        tokens: tokens
            .into_data()
            .iter::<i64>()
            .map(|id| id as usize)
            .collect(),
        scale: scale as f32,
        positions: positions.into_data().iter::<f32>().collect(),
        pattern: Pattern::draw(rate, keys),
    };
    let tracked = table.is_autodiff();
    apply(op, tracked, [table.into_dispatch()])
}

#[derive(Debug, Clone)]
struct Embed {
    /// `[batch, len]`
    shape: [usize; 2],
    tokens: Vec<usize>,
    scale: f32,
    /// `[len, d_model]`
    positions: Vec<f32>,
    pattern: Option<Pattern>,
}

/// Columns per task of the backward pass: each column is added up from the first row to the last.
const COLUMNS: usize = 32;

impl CpuOp<1> for Embed {
    /// The table, for its shape.
    type Saved = FlexTensor;

    fn forward(&self, [table]: [FlexTensor; 1]) -> (FlexTensor, FlexTensor) {
        let table = contiguous(table);
        let ([batch, len], width) = (self.shape, table.layout().shape()[1]);
        let mut output = vec![0.0; batch * len * width];
        output
            .par_chunks_mut(len * width)
            .zip(self.tokens.par_chunks(len))
            .enumerate()
            .for_each(|(row, (output, tokens))| {
                let first = (row * len * width) as u32;
                let rows = output.chunks_exact_mut(width).zip(tokens);
                for (output, token) in rows {
                    output.copy_from_slice(&table.storage::<f32>()[token * width..][..width]);
                }
                scale_and_drop(output, &self.positions, self.scale, self.pattern, first);
            });
        let output = TensorData::new(output, [batch, len, width]);
        (FlexTensor::from_data(output), table)
    }

    fn backward(&self, table: FlexTensor, gradient: FlexTensor) -> [FlexTensor; 1] {
        self.backward_onto(table, gradient, [None])
    }

    fn backward_onto(
        &self,
        table: FlexTensor,
        gradient: FlexTensor,
        [known]: [Option<FlexTensor>; 1],
    ) -> [FlexTensor; 1] {
        let gradient = contiguous(gradient);
        let width = table.layout().shape()[1];
        let mut sum = match known {
            Some(known) => contiguous(known),
            None => tensor_like(&table, vec![0.0; table.storage::<f32>().len()]),
        };
        assert!(
            self.tokens
                .iter()
                .all(|token| *token < table.layout().shape()[0])
        );
        let output = Output(sum.storage_mut::<f32>().as_mut_ptr());
        let gradient = gradient.storage::<f32>();
        (0..width)
            .into_par_iter()
            .step_by(COLUMNS)
            .for_each(|first| {
                let columns = first..width.min(first + COLUMNS);
                add_columns(
                    output,
                    gradient,
                    &self.tokens,
                    width,
                    columns,
                    self.scale,
                    self.pattern,
                );
            });
        [sum]
    }
}

simd! {
    /// A sentence of token vectors.
    fn scale_and_drop(x: &mut [f32], positions: &[f32], scale: f32, pattern: Option<Pattern>, first: u32) {
        for (i, (x, position)) in x.iter_mut().zip(positions).enumerate() {
            let factor = pattern.map_or(1.0, |pattern| pattern.factor(first.wrapping_add(i as u32)));
            *x = (*x * scale + position) * factor;
        }
    }

    /// Some columns of all rows of the gradient, to the rows of their tokens.
    fn add_columns(
        table: Output,
        gradient: &[f32],
        tokens: &[usize],
        width: usize,
        columns: Range<usize>,
        scale: f32,
        pattern: Option<Pattern>,
    ) {
        let (first, columns) = (columns.start, columns.len());
        for (row, token) in tokens.iter().enumerate() {
            let at = row * width + first;
            // SAFETY: the caller has checked the tokens, and no other task has these columns.
            let sums = unsafe {
                std::slice::from_raw_parts_mut(table.row(*token, width).column(first).0, columns)
            };
            for (i, (sum, gradient)) in sums.iter_mut().zip(&gradient[at..at + columns]).enumerate() {
                let factor = pattern.map_or(1.0, |pattern| pattern.factor((at + i) as u32));
                *sum += gradient * (factor * scale);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::{assert_same_gradients, random};
    use burn::tensor::Device;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn fused_embeddings_equal_the_composed_ones(
            batch in 1usize..5, len in 1usize..20, width in 1usize..70, vocab in 1usize..30, seed in 0u64..1000,
            dropped in proptest::bool::ANY,
        ) {
            let rate = if dropped { 0.3 } else { 0.0 };
            let keys = || Some(Keys::new(seed, 3));
            let ids: Vec<i64> = (0..batch * len).map(|i| (i * i + seed as usize) as i64 % vocab as i64).collect();
            let device = Device::flex().autodiff();
            let tokens = || Tensor::<2, Int>::from_data(TensorData::new(ids.clone(), [batch, len]), &device);
            let positions = |device: &Device| {
                Tensor::<2>::from_data(TensorData::new(random([len, width], seed + 1), [len, width]), device)
            };
            // The table is read a second time, as a tied one is.
            assert_same_gradients(
                [random([vocab, width], seed)],
                |[table]| {
                    let table = table.reshape([vocab, width]);
                    let tied = table.clone().mean_dim(0).reshape([1, 1, width]);
                    embed(table, tokens(), 2.5, positions(&device), rate, &mut keys()) + tied
                },
                |[table]| {
                    let table = table.reshape([vocab, width]);
                    let tied = table.clone().mean_dim(0).reshape([1, 1, width]);
                    let scaled = embedding(table, tokens()).mul_scalar(2.5);
                    dropout(scaled + positions(&device).reshape([1, len, width]), rate, &mut keys()) + tied
                },
            );
        }
    }
}
