//! Layer normalization over the last axis, with a learned scale and shift.
//!
//! The epsilon stands inside the square root and the variance is the biased one, as in PyTorch.

use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor},
};

use crate::ops;

/// `(x - mean) / sqrt(var + epsilon) * weight + bias`
#[derive(Module, Debug)]
pub struct LayerNorm {
    /// `[d_model]`, starts at 1.
    pub weight: Param<Tensor<1>>,
    /// `[d_model]`, starts at 0.
    pub bias: Param<Tensor<1>>,
    epsilon: f64,
}

impl LayerNorm {
    /// Scale 1, shift 0.
    pub fn new(d_model: usize, epsilon: f64, device: &Device) -> Self {
        Self {
            weight: Param::from_tensor(Tensor::ones([d_model], device)),
            bias: Param::from_tensor(Tensor::zeros([d_model], device)),
            epsilon,
        }
    }

    /// `[batch, len, d_model]` -> the same shape.
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        ops::layer_norm(x, self.weight.val(), self.bias.val(), self.epsilon)
    }
}
