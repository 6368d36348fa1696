//! Everything that training knows <-> the files of a checkpoint.
//!
//! `model.safetensors` holds the weights to translate with: the moving average if there is one.
//! `optimizer.safetensors` holds what only training needs: both moments, gradients that wait for the
//! rest of their accumulation, and the raw weights beside an average. f32 in, f32 out: nothing is lost.
//! Neighbours: [`crate::trainer`] calls this, [`crate::run::checkpoint`] makes it durable.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use attentive_model::{
    config::TransformerConfig,
    directory::{ModelDir, Tokenizers},
    weights::Weights,
};
use attentive_nn::{
    models::transformer::Transformer,
    parameters::{self, to_vec},
};
use burn::tensor::{Device, Tensor, TensorData};

use crate::{
    Result,
    error::StorageError,
    optim::ema::Ema,
    optim::optimizer::{Gradients, Optimizer},
    run::checkpoint,
    run::directory::RunDir,
    run::manifest::CheckpointKind,
    run::state::{self, TrainState},
};

/// Training's file beside the model's.
const TRAINING_FILE: &str = "optimizer.safetensors";

/// The recipe that the checkpoint was made with.
const RECIPE_FILE: &str = "recipe.toml";

/// What training changes.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The weights that are being trained, on an autodiff device.
    pub model: Transformer,
    /// Their moving average, if the recipe asks for one.
    pub ema: Option<Ema>,
    /// Both moments.
    pub optimizer: Optimizer,
    /// Gradients that wait for the rest of their accumulation.
    pub gradients: Gradients,
    /// All the numbers.
    pub state: TrainState,
}

impl Snapshot {
    /// The model to judge and to translate with.
    pub fn model_to_use(&self) -> Transformer {
        let plain = burn::module::Module::valid(&self.model);
        match &self.ema {
            Some(ema) => ema.apply(plain),
            None => plain,
        }
    }

    /// Commits a checkpoint and returns its folder.
    pub fn save(
        &self,
        run: &RunDir,
        kind: CheckpointKind,
        config: &TransformerConfig,
        tokenizers: &Tokenizers,
        recipe: &str,
    ) -> Result<PathBuf> {
        let path = run.checkpoint_path(self.state.position());
        checkpoint::write(&path, kind, |folder| {
            write_model(folder, &self.model_to_use(), config, tokenizers)?;
            let mut tensors: Vec<(String, Vec<f32>)> = self
                .optimizer
                .state()
                .map(|(name, values)| (name.clone(), to_vec(values)))
                .collect();
            for (name, values) in &self.gradients {
                tensors.push((format!("gradient.{name}"), to_vec(values)));
            }
            if self.ema.is_some() {
                for parameter in parameters::named(&self.model) {
                    tensors.push((
                        format!("weight.{}", parameter.name),
                        to_vec(&parameter.values),
                    ));
                }
            }
            let shapes: Vec<[usize; 1]> =
                tensors.iter().map(|(_, values)| [values.len()]).collect();
            let list = tensors.iter().zip(&shapes);
            Weights::write(
                folder.join(TRAINING_FILE),
                list.map(|((name, values), shape)| {
                    (name.as_str(), shape.as_slice(), values.as_slice())
                }),
            )?;
            for (name, text) in [
                (RECIPE_FILE, recipe),
                (state::FILE_NAME, &self.state.to_json()),
            ] {
                let path = folder.join(name);
                std::fs::write(&path, text).map_err(StorageError::io("write", &path))?;
            }
            Ok(())
        })?;
        Ok(path)
    }

    /// Reads a checkpoint back; `device` has autodiff.
    pub fn load(
        checkpoint: &Path,
        config: &TransformerConfig,
        ema_decay: f64,
        device: &Device,
    ) -> Result<Self> {
        let used = Transformer::load(config, &ModelDir::weights_path(checkpoint), device)?;
        let stored = Weights::open(checkpoint.join(TRAINING_FILE))?;
        let plain = device.clone().without_autodiff();
        let mut kinds: BTreeMap<&str, BTreeMap<String, Tensor<1>>> = BTreeMap::new();
        for name in stored.names() {
            let (_, values) = stored.tensor(&name)?;
            let count = values.len();
            let tensor = Tensor::from_data(TensorData::new(values, [count]), &plain);
            let (kind, rest) = name.split_once('.').unwrap_or(("", &name));
            let kind = match kind {
                "gradient" => "gradient",
                "weight" => "weight",
                _ => "moment",
            };
            let key = if kind == "moment" {
                name.clone()
            } else {
                rest.to_string()
            };
            kinds.entry(kind).or_default().insert(key, tensor);
        }
        let mut take = |kind| kinds.remove(kind).unwrap_or_default();
        let ema = (ema_decay > 0.0).then(|| {
            let average = parameters::named(&used)
                .into_iter()
                .map(|p| (p.name, p.values))
                .collect();
            Ema::from_state(ema_decay, average)
        });
        let mut raw = take("weight");
        let model = parameters::replace(used, |name, old| raw.remove(name).unwrap_or(old));
        Ok(Self {
            model,
            ema,
            optimizer: Optimizer::from_state(take("moment")),
            gradients: take("gradient"),
            state: TrainState::load(checkpoint)?,
        })
    }
}

/// Writes a model directory without anything of training in it.
pub fn write_model(
    dir: &Path,
    model: &Transformer,
    config: &TransformerConfig,
    tokenizers: &Tokenizers,
) -> Result<()> {
    let tensors = parameters::export(model);
    let list = tensors
        .iter()
        .map(|(name, shape, values)| (name.as_str(), shape.as_slice(), values.as_slice()));
    ModelDir::save(dir, config, tokenizers, list)?;
    Ok(())
}
