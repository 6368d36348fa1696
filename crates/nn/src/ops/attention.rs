//! The core of attention on the CPU: scores, mask, softmax, dropout and averaging, head by head in place.
//!
//! Composed, every head is copied out and back, and scores are written five times. Here one sentence
//! at a time stays in the cache, and the weights are the only thing kept for the backward pass.
//! Most sentences are short, so the products are plain vector loops rather than calls of a matrix library.
//! Neighbors: [`super::attention_blocks`] takes over where sequences are long,
//! [`crate::attention::dot_product`] holds the composed form.

use std::sync::Arc;

use burn::{backend::flex::FlexTensor, tensor::Tensor};
use rayon::prelude::*;

use super::{
    attention_blocks,
    attention_kernel::{Transposed, add_weighted, has_tiles},
    dropout::Pattern,
    fused::{CpuOp, apply, contiguous, tensor_like},
    simd::{exp, max, simd, sum, sum2},
};
use crate::{attention::dot_product::Heads, mask::Mask, random::Keys};

/// Up to so many keys a sentence at a time is computed and its weights are kept; above, blocks of them
/// ([`super::attention_blocks`]). Measured with AVX-512, where products of blocks are fastest; elsewhere the
/// matrix library that they call needs more keys to pay.
fn short() -> usize {
    if has_tiles() { 8 } else { 64 }
}

/// As [`crate::attention::dot_product::scaled_dot_product`], without returning weights.
pub(crate) fn attention(
    query: Tensor<3>,
    key: Tensor<3>,
    value: Tensor<3>,
    heads: Heads,
    mask: &Mask,
    dropout_rate: f64,
    keys: &mut Option<Keys>,
) -> Tensor<3> {
    let [_, query_len, width] = query.dims();
    let sizes = Sizes {
        query_len,
        key_len: key.dims()[1],
        heads: heads.query,
        kv_heads: heads.key_value,
        head_dim: width / heads.query,
    };
    let padded = mask.padded().map(|padded| {
        let padded = padded.clone().into_data();
        Arc::new(padded.iter::<bool>().collect())
    });
    let op = Attention {
        sizes,
        causal: mask.is_causal(),
        padded,
        bias: mask
            .bias()
            .map(|bias| Arc::new(bias.into_data().iter::<f32>().collect())),
        dropout: Pattern::draw(dropout_rate, keys),
    };
    let tracked = query.is_autodiff();
    let inputs = [
        query.into_dispatch(),
        key.into_dispatch(),
        value.into_dispatch(),
    ];
    apply(op, tracked, inputs)
}

#[derive(Debug, Clone)]
struct Attention {
    sizes: Sizes,
    causal: bool,
    /// `[batch, key_len]`
    padded: Option<Arc<Vec<bool>>>,
    /// Added to the scores of each key, `[batch, key_len]`; it gets no gradient.
    bias: Option<Arc<Vec<f32>>>,
    dropout: Option<Pattern>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) query_len: usize,
    pub(super) key_len: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
}

impl Sizes {
    pub(super) fn width(self) -> usize {
        self.heads * self.head_dim
    }

    pub(super) fn kv_width(self) -> usize {
        self.kv_heads * self.head_dim
    }

    fn query_size(self) -> usize {
        self.query_len * self.width()
    }

    pub(super) fn key_size(self) -> usize {
        self.key_len * self.kv_width()
    }

    fn weight_size(self) -> usize {
        self.heads * self.query_len * self.key_len
    }

    pub(super) fn scale(self) -> f32 {
        (self.head_dim as f32).powf(-0.5)
    }
}

/// What attention is computed from.
pub(super) struct Call<'a> {
    pub(super) sizes: Sizes,
    /// `[batch, query_len, heads * head_dim]`
    pub(super) query: &'a [f32],
    /// `[batch, key_len, kv_heads * head_dim]`
    pub(super) key: &'a [f32],
    pub(super) value: &'a [f32],
    pub(super) causal: bool,
    padded: Option<&'a [bool]>,
    bias: Option<&'a [f32]>,
    pub(super) dropout: Option<Pattern>,
}

impl Call<'_> {
    pub(super) fn batch(&self) -> usize {
        self.query.len() / self.sizes.query_size()
    }

    /// Which keys of a sentence are padding.
    pub(super) fn padded_of(&self, row: usize) -> Option<&[bool]> {
        let len = self.sizes.key_len;
        self.padded.map(|padded| &padded[row * len..][..len])
    }

    /// What is added to the scores of each key of a sentence.
    pub(super) fn bias_of(&self, row: usize) -> Option<&[f32]> {
        let len = self.sizes.key_len;
        self.bias.map(|bias| &bias[row * len..][..len])
    }

    /// The inputs of one sentence.
    fn inputs_of(&self, row: usize) -> [&[f32]; 3] {
        let (query, key) = (self.sizes.query_size(), self.sizes.key_size());
        [
            &self.query[row * query..][..query],
            &self.key[row * key..][..key],
            &self.value[row * key..][..key],
        ]
    }
}

/// What the backward pass needs: the inputs, and what the softmax is known by.
#[derive(Debug, Clone)]
struct Saved {
    inputs: [FlexTensor; 3],
    softmax: Softmax,
}

#[derive(Debug, Clone)]
enum Softmax {
    /// The weights `[batch, heads, query_len, key_len]` before dropout.
    Weights(Arc<Vec<f32>>),
    /// The output, and the logarithm of each query's sum.
    Sums(FlexTensor, Arc<Vec<f32>>),
}

impl Attention {
    fn call<'a>(&'a self, inputs: &'a [FlexTensor; 3]) -> Call<'a> {
        let [query, key, value] = inputs.each_ref().map(|input| input.storage::<f32>());
        Call {
            sizes: self.sizes,
            query,
            key,
            value,
            causal: self.causal,
            padded: self.padded.as_deref().map(Vec::as_slice),
            bias: self.bias.as_deref().map(Vec::as_slice),
            dropout: self.dropout,
        }
    }
}

impl CpuOp<3> for Attention {
    type Saved = Saved;

    fn forward(&self, inputs: [FlexTensor; 3]) -> (FlexTensor, Saved) {
        let inputs = inputs.map(contiguous);
        let call = self.call(&inputs);
        let (output, softmax) = if self.sizes.key_len <= short() {
            let (output, weights) = forward_short(&call);
            let output = tensor_like(&inputs[0], output);
            (output, Softmax::Weights(Arc::new(weights)))
        } else {
            let (output, log_sums) = attention_blocks::forward(&call);
            let output = tensor_like(&inputs[0], output);
            (output.clone(), Softmax::Sums(output, Arc::new(log_sums)))
        };
        (output, Saved { inputs, softmax })
    }

    fn backward(&self, saved: Saved, gradient: FlexTensor) -> [FlexTensor; 3] {
        let gradient = contiguous(gradient);
        let gradient = gradient.storage::<f32>();
        let call = self.call(&saved.inputs);
        let [query, key, value] = &saved.inputs;
        let (d_query, [d_key, d_value]) = match saved.softmax {
            Softmax::Weights(weights) => {
                let [d_query, d_key, d_value] = backward_short(&call, &weights, gradient);
                (tensor_like(query, d_query), [d_key, d_value])
            }
            Softmax::Sums(mut output, log_sums) => {
                let place = output.storage_mut::<f32>();
                let others = attention_blocks::backward(&call, place, &log_sums, gradient);
                (output, others)
            }
        };
        [
            d_query,
            tensor_like(key, d_key),
            tensor_like(value, d_value),
        ]
    }
}

/// The output, and the weights before dropout.
fn forward_short(call: &Call) -> (Vec<f32>, Vec<f32>) {
    let sizes = call.sizes;
    let mut output = vec![0.0; call.query.len()];
    let mut weights = vec![0.0; call.batch() * sizes.weight_size()];
    output
        .par_chunks_mut(sizes.query_size())
        .zip(weights.par_chunks_mut(sizes.weight_size()))
        .enumerate()
        .for_each(|(row, (output, weights))| forward_row(call, row, output, weights));
    (output, weights)
}

/// The gradients of queries, keys and values.
fn backward_short(call: &Call, weights: &[f32], gradient: &[f32]) -> [Vec<f32>; 3] {
    let sizes = call.sizes;
    let mut gradients = [call.query, call.key, call.value].map(|input| vec![0.0; input.len()]);
    let [d_query, d_key, d_value] = &mut gradients;
    d_query
        .par_chunks_mut(sizes.query_size())
        .zip(d_key.par_chunks_mut(sizes.key_size()))
        .zip(d_value.par_chunks_mut(sizes.key_size()))
        .enumerate()
        .for_each(|(row, ((d_query, d_key), d_value))| {
            let weights = &weights[row * sizes.weight_size()..][..sizes.weight_size()];
            let gradient = &gradient[row * sizes.query_size()..][..sizes.query_size()];
            backward_row(call, row, weights, gradient, [d_query, d_key, d_value]);
        });
    gradients
}

simd! {
    /// One sentence: all heads, all queries.
    fn forward_row(call: &Call, row: usize, output: &mut [f32], weights: &mut [f32]) {
        let Sizes { query_len, key_len, heads, kv_heads, head_dim } = call.sizes;
        let (width, kv_width, scale) = (call.sizes.width(), call.sizes.kv_width(), call.sizes.scale());
        let [query, key, value] = call.inputs_of(row);
        let first = (row * call.sizes.weight_size()) as u32;
        let mut keys = Transposed::new(key_len, head_dim);
        // Minus infinity where a key is padding, or none at all.
        let mut hidden = vec![f32::NEG_INFINITY; keys.padded];
        for (j, hidden) in hidden[..key_len].iter_mut().enumerate() {
            let padded = call.padded_of(row).is_some_and(|padded| padded[j]);
            let bias = call.bias_of(row).map_or(0.0, |bias| bias[j]);
            *hidden = if padded { f32::NEG_INFINITY } else { bias };
        }
        let mut row = vec![0.0; keys.padded]; // whole vectors, so that no step is left to a scalar loop
        for head in 0..heads {
            let kv_at = head / (heads / kv_heads) * head_dim;
            keys.load(&key[kv_at..], kv_width);
            for i in 0..query_len {
                let at = i * width + head * head_dim;
                let start = (head * query_len + i) * key_len;
                keys.dots(&query[at..at + head_dim], &mut row);
                row.iter_mut().zip(&hidden).for_each(|(score, hidden)| *score = *score * scale + hidden);
                if call.causal && i < key_len {
                    row[i + 1..].fill(f32::NEG_INFINITY);
                }
                let largest = max(&row);
                if largest == f32::NEG_INFINITY {
                    continue; // This query may see nothing: its weights and its output are zero.
                }
                for weight in row.iter_mut() {
                    let hidden = *weight == f32::NEG_INFINITY;
                    *weight = if hidden { 0.0 } else { exp(*weight - largest) };
                }
                let normalizer = 1.0 / sum(&row, |w| w);
                row.iter_mut().for_each(|weight| *weight *= normalizer);
                weights[start..start + key_len].copy_from_slice(&row[..key_len]);
                drop_weights(&mut row, call.dropout, first.wrapping_add(start as u32));
                add_weighted(&mut output[at..at + head_dim], &row, 1, &value[kv_at..], kv_width, key_len);
            }
        }
    }

    /// The gradients of one sentence.
    fn backward_row(call: &Call, row: usize, weights: &[f32], gradient: &[f32], results: [&mut [f32]; 3]) {
        let Sizes { query_len, key_len, heads, kv_heads, head_dim } = call.sizes;
        let (width, kv_width, scale) = (call.sizes.width(), call.sizes.kv_width(), call.sizes.scale());
        let [query, key, value] = call.inputs_of(row);
        let [d_query, d_key, d_value] = results;
        let first = (row * call.sizes.weight_size()) as u32;
        let mut values = Transposed::new(key_len, head_dim);
        let padded = values.padded;
        // Of one head, a row for each query: the weights after dropout, and the gradients of the scores.
        let (mut kept, mut d_scores) = (vec![0.0; query_len * padded], vec![0.0; query_len * padded]);
        let mut row = vec![0.0; padded];
        for head in 0..heads {
            let (at, kv_at) = (head * head_dim, head / (heads / kv_heads) * head_dim);
            values.load(&value[kv_at..], kv_width);
            for i in 0..query_len {
                let start = (head * query_len + i) * key_len;
                let place = first.wrapping_add(start as u32);
                let (kept, d_scores) = (&mut kept[i * padded..][..padded], &mut d_scores[i * padded..][..padded]);
                row[..key_len].copy_from_slice(&weights[start..start + key_len]);
                kept.copy_from_slice(&row);
                drop_weights(kept, call.dropout, place);
                values.dots(&gradient[i * width + at..][..head_dim], d_scores);
                drop_weights(d_scores, call.dropout, place);
                // Softmax: d_score = weight * (d_weight - sum of weight * d_weight).
                let along = sum2(&row, d_scores, |w, d| w * d);
                for (d_score, weight) in d_scores.iter_mut().zip(&row) {
                    *d_score = weight * (*d_score - along) * scale;
                }
                let d_query = &mut d_query[i * width + at..][..head_dim];
                add_weighted(d_query, d_scores, 1, &key[kv_at..], kv_width, key_len);
            }
            for j in 0..key_len {
                let kv = j * kv_width + kv_at..j * kv_width + kv_at + head_dim;
                add_weighted(&mut d_value[kv.clone()], &kept[j..], padded, &gradient[at..], width, query_len);
                add_weighted(&mut d_key[kv], &d_scores[j..], padded, &query[at..], width, query_len);
            }
        }
    }
}

/// Dropout over weights whose first one has this index.
#[inline(always)]
fn drop_weights(weights: &mut [f32], dropout: Option<Pattern>, first: u32) {
    if let Some(pattern) = dropout {
        for (j, weight) in weights.iter_mut().enumerate() {
            *weight *= pattern.factor(first.wrapping_add(j as u32));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attention::dot_product::composed,
        ops::{
            Precision,
            check::{assert_same_gradients, random},
        },
        pass::Pass,
    };
    use burn::tensor::{Bool, Device, TensorData};
    use proptest::prelude::*;

    /// Every kind of mask over random padding, from nothing hidden to everything hidden.
    fn mask(kind: usize, batch: usize, key_len: usize, hide: u64, seed: u64) -> Mask {
        let padded: Vec<bool> = random([batch, key_len], seed)
            .iter()
            .map(|v| *v < hide as f32 * 0.7 - 1.0)
            .collect();
        let padded = Tensor::<2, Bool>::from_data(
            TensorData::new(padded, [batch, key_len]),
            &Device::flex().autodiff(),
        );
        match kind {
            0 => Mask::Open,
            1 => Mask::Causal,
            2 => Mask::Padding(padded),
            _ => Mask::CausalAndPadding(padded),
        }
    }

    /// Outputs and gradients of both forms agree.
    fn compare(
        [batch, query_len, key_len]: [usize; 3],
        [kv_heads, share, head_dim]: [usize; 3],
        mask: &Mask,
        rate: f64,
        seed: u64,
    ) {
        let heads = Heads {
            query: kv_heads * share,
            key_value: kv_heads,
        };
        let (width, kv_width) = (heads.query * head_dim, kv_heads * head_dim);
        let shaped = |[q, k, v]: [Tensor<1>; 3]| {
            (
                q.reshape([batch, query_len, width]),
                k.reshape([batch, key_len, kv_width]),
                v.reshape([batch, key_len, kv_width]),
            )
        };
        assert_same_gradients(
            [
                random([batch, query_len, width], seed),
                random([batch, key_len, kv_width], seed + 1),
                random([batch, key_len, kv_width], seed + 2),
            ],
            |inputs| {
                let (q, k, v) = shaped(inputs);
                attention(q, k, v, heads, mask, rate, &mut Some(Keys::new(seed, 1)))
            },
            |inputs| {
                let (q, k, v) = shaped(inputs);
                let pass = &mut Pass::training(seed, 1, Precision::F32);
                composed(q, k, v, heads, mask, rate, pass).values
            },
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn fused_attention_equals_the_composed_one(
            batch in 1usize..4, query_len in 1usize..9, key_len in 1usize..20, kv_heads in 1usize..4,
            share in 1usize..3, head_dim in 1usize..40, dropped in proptest::bool::ANY,
            kind in 0usize..4, hide in 0u64..4, seed in 0u64..1000,
        ) {
            let mask = mask(kind, batch, key_len, hide, seed + 9);
            let rate = if dropped { 0.3 } else { 0.0 };
            compare([batch, query_len, key_len], [kv_heads, share, head_dim], &mask, rate, seed);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn attention_in_blocks_equals_the_composed_one(
            batch in 1usize..3, query_len in 1usize..700, key_len in (short() + 1)..700, kv_heads in 1usize..3,
            share in 1usize..3, head_dim in 1usize..40, dropped in proptest::bool::ANY,
            kind in 0usize..4, hide in 0u64..4, seed in 0u64..1000,
        ) {
            let mask = mask(kind, batch, key_len, hide, seed + 9);
            let rate = if dropped { 0.3 } else { 0.0 };
            compare([batch, query_len, key_len], [kv_heads, share, head_dim], &mask, rate, seed);
        }
    }

    #[test]
    fn lengths_around_the_borders_of_blocks_equal_the_composed_form() {
        for len in [short(), short() + 1, 127, 128, 129, 255, 256, 257, 513] {
            for kind in 0..4 {
                let mask = mask(kind, 1, len, 1, 3);
                compare([1, len, len], [1, 1, 16], &mask, 0.1, 5);
            }
        }
    }

    /// An operation over long sequences, with its inputs.
    fn long(len: usize) -> (Attention, [FlexTensor; 3]) {
        let sizes = Sizes {
            query_len: len,
            key_len: len,
            heads: 2,
            kv_heads: 1,
            head_dim: 8,
        };
        let op = Attention {
            sizes,
            causal: true,
            padded: None,
            bias: None,
            dropout: Pattern::draw(0.1, &mut Some(Keys::new(3, 4))),
        };
        let input = |width, seed| {
            let shape = [1, len, width];
            FlexTensor::from_data(TensorData::new(random(shape, seed), shape))
        };
        (op, [input(16, 1), input(8, 2), input(8, 3)])
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let run = |threads| {
            let (op, inputs) = long(1100);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().unwrap().install(|| {
                let (output, saved) = op.forward(inputs);
                let gradients = op.backward(saved, output.clone());
                let bits = |tensor: &FlexTensor| tensor.storage::<f32>().to_vec();
                (bits(&output), gradients.each_ref().map(bits))
            })
        };
        let expected = run(1);
        for threads in [2, 3, 8] {
            assert!(run(threads) == expected, "{threads} threads");
        }
    }

    #[test]
    fn what_is_kept_for_the_backward_pass_grows_with_the_length() {
        let kept = |len| {
            let (op, inputs) = long(len);
            match op.forward(inputs).1.softmax {
                Softmax::Weights(weights) => weights.len(),
                Softmax::Sums(output, sums) => output.storage::<f32>().len() + sums.len(),
            }
        };
        let (short, twice) = (kept(2048), kept(4096));
        assert_eq!(short, 2048 * (16 + 2));
        assert_eq!(twice, 2 * short);
    }
}
