//! Token ids -> vectors (§3.4).

use burn::{
    module::{Module, Param},
    tensor::{Device, Int, Tensor},
};

use crate::init::Init;

/// A table of token vectors.
#[derive(Module, Debug)]
pub struct Embedding {
    /// `[vocab, d_model]`
    pub weight: Param<Tensor<2>>,
}

impl Embedding {
    /// A matrix of `init`.
    pub fn new(vocab: usize, d_model: usize, init: &mut Init, device: &Device) -> Self {
        Self {
            weight: Param::from_tensor(init.matrix(vocab, d_model, device)),
        }
    }

    /// `[batch, len]` ids -> `[batch, len, d_model]`
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        burn::tensor::module::embedding(self.weight.val(), tokens)
    }
}
