//! ViT: the encoder of the Transformer on the patches of an image (Dosovitskiy et al. 2021), pre-norm.
//!
//! Image -> patches -> a vector each, a class token before them, learned positions -> blocks that see the whole image
//! -> the class token's vector -> classes. With [`Vit::forward`]'s `merge` the most similar tokens become one in each
//! layer ([`crate::attention::merging`]). [`inspection`] shows what it does.

pub mod inspection;

use std::path::Path;

use attentive_model::config::{NormPlacement, VitConfig};
use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor, TensorData},
};

use super::weights;
use crate::{
    attention::merging::{Merging, Sides, mean_over_heads},
    error::NnError,
    init::Init,
    layers::{
        block::{Block, BlockConfig},
        linear::Linear,
        norm::LayerNorm,
        positions::LearnedPositions,
    },
    mask::Mask,
    ops::{Precision, add_to_rows, dropout, swap_axes},
    pass::Pass,
};

/// The encoder and its classifier.
#[derive(Module, Debug)]
pub struct Vit {
    /// From the pixels of a patch, `[channels * patch_size * patch_size, d_model]`.
    pub patches: Linear,
    /// `[1, d_model]`
    pub class_token: Param<Tensor<2>>,
    /// `[1 + patches, d_model]`
    pub positions: LearnedPositions,
    /// From bottom to top.
    pub layers: Vec<Block>,
    /// On what the layers leave.
    pub final_norm: LayerNorm,
    /// `[d_model, classes]`
    pub classifier: Linear,
    patch_size: usize,
    heads: usize,
    dropout: f64,
}

/// What one pass returns.
#[derive(Debug, Clone)]
pub struct VitOutput {
    /// The class token's vector, normalized. `[batch, d_model]`
    pub class: Tensor<2>,
    /// Per layer `[batch, heads, len, len]`, if the pass asks for them.
    pub weights: Vec<Tensor<4>>,
    /// What each layer merged, if tokens are merged.
    pub merged: Vec<Merging>,
}

impl Vit {
    /// A model with Xavier-uniform matrices drawn from `seed`: small models learn sooner than from the paper's deviation
    /// of 0.02, which is one for wide layers.
    pub fn new(config: &VitConfig, seed: u64, device: &Device) -> Self {
        Self::init(config, &mut Init::xavier_uniform(seed), device)
    }

    /// A model whose weights are about to be replaced.
    pub fn zeros(config: &VitConfig, device: &Device) -> Self {
        Self::init(config, &mut Init::zeros(), device)
    }

    /// Reads the weights file of a model with this architecture.
    pub fn load(config: &VitConfig, file: &Path, device: &Device) -> Result<Self, NnError> {
        weights::load(config, Self::zeros(config, device), file)
    }

    fn init(config: &VitConfig, init: &mut Init, device: &Device) -> Self {
        let block = BlockConfig::from(config);
        let d = config.d_model;
        Self {
            patches: Linear::new(config.patch_values(), d, init, device),
            class_token: Param::from_tensor(init.matrix(1, d, device)),
            positions: LearnedPositions::new(1 + config.patches(), d, init, device),
            layers: (0..config.layers)
                .map(|_| Block::new(&block, init, device))
                .collect(),
            final_norm: block.layer_norm(device),
            classifier: Linear::new(d, config.labels.len(), init, device),
            patch_size: config.patch_size,
            heads: config.heads,
            dropout: config.dropout,
        }
    }

    /// The device of the weights.
    pub fn device(&self) -> Device {
        self.class_token.val().device()
    }

    /// Images `[batch, channels, height, width]`, normalized. Each layer merges so many tokens as `merge` says, none where
    /// it is empty; merging is for inference.
    pub fn forward(&self, images: Tensor<4>, merge: &[usize], pass: &mut Pass) -> VitOutput {
        let batch = images.dims()[0];
        let mut x = self.embed(images, pass);
        let (mut weights, mut merged) = (Vec::new(), Vec::new());
        let mut sizes = vec![1.0; batch * x.dims()[1]];
        for (number, layer) in self.layers.iter().enumerate() {
            let output = if merge.is_empty() {
                layer.forward(x, &Mask::Open, None, pass)
            } else {
                let len = x.dims()[1];
                let mask = if merge[..number].iter().all(|count| *count == 0) {
                    Mask::Open
                } else {
                    let data = TensorData::new(sizes.clone(), [batch, len]);
                    Mask::Sizes(Tensor::from_data(data, &x.device()))
                };
                layer.forward_changing(x, &mask, pass, |x, keys| {
                    let metric = mean_over_heads(keys, self.heads);
                    let merging = Merging::of(metric, &Sides::alternating(len), merge[number]);
                    let (x, grown) = merging.merge(x, &sizes);
                    sizes = grown;
                    merged.push(merging);
                    x
                })
            };
            x = output.hidden;
            weights.extend(output.weights);
        }
        let d_model = x.dims()[2];
        let class = self.final_norm.forward(x.narrow(1, 0, 1));
        VitOutput {
            class: class.reshape([batch, d_model]),
            weights,
            merged,
        }
    }

    /// `[batch, d_model]` -> `[batch, classes]`
    pub fn logits(&self, class: Tensor<2>, precision: Precision) -> Tensor<2> {
        self.classifier.forward(class, precision)
    }

    /// Class token and patches with their positions. `[batch, 1 + patches, d_model]`
    fn embed(&self, images: Tensor<4>, pass: &mut Pass) -> Tensor<3> {
        let batch = images.dims()[0];
        let patches = patches_of(images, self.patch_size);
        let patches = self.patches.forward(patches, pass.precision);
        let [_, count, d_model] = patches.dims();
        let class = self.class_token.val().unsqueeze::<3>();
        let class = class.expand([batch, 1, d_model]);
        let tokens = Tensor::cat(vec![class, patches], 1);
        let tokens = add_positions(tokens, self.positions.forward(0, 1 + count));
        dropout(tokens, self.dropout, &mut pass.dropout)
    }
}

/// Position vectors `[len, width]` to the tokens of every image, `[batch, len, width]`.
pub(super) fn add_positions(tokens: Tensor<3>, positions: Tensor<2>) -> Tensor<3> {
    let [batch, len, width] = tokens.dims();
    // All positions together are one row, and the images are those that it is added to.
    let images = tokens.reshape([1, batch, len * width]);
    add_to_rows(images, positions.reshape([1, 1, len * width])).reshape([batch, len, width])
}

/// `[batch, channels, height, width]` -> `[batch, patches, channels * size * size]`, patches row by row.
pub fn patches_of(images: Tensor<4>, size: usize) -> Tensor<3> {
    let [batch, channels, height, width] = images.dims();
    let (rows, columns) = (height / size, width / size);
    let patches = images.reshape([batch * channels * rows, size, columns, size]);
    let patches = swap_axes(patches); // [batch * channels * rows, columns, size, size]
    let patches = patches.reshape([batch, channels, rows * columns, size * size]);
    swap_axes(patches) // [batch, patches, channels, size * size]
        .reshape([batch, rows * columns, channels * size * size])
}

impl From<&VitConfig> for BlockConfig {
    fn from(config: &VitConfig) -> Self {
        Self {
            d_model: config.d_model,
            heads: config.heads,
            kv_heads: config.heads,
            d_ff: config.d_ff,
            activation: config.activation,
            dropout: config.dropout,
            norm: NormPlacement::Pre,
            norm_epsilon: config.norm_epsilon,
        }
    }
}
