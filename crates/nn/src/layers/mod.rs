//! The layers that every model family is made of; [`block`] puts them together.

pub mod activation;
pub mod block;
pub mod convolution;
pub mod embedding;
pub mod feed_forward;
pub mod gru;
pub mod linear;
pub mod norm;
pub mod positions;
pub mod residual;
pub mod ssru;
