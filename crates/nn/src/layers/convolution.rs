//! A convolution along a sequence: each position is a linear map of itself and of those just before it.
//!
//! The third of the three layers that the paper compares (§4, table 1), beside [`super::gru`] and
//! [`crate::attention::multi_head`]. Its kernel looks back only, as a decoder must.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

use super::linear::Linear;
use crate::{init::Init, ops::Precision};

/// A causal convolution of `kernel` positions.
#[derive(Module, Debug)]
pub struct Convolution {
    /// From the vectors of `kernel` positions side by side, the oldest first: `[kernel * d_input, d_output]`.
    pub map: Linear,
    kernel: usize,
}

impl Convolution {
    /// A matrix of `init`, zero bias.
    pub fn new(
        kernel: usize,
        d_input: usize,
        d_output: usize,
        init: &mut Init,
        device: &Device,
    ) -> Self {
        Self {
            map: Linear::new(kernel * d_input, d_output, init, device),
            kernel,
        }
    }

    /// `[batch, len, d_input]` -> `[batch, len, d_output]`; before the first position stand zeros.
    pub fn forward(&self, x: Tensor<3>, precision: Precision) -> Tensor<3> {
        let [batch, len, width] = x.dims();
        let past = self.kernel - 1;
        let before = Tensor::zeros([batch, past, width], &x.device());
        let padded = Tensor::cat(vec![before, x], 1);
        let shifted = (0..self.kernel).map(|first| padded.clone().narrow(1, first, len));
        self.map
            .forward(Tensor::cat(shifted.collect(), 2), precision)
    }
}
