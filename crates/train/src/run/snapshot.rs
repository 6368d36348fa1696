//! Everything that training knows <-> the files of a checkpoint.
//!
//! `model.safetensors` holds the weights to use: the moving average if there is one.
//! `optimizer.safetensors` holds what only training needs: the moments, gradients that wait for the rest of
//! their accumulation, and the raw weights beside an average. f32 in, f32 out: nothing is lost.
//! Neighbors: [`crate::trainer`] calls this, [`crate::run::checkpoint`] makes it durable.

use std::{collections::BTreeMap, fs, path::Path};

use attentive_model::weights::Weights;
use attentive_nn::parameters::{self, to_vec};
use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};

use crate::{
    Recipe, Result,
    error::StorageError,
    optim::{
        ema::Ema,
        optimizer::{Gradients, Optimizer},
    },
    recipe::RECIPE_FILE,
    run::{
        checkpoint,
        manifest::CheckpointKind,
        state::{self, TrainState},
    },
    task::Task,
};

/// Training's file beside the model's.
const TRAINING_FILE: &str = "optimizer.safetensors";

/// What training changes.
#[derive(Debug, Clone)]
pub struct Snapshot<M> {
    /// The weights that are being trained, on an autodiff device.
    pub model: M,
    /// Their moving average, if the recipe asks for one.
    pub ema: Option<Ema>,
    /// The optimizer with its moments.
    pub optimizer: Optimizer,
    /// Gradients that wait for the rest of their accumulation.
    pub gradients: Gradients,
    /// All the numbers.
    pub state: TrainState,
}

impl<M: Module> Snapshot<M> {
    /// The beginning of a run with this model.
    pub fn new<T: Task<Model = M>>(task: &T, model: M, recipe: &Recipe, state: TrainState) -> Self {
        let decay = recipe.training.ema_decay;
        Self {
            ema: (decay > 0.0).then(|| Ema::new(decay, &model)),
            model,
            optimizer: Optimizer::new(&recipe.optimizer, &task.tensors()),
            gradients: Gradients::new(),
            state,
        }
    }

    /// The model to evaluate and to translate with.
    pub fn model_to_use(&self) -> M {
        let plain = self.model.valid();
        match &self.ema {
            Some(ema) => ema.apply(plain),
            None => plain,
        }
    }

    /// Writes a checkpoint, whole or not at all.
    pub fn save<T: Task<Model = M>>(
        &self,
        path: &Path,
        kind: CheckpointKind,
        task: &T,
        recipe: &Recipe,
    ) -> Result<()> {
        checkpoint::write(path, kind, |folder| {
            task.save_model(folder, &self.model_to_use())?;
            let on_host = |(name, values): (&String, &Tensor<1>)| (name.clone(), to_vec(values));
            let mut tensors: Vec<_> = self.optimizer.moments().iter().map(on_host).collect();
            for (name, values) in &self.gradients {
                tensors.push((format!("gradient.{name}"), to_vec(values)));
            }
            if self.ema.is_some() {
                for parameter in parameters::named(&self.model) {
                    let name = format!("weight.{}", parameter.name);
                    tensors.push((name, to_vec(&parameter.values)));
                }
            }
            let shapes: Vec<_> = tensors.iter().map(|(_, values)| [values.len()]).collect();
            let list = tensors.iter().zip(&shapes);
            Weights::write(
                folder.join(TRAINING_FILE),
                list.map(|((name, values), shape)| {
                    (name.as_str(), shape.as_slice(), values.as_slice())
                }),
            )?;
            write_recipe(folder, recipe)?;
            write_text(folder, state::FILE_NAME, &self.state.to_json())
        })
    }

    /// Reads a checkpoint back; `device` has autodiff.
    pub fn load<T: Task<Model = M>>(
        checkpoint: &Path,
        task: &T,
        recipe: &Recipe,
        device: &Device,
    ) -> Result<Self> {
        let used = task.load_model(checkpoint, device)?;
        let stored = Weights::open(checkpoint.join(TRAINING_FILE))?;
        let plain = device.clone().without_autodiff();
        let (mut moments, mut gradients, mut weights) =
            (BTreeMap::new(), Gradients::new(), BTreeMap::new());
        for name in stored.names() {
            let (_, values) = stored.tensor(&name)?;
            let count = values.len();
            let tensor = Tensor::<1>::from_data(TensorData::new(values, [count]), &plain);
            match name.split_once('.') {
                Some(("gradient", of)) => gradients.insert(of.to_owned(), tensor),
                Some(("weight", of)) => weights.insert(of.to_owned(), tensor),
                _ => moments.insert(name, tensor),
            };
        }
        let state = TrainState::load(checkpoint)?;
        // The average stands in the model's file: a new one begins with it.
        let mut snapshot = Self::new(task, used, recipe, state);
        let raw = |name: &str, old| weights.remove(name).unwrap_or(old);
        snapshot.model = parameters::replace(snapshot.model, raw);
        snapshot.optimizer = snapshot.optimizer.with_moments(moments);
        snapshot.gradients = gradients;
        Ok(snapshot)
    }
}

/// Puts the recipe beside the model that it made.
pub fn write_recipe(folder: &Path, recipe: &Recipe) -> Result<()> {
    write_text(folder, RECIPE_FILE, &recipe.to_toml())
}

fn write_text(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path = folder.join(name);
    Ok(fs::write(&path, text).map_err(StorageError::io("write", &path))?)
}
