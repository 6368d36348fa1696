//! Attention weights and predictions of a GPT as plain numbers, by one forward pass over a text.

use attentive_runtime::inspection::{Inspection, Prediction};
use burn::tensor::{Int, Tensor, TensorData};

use super::{Gpt, generation::most_probable};
use crate::{
    models::transformer::inspection::{heads, numbers},
    pass::Pass,
};

impl Gpt {
    /// Reads a text of at least one token and at most the context; each prediction is that of the token behind, the last
    /// one that of the most probable token, and lists the `top` most probable ones. Its self-attention is `decoder`
    /// of the [`Inspection`].
    pub fn inspect(&self, tokens: &[u32], top: usize) -> Inspection {
        let pass = &mut Pass::inspection();
        let ids: Vec<i64> = tokens.iter().map(|id| i64::from(*id)).collect();
        let ids = TensorData::new(ids, [1, tokens.len()]);
        let output = self.forward(Tensor::<2, Int>::from_data(ids, &self.device()), None, pass);
        let log_probs = numbers(self.log_probs(output.hidden));
        let rows: Vec<&[f32]> = log_probs.chunks(log_probs.len() / tokens.len()).collect();
        let next = rows.last().map(|row| most_probable(row));
        let predicted = tokens[1..].iter().copied().chain(next);
        Inspection {
            encoder: Vec::new(),
            decoder: output.weights.into_iter().map(heads).collect(),
            cross: Vec::new(),
            predictions: rows
                .iter()
                .zip(predicted)
                .map(|(row, token)| Prediction::new(row, token, top))
                .collect(),
        }
    }
}
