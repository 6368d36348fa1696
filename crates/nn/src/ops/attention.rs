//! The core of attention on the CPU: scores, mask, softmax, dropout and averaging, head by head in place.
//!
//! Composed, every head is copied out and back, and scores are written five times. Here one sentence
//! at a time stays in the cache, and the weights are the only thing kept for the backward pass.
//! Sentences are short, so the products are plain vector loops rather than calls of a matrix library.
//! Neighbor: [`crate::attention::dot_product`] holds the composed form.

use std::sync::Arc;

use burn::{backend::flex::FlexTensor, tensor::Tensor};
use rayon::prelude::*;

use super::{
    attention_kernel::{Transposed, add_weighted},
    dropout::Pattern,
    fused::{CpuOp, apply, contiguous, tensor_like},
    simd::{exp, max, simd, sum, sum2},
};
use crate::{attention::dot_product::Heads, mask::Mask, random::Keys};

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
    let [batch, query_len, width] = query.dims();
    let key_len = key.dims()[1];
    let sizes = Sizes {
        query_len,
        key_len,
        heads: heads.query,
        kv_heads: heads.key_value,
        head_dim: width / heads.query,
    };
    let hidden = match mask {
        Mask::Open => None,
        Mask::Hidden(mask) => {
            let mask = mask.clone().expand([batch, 1, query_len, key_len]);
            Some(Arc::new(mask.into_data().iter::<bool>().collect()))
        }
    };
    let dropout = Pattern::draw(dropout_rate, keys);
    let tracked = query.is_autodiff();
    let inputs = [
        query.into_dispatch(),
        key.into_dispatch(),
        value.into_dispatch(),
    ];
    apply(
        Attention {
            sizes,
            hidden,
            dropout,
        },
        tracked,
        inputs,
    )
}

#[derive(Debug, Clone)]
struct Attention {
    sizes: Sizes,
    /// `[batch, query_len, key_len]`
    hidden: Option<Arc<Vec<bool>>>,
    dropout: Option<Pattern>,
}

#[derive(Debug, Clone, Copy)]
struct Sizes {
    query_len: usize,
    key_len: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
}

impl Sizes {
    fn query_size(self) -> usize {
        self.query_len * self.heads * self.head_dim
    }

    fn key_size(self) -> usize {
        self.key_len * self.kv_heads * self.head_dim
    }

    fn weight_size(self) -> usize {
        self.heads * self.query_len * self.key_len
    }

    fn scale(self) -> f32 {
        (self.head_dim as f32).powf(-0.5)
    }
}

/// Inputs, and the weights `[batch, heads, query_len, key_len]` before dropout.
#[derive(Debug, Clone)]
struct Saved {
    inputs: [FlexTensor; 3],
    weights: Arc<Vec<f32>>,
}

impl Attention {
    fn hidden_of(&self, row: usize) -> Option<&[bool]> {
        let size = self.sizes.query_len * self.sizes.key_len;
        self.hidden
            .as_ref()
            .map(|hidden| &hidden[row * size..][..size])
    }
}

impl CpuOp<3> for Attention {
    type Saved = Saved;

    fn forward(&self, inputs: [FlexTensor; 3]) -> (FlexTensor, Saved) {
        let inputs = inputs.map(contiguous);
        let sizes = self.sizes;
        let [query, key, value] = inputs.each_ref().map(|input| input.storage::<f32>());
        let batch = query.len() / sizes.query_size();
        let mut output = vec![0.0; query.len()];
        let mut weights = vec![0.0; batch * sizes.weight_size()];
        output
            .par_chunks_mut(sizes.query_size())
            .zip(weights.par_chunks_mut(sizes.weight_size()))
            .enumerate()
            .for_each(|(row, (output, weights))| {
                let query = &query[row * sizes.query_size()..][..sizes.query_size()];
                let key = &key[row * sizes.key_size()..][..sizes.key_size()];
                let value = &value[row * sizes.key_size()..][..sizes.key_size()];
                let first = (row * sizes.weight_size()) as u32;
                let hidden = self.hidden_of(row);
                forward_row(
                    sizes,
                    query,
                    key,
                    value,
                    hidden,
                    self.dropout,
                    first,
                    output,
                    weights,
                );
            });
        let output = tensor_like(&inputs[0], output);
        (
            output,
            Saved {
                inputs,
                weights: Arc::new(weights),
            },
        )
    }

    fn backward(&self, saved: Saved, gradient: FlexTensor) -> [FlexTensor; 3] {
        let sizes = self.sizes;
        let gradient = contiguous(gradient);
        let gradient = gradient.storage::<f32>();
        let [query, key, value] = saved.inputs.each_ref().map(|input| input.storage::<f32>());
        let mut gradients = [
            vec![0.0; query.len()],
            vec![0.0; key.len()],
            vec![0.0; value.len()],
        ];
        let [d_query, d_key, d_value] = &mut gradients;
        d_query
            .par_chunks_mut(sizes.query_size())
            .zip(d_key.par_chunks_mut(sizes.key_size()))
            .zip(d_value.par_chunks_mut(sizes.key_size()))
            .enumerate()
            .for_each(|(row, ((d_query, d_key), d_value))| {
                let at_query = row * sizes.query_size()..(row + 1) * sizes.query_size();
                let at_key = row * sizes.key_size()..(row + 1) * sizes.key_size();
                let first = row * sizes.weight_size();
                backward_row(
                    sizes,
                    [
                        &query[at_query.clone()],
                        &key[at_key.clone()],
                        &value[at_key],
                    ],
                    &saved.weights[first..][..sizes.weight_size()],
                    self.dropout,
                    first as u32,
                    &gradient[at_query],
                    [d_query, d_key, d_value],
                );
            });
        let [q, k, v] = gradients;
        let [like_q, like_k, like_v] = &saved.inputs;
        [
            tensor_like(like_q, q),
            tensor_like(like_k, k),
            tensor_like(like_v, v),
        ]
    }
}

simd! {
    /// One sentence: all heads, all queries.
    fn forward_row(
        sizes: Sizes,
        query: &[f32],
        key: &[f32],
        value: &[f32],
        hidden: Option<&[bool]>,
        dropout: Option<Pattern>,
        first: u32,
        output: &mut [f32],
        weights: &mut [f32],
    ) {
        let Sizes { query_len, key_len, heads, kv_heads, head_dim } = sizes;
        let (width, kv_width, scale) = (heads * head_dim, kv_heads * head_dim, sizes.scale());
        let mut keys = Transposed::new(key_len, head_dim);
        let mut row = vec![0.0; keys.padded]; // whole vectors, so that no step is left to a scalar loop
        for head in 0..heads {
            let kv_at = head / (heads / kv_heads) * head_dim;
            keys.load(&key[kv_at..], kv_width);
            for i in 0..query_len {
                let at = i * width + head * head_dim;
                let start = (head * query_len + i) * key_len;
                keys.dots(&query[at..at + head_dim], &mut row);
                row.iter_mut().for_each(|score| *score *= scale);
                row[key_len..].fill(f32::NEG_INFINITY);
                if let Some(hidden) = hidden {
                    for (score, hidden) in row.iter_mut().zip(&hidden[i * key_len..][..key_len]) {
                        *score = if *hidden { f32::NEG_INFINITY } else { *score };
                    }
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
                drop_weights(&mut row, dropout, first.wrapping_add(start as u32));
                add_weighted(&mut output[at..at + head_dim], &row, 1, &value[kv_at..], kv_width, key_len);
            }
        }
    }

    /// The gradients of one sentence.
    fn backward_row(
        sizes: Sizes,
        inputs: [&[f32]; 3],
        weights: &[f32],
        dropout: Option<Pattern>,
        first: u32,
        gradient: &[f32],
        results: [&mut [f32]; 3],
    ) {
        let Sizes { query_len, key_len, heads, kv_heads, head_dim } = sizes;
        let (width, kv_width, scale) = (heads * head_dim, kv_heads * head_dim, sizes.scale());
        let [query, key, value] = inputs;
        let [d_query, d_key, d_value] = results;
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
                drop_weights(kept, dropout, place);
                values.dots(&gradient[i * width + at..][..head_dim], d_scores);
                drop_weights(d_scores, dropout, place);
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn fused_attention_equals_the_composed_one(
            batch in 1usize..4, query_len in 1usize..9, key_len in 1usize..20, kv_heads in 1usize..4,
            share in 1usize..3, head_dim in 1usize..40, dropped in proptest::bool::ANY,
            hide in 0u64..4, seed in 0u64..1000,
        ) {
            let heads = Heads { query: kv_heads * share, key_value: kv_heads };
            let (width, kv_width) = (heads.query * head_dim, kv_heads * head_dim);
            // From nothing hidden to everything hidden; rows without any visible key occur.
            let hidden: Vec<bool> = random([batch, query_len, key_len], seed + 9)
                .iter()
                .map(|v| *v < hide as f32 * 0.7 - 1.0)
                .collect();
            let mask = Mask::Hidden(Tensor::<4, Bool>::from_data(
                TensorData::new(hidden, [batch, 1, query_len, key_len]),
                &Device::flex().autodiff(),
            ));
            let rate = if dropped { 0.3 } else { 0.0 };
            let shaped = |[q, k, v]: [Tensor<1>; 3]| (
                q.reshape([batch, query_len, width]),
                k.reshape([batch, key_len, kv_width]),
                v.reshape([batch, key_len, kv_width]),
            );
            assert_same_gradients(
                [
                    random([batch, query_len, width], seed),
                    random([batch, key_len, kv_width], seed + 1),
                    random([batch, key_len, kv_width], seed + 2),
                ],
                |inputs| {
                    let (q, k, v) = shaped(inputs);
                    attention(q, k, v, heads, &mask, rate, &mut Some(Keys::new(seed, 1)))
                },
                |inputs| {
                    let (q, k, v) = shaped(inputs);
                    composed(q, k, v, heads, &mask, rate, &mut Pass::training(seed, 1, Precision::F32)).values
                },
            );
        }
    }
}
