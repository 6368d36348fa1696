//! Attention: the weighted average at the heart of the paper (§3.2).
//!
//! [`dot_product`] is the formula, [`multi_head`] the layer around it, [`cache`] the keys and values of
//! earlier decoding steps.

pub mod cache;
pub mod dot_product;
pub mod multi_head;
