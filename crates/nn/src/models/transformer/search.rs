//! The Transformer as a model that the search can drive: true incremental steps with a cache.
//!
//! Neighbors: `attentive_runtime::search` calls this; it never sees a tensor.

use attentive_runtime::search::SearchModel;
use attentive_text::special::PAD;
use burn::tensor::{Device, Int, Tensor, TensorData};

use super::{Transformer, decoder::DecoderState};
use crate::pass::Pass;

impl SearchModel for Transformer {
    type State = DecoderState;

    fn vocab(&self) -> usize {
        self.embeddings.projection_bias.dims()[0]
    }

    fn start(&self, sources: &[Vec<u32>]) -> DecoderState {
        let src = pad_rows(sources, &self.device());
        let pass = &mut Pass::evaluation();
        Transformer::start(self, &self.encode(src, pass), pass)
    }

    fn step(&self, state: &mut DecoderState, tokens: &[u32], log_probs: &mut Vec<f32>) {
        let rows: Vec<i64> = tokens.iter().map(|t| i64::from(*t)).collect();
        let shape = [rows.len(), 1];
        let tokens = Tensor::from_data(TensorData::new(rows, shape), &self.device());
        let decoded = Transformer::step(self, tokens, state);
        log_probs.clear();
        let row = self.log_probs(decoded.hidden, &Pass::evaluation());
        log_probs.extend(row.into_data().iter::<f32>());
    }

    fn reorder(&self, state: &mut DecoderState, rows: &[usize]) {
        let rows: Vec<i64> = rows.iter().map(|row| *row as i64).collect();
        let shape = [rows.len()];
        state.reorder(Tensor::from_data(
            TensorData::new(rows, shape),
            &self.device(),
        ));
    }
}

impl Transformer {
    /// Where the parameters live.
    pub fn device(&self) -> Device {
        self.embeddings.target.weight.device()
    }
}

/// Rows of different length as one tensor `[batch, longest]`, padded with `<blank>` on the right.
pub fn pad_rows(rows: &[Vec<u32>], device: &Device) -> Tensor<2, Int> {
    let len = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut ids = Vec::with_capacity(rows.len() * len);
    for row in rows {
        ids.extend(row.iter().map(|id| i64::from(*id)));
        ids.resize(ids.len() + len - row.len(), i64::from(PAD));
    }
    Tensor::from_data(TensorData::new(ids, [rows.len(), len]), device)
}
