//! A gated recurrent unit over whole sequences (Cho et al. 2014), forward and backward by hand.
//!
//! ```text
//! r = sigmoid(x_r + h W_r + b_r)      z = sigmoid(x_z + h W_z + b_z)
//! n = tanh(x_n + r * (h W_n + b_n))   h = (1 - z) * n + z * h
//! ```
//!
//! The products with the inputs are one product for all time steps, outside; here is what must be done step by step:
//! one small product for each, for some rows of the batch at a time, so that threads never wait for each other within
//! a sequence. The gradients of the weights are one product for all time steps again. Composed, every step would be
//! fifteen tensors. Neighbors: [`super::attention_gru`] attends at each step; [`crate::layers::gru`] is the layer.

use burn::{
    backend::flex::FlexTensor,
    tensor::{
        Int, Tensor, TensorData,
        activation::{sigmoid as sigmoids, tanh as tanhs},
    },
};
use rayon::prelude::*;

use super::{
    fused::{CpuOp, apply, contiguous, on_cpu, tensor_like},
    linear::{affine, column_sums},
    matrix::{Destination, Factor, Matrix, Precision, product},
    simd::{sigmoid, simd, tanh},
};

/// Which end of a sequence a recurrent layer starts at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// At the first position.
    Forward,
    /// At the last one; the result stands in the order of the input.
    Backward,
}

/// All states, `[batch, len, width]`. `inputs` `[batch, len, 3 * width]` are the input parts of `r`, `z` and `n` with
/// their bias, `weight` `[width, 3 * width]` and `bias` `[3 * width]` belong to the state, `start` is `[batch, width]`.
/// At and behind a row's length a state stays as it was.
pub fn gru(
    inputs: Tensor<3>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    start: Tensor<2>,
    lengths: &[usize],
    direction: Direction,
    precision: Precision,
) -> Tensor<3> {
    if !on_cpu(&inputs.device()) {
        return composed(inputs, weight, bias, start, lengths, direction, precision);
    }
    let op = Gru {
        lengths: lengths.to_vec(),
        direction,
        precision,
    };
    let tracked = inputs.is_autodiff();
    let inputs = [
        inputs.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
        start.into_dispatch(),
    ];
    apply(op, tracked, inputs)
}

fn composed(
    inputs: Tensor<3>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    start: Tensor<2>,
    lengths: &[usize],
    direction: Direction,
    precision: Precision,
) -> Tensor<3> {
    let [batch, len, _] = inputs.dims();
    let [_, width] = start.dims();
    let device = inputs.device();
    let rows: Vec<i64> = lengths.iter().map(|length| *length as i64).collect();
    let lengths = Tensor::<1, Int>::from_data(TensorData::new(rows, [batch]), &device);
    let mut states = vec![start.clone(); len];
    let mut state = start;
    for step in 0..len {
        let t = direction.position(step, len);
        let input = inputs.clone().narrow(1, t, 1).squeeze_dim::<2>(1);
        let next = cell(
            input,
            state.clone(),
            weight.clone(),
            bias.clone(),
            precision,
        );
        let over = lengths.clone().lower_equal_elem(t as i64);
        let over = over.reshape([batch, 1]).expand([batch, width]);
        state = next.mask_where(over, state);
        states[t] = state.clone();
    }
    Tensor::stack(states, 1)
}

/// One step out of plain tensor operations: `input` `[batch, 3 * width]`, `state` `[batch, width]`.
pub(super) fn cell(
    input: Tensor<2>,
    state: Tensor<2>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    precision: Precision,
) -> Tensor<2> {
    let [_, width] = state.dims();
    let recurrent = affine(state.clone(), weight, bias, precision);
    let part = |x: &Tensor<2>, i: usize| x.clone().narrow(1, i * width, width);
    let r = sigmoids(part(&input, 0) + part(&recurrent, 0));
    let z = sigmoids(part(&input, 1) + part(&recurrent, 1));
    let n = tanhs(part(&input, 2) + r * part(&recurrent, 2));
    n.clone() + z * (state - n)
}

impl Direction {
    /// The position that comes in the `step`-th place.
    fn position(self, step: usize, len: usize) -> usize {
        match self {
            Self::Forward => step,
            Self::Backward => len - 1 - step,
        }
    }
}

#[derive(Debug, Clone)]
struct Gru {
    lengths: Vec<usize>,
    direction: Direction,
    precision: Precision,
}

#[derive(Debug, Clone)]
struct Saved {
    inputs: FlexTensor,
    weight: FlexTensor,
    bias: FlexTensor,
    start: FlexTensor,
    /// `[batch, len, width]`
    states: FlexTensor,
    /// `r`, `z`, `n` and `h W_n + b_n`: `[batch, len, 4 * width]`
    gates: Vec<f32>,
}

/// Rows of the batch that are computed together, by one thread.
pub(super) const ROWS: usize = 64;

impl CpuOp<4> for Gru {
    type Saved = Saved;

    fn forward(&self, inputs: [FlexTensor; 4]) -> (FlexTensor, Saved) {
        let [inputs, weight, bias, start] = inputs.map(contiguous);
        let [batch, len, gates_width] = [0, 1, 2].map(|axis| inputs.layout().shape()[axis]);
        let width = gates_width / 3;
        let factor = Factor::new(Matrix::of(&weight), self.precision);
        let add_bias = Destination::Bias(bias.storage::<f32>());
        let mut states = vec![0.0; batch * len * width];
        let mut gates = vec![0.0; batch * len * 4 * width];
        states
            .par_chunks_mut((ROWS * len * width).max(1))
            .zip(gates.par_chunks_mut((ROWS * len * 4 * width).max(1)))
            .zip(inputs.storage::<f32>().par_chunks(ROWS * len * 3 * width))
            .zip(start.storage::<f32>().par_chunks(ROWS * width))
            .zip(self.lengths.par_chunks(ROWS))
            .for_each(|((((states, gates), inputs), start), lengths)| {
                let mut state = start.to_vec();
                let mut recurrent = vec![0.0; lengths.len() * 3 * width];
                for step in 0..len {
                    let t = self.direction.position(step, len);
                    let left = Matrix::by_rows(&state, width);
                    factor.write_product(&mut recurrent, left, add_bias);
                    for (row, length) in lengths.iter().enumerate() {
                        let at = row * len + t;
                        let state = &mut state[row * width..][..width];
                        if t < *length {
                            step_forward(
                                &inputs[at * 3 * width..][..3 * width],
                                &recurrent[row * 3 * width..][..3 * width],
                                state,
                                &mut gates[at * 4 * width..][..4 * width],
                            );
                        }
                        states[at * width..][..width].copy_from_slice(state);
                    }
                }
            });
        let states = FlexTensor::from_data(TensorData::new(states, [batch, len, width]));
        let saved = Saved {
            inputs,
            weight,
            bias,
            start,
            states: states.clone(),
            gates,
        };
        (states, saved)
    }

    fn backward(&self, saved: Saved, gradient: FlexTensor) -> [FlexTensor; 4] {
        let Saved {
            inputs,
            weight,
            bias,
            start,
            states,
            gates,
        } = saved;
        let gradient = contiguous(gradient);
        let [batch, len, gates_width] = [0, 1, 2].map(|axis| inputs.layout().shape()[axis]);
        let width = gates_width / 3;
        let before = self.states_before(
            states.storage::<f32>(),
            start.storage::<f32>(),
            [batch, len, width],
        );
        let factor = Factor::new(Matrix::of(&weight).transposed(), self.precision);
        let mut d_inputs = vec![0.0; batch * len * 3 * width];
        let mut d_recurrent = vec![0.0; batch * len * 3 * width];
        let mut d_start = vec![0.0; batch * width];
        d_inputs
            .par_chunks_mut((ROWS * len * 3 * width).max(1))
            .zip(d_recurrent.par_chunks_mut((ROWS * len * 3 * width).max(1)))
            .zip(d_start.par_chunks_mut(ROWS * width))
            .zip(gates.par_chunks(ROWS * len * 4 * width))
            .zip(before.par_chunks(ROWS * len * width))
            .zip(gradient.storage::<f32>().par_chunks(ROWS * len * width))
            .zip(self.lengths.par_chunks(ROWS))
            .for_each(|chunk| {
                let ((((((d_inputs, d_recurrent), carry), gates), before), gradient), lengths) =
                    chunk;
                let mut now = vec![0.0; lengths.len() * 3 * width];
                for step in (0..len).rev() {
                    let t = self.direction.position(step, len);
                    for (row, length) in lengths.iter().enumerate() {
                        let at = row * len + t;
                        let now = &mut now[row * 3 * width..][..3 * width];
                        let carry = &mut carry[row * width..][..width];
                        add(carry, &gradient[at * width..][..width]);
                        if t < *length {
                            step_backward(
                                &gates[at * 4 * width..][..4 * width],
                                &before[at * width..][..width],
                                carry,
                                &mut d_inputs[at * 3 * width..][..3 * width],
                                now,
                            );
                            d_recurrent[at * 3 * width..][..3 * width].copy_from_slice(now);
                        } else {
                            now.fill(0.0);
                        }
                    }
                    let left = Matrix::by_rows(&now, 3 * width);
                    factor.write_product(carry, left, Destination::Add);
                }
            });
        let d_weight = product(
            Matrix::by_rows(&before, width).transposed(),
            Matrix::by_rows(&d_recurrent, 3 * width),
            self.precision,
        );
        let d_bias = column_sums(&d_recurrent, 3 * width);
        [
            tensor_like(&inputs, d_inputs),
            tensor_like(&weight, d_weight),
            tensor_like(&bias, d_bias),
            tensor_like(&start, d_start),
        ]
    }
}

impl Gru {
    /// The state that each position started from, `[batch, len, width]`.
    fn states_before(
        &self,
        states: &[f32],
        start: &[f32],
        [_, len, width]: [usize; 3],
    ) -> Vec<f32> {
        let mut before = vec![0.0; states.len()];
        before
            .par_chunks_mut((len * width).max(1))
            .zip(states.par_chunks(len * width))
            .zip(start.par_chunks(width))
            .for_each(|((before, states), start)| {
                let inner = (len - 1) * width;
                match self.direction {
                    Direction::Forward => {
                        before[..width].copy_from_slice(start);
                        before[width..].copy_from_slice(&states[..inner]);
                    }
                    Direction::Backward => {
                        before[inner..].copy_from_slice(start);
                        before[..inner].copy_from_slice(&states[width..]);
                    }
                }
            });
        before
    }
}

simd! {
    /// One step of one row: `state` becomes the next one, `gates` what the backward pass needs.
    pub(super) fn step_forward(input: &[f32], recurrent: &[f32], state: &mut [f32], gates: &mut [f32]) {
        let width = state.len();
        let (x_r, x) = input.split_at(width);
        let (x_z, x_n) = x.split_at(width);
        let (h_r, h) = recurrent.split_at(width);
        let (h_z, h_n) = h.split_at(width);
        let (r_out, rest) = gates.split_at_mut(width);
        let (z_out, rest) = rest.split_at_mut(width);
        let (n_out, h_out) = rest.split_at_mut(width);
        for i in 0..width {
            let r = sigmoid(x_r[i] + h_r[i]);
            let z = sigmoid(x_z[i] + h_z[i]);
            let n = tanh(x_n[i] + r * h_n[i]);
            state[i] = n + z * (state[i] - n);
            (r_out[i], z_out[i], n_out[i], h_out[i]) = (r, z, n, h_n[i]);
        }
    }

    /// The other way: `carry` is the gradient of the new state and becomes what goes straight to the old one;
    /// `d_input` and `d_recurrent` are those of both parts of the gates.
    pub(super) fn step_backward(
        gates: &[f32],
        before: &[f32],
        carry: &mut [f32],
        d_input: &mut [f32],
        d_recurrent: &mut [f32],
    ) {
        let width = before.len();
        let (r, rest) = gates.split_at(width);
        let (z, rest) = rest.split_at(width);
        let (n, h_n) = rest.split_at(width);
        let (x_r, x) = d_input.split_at_mut(width);
        let (x_z, x_n) = x.split_at_mut(width);
        let (h_r, h) = d_recurrent.split_at_mut(width);
        let (h_z, d_h_n) = h.split_at_mut(width);
        for i in 0..width {
            let d_n = carry[i] * (1.0 - z[i]) * (1.0 - n[i] * n[i]);
            let d_z = carry[i] * (before[i] - n[i]) * z[i] * (1.0 - z[i]);
            let d_r = d_n * h_n[i] * r[i] * (1.0 - r[i]);
            carry[i] *= z[i];
            (x_r[i], x_z[i], x_n[i]) = (d_r, d_z, d_n);
            (h_r[i], h_z[i], d_h_n[i]) = (d_r, d_z, d_n * r[i]);
        }
    }

    pub(super) fn add(left: &mut [f32], right: &[f32]) {
        left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::{assert_same_gradients, random};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn a_fused_gru_equals_the_composed_one(
            batch in 1usize..70, len in 1usize..7, width in 1usize..20, backward in proptest::bool::ANY,
            seed in 0u64..1000,
        ) {
            let direction = if backward { Direction::Backward } else { Direction::Forward };
            let lengths: Vec<usize> = (0..batch).map(|row| 1 + (row * 7 + seed as usize) % len).collect();
            let shaped = |[x, w, b, h]: [Tensor<1>; 4]| (
                x.reshape([batch, len, 3 * width]),
                w.reshape([width, 3 * width]),
                b.reshape([3 * width]),
                h.reshape([batch, width]),
            );
            assert_same_gradients(
                [
                    random([batch, len, 3 * width], seed),
                    random([width, 3 * width], seed + 1),
                    random([3 * width], seed + 2),
                    random([batch, width], seed + 3),
                ],
                |inputs| {
                    let (x, w, b, h) = shaped(inputs);
                    gru(x, w, b, h, &lengths, direction, Precision::F32)
                },
                |inputs| {
                    let (x, w, b, h) = shaped(inputs);
                    composed(x, w, b, h, &lengths, direction, Precision::F32)
                },
            );
        }
    }
}
