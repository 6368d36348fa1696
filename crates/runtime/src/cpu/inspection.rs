//! Attention weights and predictions of a given target, by the same kernels that translate.
//!
//! All positions of the target go through the decoder together (teacher forcing). Every row is computed as
//! in a search, so the log-probabilities are those of the search, to the last bit. Neighbors:
//! [`super::decoder`] runs the pass, [`crate::inspection`] has the types.

use attentive_text::special::{decoder_input, decoder_output, source_ids};

use super::CpuModel;
use super::attend::LayerWeights;
use crate::inspection::{Inspect, Inspection, Prediction};

impl Inspect for CpuModel {
    fn position_limit(&self) -> Option<usize> {
        self.config.position_limit()
    }

    fn inspect(&self, src: &[u32], tgt: &[u32], top: usize) -> Inspection {
        let src = source_ids(src);
        let mut encoder = Vec::new();
        let mut state = self.encoded(&src, Some(&mut encoder));
        let mut log_probs = Vec::new();
        let decoded = self.force(&mut state, &decoder_input(tgt), Some(&mut log_probs));
        let rows = log_probs.chunks_exact(self.config.tgt_vocab);
        let heads = |layers: Vec<LayerWeights>| layers.into_iter().map(LayerWeights::into_heads);
        Inspection {
            encoder: heads(encoder).collect(),
            decoder: heads(decoded.self_attention).collect(),
            cross: heads(decoded.cross_attention).collect(),
            predictions: rows
                .zip(decoder_output(tgt))
                .map(|(row, token)| Prediction::new(row, token, top))
                .collect(),
        }
    }
}

impl CpuModel {
    /// Cross-attention for word alignments, averaged over all heads of all layers but the first, which looks around
    /// rather than at a word. (Of the built-in model's layers, heads and their means this makes the fewest errors,
    /// see `words_are_aligned_well_enough_for_tags`.)
    pub(super) fn alignment_weights(&self, src: &[u32], tgt: &[u32]) -> Vec<f32> {
        let mut state = self.encoded(src, None);
        let decoded = self.force(&mut state, &decoder_input(tgt), None);
        let layers = &decoded.cross_attention;
        let layers = &layers[usize::from(layers.len() > 1)..];
        let share = 1.0 / layers.len().max(1) as f32;
        let mut mean: Vec<f32> = Vec::new();
        for layer in layers {
            let own = layer.mean();
            mean.resize(own.len(), 0.0);
            let sums = mean.iter_mut().zip(own);
            sums.for_each(|(sum, weight)| *sum += share * weight);
        }
        mean
    }
}
