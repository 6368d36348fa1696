//! The Transformer from the weights file of a model directory; [`crate::parameters::export`] is the way back.

use std::path::Path;

use attentive_model::config::{ModelConfig, TransformerConfig};
use burn::tensor::Device;

use super::Transformer;
use crate::{error::NnError, parameters};

impl Transformer {
    /// Reads the weights file of a model with this architecture.
    pub fn load(config: &TransformerConfig, file: &Path, device: &Device) -> Result<Self, NnError> {
        parameters::load(Self::zeros(config, device), &config.tensors(), file)
    }
}
