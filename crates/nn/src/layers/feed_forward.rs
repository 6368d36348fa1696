//! `FFN(x) = max(0, x W1 + b1) W2 + b2`, applied to each position (§3.3), or another function instead of the
//! maximum.

use std::f64::consts::PI;

use attentive_model::config::Activation;
use burn::{
    module::Module,
    tensor::{
        Device, Tensor,
        activation::{gelu, sigmoid, silu},
    },
};

use super::linear::Linear;
use crate::{
    init::Init,
    ops::{bias_relu_dropout, dropout, project},
    pass::Pass,
};

/// The sizes of one feed-forward network.
#[derive(Debug, Clone, Copy)]
pub struct FeedForwardConfig {
    /// Width of input and output.
    pub d_model: usize,
    /// Width of the hidden layer.
    pub d_ff: usize,
    /// The function between the two linear maps.
    pub activation: Activation,
    /// Dropout behind the activation, as in the Annotated Transformer.
    pub dropout: f64,
}

/// Two linear maps with an activation between them.
#[derive(Module, Debug)]
pub struct FeedForward {
    /// `[d_model, d_ff]`
    pub inner: Linear,
    /// `[d_ff, d_model]`
    pub outer: Linear,
    #[module(skip)]
    activation: Activation,
    dropout: f64,
}

impl FeedForward {
    /// Linear maps with matrices of `init`.
    pub fn new(config: &FeedForwardConfig, init: &mut Init, device: &Device) -> Self {
        Self {
            inner: Linear::new(config.d_model, config.d_ff, init, device),
            outer: Linear::new(config.d_ff, config.d_model, init, device),
            activation: config.activation,
            dropout: config.dropout,
        }
    }

    /// `[batch, len, d_model]` -> the same shape.
    pub fn forward(&self, x: Tensor<3>, pass: &mut Pass) -> Tensor<3> {
        let inner = project(x, self.inner.weight.val(), pass.precision); // [batch, len, d_ff]
        let bias = self.inner.bias.val();
        let keys = &mut pass.dropout;
        let inner = match smooth(self.activation) {
            None => bias_relu_dropout(inner, bias, self.dropout, keys),
            Some(function) => dropout(function(inner + bias.unsqueeze()), self.dropout, keys),
        };
        self.outer.forward(inner, pass.precision)
    }
}

/// Activations other than ReLU, as plain tensor operations.
fn smooth(activation: Activation) -> Option<fn(Tensor<3>) -> Tensor<3>> {
    match activation {
        Activation::Relu => None,
        Activation::Swish => Some(silu),
        Activation::Gelu => Some(gelu),
        Activation::GeluTanh => Some(gelu_tanh),
        Activation::GeluSigmoid => Some(|x| x.clone() * sigmoid(x * 1.702)),
    }
}

fn gelu_tanh(x: Tensor<3>) -> Tensor<3> {
    let cubic = x.clone() * x.clone() * x.clone() * 0.044715;
    let tanh = ((x.clone() + cubic) * (2.0 / PI).sqrt()).tanh();
    x * (tanh + 1.0) * 0.5
}
