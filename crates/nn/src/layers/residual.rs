//! The residual connection around every sub-layer, with its norm in one of two places.
//!
//! Paper (§5.4): `LN(x + dropout(f(x)))`, [`NormPlacement::Post`]. The Annotated Transformer and most
//! later work: `x + dropout(f(LN(x)))` with a final norm on the stack, [`NormPlacement::Pre`], which
//! trains stably without a long warm-up.

use attentive_model::config::NormPlacement;
use burn::tensor::Tensor;

use super::norm::LayerNorm;
use crate::{ops::dropout_add, pass::Pass};

/// How sub-layers are joined: where the norm stands and how much dropout acts on their output.
#[derive(Debug, Clone, Copy)]
pub struct Residual {
    /// Before the sub-layer or after the sum.
    pub placement: NormPlacement,
    /// Dropout on the sub-layer's output.
    pub dropout: f64,
}

impl Residual {
    /// Runs `sublayer` inside its residual connection. `x` `[batch, len, d_model]`.
    ///
    /// The sub-layer returns its output and whatever else the caller wants to keep (attention weights).
    pub fn around<T>(
        &self,
        x: Tensor<3>,
        norm: &LayerNorm,
        pass: &mut Pass,
        sublayer: impl FnOnce(Tensor<3>, &mut Pass) -> (Tensor<3>, T),
    ) -> (Tensor<3>, T) {
        match self.placement {
            NormPlacement::Pre => {
                let (y, extra) = sublayer(norm.forward(x.clone()), pass);
                (self.sum(x, y, pass), extra)
            }
            NormPlacement::Post => {
                let (y, extra) = sublayer(x.clone(), pass);
                (norm.forward(self.sum(x, y, pass)), extra)
            }
        }
    }

    fn sum(&self, x: Tensor<3>, y: Tensor<3>, pass: &mut Pass) -> Tensor<3> {
        dropout_add(x, y, self.dropout, &mut pass.dropout)
    }
}
