//! Attention weights and predictions as plain numbers, by one forward pass over a sentence pair.
//!
//! `attentive_runtime::inspection` has the types and the trait; the runtime's CPU model implements it too.

use attentive_runtime::inspection::{Inspect, Inspection, Prediction};
use attentive_text::special::{EOS, decoder_input, source_ids};
use burn::tensor::Tensor;

use super::{Transformer, search::pad_rows};
use crate::pass::Pass;

impl Inspect for Transformer {
    fn position_limit(&self) -> Option<usize> {
        let positions = self.embeddings.target_positions.as_ref();
        positions.map(|table| table.weight.dims()[0])
    }

    fn inspect(&self, src: &[u32], tgt: &[u32], top: usize) -> Inspection {
        let device = self.device();
        let pass = &mut Pass::inspection();
        let src = pad_rows(&[source_ids(src)], &device);
        let read = pad_rows(&[decoder_input(tgt)], &device);
        let memory = self.encode(src, pass);
        let decoded = self.decode(read, &memory, pass);
        let log_probs = numbers(self.log_probs(decoded.hidden, pass));
        let rows = log_probs.chunks(log_probs.len() / (tgt.len() + 1));
        let predicted = tgt.iter().chain([&EOS]);
        Inspection {
            encoder: memory.weights.into_iter().map(heads).collect(),
            decoder: decoded.self_weights.into_iter().map(heads).collect(),
            cross: decoded.cross_weights.into_iter().map(heads).collect(),
            predictions: rows
                .zip(predicted)
                .map(|(row, &token)| Prediction::new(row, token, top))
                .collect(),
        }
    }
}

/// `[1, heads, queries, keys]` -> the weights of each head.
pub(crate) fn heads(weights: Tensor<4>) -> Vec<Vec<f32>> {
    let [_, _, queries, keys] = weights.dims();
    let weights = numbers(weights);
    weights
        .chunks(queries * keys)
        .map(<[f32]>::to_vec)
        .collect()
}

pub(crate) fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}
