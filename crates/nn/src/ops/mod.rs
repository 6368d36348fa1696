//! Fused CPU operations, each behind a plain function on tensors.
//!
//! On the CPU, much of a training step composed of plain tensor operations is not matrix products but
//! temporaries, random numbers and page faults. Here are operations without large temporaries, with a
//! handwritten backward pass where one is needed. On every other device the same function runs its composed
//! form, so models never ask where they are. Neighbors: the layers and `attentive-train` call these.
//!
//! To add one:
//!
//! 1. Write the composed form as a plain function of tensors. It is the definition, and what GPUs run.
//! 2. Implement `CpuOp<N>` (`fused.rs`) for a struct with the operation's numbers: `forward` returns the result
//!    and what the backward pass needs, `backward` the gradient of every input. Inputs may have any layout
//!    (`contiguous`). Where adding to a known gradient costs nothing, it is `backward_onto` that does the work.
//! 3. Split the work into chunks of a **fixed** size and add partial sums up in order, so that the result does
//!    not depend on the number of threads. Put inner loops into `simd!`. Random masks are hashes of a key
//!    ([`crate::random::Keys`]), so that forward and backward, and a resumed run, compute the same ones.
//! 4. Make the public function choose: `on_cpu(&x.device())`, then `apply`, else the composed form.
//! 5. Test with `assert_same_gradients` (`check.rs`) over random shapes, odd widths and single rows included,
//!    and run the parity tests. Measure before and after; an operation that does not pay for its lines goes.

mod activation;
mod adam;
mod attention;
mod attention_blocks;
mod attention_gru;
pub(crate) mod attention_kernel;
mod attention_softmax;
#[cfg(target_arch = "x86_64")]
mod bf16;
#[cfg(target_arch = "x86_64")]
mod bf16_packing;
#[cfg(test)]
pub(crate) mod check;
mod cross_entropy;
mod dropout;
mod elementwise;
mod embedding;
mod fused;
mod gru;
pub mod handover;
mod kl_divergence;
mod label_smoothing;
mod layer_norm;
#[cfg(test)]
mod learning_curve;
mod linear;
mod matrix;
mod neighborhoods;
mod orthogonalize;
mod packed_attention;
mod projected_loss;
pub(crate) mod simd;
mod swap_axes;

pub use activation::bias_activation_dropout;
pub use adam::{AdamStep, adam_update, blend, by_root_of_squares, sum_of_squares};
pub(crate) use attention::attention;
pub use attention_gru::{Attentive, AttentiveStates, attention_gru};
pub use cross_entropy::cross_entropy;
pub use dropout::dropout;
pub use elementwise::{add_to_rows, bias_relu_dropout, dropout_add};
pub use embedding::embed;
pub(crate) use fused::{node_id, on_cpu};
pub use gru::{Direction, gru};
pub use kl_divergence::kl_divergence;
pub use label_smoothing::{SmoothedLoss, smoothed_loss};
pub use layer_norm::layer_norm;
pub use linear::{affine, project};
pub use matrix::Precision;
pub use neighborhoods::neighborhoods;
pub use orthogonalize::orthogonalize;
pub use packed_attention::packed_attention;
pub use projected_loss::projected_loss;
pub use swap_axes::swap_axes;
