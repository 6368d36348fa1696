//! The Transformer on the CPU without a tensor library: fast translation in f32 or int8.
//!
//! ```text
//! model directory --load--> Matrix, Norm --encoder--> pages --decoder--> log-probabilities
//!                                         layers, attend, output   search::SearchModel
//!                                         activation, ssru
//!                                  product, rowwise over simd
//! ```
//!
//! `pages` is the KV cache, `candidates` is the output layer for a few tokens, `rescoring` the one in int8 with exact re-scoring, `quantize` makes int8 models, `inspection` returns attention weights.
//!
//! One thread computes one batch; whoever wants more threads runs more batches. Where there is only one, the others
//! compute parts of its products (`team`). Every result is computed in an order that does not depend on what else is
//! in the batch, so batches, their order and threads never change a translation.

mod activation;
mod aligned;
mod attend;
mod buffers;
mod cache;
mod candidates;
mod decoder;
mod encoder;
mod inspection;
mod layers;
mod load;
mod matrices;
mod matrix;
mod output;
mod packing;
mod pages;
mod pairs;
mod product;
mod quantize;
mod rescoring;
#[doc(hidden)]
pub mod roofline;
mod rowwise;
mod simd;
mod ssru;
mod team;
#[cfg(test)]
mod tests;

use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use attend::Heads;
use buffers::BufferPool;
use candidates::ByToken;
use load::Network;
use rescoring::Rescoring;
use team::Team;

pub use decoder::CpuState;
pub use quantize::{QuantizeReport, quantize};
pub use simd::Isa;

use crate::error::Result;
use attentive_model::ModelError;
use attentive_model::config::TransformerConfig;
use attentive_model::directory::ModelDir;

/// The numbers to compute with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compute {
    /// As trained.
    F32,
    /// Bytes: weights with a scale per output, activations with one per row.
    Int8,
    /// f32, but for the output layer: int8, and f32 again for the tokens that may be the most probable ones. Greedy
    /// search finds the tokens of [`Compute::F32`].
    F32Int8Output,
    /// As the directory holds them.
    #[default]
    Auto,
}

impl FromStr for Compute {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "f32" => Ok(Self::F32),
            "int8" => Ok(Self::Int8),
            "f32-int8-output" => Ok(Self::F32Int8Output),
            "auto" => Ok(Self::Auto),
            _ => Err(format!(
                "`{text}` is none of f32, int8, f32-int8-output, auto"
            )),
        }
    }
}

/// A Transformer, ready to translate.
#[derive(Debug)]
pub struct CpuModel {
    config: TransformerConfig,
    compute: Compute,
    heads: Heads,
    network: Network,
    /// The output layer for requests that have candidates; made when the first one comes.
    by_token: OnceLock<ByToken>,
    /// The output layer in int8, where that was asked for.
    rescoring: Option<Rescoring>,
    isa: Isa,
    team: Arc<Team>,
    buffers: Arc<BufferPool>,
}

impl CpuModel {
    /// Reads the weights of a model directory. Computes as [`Isa::detect`] says.
    pub fn open(dir: &ModelDir, compute: Compute) -> Result<Self> {
        Self::open_with(dir, compute, Isa::detect()?)
    }

    /// As [`CpuModel::open`], for an instruction set of one's choice.
    pub fn open_with(dir: &ModelDir, compute: Compute, isa: Isa) -> Result<Self> {
        let weights = dir.weights()?;
        let config = dir.config.clone();
        let cannot = |reason: String| {
            Err(ModelError::WrongCompute {
                path: weights.path().to_path_buf(),
                reason,
            }
            .into())
        };
        let compute = match (compute, weights.is_int8()) {
            (Compute::F32 | Compute::F32Int8Output, true) => {
                let reason = "the weights are int8 and cannot be computed with in f32; use the \
                              directory they were made from, or int8";
                return cannot(reason.to_string());
            }
            (Compute::Auto, true) => Compute::Int8,
            (Compute::Auto, false) => Compute::F32,
            (chosen, _) => chosen,
        };
        let widest = config.d_model.max(config.d_ff);
        if compute != Compute::F32 && widest > quantize::WIDEST {
            let most = quantize::WIDEST;
            return cannot(format!(
                "a width of {widest} is too much for int8 (at most {most}); use f32"
            ));
        }
        let network = load::network(&config, weights, compute, isa, dir.cache.as_deref())?;
        let rescoring =
            (compute == Compute::F32Int8Output).then(|| Rescoring::new(&network.projection, isa));
        let heads = Heads::new(&config);
        Ok(Self {
            config,
            compute,
            heads,
            network,
            by_token: OnceLock::new(),
            rescoring,
            isa,
            team: Arc::default(),
            buffers: Arc::default(),
        })
    }

    /// The same model, which computes the products of its only search on so many threads. (Several searches at a time
    /// have a thread each.) This changes no result.
    pub fn with_threads(self, threads: usize) -> Self {
        let team = Arc::new(Team::of(threads));
        Self { team, ..self }
    }

    /// The architecture.
    pub fn config(&self) -> &TransformerConfig {
        &self.config
    }

    /// What is computed with: never [`Compute::Auto`].
    pub fn compute(&self) -> Compute {
        self.compute
    }
}
