//! Token ids -> vectors, multiplied by `sqrt(d_model)` (§3.4).

use burn::{
    module::{Module, Param},
    tensor::{Device, Int, Tensor},
};

use super::linear::xavier_uniform;
use crate::noise::Noise;

/// A table of token vectors.
#[derive(Module, Debug)]
pub struct Embedding {
    /// `[vocab, d_model]`
    pub weight: Param<Tensor<2>>,
}

impl Embedding {
    /// Xavier-uniform start.
    pub fn new(vocab: usize, d_model: usize, init: &mut Noise, device: &Device) -> Self {
        Self {
            weight: Param::from_tensor(xavier_uniform(vocab, d_model, init, device)),
        }
    }

    /// `[batch, len]` ids -> `[batch, len, d_model]`, scaled by `sqrt(d_model)`.
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let weight = self.weight.val();
        let scale = (weight.dims()[1] as f64).sqrt();
        burn::tensor::module::embedding(weight, tokens).mul_scalar(scale)
    }
}
