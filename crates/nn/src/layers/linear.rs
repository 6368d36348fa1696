//! `x W + b` over the last axis.
//!
//! Our own instead of burn-nn's: [`crate::ops::affine`] is faster on the CPU, and initialization draws
//! from a seed that we own.

use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor},
};

use crate::{
    init::Init,
    ops::{Precision, affine},
};

/// An affine map of the last axis.
#[derive(Module, Debug)]
pub struct Linear {
    /// `[d_input, d_output]`
    pub weight: Param<Tensor<2>>,
    /// `[d_output]`
    pub bias: Param<Tensor<1>>,
}

impl Linear {
    /// A matrix of `init`, zero bias.
    pub fn new(d_input: usize, d_output: usize, init: &mut Init, device: &Device) -> Self {
        Self {
            weight: Param::from_tensor(init.matrix(d_input, d_output, device)),
            bias: Param::from_tensor(Tensor::zeros([d_output], device)),
        }
    }

    /// `[.., d_input]` -> `[.., d_output]`
    pub fn forward<const D: usize>(&self, x: Tensor<D>, precision: Precision) -> Tensor<D> {
        affine(x, self.weight.val(), self.bias.val(), precision)
    }
}
