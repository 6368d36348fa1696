//! A decoder of Bahdanau et al. (2015) over whole targets: a gated recurrent unit that attends at every step.
//!
//! ```text
//! a_t = softmax(w_vᵀ tanh(s_{t-1} W_q + K))    c_t = a_t V    s_t = GRU(x_t + c_t W_c, s_{t-1})
//! ```
//!
//! The query of a step is the state before it, so the steps cannot be computed together; everything else can, and is
//! done outside or in one product. Some rows of the batch go through all their steps on one thread. The tanh of
//! every pair of target and source position is computed again in the backward pass, since keeping it would take
//! more memory than everything else together. Neighbors: [`super::gru`] has the recurrent unit,
//! [`crate::attention::additive`] the composed attention, [`crate::models::recurrent`] the model.

use burn::{
    backend::flex::FlexTensor,
    tensor::{Tensor, TensorData},
};
use rayon::prelude::*;

use super::{
    fused::{CpuOp, apply, contiguous, on_cpu, tensor_like},
    gru::{ROWS, add, cell, step_backward, step_forward},
    linear::{column_sums, project},
    matrix::{Destination, Factor, Matrix, Precision, product},
    simd::{exp, simd, sum2, tanh},
};
use crate::{
    attention::{additive::additive_scores, masked_softmax::masked_softmax},
    mask::Mask,
    pass::{Pass, Weights},
};

/// What the decoder attends to, and with which weights.
#[derive(Debug, Clone)]
pub struct Attentive {
    /// `K`, projected: `[batch, src_len, d_hidden]`
    pub keys: Tensor<3>,
    /// `V`: `[batch, src_len, d_value]`
    pub values: Tensor<3>,
    /// `W_q`: `[width, d_hidden]`
    pub query: Tensor<2>,
    /// `w_v`: `[d_hidden]`
    pub score: Tensor<1>,
    /// `W_c`, from a context to the gates: `[d_value, 3 * width]`
    pub context: Tensor<2>,
    /// How many keys of each row are no padding.
    pub lengths: Vec<usize>,
}

/// What an attentive recurrent unit returns.
#[derive(Debug, Clone)]
pub struct AttentiveStates {
    /// States and contexts side by side, `[batch, len, width + d_value]`
    pub hidden: Tensor<3>,
    /// `[batch, len, src_len]`, if the pass asks for weights.
    pub weights: Option<Tensor<3>>,
}

/// All steps. `inputs` `[batch, len, 3 * width]` are the parts of the gates that depend on neither state nor context,
/// `weight` `[width, 3 * width]` and `bias` `[3 * width]` belong to the state, `start` `[batch, width]` is the first
/// query.
pub fn attention_gru(
    inputs: Tensor<3>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    start: Tensor<2>,
    attentive: Attentive,
    pass: &Pass,
) -> AttentiveStates {
    if pass.weights == Weights::Discard && on_cpu(&inputs.device()) {
        let hidden = fused(inputs, weight, bias, start, attentive, pass.precision);
        return AttentiveStates {
            hidden,
            weights: None,
        };
    }
    composed(inputs, weight, bias, start, attentive, pass)
}

fn composed(
    inputs: Tensor<3>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    start: Tensor<2>,
    attentive: Attentive,
    pass: &Pass,
) -> AttentiveStates {
    let Attentive {
        keys,
        values,
        query,
        score,
        context,
        lengths,
    } = attentive;
    let mask = Mask::valid_lengths(&lengths, keys.dims()[1], &inputs.device());
    let precision = pass.precision;
    let mut state = start;
    let (mut steps, mut weights) = (Vec::new(), Vec::new());
    for t in 0..inputs.dims()[1] {
        let query = project(state.clone().unsqueeze_dim(1), query.clone(), precision);
        let scores = additive_scores(query, keys.clone(), score.clone());
        let attention = masked_softmax(scores.unsqueeze_dim(1), &mask).squeeze_dim::<3>(1); // [batch, 1, src_len]
        let mean = attention.clone().matmul(values.clone()).squeeze_dim::<2>(1);
        let input = inputs.clone().narrow(1, t, 1).squeeze_dim::<2>(1)
            + project(mean.clone(), context.clone(), precision);
        state = cell(input, state, weight.clone(), bias.clone(), precision);
        steps.push(Tensor::cat(vec![state.clone(), mean], 1));
        weights.push(attention);
    }
    AttentiveStates {
        hidden: Tensor::stack(steps, 1),
        weights: Some(Tensor::cat(weights, 1)),
    }
}

fn fused(
    inputs: Tensor<3>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    start: Tensor<2>,
    attentive: Attentive,
    precision: Precision,
) -> Tensor<3> {
    let [batch, len, _] = inputs.dims();
    let [_, src_len, hidden] = attentive.keys.dims();
    let op = AttentionGru {
        sizes: Sizes {
            batch,
            len,
            src_len,
            width: start.dims()[1],
            hidden,
            value: attentive.values.dims()[2],
        },
        lengths: attentive.lengths,
        precision,
    };
    let tracked = inputs.is_autodiff();
    let inputs = [
        inputs.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
        start.into_dispatch(),
        attentive.keys.into_dispatch(),
        attentive.values.into_dispatch(),
        attentive.query.into_dispatch(),
        attentive.score.into_dispatch(),
        attentive.context.into_dispatch(),
    ];
    apply(op, tracked, inputs)
}

#[derive(Debug, Clone, Copy)]
struct Sizes {
    batch: usize,
    len: usize,
    src_len: usize,
    width: usize,
    hidden: usize,
    value: usize,
}

#[derive(Debug, Clone)]
struct AttentionGru {
    sizes: Sizes,
    lengths: Vec<usize>,
    precision: Precision,
}

#[derive(Debug, Clone)]
struct Saved {
    inputs: [FlexTensor; 9],
    /// `[W | W_q]`, `[width, 3 * width + hidden]`
    state_maps: Vec<f32>,
    /// `[batch, len, width + value]`
    output: FlexTensor,
    /// `r`, `z`, `n` and `h W_n + b_n`: `[batch, len, 4 * width]`
    gates: Vec<f32>,
    /// `[batch, len, hidden]`
    queries: Vec<f32>,
    /// `[batch, len, src_len]`
    weights: Vec<f32>,
}

impl CpuOp<9> for AttentionGru {
    type Saved = Saved;

    fn forward(&self, inputs: [FlexTensor; 9]) -> (FlexTensor, Saved) {
        let inputs = inputs.map(contiguous);
        let [x, weight, bias, start, keys, values, query, score, context] =
            inputs.each_ref().map(|input| input.storage::<f32>());
        let sizes = self.sizes;
        let Sizes {
            batch,
            len,
            src_len,
            width,
            hidden,
            value,
        } = sizes;
        let maps_width = 3 * width + hidden;
        let state_maps = side_by_side(weight, 3 * width, query, hidden);
        let maps_bias = [bias, &vec![0.0; hidden]].concat();
        let state_map = Matrix::by_rows(&state_maps, maps_width);
        let state_factor = Factor::new(state_map, self.precision);
        let context_factor = Factor::new(Matrix::by_rows(context, 3 * width), self.precision);
        let mut output = vec![0.0; batch * len * (width + value)];
        let mut gates = vec![0.0; batch * len * 4 * width];
        let mut queries = vec![0.0; batch * len * hidden];
        let mut weights = vec![0.0; batch * len * src_len];
        output
            .par_chunks_mut(ROWS * len * (width + value))
            .zip(gates.par_chunks_mut(ROWS * len * 4 * width))
            .zip(queries.par_chunks_mut(ROWS * len * hidden))
            .zip(weights.par_chunks_mut(ROWS * len * src_len))
            .enumerate()
            .for_each(|(chunk, (((output, gates), queries), weights))| {
                let first = chunk * ROWS;
                let rows = ROWS.min(batch - first);
                let mut state = start[first * width..][..rows * width].to_vec();
                let mut mapped = vec![0.0; rows * maps_width];
                let mut contexts = vec![0.0; rows * value];
                let mut fed = vec![0.0; rows * 3 * width];
                for t in 0..len {
                    let left = Matrix::by_rows(&state, width);
                    state_factor.write_product(&mut mapped, left, Destination::Bias(&maps_bias));
                    for row in 0..rows {
                        let (at, source) = (row * len + t, (first + row) * src_len);
                        let valid = self.lengths[first + row];
                        let query = &mapped[row * maps_width + 3 * width..][..hidden];
                        queries[at * hidden..][..hidden].copy_from_slice(query);
                        attend(
                            query,
                            &keys[source * hidden..][..valid * hidden],
                            &values[source * value..][..valid * value],
                            score,
                            &mut weights[at * src_len..][..valid],
                            &mut contexts[row * value..][..value],
                        );
                        let x = &x[((first + row) * len + t) * 3 * width..][..3 * width];
                        fed[row * 3 * width..][..3 * width].copy_from_slice(x);
                    }
                    let left = Matrix::by_rows(&contexts, value);
                    context_factor.write_product(&mut fed, left, Destination::Add);
                    for row in 0..rows {
                        let at = row * len + t;
                        let state = &mut state[row * width..][..width];
                        step_forward(
                            &fed[row * 3 * width..][..3 * width],
                            &mapped[row * maps_width..][..3 * width],
                            state,
                            &mut gates[at * 4 * width..][..4 * width],
                        );
                        let output = &mut output[at * (width + value)..][..width + value];
                        output[..width].copy_from_slice(state);
                        output[width..].copy_from_slice(&contexts[row * value..][..value]);
                    }
                }
            });
        let output = TensorData::new(output, [batch, len, width + value]);
        let output = FlexTensor::from_data(output);
        let saved = Saved {
            inputs,
            state_maps,
            output: output.clone(),
            gates,
            queries,
            weights,
        };
        (output, saved)
    }

    fn backward(&self, saved: Saved, gradient: FlexTensor) -> [FlexTensor; 9] {
        let Saved {
            inputs,
            state_maps,
            output,
            gates,
            queries,
            weights,
        } = saved;
        let gradient = contiguous(gradient);
        let gradient = gradient.storage::<f32>();
        let [_, _, _, start, keys, values, _, score, context] =
            inputs.each_ref().map(|input| input.storage::<f32>());
        let Sizes {
            batch,
            len,
            src_len,
            width,
            hidden,
            value,
        } = self.sizes;
        let maps_width = 3 * width + hidden;
        let state_map = Matrix::by_rows(&state_maps, maps_width).transposed();
        let state_factor = Factor::new(state_map, self.precision);
        let context_map = Matrix::by_rows(context, 3 * width).transposed();
        let context_factor = Factor::new(context_map, self.precision);
        let (before, contexts) = self.split_output(output.storage::<f32>(), start);
        let mut d_x = vec![0.0; batch * len * 3 * width];
        let mut d_mapped = vec![0.0; batch * len * maps_width];
        let mut d_start = vec![0.0; batch * width];
        let mut d_keys = vec![0.0; batch * src_len * hidden];
        let mut d_values = vec![0.0; batch * src_len * value];
        let mut d_scores = vec![0.0; batch * hidden];
        d_x.par_chunks_mut(ROWS * len * 3 * width)
            .zip(d_mapped.par_chunks_mut(ROWS * len * maps_width))
            .zip(d_start.par_chunks_mut(ROWS * width))
            .zip(d_keys.par_chunks_mut(ROWS * src_len * hidden))
            .zip(d_values.par_chunks_mut(ROWS * src_len * value))
            .zip(d_scores.par_chunks_mut(ROWS * hidden))
            .enumerate()
            .for_each(|(chunk, gradients)| {
                let (((((d_x, d_mapped), carry), d_keys), d_values), d_scores) = gradients;
                let first = chunk * ROWS;
                let rows = ROWS.min(batch - first);
                let mut now = vec![0.0; rows * maps_width];
                let mut fed = vec![0.0; rows * 3 * width];
                let mut d_contexts = vec![0.0; rows * value];
                let mut room = vec![0.0; src_len];
                for t in (0..len).rev() {
                    for row in 0..rows {
                        let at = (first + row) * len + t;
                        let gradient = &gradient[at * (width + value)..][..width + value];
                        let carry = &mut carry[row * width..][..width];
                        add(carry, &gradient[..width]);
                        step_backward(
                            &gates[at * 4 * width..][..4 * width],
                            &before[at * width..][..width],
                            carry,
                            &mut fed[row * 3 * width..][..3 * width],
                            &mut now[row * maps_width..][..3 * width],
                        );
                        d_contexts[row * value..][..value].copy_from_slice(&gradient[width..]);
                    }
                    let left = Matrix::by_rows(&fed, 3 * width);
                    context_factor.write_product(&mut d_contexts, left, Destination::Add);
                    for row in 0..rows {
                        let (at, inner) = ((first + row) * len + t, row * len + t);
                        let source = (first + row) * src_len;
                        let valid = self.lengths[first + row];
                        attend_backward(
                            &d_contexts[row * value..][..value],
                            &weights[at * src_len..][..valid],
                            &queries[at * hidden..][..hidden],
                            &keys[source * hidden..][..valid * hidden],
                            &values[source * value..][..valid * value],
                            score,
                            &mut room[..valid],
                            &mut now[row * maps_width + 3 * width..][..hidden],
                            &mut d_keys[row * src_len * hidden..][..valid * hidden],
                            &mut d_values[row * src_len * value..][..valid * value],
                            &mut d_scores[row * hidden..][..hidden],
                        );
                        d_mapped[inner * maps_width..][..maps_width]
                            .copy_from_slice(&now[row * maps_width..][..maps_width]);
                        d_x[inner * 3 * width..][..3 * width]
                            .copy_from_slice(&fed[row * 3 * width..][..3 * width]);
                    }
                    let left = Matrix::by_rows(&now, maps_width);
                    state_factor.write_product(carry, left, Destination::Add);
                }
            });
        let d_maps = product(
            Matrix::by_rows(&before, width).transposed(),
            Matrix::by_rows(&d_mapped, maps_width),
            self.precision,
        );
        let (d_weight, d_query) = apart(&d_maps, 3 * width, hidden);
        let mut d_bias = column_sums(&d_mapped, maps_width);
        d_bias.truncate(3 * width);
        let d_context = product(
            Matrix::by_rows(&contexts, value).transposed(),
            Matrix::by_rows(&d_x, 3 * width),
            self.precision,
        );
        let found = [
            d_x,
            d_weight,
            d_bias,
            d_start,
            d_keys,
            d_values,
            d_query,
            column_sums(&d_scores, hidden),
            d_context,
        ];
        let mut found = found.into_iter();
        inputs
            .each_ref()
            .map(|input| tensor_like(input, found.next().expect("one for each input")))
    }
}

impl AttentionGru {
    /// The state before each step and the context in it: `[batch, len, width]` and `[batch, len, value]`.
    fn split_output(&self, output: &[f32], start: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let Sizes {
            len, width, value, ..
        } = self.sizes;
        let (mut before, mut contexts) = (Vec::new(), Vec::new());
        for (output, start) in output
            .chunks(len * (width + value))
            .zip(start.chunks(width))
        {
            before.extend_from_slice(start);
            for (t, step) in output.chunks(width + value).enumerate() {
                if t + 1 < len {
                    before.extend_from_slice(&step[..width]);
                }
                contexts.extend_from_slice(&step[width..]);
            }
        }
        (before, contexts)
    }
}

/// The rows of two matrices side by side.
fn side_by_side(left: &[f32], left_width: usize, right: &[f32], right_width: usize) -> Vec<f32> {
    let rows = left.chunks(left_width).zip(right.chunks(right_width));
    rows.flat_map(|(left, right)| left.iter().chain(right))
        .copied()
        .collect()
}

/// The other way round.
fn apart(both: &[f32], left_width: usize, right_width: usize) -> (Vec<f32>, Vec<f32>) {
    let rows = || both.chunks(left_width + right_width);
    let left = rows().flat_map(|row| &row[..left_width]).copied();
    let right = rows().flat_map(|row| &row[left_width..]).copied();
    (left.collect(), right.collect())
}

simd! {
    /// Weights of the valid keys of a row, and the context that they average.
    fn attend(
        query: &[f32], keys: &[f32], values: &[f32], score: &[f32], weights: &mut [f32], context: &mut [f32],
    ) {
        let (hidden, width) = (query.len(), context.len());
        let mut largest = f32::NEG_INFINITY;
        for (weight, key) in weights.iter_mut().zip(keys.chunks_exact(hidden)) {
            let mut lanes = [0.0f32; 16];
            let whole = hidden - hidden % 16;
            for first in (0..whole).step_by(16) {
                for i in 0..16 {
                    lanes[i] += score[first + i] * tanh(query[first + i] + key[first + i]);
                }
            }
            *weight = lanes.iter().sum();
            for i in whole..hidden {
                *weight += score[i] * tanh(query[i] + key[i]);
            }
            largest = largest.max(*weight);
        }
        let mut total = 0.0;
        for weight in weights.iter_mut() {
            *weight = exp(*weight - largest);
            total += *weight;
        }
        context.fill(0.0);
        for (weight, value) in weights.iter_mut().zip(values.chunks_exact(width)) {
            *weight /= total;
            context.iter_mut().zip(value).for_each(|(sum, value)| *sum += *weight * value);
        }
    }

    /// The other way: `d_query` is overwritten, the gradients of keys, values and score are added to.
    fn attend_backward(
        d_context: &[f32], weights: &[f32], query: &[f32], keys: &[f32], values: &[f32], score: &[f32],
        d_weights: &mut [f32], d_query: &mut [f32], d_keys: &mut [f32], d_values: &mut [f32], d_score: &mut [f32],
    ) {
        let (hidden, width) = (query.len(), d_context.len());
        let mut mean = 0.0;
        let both = values.chunks_exact(width).zip(d_values.chunks_exact_mut(width));
        for ((d_weight, weight), (value, d_value)) in d_weights.iter_mut().zip(weights).zip(both) {
            *d_weight = sum2(d_context, value, |a, b| a * b);
            mean += weight * *d_weight;
            d_value.iter_mut().zip(d_context).for_each(|(sum, d)| *sum += weight * d);
        }
        d_query.fill(0.0);
        let both = keys.chunks_exact(hidden).zip(d_keys.chunks_exact_mut(hidden));
        for ((d_weight, weight), (key, d_key)) in d_weights.iter().zip(weights).zip(both) {
            let d = weight * (d_weight - mean);
            for i in 0..hidden {
                let t = tanh(query[i] + key[i]);
                d_score[i] += d * t;
                let inner = d * score[i] * (1.0 - t * t);
                d_query[i] += inner;
                d_key[i] += inner;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::{assert_same_gradients, random};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn a_fused_attentive_gru_equals_the_composed_one(
            batch in 1usize..70, len in 1usize..5, src_len in 1usize..6, width in 1usize..10, hidden in 1usize..20,
            value in 1usize..18, seed in 0u64..1000,
        ) {
            let lengths: Vec<usize> = (0..batch).map(|row| 1 + (row * 5 + seed as usize) % src_len).collect();
            let shaped = |[x, w, b, h, k, v, q, s, c]: [Tensor<1>; 9]| (
                x.reshape([batch, len, 3 * width]),
                w.reshape([width, 3 * width]),
                b.reshape([3 * width]),
                h.reshape([batch, width]),
                Attentive {
                    keys: k.reshape([batch, src_len, hidden]),
                    values: v.reshape([batch, src_len, value]),
                    query: q.reshape([width, hidden]),
                    score: s.reshape([hidden]),
                    context: c.reshape([value, 3 * width]),
                    lengths: lengths.clone(),
                },
            );
            assert_same_gradients(
                [
                    random([batch, len, 3 * width], seed),
                    random([width, 3 * width], seed + 1),
                    random([3 * width], seed + 2),
                    random([batch, width], seed + 3),
                    random([batch, src_len, hidden], seed + 4),
                    random([batch, src_len, value], seed + 5),
                    random([width, hidden], seed + 6),
                    random([hidden], seed + 7),
                    random([value, 3 * width], seed + 8),
                ],
                |inputs| {
                    let (x, w, b, h, attentive) = shaped(inputs);
                    attention_gru(x, w, b, h, attentive, &Pass::evaluation()).hidden
                },
                |inputs| {
                    let (x, w, b, h, attentive) = shaped(inputs);
                    composed(x, w, b, h, attentive, &Pass::evaluation()).hidden
                },
            );
        }
    }
}
