//! A layer of gated recurrent units, in one direction or in both (Cho et al. 2014, Schuster and Paliwal 1997).
//!
//! The gates lie side by side, `r`, `z`, `n`, and both the input and the state have a bias, as in PyTorch. Neighbors:
//! [`crate::ops::gru`] is the recurrence, [`crate::models::recurrent`] the translators made of it.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

use super::linear::Linear;
use crate::{
    init::Init,
    ops::{Direction, gru},
    pass::Pass,
};

/// Recurrent units in one direction.
#[derive(Module, Debug)]
pub struct Gru {
    /// From the input to the gates, `[d_input, 3 * width]`.
    pub input: Linear,
    /// From the state to the gates, `[width, 3 * width]`.
    pub state: Linear,
}

impl Gru {
    /// Matrices of `init`, zero bias.
    pub fn new(d_input: usize, width: usize, init: &mut Init, device: &Device) -> Self {
        Self {
            input: Linear::new(d_input, 3 * width, init, device),
            state: Linear::new(width, 3 * width, init, device),
        }
    }

    /// `x` `[batch, len, d_input]` from the state `start` `[batch, width]`, zeros if there is none -> every state,
    /// `[batch, len, width]`. Behind the length of a row its state stays as it was.
    pub fn forward(
        &self,
        x: Tensor<3>,
        start: Option<Tensor<2>>,
        lengths: &[usize],
        direction: Direction,
        pass: &Pass,
    ) -> Tensor<3> {
        let ([batch, ..], [width, _]) = (x.dims(), self.state.weight.dims());
        let start = start.unwrap_or_else(|| Tensor::zeros([batch, width], &x.device()));
        let (weight, bias) = (self.state.weight.val(), self.state.bias.val());
        let inputs = self.input.forward(x, pass.precision);
        gru(
            inputs,
            weight,
            bias,
            start,
            lengths,
            direction,
            pass.precision,
        )
    }
}

/// Recurrent units in both directions: every position knows what stands before and behind it.
#[derive(Module, Debug)]
pub struct BidirectionalGru {
    /// From the first position to the last.
    pub forward: Gru,
    /// From the last position to the first.
    pub backward: Gru,
}

/// What a bidirectional layer returns.
#[derive(Debug, Clone)]
pub struct BidirectionalStates {
    /// The states of both directions side by side, `[batch, len, 2 * width]`.
    pub states: Tensor<3>,
    /// The last state of each direction, side by side: `[batch, 2 * width]`.
    pub last: Tensor<2>,
}

impl BidirectionalGru {
    /// Matrices of `init`, zero bias.
    pub fn new(d_input: usize, width: usize, init: &mut Init, device: &Device) -> Self {
        Self {
            forward: Gru::new(d_input, width, init, device),
            backward: Gru::new(d_input, width, init, device),
        }
    }

    /// `x` `[batch, len, d_input]`; rows are read up to their length.
    pub fn forward(&self, x: Tensor<3>, lengths: &[usize], pass: &Pass) -> BidirectionalStates {
        let len = x.dims()[1];
        let ahead = self
            .forward
            .forward(x.clone(), None, lengths, Direction::Forward, pass);
        let back = self
            .backward
            .forward(x, None, lengths, Direction::Backward, pass);
        let last = [
            ahead.clone().narrow(1, len - 1, 1),
            back.clone().narrow(1, 0, 1),
        ];
        BidirectionalStates {
            states: Tensor::cat(vec![ahead, back], 2),
            last: Tensor::cat(last.to_vec(), 2).squeeze_dim(1),
        }
    }
}
