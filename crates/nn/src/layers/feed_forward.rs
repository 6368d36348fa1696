//! `FFN(x) = max(0, x W1 + b1) W2 + b2`, applied to each position (§3.3), or another function instead of the
//! maximum.

use attentive_model::config::Activation;
use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

use super::linear::Linear;
use crate::{
    init::Init,
    ops::{bias_activation_dropout, project},
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
        let inner = bias_activation_dropout(
            inner,
            bias,
            self.activation,
            self.dropout,
            &mut pass.dropout,
        );
        self.outer.forward(inner, pass.precision)
    }
}
