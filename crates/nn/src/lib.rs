//! Attention, layers and model families on Burn, for any device that Burn has.
//!
//! ```text
//! attentive-model: config, weights --> models --> layers, attention --> ops --> logits, loss, gradients
//! attentive-train: batches, Pass   -----^  |
//! attentive-runtime: search <--------------+  (SearchModel)
//! ```
//!
//! - [`models`]: the families; [`models::transformer`] is the encoder-decoder of the paper. Start here.
//! - [`attention`]: scaled dot-product attention, the multi-head layer around it, the key-value cache.
//! - [`layers`]: embeddings, positions, linear maps, normalization, and the block that families are built of.
//! - [`ops`]: operations with a fused CPU form; also the loss, the optimizer's arithmetic and how to add one.
//! - [`pass`]: how one forward pass is done: dropout, precision, whether attention weights are returned.
//! - [`mask`]: which positions are hidden from which; the one place where masks are made.
//! - [`init`], [`random`]: first weights and dropout from a seed, without a hidden generator.
//! - [`parameters`]: a model's parameters by name, for saving, loading, optimizing and averaging.
//! - [`device`]: from the name of a device to a Burn device. [`error`]: the one error type.

#![cfg(feature = "burn")]

pub mod attention;
pub mod device;
pub mod error;
pub mod init;
pub mod layers;
pub mod mask;
pub mod models;
pub mod ops;
pub mod parameters;
pub mod pass;
pub mod random;
