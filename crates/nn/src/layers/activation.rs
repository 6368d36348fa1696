//! Activations: the functions between linear maps, of one number or of several together.
//!
//! Without them, layers of linear maps would be one linear map. Elementwise ones look at a number alone; softmax,
//! maxout and the gated linear units look at several. Burn's own are used where they agree with PyTorch, which the
//! parity test says. Neighbors: [`super::feed_forward`] takes an [`Activation`] from the model's configuration.

use std::f64::consts::PI;

use attentive_model::config::Activation;
use burn::tensor::{
    Tensor,
    activation::{self, sigmoid},
};

/// Functions of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elementwise {
    /// `max(0, x)`
    Relu,
    /// `x` above 0, `x / 100` below.
    LeakyRelu,
    /// `x` above 0, `e^x - 1` below.
    Elu,
    /// `1 / (1 + e^-x)`
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// `ln(1 + e^x)`
    Softplus,
    /// `x tanh(softplus(x))`
    Mish,
    /// `x sigmoid(x)`, also called SiLU.
    Swish,
    /// `x Phi(x)` with the normal distribution's `Phi`.
    Gelu,
    /// GELU approximated by a hyperbolic tangent.
    GeluTanh,
    /// GELU approximated by a sigmoid.
    GeluSigmoid,
}

/// Functions of several numbers of the last axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joint {
    /// `e^x / sum(e^x)`: all of them together sum to 1.
    Softmax,
    /// The largest of each two neighbors: half as many (Goodfellow et al. 2013).
    Maxout,
    /// `a sigmoid(b)` of both halves: half as many (Dauphin et al. 2017).
    Glu,
    /// `swish(a) b` of both halves (Shazeer 2020).
    SwiGlu,
    /// `gelu(a) b` of both halves (Shazeer 2020).
    GeGlu,
}

impl From<Activation> for Elementwise {
    fn from(activation: Activation) -> Self {
        match activation {
            Activation::Relu => Self::Relu,
            Activation::Swish => Self::Swish,
            Activation::Gelu => Self::Gelu,
            Activation::GeluTanh => Self::GeluTanh,
            Activation::GeluSigmoid => Self::GeluSigmoid,
        }
    }
}

impl Elementwise {
    /// All of them, with the names of the field.
    pub const ALL: [(&'static str, Self); 11] = [
        ("relu", Self::Relu),
        ("leaky_relu", Self::LeakyRelu),
        ("elu", Self::Elu),
        ("sigmoid", Self::Sigmoid),
        ("tanh", Self::Tanh),
        ("softplus", Self::Softplus),
        ("mish", Self::Mish),
        ("swish", Self::Swish),
        ("gelu", Self::Gelu),
        ("gelu_tanh", Self::GeluTanh),
        ("gelu_sigmoid", Self::GeluSigmoid),
    ];

    /// Any shape -> the same shape.
    pub fn apply<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Relu => activation::relu(x),
            Self::LeakyRelu => activation::leaky_relu(x, 0.01),
            Self::Elu => activation::elu(x, 1.0),
            Self::Sigmoid => sigmoid(x),
            Self::Tanh => x.tanh(),
            Self::Softplus => activation::softplus(x, 1.0),
            Self::Mish => activation::mish(x),
            Self::Swish => activation::silu(x),
            Self::Gelu => activation::gelu(x),
            Self::GeluTanh => gelu_tanh(x),
            Self::GeluSigmoid => x.clone() * sigmoid(x * 1.702),
        }
    }
}

impl Joint {
    /// All of them, with the names of the field.
    pub const ALL: [(&'static str, Self); 5] = [
        ("softmax", Self::Softmax),
        ("maxout", Self::Maxout),
        ("glu", Self::Glu),
        ("swiglu", Self::SwiGlu),
        ("geglu", Self::GeGlu),
    ];

    /// `[.., width]` -> `[.., width]` for softmax, `[.., width / 2]` for the others.
    pub fn apply<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Softmax => activation::softmax(x, D - 1),
            Self::Maxout => {
                let mut shape = x.dims();
                let count: usize = shape.iter().product();
                shape[D - 1] /= 2;
                x.reshape([count / 2, 2]).max_dim(1).reshape(shape)
            }
            Self::Glu => activation::glu(x, D - 1),
            Self::SwiGlu => gated(x, Elementwise::Swish),
            Self::GeGlu => gated(x, Elementwise::Gelu),
        }
    }
}

fn gated<const D: usize>(x: Tensor<D>, function: Elementwise) -> Tensor<D> {
    let half = x.dims()[D - 1] / 2;
    let gate = function.apply(x.clone().narrow(D - 1, 0, half));
    gate * x.narrow(D - 1, half, half)
}

fn gelu_tanh<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let cubic = x.clone() * x.clone() * x.clone() * 0.044715;
    let tanh = ((x.clone() + cubic) * (2.0 / PI).sqrt()).tanh();
    x * (tanh + 1.0) * 0.5
}
