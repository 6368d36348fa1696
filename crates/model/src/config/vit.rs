//! ViT as plain numbers: the Transformer's encoder on the patches of an image (Dosovitskiy et al. 2021).
//!
//! `attentive_nn::models::vit` computes it; `recipes/vit-mnist.toml` trains one, and `attentive-convert` makes one of a
//! Hugging Face directory.

use serde::{Deserialize, Serialize};

use super::{Activation, AnyConfig, Family, LARGEST_SIZE, ModelConfig, Preset};
use crate::tensors::{Role, Schema, TensorSpec};

/// The architecture of one ViT. All keys must be there when a file is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VitConfig {
    /// Height and width of an image in pixels.
    pub image_size: usize,
    /// 1 for gray images, 3 for red, green and blue.
    pub channels: usize,
    /// Height and width of a patch in pixels; divides `image_size`.
    pub patch_size: usize,
    /// Width of every layer's input and output.
    pub d_model: usize,
    /// Width of the feed-forward network's hidden layer.
    pub d_ff: usize,
    /// Number of attention heads.
    pub heads: usize,
    /// Number of layers.
    pub layers: usize,
    /// Probability that training drops a value.
    pub dropout: f64,
    /// The function between the two linear layers of the feed-forward network.
    pub activation: Activation,
    /// Added to the variance in every layer normalization.
    pub norm_epsilon: f64,
    /// Subtracted from the values of each channel, which are between 0 and 1.
    pub mean: Vec<f64>,
    /// What the values of each channel are divided by then.
    pub deviation: Vec<f64>,
    /// What becomes of an image of another size.
    pub resize: Resize,
    /// The names of the classes. In a recipe they may be left out: then they are those of the data.
    pub labels: Vec<String>,
}

/// What becomes of an image of another size than the model's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resize {
    /// It is refused.
    Never,
    /// It is scaled to the model's size, with a linear filter.
    Bilinear,
}

impl VitConfig {
    /// How many patches an image has.
    pub fn patches(&self) -> usize {
        let side = self.image_size / self.patch_size.max(1);
        side * side
    }

    /// How many numbers a patch has.
    pub fn patch_values(&self) -> usize {
        self.channels * self.patch_size * self.patch_size
    }
}

/// The problems that image models have in common.
pub(super) fn image_problems(image: usize, channels: usize, patch: usize) -> Vec<String> {
    let mut problems = Vec::new();
    for (key, size) in [("image_size", image), ("patch_size", patch)] {
        if size == 0 || size > 1 << 14 {
            problems.push(format!("`model.{key}` ({size}) must be from 1 to 16384"));
        }
    }
    if patch > 0 && !image.is_multiple_of(patch) {
        problems.push(format!(
            "`model.image_size` ({image}) must be divisible by `model.patch_size` ({patch})"
        ));
    }
    if ![1, 3].contains(&channels) {
        problems.push(format!(
            "`model.channels` ({channels}) must be 1 (gray) or 3 (red, green, blue)"
        ));
    }
    problems
}

/// Class names by number, where nobody has given them names.
pub(super) fn numbered(labels: Vec<String>, classes: usize) -> Vec<String> {
    if labels.is_empty() {
        (0..classes).map(|class| class.to_string()).collect()
    } else {
        labels
    }
}

impl ModelConfig for VitConfig {
    const FAMILY: Family = Family::Vit;
    const VOCABULARIES: &'static [&'static str] = &[];

    fn of(any: &AnyConfig) -> Option<&Self> {
        match any {
            AnyConfig::Vit(config) => Some(config),
            _ => None,
        }
    }

    fn from_preset(preset: Preset) -> Self {
        // `small`, `base` and `big` are DeiT's small one and the paper's first two; `tiny` is for digits.
        let (image_size, channels, patch_size) = match preset {
            Preset::Tiny => (28, 1, 4),
            _ => (224, 3, 16),
        };
        let (d_model, heads, layers) = match preset {
            Preset::Tiny => (64, 4, 6),
            Preset::Small => (384, 6, 12),
            Preset::Base => (768, 12, 12),
            Preset::Big => (1024, 16, 24),
        };
        Self {
            image_size,
            channels,
            patch_size,
            d_model,
            d_ff: 4 * d_model,
            heads,
            layers,
            dropout: 0.0,
            activation: Activation::Gelu,
            norm_epsilon: 1e-6,
            mean: vec![0.5; channels],
            deviation: vec![0.5; channels],
            resize: Resize::Never,
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
        self.d_model
    }

    fn check(&self) -> Result<(), Vec<String>> {
        let Self {
            channels,
            d_model,
            heads,
            dropout,
            norm_epsilon,
            ..
        } = *self;
        let mut problems = image_problems(self.image_size, channels, self.patch_size);
        let mut require = |holds: bool, problem: String| {
            if !holds {
                problems.push(problem);
            }
        };
        for (key, size) in [
            ("d_model", d_model),
            ("d_ff", self.d_ff),
            ("heads", heads),
            ("layers", self.layers),
        ] {
            require(
                (1..=LARGEST_SIZE).contains(&size),
                format!("`model.{key}` ({size}) must be from 1 to {LARGEST_SIZE}"),
            );
        }
        require(
            heads == 0 || d_model.is_multiple_of(heads),
            format!("`model.d_model` ({d_model}) must be divisible by `model.heads` ({heads})"),
        );
        require(
            (0.0..1.0).contains(&dropout),
            format!("`model.dropout` ({dropout}) must be at least 0 and less than 1"),
        );
        require(
            norm_epsilon > 0.0 && norm_epsilon.is_finite(),
            format!("`model.norm_epsilon` ({norm_epsilon}) must be a small positive number"),
        );
        for (key, values) in [("mean", &self.mean), ("deviation", &self.deviation)] {
            require(
                values.len() == channels && values.iter().all(|value| value.is_finite()),
                format!(
                    "`model.{key}` ({values:?}) needs a number for each of the `model.channels` ({channels})"
                ),
            );
        }
        require(
            self.deviation.iter().all(|deviation| *deviation > 0.0),
            format!("`model.deviation` ({:?}) must be positive", self.deviation),
        );
        let classes = self.labels.len();
        require(
            classes > 1,
            format!("`model.labels` has {classes} names; there must be at least two classes"),
        );
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }

    /// Every linear layer has a bias. A patch is read channel by channel, each row by row.
    fn tensors(&self) -> Vec<TensorSpec> {
        let d = self.d_model;
        let mut schema = Schema::default();
        schema.linear("patches", self.patch_values(), d);
        schema.add("class_token", &[1, d], Role::Positions);
        let positions = [1 + self.patches(), d];
        schema.add("positions.weight", &positions, Role::Positions);
        for layer in (0..self.layers).map(|layer| format!("layers.{layer}")) {
            schema.attention(&format!("{layer}.self_attention"), d, d);
            schema.norm(&format!("{layer}.self_attention_norm"), d);
            schema.feed_forward(&format!("{layer}.feed_forward"), d, self.d_ff);
            schema.norm(&format!("{layer}.feed_forward_norm"), d);
        }
        schema.norm("final_norm", d);
        schema.linear("classifier", d, self.labels.len());
        schema.into_tensors()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensors::parameter_count;

    #[test]
    fn the_base_preset_has_the_parameters_of_vit_base_patch16_224() {
        let config = VitConfig::from_preset(Preset::Base).with_vocabularies(0, 1000);
        assert_eq!(parameter_count(&config.tensors()), 86_567_656);
    }

    #[test]
    fn patches_must_cover_the_image_and_channels_have_their_numbers() {
        let config = VitConfig {
            patch_size: 5,
            channels: 2,
            ..VitConfig::from_preset(Preset::Tiny)
        };
        assert_eq!(
            config.check().unwrap_err(),
            [
                "`model.image_size` (28) must be divisible by `model.patch_size` (5)",
                "`model.channels` (2) must be 1 (gray) or 3 (red, green, blue)",
                "`model.mean` ([0.5]) needs a number for each of the `model.channels` (2)",
                "`model.deviation` ([0.5]) needs a number for each of the `model.channels` (2)",
                "`model.labels` has 0 names; there must be at least two classes",
            ]
        );
    }
}
