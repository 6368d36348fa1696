//! The small layers that every model family is made of.

pub mod embedding;
pub mod feed_forward;
pub mod linear;
pub mod norm;
pub mod positions;
pub mod residual;
