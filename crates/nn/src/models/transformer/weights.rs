//! The Transformer from the weights file of a model directory; [`crate::parameters::export`] is the way back.

use std::path::Path;

use attentive_model::{ModelError, config::TransformerConfig, weights::Weights};
use burn::tensor::{Device, Tensor, TensorData};

use super::Transformer;
use crate::{
    error::NnError,
    parameters::{self, NamedTensor},
};

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
        let model = Self::zeros(config, device);
        // Everything is checked before anything is replaced.
        for NamedTensor { name, shape, .. } in parameters::named(&model) {
            let found = weights.shape(&name).ok_or_else(|| NnError::MissingTensor {
                file: file.display().to_string(),
                name: name.clone(),
            })?;
            if found != shape {
                return Err(NnError::WrongShape {
                    file: file.display().to_string(),
                    name,
                    expected: shape,
                    found: found.to_vec(),
                });
            }
        }
        let mut failed = None;
        let model = parameters::replace(model, |name, old| match weights.tensor(name) {
            Ok((_, values)) => {
                let count = values.len();
                Tensor::from_data(TensorData::new(values, [count]), &old.device())
            }
            Err(error) => {
                failed = Some(error);
                old
            }
        });
        match failed {
            None => Ok(model),
            Some(error) => Err(error.into()),
        }
    }
}
