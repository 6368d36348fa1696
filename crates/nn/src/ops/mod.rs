//! Operations with a fast CPU implementation behind a plain function on tensors.
//!
//! Each has a composed form that runs on every device and that tests compare the fused one with.
//! Neighbours: the layers and the trainer call these.

mod adam;
#[cfg(test)]
mod check;
mod dropout;
mod fused;
mod layer_norm;
mod loss;
mod simd;

pub use adam::{AdamStep, adam_update};
pub use dropout::dropout;
pub use layer_norm::layer_norm;
pub use loss::{SmoothedLoss, smoothed_loss};
