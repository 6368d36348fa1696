//! The Transformer as a model that the search can drive: true incremental steps with a cache.
//!
//! Neighbors: `attentive_runtime::search` calls this; it never sees a tensor.

use std::sync::Arc;

use attentive_runtime::search::{Request, SearchModel, restrict};
use attentive_text::special::PAD;
use burn::tensor::{Device, Int, Tensor, TensorData};

use super::{Transformer, decoder::DecoderState};
use crate::pass::Pass;

/// Everything that changes while decoding.
#[derive(Debug)]
pub struct TransformerState {
    decoder: DecoderState,
    /// The target tokens that may be produced, for each row.
    candidates: Vec<Option<Arc<[u32]>>>,
}

impl SearchModel for Transformer {
    type State = TransformerState;

    fn vocab(&self) -> usize {
        self.embeddings.projection_bias.dims()[0]
    }

    fn start(&self, requests: &[&Request]) -> TransformerState {
        let sources: Vec<&[u32]> = requests.iter().map(|request| &request.source[..]).collect();
        let src = pad_rows(&sources, &self.device());
        let pass = &mut Pass::evaluation();
        TransformerState {
            decoder: Transformer::start(self, &self.encode(src, pass), pass),
            candidates: requests.iter().map(|r| r.candidates.clone()).collect(),
        }
    }

    fn step(&self, state: &mut TransformerState, tokens: &[u32], log_probs: &mut Vec<f32>) {
        let rows: Vec<i64> = tokens.iter().map(|t| i64::from(*t)).collect();
        let shape = [rows.len(), 1];
        let tokens = Tensor::from_data(TensorData::new(rows, shape), &self.device());
        let decoded = Transformer::step(self, tokens, &mut state.decoder);
        log_probs.clear();
        let row = self.log_probs(decoded.hidden, &Pass::evaluation());
        log_probs.extend(row.into_data().iter::<f32>());
        let candidates = state.candidates.iter().map(Option::as_deref);
        restrict(log_probs, self.vocab(), candidates);
    }

    fn reorder(&self, state: &mut TransformerState, rows: &[usize]) {
        let candidates = rows.iter().map(|&row| state.candidates[row].clone());
        state.candidates = candidates.collect();
        let rows: Vec<i64> = rows.iter().map(|row| *row as i64).collect();
        let shape = [rows.len()];
        state.decoder.reorder(Tensor::from_data(
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
pub fn pad_rows<R: AsRef<[u32]>>(rows: &[R], device: &Device) -> Tensor<2, Int> {
    let rows = || rows.iter().map(AsRef::as_ref);
    let len = rows().map(<[u32]>::len).max().unwrap_or(0);
    let mut ids = Vec::with_capacity(rows().len() * len);
    for row in rows() {
        ids.extend(row.iter().map(|id| i64::from(*id)));
        ids.resize(ids.len() + len - row.len(), i64::from(PAD));
    }
    Tensor::from_data(TensorData::new(ids, [rows().len(), len]), device)
}
