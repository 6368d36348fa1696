//! Learned token pruning (LTP, "Learned Token Pruning for Transformers", Kim et al. 2022): in each layer, tokens leave whose
//! mean received attention is below the layer's threshold.
//!
//! While thresholds are learned, a token stays by a degree: `sigmoid((score - threshold) / temperature)`, and the layer's
//! output is multiplied with it. Afterwards it stays or leaves. The first token, which the classifier reads, always stays.
//! Paper: each layer's degree stands alone. Here: it is multiplied with that of the layers before, because what has left does
//! not come back. Neighbor: [`crate::models::bert`] applies it.

use burn::{
    module::{Module, Param},
    tensor::{Bool, Device, Tensor, TensorData, activation::sigmoid},
};

/// A threshold for each layer.
#[derive(Module, Debug)]
pub struct TokenPruning {
    /// `[layers]`
    pub thresholds: Param<Tensor<1>>,
}

/// How tokens leave in a forward pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pruning {
    /// None does.
    Off,
    /// By a degree, while thresholds are learned.
    Soft {
        /// The smaller, the more abrupt.
        temperature: f64,
    },
    /// For good.
    Hard,
}

impl TokenPruning {
    /// Thresholds that rise evenly from layer to layer, up to `last`.
    pub fn new(layers: usize, last: f64, device: &Device) -> Self {
        let threshold = |layer: usize| (last * (layer + 1) as f64 / layers as f64) as f32;
        let values: Vec<f32> = (0..layers).map(threshold).collect();
        let values = Tensor::from_data(TensorData::new(values, [layers]), device);
        Self {
            thresholds: Param::from_tensor(values),
        }
    }

    /// The degrees to which tokens stay behind a layer, for those before it and their scores, all `[batch, len]`.
    pub fn degrees(
        &self,
        layer: usize,
        before: Tensor<2>,
        scores: Tensor<2>,
        temperature: f64,
    ) -> Tensor<2> {
        let threshold: Tensor<2> = self.thresholds.val().narrow(0, layer, 1).unsqueeze();
        let degrees = sigmoid((scores - threshold) / temperature);
        let [batch, len] = degrees.dims();
        let first = Tensor::ones([batch, 1], &degrees.device());
        let degrees = if len > 1 {
            Tensor::cat(vec![first, degrees.narrow(1, 1, len - 1)], 1)
        } else {
            first
        };
        before * degrees
    }

    /// Which of the tokens that were there behind a layer are there behind it, for their scores; all `[batch, len]`.
    pub fn stays(
        &self,
        layer: usize,
        before: Tensor<2, Bool>,
        scores: Tensor<2>,
    ) -> Tensor<2, Bool> {
        let threshold: Tensor<2> = self.thresholds.val().narrow(0, layer, 1).unsqueeze();
        let [batch, len] = scores.dims();
        let (scores, threshold) = (scores.detach(), threshold.detach());
        let above = scores.greater_equal(threshold.expand([batch, len]));
        let first: Vec<bool> = (0..batch * len).map(|i| i % len == 0).collect();
        let first = Tensor::from_data(TensorData::new(first, [batch, len]), &above.device());
        before.bool_and(above.bool_or(first))
    }

    /// The thresholds as numbers.
    pub fn values(&self) -> Vec<f32> {
        self.thresholds.val().into_data().iter::<f32>().collect()
    }
}

/// The share of the tokens that are kept, the mean over the layers: what is there behind each layer, and what was there at
/// first, all `[batch, len]` -> `[batch, 1]`.
pub fn kept_share(stays: Vec<Tensor<2>>, there: Tensor<2>) -> Tensor<2> {
    let layers = stays.len() as f64;
    let sums = stays.into_iter().map(|stays| stays.sum_dim(1));
    let sum = sums.reduce(|sum, more| sum + more).expect("a layer");
    sum / there.sum_dim(1) / layers
}

/// The mean attention that each token receives from the tokens that are there: `weights` `[batch, heads, len, len]`, `there`
/// `[batch, len]` with 1 for those -> `[batch, len]`.
pub fn received(weights: Tensor<4>, there: Tensor<2>) -> Tensor<2> {
    let [batch, _, len, _] = weights.dims();
    let queries = there.clone().reshape([batch, len, 1]);
    let mean = weights.mean_dim(1).reshape([batch, len, len]); // [batch, queries, keys]
    let sum = (mean * queries).sum_dim(1).reshape([batch, len]);
    sum / there.sum_dim(1)
}
