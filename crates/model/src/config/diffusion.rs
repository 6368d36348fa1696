//! A denoising diffusion model of small images as plain numbers (Ho et al. 2020): a U-Net with a Transformer block at
//! each of its resolutions, told the class of the image.
//!
//! `attentive_nn::models::diffusion` computes it; `recipes/diffusion-mnist.toml` trains one.

use serde::{Deserialize, Serialize};

use super::vit::{image_problems, numbered};
use super::{Activation, AnyConfig, Family, LARGEST_SIZE, ModelConfig, Preset};
use crate::tensors::{Role, Schema, TensorSpec};

/// The architecture of one diffusion model. All keys must be there when a file is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiffusionConfig {
    /// Height and width of an image in pixels.
    pub image_size: usize,
    /// 1 for gray images, 3 for red, green and blue.
    pub channels: usize,
    /// Height and width in pixels of what is one position of the first resolution.
    pub patch_size: usize,
    /// The width of each resolution, from the finest; each has half the height and width of the one before.
    pub widths: Vec<usize>,
    /// Number of attention heads.
    pub heads: usize,
    /// Width of the hidden layer of the feed-forward networks, as a multiple of the resolution's width.
    pub expansion: usize,
    /// Probability that training drops a value.
    pub dropout: f64,
    /// Added to the variance in every layer normalization.
    pub norm_epsilon: f64,
    /// Steps of the noise, from an image to nothing but noise.
    pub timesteps: usize,
    /// The names of the classes. In a recipe they may be left out: then they are those of the data.
    pub labels: Vec<String>,
}

impl DiffusionConfig {
    /// The function of every layer.
    pub const ACTIVATION: Activation = Activation::Swish;

    /// How many numbers a position of the first resolution has.
    pub fn patch_values(&self) -> usize {
        self.channels * self.patch_size * self.patch_size
    }

    /// Height and width, in positions, of a resolution.
    pub fn side(&self, level: usize) -> usize {
        (self.image_size / self.patch_size.max(1)) >> level
    }

    /// The width of what says the step and the class.
    pub fn condition_width(&self) -> usize {
        2 * self.widths.first().copied().unwrap_or_default()
    }
}

impl ModelConfig for DiffusionConfig {
    const FAMILY: Family = Family::Diffusion;
    const VOCABULARIES: &'static [&'static str] = &[];

    fn of(any: &AnyConfig) -> Option<&Self> {
        match any {
            AnyConfig::Diffusion(config) => Some(config),
            _ => None,
        }
    }

    fn from_preset(preset: Preset) -> Self {
        let (image_size, channels, widths) = match preset {
            Preset::Tiny => (28, 1, vec![64, 96]),
            Preset::Small => (32, 3, vec![96, 192]),
            Preset::Base => (32, 3, vec![128, 256, 256]),
            Preset::Big => (64, 3, vec![192, 384, 384]),
        };
        Self {
            image_size,
            channels,
            patch_size: 2,
            widths,
            heads: 4,
            expansion: 2,
            dropout: 0.0,
            norm_epsilon: 1e-5,
            timesteps: 1000,
            labels: Vec::new(),
        }
    }

    /// Images have no vocabulary.
    fn vocabularies(&self) -> Option<(usize, usize)> {
        None
    }

    /// As many classes, with their numbers as names where they have none.
    fn with_vocabularies(self, _src: usize, classes: usize) -> Self {
        Self {
            labels: numbered(self.labels, classes),
            ..self
        }
    }

    fn width(&self) -> usize {
        self.widths.first().copied().unwrap_or_default()
    }

    fn check(&self) -> Result<(), Vec<String>> {
        let Self {
            heads,
            expansion,
            dropout,
            norm_epsilon,
            timesteps,
            ..
        } = *self;
        let mut problems = image_problems(self.image_size, self.channels, self.patch_size);
        let mut require = |holds: bool, problem: String| {
            if !holds {
                problems.push(problem);
            }
        };
        let (widths, levels) = (&self.widths, self.widths.len());
        require(
            (1..=8).contains(&levels),
            format!("`model.widths` has {levels} resolutions; it must have 1 to 8"),
        );
        let (side, halvings) = (self.side(0), levels.saturating_sub(1).min(8));
        require(
            side.is_multiple_of(1 << halvings),
            format!(
                "an image of {side} x {side} positions (`model.image_size` / `model.patch_size`) cannot be halved \
                 {halvings} times (`model.widths`)"
            ),
        );
        for width in widths {
            require(
                (2..=LARGEST_SIZE).contains(width) && heads > 0 && width.is_multiple_of(2 * heads),
                format!(
                    "`model.widths` has {width}, which must be even for each of the `model.heads` ({heads})"
                ),
            );
        }
        for (key, value) in [("expansion", expansion), ("timesteps", timesteps)] {
            require(
                (1..=100_000).contains(&value),
                format!("`model.{key}` ({value}) must be from 1 to 100000"),
            );
        }
        require(
            (0.0..1.0).contains(&dropout),
            format!("`model.dropout` ({dropout}) must be at least 0 and less than 1"),
        );
        require(
            norm_epsilon > 0.0 && norm_epsilon.is_finite(),
            format!("`model.norm_epsilon` ({norm_epsilon}) must be a small positive number"),
        );
        let classes = self.labels.len();
        require(
            classes > 0,
            "`model.labels` has no names; there must be at least one class".to_string(),
        );
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }

    /// One more class than there are names: the last one is "any".
    fn tensors(&self) -> Vec<TensorSpec> {
        let (condition, widths) = (self.condition_width(), &self.widths);
        let mut schema = Schema::default();
        schema.linear("input", self.patch_values(), self.width());
        let positions = [self.side(0) * self.side(0), self.width()];
        schema.add("positions.weight", &positions, Role::Positions);
        schema.linear("time_inner", condition, condition);
        schema.linear("time_outer", condition, condition);
        let classes = [self.labels.len() + 1, condition];
        schema.add("classes.weight", &classes, Role::Embedding);
        for (level, width) in widths.iter().enumerate() {
            self.stage(&mut schema, &format!("down.{level}"), *width);
        }
        for (level, pair) in widths.windows(2).enumerate() {
            schema.linear(&format!("halve.{level}"), 4 * pair[0], pair[1]);
        }
        for (level, pair) in widths.windows(2).enumerate() {
            schema.linear(&format!("double.{level}"), pair[1], 4 * pair[0]);
        }
        for (level, pair) in widths.windows(2).enumerate() {
            schema.linear(&format!("join.{level}"), 2 * pair[0], pair[0]);
        }
        for (level, pair) in widths.windows(2).enumerate() {
            self.stage(&mut schema, &format!("up.{level}"), pair[0]);
        }
        schema.norm("final_norm", self.width());
        schema.linear("output", self.width(), self.patch_values());
        schema.into_tensors()
    }
}

impl DiffusionConfig {
    /// A convolution that knows step and class, and a Transformer block.
    fn stage(&self, schema: &mut Schema, name: &str, width: usize) {
        schema.linear(&format!("{name}.condition"), self.condition_width(), width);
        schema.norm(&format!("{name}.norm"), width);
        schema.linear(&format!("{name}.convolution"), 9 * width, width);
        let block = format!("{name}.block");
        schema.attention(&format!("{block}.self_attention"), width, width);
        schema.norm(&format!("{block}.self_attention_norm"), width);
        schema.feed_forward(
            &format!("{block}.feed_forward"),
            width,
            self.expansion * width,
        );
        schema.norm(&format!("{block}.feed_forward_norm"), width);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resolution_must_be_a_half_of_the_one_before() {
        let config = DiffusionConfig {
            widths: vec![64, 64, 66],
            ..DiffusionConfig::from_preset(Preset::Tiny)
        };
        assert_eq!(
            config.check().unwrap_err(),
            [
                "an image of 14 x 14 positions (`model.image_size` / `model.patch_size`) cannot be halved 2 times \
                 (`model.widths`)",
                "`model.widths` has 66, which must be even for each of the `model.heads` (4)",
                "`model.labels` has no names; there must be at least one class",
            ]
        );
    }
}
