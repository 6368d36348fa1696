//! A recurrent translator as a model that the search can drive: one step further from a state.
//!
//! Neighbors: `attentive_runtime::search` calls this; it never sees a tensor.

use std::sync::Arc;

use attentive_runtime::search::{Request, SearchModel, restrict};
use burn::tensor::{Int, Tensor, TensorData, activation::log_softmax};

use super::{Memory, Recurrent};
use crate::{models::transformer::search::pad_rows, pass::Pass};

/// Everything that changes while decoding.
#[derive(Debug)]
pub struct RecurrentState {
    memory: Memory,
    /// `[rows, d_hidden]`
    state: Tensor<2>,
    /// The target tokens that may be produced, for each row.
    candidates: Vec<Option<Arc<[u32]>>>,
}

impl SearchModel for Recurrent {
    type State = RecurrentState;

    fn vocab(&self) -> usize {
        self.projection_bias.dims()[0]
    }

    fn start(&self, requests: &[&Request]) -> RecurrentState {
        let sources: Vec<&[u32]> = requests.iter().map(|request| &request.source[..]).collect();
        let pass = &mut Pass::evaluation();
        let memory = self.encode(pad_rows(&sources, &self.device()), pass);
        RecurrentState {
            state: self.first_state(&memory, pass),
            memory,
            candidates: requests.iter().map(|r| r.candidates.clone()).collect(),
        }
    }

    fn step(&self, state: &mut RecurrentState, tokens: &[u32], log_probs: &mut Vec<f32>) {
        let rows: Vec<i64> = tokens.iter().map(|t| i64::from(*t)).collect();
        let shape = [rows.len(), 1];
        let tokens = Tensor::from_data(TensorData::new(rows, shape), &self.device());
        let pass = &mut Pass::evaluation();
        let decoded = self.decode(tokens, state.state.clone(), &state.memory, pass);
        state.state = decoded.state;
        log_probs.clear();
        let row = log_softmax(self.logits(decoded.hidden, pass), 2);
        log_probs.extend(row.into_data().iter::<f32>());
        let candidates = state.candidates.iter().map(Option::as_deref);
        restrict(log_probs, self.vocab(), candidates);
    }

    fn reorder(&self, state: &mut RecurrentState, rows: &[usize]) {
        let candidates = rows.iter().map(|&row| state.candidates[row].clone());
        state.candidates = candidates.collect();
        let ids: Vec<i64> = rows.iter().map(|row| *row as i64).collect();
        let shape = [ids.len()];
        let ids = Tensor::<1, Int>::from_data(TensorData::new(ids, shape), &self.device());
        state.state = state.state.clone().select(0, ids.clone());
        state.memory = state.memory.select(rows, ids);
    }
}

impl Memory {
    /// Row `i` of the result is row `rows[i]` of this; `ids` are the same numbers.
    fn select(&self, rows: &[usize], ids: Tensor<1, Int>) -> Self {
        let keys = self.keys.as_ref();
        Self {
            states: self.states.clone().select(0, ids.clone()),
            keys: keys.map(|keys| keys.clone().select(0, ids.clone())),
            last: self.last.clone().select(0, ids),
            lengths: rows.iter().map(|row| self.lengths[*row]).collect(),
        }
    }
}
