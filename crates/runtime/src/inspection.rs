//! Looking inside a model: the attention weights and next-token predictions of one sentence pair.
//!
//! Plain numbers, so that `attentive-pictures` and other programs can draw them. The model of
//! [`crate::cpu`] and the Transformer of `attentive-nn` implement [`Inspect`].

use crate::search::SearchModel;

/// A model that shows its attention weights.
pub trait Inspect: SearchModel {
    /// The longest sequence, special tokens included, if the model has learned positions.
    fn position_limit(&self) -> Option<usize>;

    /// One forward pass over a sentence pair, with teacher forcing: the encoder reads `src` and `</s>`, the
    /// decoder reads `<s>` and `tgt` and predicts `tgt` and `</s>`. Both sides come without special tokens.
    /// Each prediction lists the `top` most probable tokens.
    fn inspect(&self, src: &[u32], tgt: &[u32], top: usize) -> Inspection;
}

/// The attention weights and predictions of one forward pass. Weights are
/// `[layer][head][query * keys + key]`; `src_len` and `tgt_len` count one special token.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspection {
    /// Encoder self-attention: `src_len * src_len` weights in each head.
    pub encoder: Vec<Vec<Vec<f32>>>,
    /// Decoder self-attention: `tgt_len * tgt_len`, zero above the diagonal. No layers where the decoder is
    /// recurrent (SSRU).
    pub decoder: Vec<Vec<Vec<f32>>>,
    /// Cross-attention: `tgt_len * src_len`.
    pub cross: Vec<Vec<Vec<f32>>>,
    /// The decoder's prediction at each of the `tgt_len` positions.
    pub predictions: Vec<Prediction>,
}

/// A prediction of the next token.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Log-probability of the token that comes next in the target.
    pub log_prob: f32,
    /// Rank of that token by probability, from 1.
    pub rank: usize,
    /// The most probable tokens with their log-probabilities, best first.
    pub candidates: Vec<(u32, f32)>,
}

impl Prediction {
    /// From the log-probabilities of all tokens; `token` is the one that comes next. Of equally probable
    /// tokens the one with the lower id ranks first.
    pub fn new(log_probs: &[f32], token: u32, top: usize) -> Self {
        let log_prob = |id: u32| log_probs[id as usize];
        let order = |a: &u32, b: &u32| log_prob(*b).total_cmp(&log_prob(*a)).then(a.cmp(b));
        let mut ids: Vec<u32> = (0..log_probs.len() as u32).collect();
        let before = ids.iter().filter(|id| order(id, &token).is_lt()).count();
        // Of a large vocabulary only the best are put in order.
        if top < ids.len() {
            ids.select_nth_unstable_by(top, order);
            ids.truncate(top);
        }
        ids.sort_unstable_by(order);
        Self {
            log_prob: log_prob(token),
            rank: before + 1,
            candidates: ids.into_iter().map(|id| (id, log_prob(id))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_ranks_tokens_by_probability_and_equal_ones_by_id() {
        let log_probs = [-3.0, -1.0, -2.0, -1.0];
        let prediction = Prediction::new(&log_probs, 3, 3);
        assert_eq!((prediction.log_prob, prediction.rank), (-1.0, 2));
        assert_eq!(prediction.candidates, [(1, -1.0), (3, -1.0), (2, -2.0)]);
        let all = Prediction::new(&log_probs, 0, 9);
        assert_eq!((all.rank, all.candidates.len()), (4, 4));
    }
}
