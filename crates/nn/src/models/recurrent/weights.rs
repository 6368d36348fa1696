//! A recurrent translator from the weights file of a model directory; [`crate::parameters::export`] is the way back.

use std::path::Path;

use attentive_model::config::{ModelConfig, RecurrentConfig};
use burn::tensor::Device;

use super::Recurrent;
use crate::{error::NnError, parameters};

impl Recurrent {
    /// Reads the weights file of a model with this architecture.
    pub fn load(config: &RecurrentConfig, file: &Path, device: &Device) -> Result<Self, NnError> {
        parameters::load(Self::zeros(config, device), &config.tensors(), file)
    }
}
