//! Attention: the weighted average at the heart of the paper (§3.2), and what it grew out of.
//!
//! [`kernel_regression`] averages what was seen near a point, [`additive`] learns what "near" means with a small
//! network, [`dot_product`] is the paper's formula and [`multi_head`] the layer around it. All of them end in
//! [`masked_softmax`]. [`cache`] holds the keys and values of earlier decoding steps,
//! [`pruning`] lets tokens leave that receive little attention.

pub mod additive;
pub mod cache;
pub mod dot_product;
pub mod kernel_regression;
pub mod masked_softmax;
pub mod multi_head;
pub mod pruning;
