//! The residual connection around every sub-layer, with its norm in one of two places.
//!
//! Paper (§5.4): `LN(x + dropout(f(x)))`, [`NormPlacement::Post`]. The Annotated Transformer and most
//! later work: `x + dropout(f(LN(x)))` with a final norm on the stack, [`NormPlacement::Pre`], which
//! trains stably without a long warm-up. A sub-layer `f` is wrapped in two calls:
//!
//! ```text
//! let y = f(residual.input(&x, &norm));
//! let x = residual.add(x, y, &norm, pass);
//! ```

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
    // ANCHOR: residual
    /// What the sub-layer reads. `x` `[batch, len, d_model]`.
    pub fn input(&self, x: &Tensor<3>, norm: &LayerNorm) -> Tensor<3> {
        match self.placement {
            NormPlacement::Pre => norm.forward(x.clone()),
            NormPlacement::Post => x.clone(),
        }
    }

    /// Adds the sub-layer's output `y` to its input `x`, both `[batch, len, d_model]`.
    pub fn add(&self, x: Tensor<3>, y: Tensor<3>, norm: &LayerNorm, pass: &mut Pass) -> Tensor<3> {
        let sum = dropout_add(x, y, self.dropout, &mut pass.dropout);
        match self.placement {
            NormPlacement::Pre => sum,
            NormPlacement::Post => norm.forward(sum),
        }
    }
    // ANCHOR_END: residual
}
