//! Attention blocks and Transformer models on Burn, for any device Burn knows.
//!
//! Neighbours on the data path: `attentive-runtime` gives the architecture ([`TransformerConfig`]) and the
//! search trait that [`Transformer`] implements; `attentive-train` feeds batches to it.
//! Read in this order: [`models::transformer`], [`attention`], [`layers`].
//!
//! [`TransformerConfig`]: attentive_model::config::TransformerConfig
//! [`Transformer`]: models::transformer::Transformer

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
