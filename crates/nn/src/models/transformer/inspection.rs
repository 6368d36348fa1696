//! Looking inside: one forward pass over a sentence pair, with everything that pictures need.
//!
//! Plain numbers come back and no tensors, for crates that know none (`attentive-pictures`).

use attentive_text::special::{decoder_input, decoder_output, source_ids};
use burn::tensor::Tensor;

use super::{Transformer, search::pad_rows};
use crate::pass::Pass;

/// What happened in one forward pass. Weights are `[layer][head][query * keys + key]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspection {
    /// The source looks at itself: `src_len * src_len` weights in each head.
    pub encoder: Vec<Vec<Vec<f32>>>,
    /// The target looks at its past: `tgt_len * tgt_len`.
    pub decoder: Vec<Vec<Vec<f32>>>,
    /// The target looks at the source: `tgt_len * src_len`.
    pub cross: Vec<Vec<Vec<f32>>>,
    /// What the decoder thought at each position.
    pub steps: Vec<Prediction>,
}

/// The decoder's opinion on what comes next.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Log-probability of the token that does come next.
    pub log_prob: f32,
    /// Its place among all tokens, from 1.
    pub rank: usize,
    /// The most probable tokens with their log-probabilities, best first.
    pub best: Vec<(u32, f32)>,
}

impl Transformer {
    /// Reads `source` (without `</s>`), is told to write `target` (without `<s>` and `</s>`), and returns
    /// all attention weights and the `top` most probable tokens at each of the `target.len() + 1`
    /// positions: the decoder reads `<s>` and the target, and writes the target and `</s>`.
    pub fn inspect(&self, source: &[u32], target: &[u32], top: usize) -> Inspection {
        let read = decoder_input(target);
        let written = decoder_output(target);
        let device = self.device();
        let pass = &mut Pass::inspection();
        let memory = self.encode(pad_rows(&[source_ids(source)], &device), pass);
        let decoded = self.decode(pad_rows(&[read], &device), &memory, pass);
        let log_probs = numbers(self.log_probs(decoded.hidden, pass));
        let vocab = log_probs.len() / written.len();
        let steps = log_probs.chunks(vocab).zip(&written);
        Inspection {
            encoder: memory.weights.into_iter().map(heads).collect(),
            decoder: decoded.self_weights.into_iter().map(heads).collect(),
            cross: decoded.cross_weights.into_iter().map(heads).collect(),
            steps: steps
                .map(|(row, token)| prediction(row, *token, top))
                .collect(),
        }
    }
}

/// `[1, heads, queries, keys]` -> the weights of each head.
fn heads(weights: Tensor<4>) -> Vec<Vec<f32>> {
    let [_, _, queries, keys] = weights.dims();
    let weights = numbers(weights);
    weights
        .chunks(queries * keys)
        .map(<[f32]>::to_vec)
        .collect()
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

fn prediction(log_probs: &[f32], token: u32, top: usize) -> Prediction {
    let mut ids: Vec<u32> = (0..log_probs.len() as u32).collect();
    let log_prob = |id: &u32| log_probs[*id as usize];
    ids.sort_by(|a, b| log_prob(b).total_cmp(&log_prob(a)));
    let place = ids.iter().position(|id| *id == token);
    Prediction {
        log_prob: log_prob(&token),
        rank: place.map_or(log_probs.len(), |place| place + 1),
        best: ids.iter().take(top).map(|id| (*id, log_prob(id))).collect(),
    }
}
