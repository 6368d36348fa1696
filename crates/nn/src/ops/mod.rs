//! Operations with a fast CPU implementation behind a plain function on tensors.
//!
//! Each has a composed form that runs on every device and that tests compare the fused one with.
//! Neighbours: the layers and the trainer call these.

mod adam;
mod agreement;
mod attention;
#[cfg(target_arch = "x86_64")]
mod bf16;
#[cfg(test)]
pub(crate) mod check;
mod dropout;
mod feed;
mod fused;
mod layer_norm;
#[cfg(test)]
mod learning_curve;
mod linear;
mod loss;
mod matrix;
mod orthogonal;
mod rows;
mod simd;

pub use adam::{AdamStep, adam_update, blend, sum_of_squares};
pub use agreement::disagreement;
pub(crate) use attention::attention;
pub use dropout::dropout;
pub use feed::{bias_relu_dropout, dropout_add};
pub(crate) use fused::on_cpu;
pub use layer_norm::layer_norm;
pub use linear::{affine, project};
pub use loss::{SmoothedLoss, smoothed_loss};
pub use matrix::Precision;
pub use orthogonal::orthogonalize;
