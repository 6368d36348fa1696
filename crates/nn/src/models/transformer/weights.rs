//! The Transformer from the weights file of a model directory; [`crate::parameters::export`] is the way back.

use std::path::Path;

use attentive_model::{
    ModelError,
    config::{ModelConfig, TransformerConfig},
    weights::Weights,
};
use burn::tensor::{Device, Tensor, TensorData};

use super::Transformer;
use crate::{error::NnError, parameters};

impl Transformer {
    /// Reads the weights file of a model with this architecture.
    pub fn load(config: &TransformerConfig, file: &Path, device: &Device) -> Result<Self, NnError> {
        let weights = Weights::open(file)?;
        if weights.is_int8() {
            let reason = "the weights are int8, which only translating on the CPU can use; \
                          give the directory they were made from";
            let (path, reason) = (file.to_path_buf(), reason.to_string());
            return Err(ModelError::WrongCompute { path, reason }.into());
        }
        for tensor in config.tensors() {
            weights.f32_place(&tensor.name, &tensor.shape)?;
        }
        let zeros = Self::zeros(config, device);
        Ok(parameters::replace(zeros, |name, old| {
            let (_, values) = weights.tensor(name).expect("checked against the schema");
            let count = values.len();
            Tensor::from_data(TensorData::new(values, [count]), &old.device())
        }))
    }
}
