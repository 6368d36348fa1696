//! A denoising diffusion model (Ho et al. 2020): predicts image and noise in a noisy image, told the step and the
//! class.
//!
//! A U-Net: image -> positions of `patch_size` pixels -> stages at finer and coarser resolutions, with a way across from
//! each finer stage on the way down to the one on the way up -> velocity. A stage is a 3 x 3 convolution that knows step
//! and class, and a Transformer block over all positions. [`noise`] is what is learned to be undone, [`sampling`]
//! undoes it. With `merge`, similar positions are merged before the sub-layers of the blocks of the finest
//! resolution, where attention is dearest, and copied back behind them.

pub mod noise;
pub mod sampling;

use std::path::Path;

use attentive_model::config::{DiffusionConfig, NormPlacement};
use burn::{
    module::Module,
    tensor::{Device, Int, Tensor},
};

use super::{
    vit::{add_positions, patches_of},
    weights,
};
use crate::{
    attention::merging::{Merging, Sides},
    error::NnError,
    init::Init,
    layers::{
        block::{Block, BlockConfig},
        embedding::Embedding,
        linear::Linear,
        norm::LayerNorm,
        positions::{LearnedPositions, sinusoids},
    },
    mask::Mask,
    ops::{add_to_rows, bias_activation_dropout, dropout_add, neighborhoods, swap_axes},
    pass::Pass,
};

/// The U-Net.
#[derive(Module, Debug)]
pub struct Diffusion {
    /// `[patch values, width]`
    pub input: Linear,
    /// Of the finest resolution.
    pub positions: LearnedPositions,
    /// Of the sinusoids of a step.
    pub time_inner: Linear,
    /// Behind the activation.
    pub time_outer: Linear,
    /// `[classes + 1, ..]`: the last one is any class.
    pub classes: Embedding,
    /// From the finest resolution to the coarsest.
    pub down: Vec<Stage>,
    /// From four positions to one of the next resolution.
    pub halve: Vec<Linear>,
    /// From one position to four of the resolution before.
    pub double: Vec<Linear>,
    /// From what came up and what came across to one.
    pub join: Vec<Linear>,
    /// Of every resolution but the coarsest, on the way up.
    pub up: Vec<Stage>,
    /// On what the stages leave.
    pub final_norm: LayerNorm,
    /// `[width, patch values]`
    pub output: Linear,
    patch_size: usize,
    channels: usize,
    side: usize,
    any_class: usize,
}

/// A convolution that knows step and class, then a Transformer block.
#[derive(Module, Debug)]
pub struct Stage {
    /// Of step and class.
    pub condition: Linear,
    /// Before the convolution.
    pub norm: LayerNorm,
    /// From the 3 x 3 positions around each position, `[9 * width, width]`.
    pub convolution: Linear,
    /// Over all positions.
    pub block: Block,
}

/// How many positions are merged for the Transformer blocks of the finest resolution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MergeRatio {
    /// Share of all positions that goes.
    pub ratio: f64,
    /// Which corner of each square others are merged into, 0 to 3.
    pub corner: usize,
}

impl Diffusion {
    /// A model with Xavier-uniform matrices drawn from `seed`.
    pub fn new(config: &DiffusionConfig, seed: u64, device: &Device) -> Self {
        Self::init(config, &mut Init::xavier_uniform(seed), device)
    }

    /// A model whose weights are about to be replaced.
    pub fn zeros(config: &DiffusionConfig, device: &Device) -> Self {
        Self::init(config, &mut Init::zeros(), device)
    }

    /// Reads the weights file of a model with this architecture.
    pub fn load(config: &DiffusionConfig, file: &Path, device: &Device) -> Result<Self, NnError> {
        weights::load(config, Self::zeros(config, device), file)
    }

    fn init(config: &DiffusionConfig, init: &mut Init, device: &Device) -> Self {
        let (width, condition) = (config.widths[0], config.condition_width());
        let side = config.side(0);
        let pairs: Vec<[usize; 2]> = config.widths.windows(2).map(|w| [w[0], w[1]]).collect();
        Self {
            input: Linear::new(config.patch_values(), width, init, device),
            positions: LearnedPositions::new(side * side, width, init, device),
            time_inner: Linear::new(condition, condition, init, device),
            time_outer: Linear::new(condition, condition, init, device),
            classes: Embedding::new(config.labels.len() + 1, condition, init, device),
            down: (config.widths.iter())
                .map(|width| Stage::new(config, *width, init, device))
                .collect(),
            halve: (pairs.iter())
                .map(|[fine, coarse]| Linear::new(4 * fine, *coarse, init, device))
                .collect(),
            double: (pairs.iter())
                .map(|[fine, coarse]| Linear::new(*coarse, 4 * fine, init, device))
                .collect(),
            join: (pairs.iter())
                .map(|[fine, _]| Linear::new(2 * fine, *fine, init, device))
                .collect(),
            up: (pairs.iter())
                .map(|[fine, _]| Stage::new(config, *fine, init, device))
                .collect(),
            final_norm: LayerNorm::new(width, config.norm_epsilon, device),
            output: Linear::new(width, config.patch_values(), init, device),
            patch_size: config.patch_size,
            channels: config.channels,
            side,
            any_class: config.labels.len(),
        }
    }

    /// The device of the weights.
    pub fn device(&self) -> Device {
        self.input.weight.val().device()
    }

    /// The velocity ([`noise`]) of images `[batch, channels, height, width]`, with a step and a class for each; no class
    /// is any.
    pub fn forward(
        &self,
        images: Tensor<4>,
        steps: &[usize],
        classes: &[Option<usize>],
        merge: Option<MergeRatio>,
        pass: &mut Pass,
    ) -> Tensor<4> {
        let condition = self.condition(steps, classes, pass);
        let patches = patches_of(images, self.patch_size);
        let positions = self.positions.forward(0, self.side * self.side);
        let mut x = add_positions(self.input.forward(patches, pass.precision), positions);
        let mut across = Vec::new();
        for (level, stage) in self.down.iter().enumerate() {
            let merge = merge.filter(|_| level == 0);
            x = stage.forward(x, &condition, self.side >> level, merge, pass);
            if let Some(halve) = self.halve.get(level) {
                across.push(x.clone());
                x = halve.forward(four_as_one(x, self.side >> level), pass.precision);
            }
        }
        for level in (0..self.up.len()).rev() {
            let side = self.side >> level;
            let finer = one_as_four(self.double[level].forward(x, pass.precision), side);
            let both = Tensor::cat(vec![finer, across.remove(level)], 2);
            x = self.join[level].forward(both, pass.precision);
            let merge = merge.filter(|_| level == 0);
            x = self.up[level].forward(x, &condition, side, merge, pass);
        }
        let x = self.final_norm.forward(x);
        let velocity = self.output.forward(x, pass.precision);
        images_of(velocity, self.channels, self.patch_size, self.side)
    }

    /// What says step and class. `[batch, 1, condition]`
    fn condition(&self, steps: &[usize], classes: &[Option<usize>], pass: &mut Pass) -> Tensor<3> {
        let device = self.device();
        let width = self.time_inner.weight.dims()[0];
        let rows = steps
            .iter()
            .map(|step| sinusoids(*step, 1, width, &device))
            .collect();
        let time: Tensor<3> = Tensor::cat(rows, 0).unsqueeze_dim(1);
        let time = activated(self.time_inner.forward(time, pass.precision));
        let classes: Vec<i64> = classes
            .iter()
            .map(|class| class.unwrap_or(self.any_class) as i64)
            .collect();
        let shape = [classes.len(), 1];
        let data = burn::tensor::TensorData::new(classes, shape);
        let class = self
            .classes
            .forward(Tensor::<2, Int>::from_data(data, &device));
        activated(self.time_outer.forward(time, pass.precision) + class)
    }
}

impl Stage {
    fn new(config: &DiffusionConfig, width: usize, init: &mut Init, device: &Device) -> Self {
        let block = BlockConfig {
            d_model: width,
            heads: config.heads,
            kv_heads: config.heads,
            d_ff: config.expansion * width,
            activation: DiffusionConfig::ACTIVATION,
            dropout: config.dropout,
            norm: NormPlacement::Pre,
            norm_epsilon: config.norm_epsilon,
        };
        Self {
            condition: Linear::new(config.condition_width(), width, init, device),
            norm: block.layer_norm(device),
            convolution: Linear::new(9 * width, width, init, device),
            block: Block::new(&block, init, device),
        }
    }

    /// `[batch, side * side, width]` -> the same shape.
    fn forward(
        &self,
        x: Tensor<3>,
        condition: &Tensor<3>,
        side: usize,
        merge: Option<MergeRatio>,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let told = self.condition.forward(condition.clone(), pass.precision); // [batch, 1, width]
        let x = add_to_rows(x, told);
        let active = activated(self.norm.forward(x.clone()));
        let around = neighborhoods(active, side);
        let around = self.convolution.forward(around, pass.precision);
        let x = dropout_add(x, around, 0.0, &mut None); // in place, unlike Burn's sum
        let Some(MergeRatio { ratio, corner }) = merge else {
            return self.block.forward(x, &Mask::Open, None, pass).hidden;
        };
        let [batch, len, _] = x.dims();
        let sides = Sides::squares(side, corner);
        let merging = Merging::of(x.clone(), &sides, (len as f64 * ratio) as usize);
        let sizes = vec![1.0; batch * len];
        self.block.forward_on_fewer(
            x,
            pass,
            |x| merging.merge(x, &sizes).0,
            |x, merged| merging.add_unmerged(x, merged),
        )
    }
}

/// The activation of every layer.
fn activated(x: Tensor<3>) -> Tensor<3> {
    let none = Tensor::zeros([x.dims()[2]], &x.device());
    bias_activation_dropout(x, none, DiffusionConfig::ACTIVATION, 0.0, &mut None)
}

/// Squares of 2 x 2 positions side by side: `[batch, side * side, width]` -> `[batch, a quarter, 4 * width]`.
fn four_as_one(x: Tensor<3>, side: usize) -> Tensor<3> {
    let [batch, _, width] = x.dims();
    let half = side / 2;
    swap_axes(x.reshape([batch * half, 2, half, 2 * width])).reshape([
        batch,
        half * half,
        4 * width,
    ])
}

/// The way back, to `side * side` positions.
fn one_as_four(x: Tensor<3>, side: usize) -> Tensor<3> {
    let [batch, _, width] = x.dims();
    let (half, width) = (side / 2, width / 4);
    swap_axes(x.reshape([batch * half, half, 2, 2 * width])).reshape([batch, side * side, width])
}

/// The way back from [`patches_of`].
fn images_of(x: Tensor<3>, channels: usize, patch: usize, side: usize) -> Tensor<4> {
    let batch = x.dims()[0];
    let patches = x.reshape([batch, side * side, channels, patch * patch]);
    let patches = swap_axes(patches); // [batch, channels, patches, patch * patch]
    let rows = patches.reshape([batch * channels * side, side, patch, patch]);
    swap_axes(rows) // [batch * channels * side, patch, side, patch]
        .reshape([batch, channels, side * patch, side * patch])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::{floats, random};
    use burn::tensor::TensorData;

    #[test]
    fn images_survive_the_way_to_positions_and_resolutions_and_back() {
        let values = random([2, 3, 8, 8], 5);
        let images = Tensor::<4>::from_data(
            TensorData::new(values.clone(), [2, 3, 8, 8]),
            &Device::flex(),
        );
        let patches = patches_of(images, 2);
        let coarse = four_as_one(patches.clone(), 4);
        assert_eq!(floats(one_as_four(coarse, 4)), floats(patches.clone()));
        assert_eq!(floats(images_of(patches, 3, 2, 4)), values);
    }
}
