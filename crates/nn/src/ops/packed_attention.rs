//! Self-attention of texts of different lengths that lie one behind the other, without padding; for inference on the CPU.
//!
//! A text is a task: its scores, softmax and averages stay in the cache. It also returns how much attention each token
//! received, by which [`crate::attention::pruning`] decides who stays. Neighbors: [`mod@super::attention`] is for rectangles
//! and has a backward pass; [`crate::attention::multi_head`] projects before and after.

use burn::tensor::{Tensor, TensorData};
use rayon::prelude::*;

use super::{
    attention_kernel::{Transposed, add_weighted},
    simd::{exp, max, simd, sum},
};

/// `query`, `key` and `value` are `[1, tokens, heads * head_dim]`, `lengths` the tokens of each text. Returns the averaged
/// values, of the same shape, and the mean attention that each token received over heads and queries.
pub fn packed_attention(
    [query, key, value]: [Tensor<3>; 3],
    lengths: &[usize],
    heads: usize,
) -> (Tensor<3>, Vec<f32>) {
    let (shape, device) = (query.dims(), query.device());
    let width = shape[2];
    let [query, key, value] = [query, key, value].map(numbers);
    let mut output = vec![0.0; query.len()];
    let mut received = vec![0.0; shape[1]];
    let mut tasks = Vec::with_capacity(lengths.len());
    let (mut left, mut left_received) = (&mut output[..], &mut received[..]);
    let mut start = 0;
    for length in lengths {
        let (own, rest) = left.split_at_mut(length * width);
        let (own_received, rest_received) = left_received.split_at_mut(*length);
        let place = start * width..(start + length) * width;
        tasks.push((place, own, own_received));
        (left, left_received, start) = (rest, rest_received, start + length);
    }
    tasks.into_par_iter().for_each(|(place, output, received)| {
        let [query, key, value] = [&query, &key, &value].map(|all| &all[place.clone()]);
        attend(query, key, value, heads, output, received);
    });
    let output = Tensor::from_data(TensorData::new(output, shape), &device);
    (output, received)
}

fn numbers(tensor: Tensor<3>) -> Vec<f32> {
    let data = tensor.into_data();
    data.try_into_vec::<f32>().expect("f32 on the CPU")
}

simd! {
    /// One text.
    fn attend(
        query: &[f32],
        key: &[f32],
        value: &[f32],
        heads: usize,
        output: &mut [f32],
        received: &mut [f32],
    ) {
        let len = received.len();
        let width = query.len() / len.max(1);
        let head_dim = width / heads;
        let scale = (head_dim as f32).powf(-0.5);
        let share = 1.0 / (heads * len) as f32;
        let mut keys = Transposed::new(len, head_dim);
        let mut weights = vec![0.0; keys.padded];
        for head in 0..heads {
            let first = head * head_dim;
            keys.load(&key[first..], width);
            for position in 0..len {
                let at = position * width + first;
                keys.dots(&query[at..at + head_dim], &mut weights);
                weights.iter_mut().for_each(|weight| *weight *= scale);
                weights[len..].fill(f32::NEG_INFINITY);
                let largest = max(&weights);
                weights.iter_mut().for_each(|weight| *weight = exp(*weight - largest));
                let inverse = 1.0 / sum(&weights, |weight| weight);
                weights.iter_mut().for_each(|weight| *weight *= inverse);
                for (received, weight) in received.iter_mut().zip(&weights) {
                    *received += share * weight;
                }
                let output = &mut output[at..at + head_dim];
                add_weighted(output, &weights, 1, &value[first..], width, len);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attention::dot_product::{Heads, composed},
        mask::Mask,
        ops::check::{floats, random},
        pass::Pass,
    };
    use burn::tensor::Device;

    #[test]
    fn packed_texts_attend_as_each_of_them_alone() {
        let device = Device::flex();
        let (lengths, width, heads) = ([3, 1, 6], 24, 3);
        let tokens: usize = lengths.iter().sum();
        let inputs = [1, 2, 3].map(|seed| {
            let values = random([tokens, width], seed);
            Tensor::<3>::from_data(TensorData::new(values, [1, tokens, width]), &device)
        });
        let (output, received) = packed_attention(inputs.clone(), &lengths, heads);
        let output = floats(output);
        let mut start = 0;
        for length in lengths {
            let [query, key, value] = inputs.clone().map(|all| all.narrow(1, start, length));
            let heads = Heads {
                query: heads,
                key_value: heads,
            };
            let alone = composed(
                query,
                key,
                value,
                heads,
                &Mask::Open,
                0.0,
                &mut Pass::inspection(),
            );
            let found = &output[start * width..][..length * width];
            for (found, expected) in found.iter().zip(floats(alone.values)) {
                assert!((found - expected).abs() < 1e-5, "{found}, not {expected}");
            }
            let weights = alone.weights.expect("weights");
            let means = floats(weights.mean_dim(1).mean_dim(2));
            for (found, expected) in received[start..].iter().zip(means) {
                assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
            }
            start += length;
        }
    }
}
