//! The encoder: a stack of blocks of self-attention and feed-forward (§3.1, figure 1 left).

use attentive_model::config::{EmbeddingNorm, TransformerConfig};
use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

use crate::{
    init::Init,
    layers::{
        block::{Block, BlockConfig},
        norm::LayerNorm,
    },
    mask::Mask,
    pass::Pass,
};

/// The stack that reads the source.
#[derive(Module, Debug)]
pub struct Encoder {
    /// On the embeddings, where the model has one.
    pub embedding_norm: Option<LayerNorm>,
    /// From bottom to top.
    pub layers: Vec<Block>,
    /// On what the layers leave, where the model has one: usually with pre-norm layers.
    pub final_norm: Option<LayerNorm>,
}

impl Encoder {
    /// The encoder of a model of this configuration.
    pub fn new(config: &TransformerConfig, init: &mut Init, device: &Device) -> Self {
        let block = BlockConfig::from(config);
        let layers = (0..config.encoder_layers).map(|_| Block::new(&block, init, device));
        let normalized = config.embedding_norm == EmbeddingNorm::LayerNorm;
        Self {
            embedding_norm: normalized.then(|| block.layer_norm(device)),
            layers: layers.collect(),
            final_norm: config.has_final_norm().then(|| block.layer_norm(device)),
        }
    }

    /// `[batch, src_len, d_model]` -> the same shape, and each layer's attention weights
    /// `[batch, heads, src_len, src_len]`, if the pass asks for them.
    pub fn forward(
        &self,
        mut x: Tensor<3>,
        mask: &Mask,
        pass: &mut Pass,
    ) -> (Tensor<3>, Vec<Tensor<4>>) {
        let mut weights = Vec::with_capacity(self.layers.len());
        if let Some(norm) = &self.embedding_norm {
            x = norm.forward(x);
        }
        for layer in &self.layers {
            let output = layer.forward(x, mask, None, pass);
            x = output.hidden;
            weights.extend(output.weights);
        }
        let x = match &self.final_norm {
            Some(norm) => norm.forward(x),
            None => x,
        };
        (x, weights)
    }
}
