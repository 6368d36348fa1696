//! The residual connection around every sub-layer, with its norm in one of two places.
//!
//! Paper (§5.4): `LN(x + dropout(f(x)))`, [`NormPlacement::Post`]. The Annotated Transformer and most
//! later work: `x + dropout(f(LN(x)))` with a final norm on the stack, [`NormPlacement::Pre`], which
//! trains stably without a long warm-up.

use attentive_runtime::config::NormPlacement;
use burn::tensor::Tensor;

use super::norm::LayerNorm;
use crate::{noise::Noise, ops::dropout};

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
        noise: &mut Noise,
        sublayer: impl FnOnce(Tensor<3>, &mut Noise) -> (Tensor<3>, T),
    ) -> (Tensor<3>, T) {
        match self.placement {
            NormPlacement::Pre => {
                let (y, extra) = sublayer(norm.forward(x.clone()), noise);
                (x + dropout(y, self.dropout, noise), extra)
            }
            NormPlacement::Post => {
                let (y, extra) = sublayer(x.clone(), noise);
                (norm.forward(x + dropout(y, self.dropout, noise)), extra)
            }
        }
    }
}
