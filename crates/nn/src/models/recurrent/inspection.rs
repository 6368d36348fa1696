//! Attention weights and predictions as plain numbers, by one pass over a sentence pair.
//!
//! There is one layer with one head, from the target to the source, or none at all where the context is fixed.
//! `attentive_runtime::inspection` has the types and the trait.

use attentive_runtime::inspection::{Inspect, Inspection, Prediction};
use attentive_text::special::{EOS, decoder_input, source_ids};
use burn::tensor::activation::log_softmax;

use super::Recurrent;
use crate::{
    models::transformer::{inspection::numbers, search::pad_rows},
    pass::Pass,
};

impl Inspect for Recurrent {
    fn position_limit(&self) -> Option<usize> {
        None
    }

    fn inspect(&self, src: &[u32], tgt: &[u32], top: usize) -> Inspection {
        let device = self.device();
        let pass = &mut Pass::inspection();
        let memory = self.encode(pad_rows(&[source_ids(src)], &device), pass);
        let start = self.first_state(&memory, pass);
        let read = pad_rows(&[decoder_input(tgt)], &device);
        let decoded = self.decode(read, start, &memory, pass);
        let log_probs = numbers(log_softmax(self.logits(decoded.hidden, pass), 2));
        let rows = log_probs.chunks(log_probs.len() / (tgt.len() + 1));
        let predicted = tgt.iter().chain([&EOS]);
        let weights = decoded.weights.into_iter();
        Inspection {
            encoder: Vec::new(),
            decoder: Vec::new(),
            cross: weights.map(|weights| vec![numbers(weights)]).collect(),
            predictions: rows
                .zip(predicted)
                .map(|(row, &token)| Prediction::new(row, token, top))
                .collect(),
        }
    }
}
