//! The encoder: a stack of blocks of self-attention and feed-forward (§3.1, figure 1 left).

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
    /// From bottom to top.
    pub layers: Vec<Block>,
    /// Only with pre-norm layers.
    pub final_norm: Option<LayerNorm>,
}

impl Encoder {
    /// So many equal layers.
    pub fn new(layers: usize, config: &BlockConfig, init: &mut Init, device: &Device) -> Self {
        let layers = (0..layers).map(|_| Block::new(config, init, device));
        Self {
            layers: layers.collect(),
            final_norm: config.final_norm(device),
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
