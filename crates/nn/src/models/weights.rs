//! A network from the weights file of a model directory; [`crate::parameters::export`] is the way back.

use std::path::Path;

use attentive_model::{ModelError, config::ModelConfig, weights::Weights};
use burn::{
    module::Module,
    tensor::{Tensor, TensorData},
};

use crate::{error::NnError, parameters};

/// `zeros`, a network of this configuration, with the weights of a file.
pub fn load<C: ModelConfig, M: Module>(config: &C, zeros: M, file: &Path) -> Result<M, NnError> {
    let weights = Weights::open(file)?;
    if weights.is_int8() {
        let reason = "the weights are int8, which only translating on the CPU and fine-tuning can use; \
                      give the directory they were made from";
        let (path, reason) = (file.to_path_buf(), reason.to_string());
        return Err(ModelError::WrongCompute { path, reason }.into());
    }
    for tensor in config.tensors() {
        weights.f32_place(&tensor.name, &tensor.shape)?;
    }
    Ok(parameters::replace(zeros, |name, old| {
        let (_, values) = weights.tensor(name).expect("checked against the schema");
        let count = values.len();
        Tensor::from_data(TensorData::new(values, [count]), &old.device())
    }))
}
