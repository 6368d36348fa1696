//! A task is what is learned: examples -> batch -> loss -> scores and samples.
//!
//! The loop ([`crate::trainer`]), checkpoints, exact resuming, progress, curves and distribution are written
//! once, for any [`Task`], and know no family of models. The task owns the data, the type of the model and its
//! directory. [`translation`] is the first one; [`language_model`], [`images`] and [`denoising`] are others; BERT has two,
//! [`masked_language_model`] and [`classification`], by its head.
//!
//! A new family of models touches, beside the files of its own:
//!
//! 1. `crates/model/src/config/FAMILY.rs`: its configuration, a `ModelConfig` (presets, check, schema of tensors);
//!    `config/mod.rs` names the file.
//! 2. `crates/model/src/config/family.rs`: a variant of `Family` and of `AnyConfig`. The compiler finds the rest of
//!    that file. With this, `config.json`, `AnyModelDir`, `attentive info` and the recipe's `[model]` know it.
//! 3. `crates/nn/src/models/FAMILY`: the network, with fields that are named as the schema says.
//! 4. `crates/train/src/task/TASK.rs`: a [`Task`], and its line in [`crate::train`].
//! 5. `crates/train/src/recipe/keys.rs`: the lists that say which keys of a recipe mean something for it
//!    (`TRANSLATION`, `LANGUAGE_MODELS`); keys of its own go to `sections.rs`, `defaults.rs` and `check.rs`.
//! 6. `crates/cli/src/commands`: the commands that use it; `AnyModelDir::config_of` refuses models of other families.

mod bert;
pub mod classification;
pub mod denoising;
mod growth;
pub mod images;
pub mod language_model;
pub mod masked_language_model;
pub mod translation;
mod vocabulary_transfer;

use std::{collections::BTreeSet, path::Path};

use attentive_model::{config::ModelConfig, tensors::TensorSpec};
use attentive_nn::pass::Pass;
use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

use crate::{
    Recipe, Result, TrainError,
    data::fingerprint::CorpusFingerprint,
    distributed::Communicator,
    events::{Observer, Sample},
};

/// What is learned, with its prepared data.
pub trait Task: Sized {
    /// The network; its parameters have the names of [`Task::tensors`].
    type Model: Module;
    /// What the recipe's `[data]` names, read but not encoded.
    type Data;
    /// The training examples of an epoch.
    type Examples;
    /// A few examples, padded to tensors.
    type Batch;

    /// Reads the data.
    fn read(recipe: &Recipe) -> Result<Self::Data>;

    /// Tells the data from any other, so that a run is never continued on changed data.
    fn fingerprint(data: &Self::Data) -> &CorpusFingerprint;

    /// Prepares a new run: encodes the data, and makes the model that the recipe asks for, with random
    /// weights or, for fine-tuning, those of `training.start_from`. `device` has autodiff.
    fn begin(
        recipe: &Recipe,
        data: Self::Data,
        device: &Device,
        observer: &mut dyn Observer,
    ) -> Result<(Self, Self::Model)>;

    /// Prepares the data as the run of this checkpoint did.
    fn resume(
        recipe: &Recipe,
        data: Self::Data,
        checkpoint: &Path,
        observer: &mut dyn Observer,
    ) -> Result<Self>;

    /// What to say about data and model when training begins: a word, and a line.
    fn description(&self) -> Vec<(&'static str, String)>;

    /// The width of the model, by which the learning rate of `noam` is scaled.
    fn d_model(&self) -> usize;

    /// The schema of the model's tensors.
    fn tensors(&self) -> Vec<TensorSpec>;

    /// The examples of an epoch, counted from 0, and its batches: a pure function of recipe and epoch.
    fn epoch(&self, epoch: u64) -> Result<Epoch<Self::Examples>>;

    /// The batch of these examples.
    fn batch(&self, examples: &Self::Examples, indices: &[usize]) -> Result<Self::Batch>;

    /// How many predictions the loss sums over, such as target tokens: gradients are divided by it.
    fn targets(batch: &Self::Batch) -> usize;

    /// The training loss, summed over the targets of the batch. `[1]`
    fn loss(
        &self,
        model: &Self::Model,
        batch: &Self::Batch,
        epoch: u64,
        pass: &mut Pass,
    ) -> Tensor<1>;

    /// Whether there is data to validate on.
    fn validates(&self) -> bool;

    /// How good the model is on the validation data. Each process looks at its share, and all get the same scores:
    /// those of one that looks at everything.
    fn validate(&self, model: &Self::Model, processes: &dyn Communicator) -> Result<Scores>;

    /// Reads the model of a model directory.
    fn load_model(&self, dir: &Path, device: &Device) -> Result<Self::Model>;

    /// Writes a model directory.
    fn save_model(&self, dir: &Path, model: &Self::Model) -> Result<()>;
}

/// The training examples of an epoch and their batches.
pub struct Epoch<E> {
    /// All examples.
    pub examples: E,
    /// Which of them stand together in each batch, in the order of training.
    pub plan: Box<dyn Plan>,
    /// Share of the positions fed to the model that is padding.
    pub padding: f64,
}

/// Which examples stand together in each batch of an epoch, in the order of training: a list in memory, or one
/// that is made part by part where that would not fit ([`crate::data::prepared`]).
pub trait Plan {
    /// How many batches there are.
    fn batches(&self) -> usize;

    /// The examples of a batch.
    fn batch(&self, index: usize) -> Result<Vec<usize>>;
}

impl Plan for Vec<Vec<usize>> {
    fn batches(&self) -> usize {
        self.len()
    }

    fn batch(&self, index: usize) -> Result<Vec<usize>> {
        Ok(self[index].clone())
    }
}

/// How good a model is on the validation data.
#[derive(Debug, Clone)]
pub struct Scores {
    /// The training objective per target.
    pub loss: f64,
    /// The task's own metrics by name, such as `perplexity` and `bleu`, in the order to show them.
    pub metrics: Vec<(&'static str, f64)>,
    /// What the best model is chosen by (`validation.best_by`); higher is better.
    pub score: f64,
    /// A few examples and what the model makes of them.
    pub samples: Vec<Sample>,
}

/// The architecture that a recipe describes for vocabularies of these sizes, if it is one of the task's family.
fn model_config<C: ModelConfig>(recipe: &Recipe, src: usize, tgt: usize) -> Result<C> {
    let config: C = any_config(recipe)?;
    checked(config.with_vocabularies(src, tgt))
}

/// The architecture that a recipe describes as far as it does so without the data, if it is one of the task's family.
fn any_config<C: ModelConfig>(recipe: &Recipe) -> Result<C> {
    let config = C::of(&recipe.model.config).cloned();
    config.ok_or_else(|| TrainError::OtherFamily {
        found: recipe.model.family().name(),
        expected: C::FAMILY.name(),
    })
}

/// The architecture, if it is a possible one.
fn checked<C: ModelConfig>(config: C) -> Result<C> {
    config
        .check()
        .map_err(|problems| TrainError::Architecture { problems })?;
    Ok(config)
}

/// The parameters of a model as a model directory takes them.
fn listed(
    tensors: &[(String, Vec<usize>, Vec<f32>)],
) -> impl Iterator<Item = (&str, &[usize], &[f32])> {
    let tensors = tensors.iter();
    tensors.map(|(name, shape, values)| (name.as_str(), shape.as_slice(), values.as_slice()))
}

/// Refuses a recipe whose `[model]` says otherwise than the model to start from, but for dropout, which has no weights,
/// and keys that are `free` to differ.
fn refuse_other_sizes<C: ModelConfig>(
    model: &Path,
    given: &C,
    asked: &C,
    free: &[&str],
) -> Result<()> {
    let keys = |config: &C| match serde_json::to_value(config) {
        Ok(serde_json::Value::Object(keys)) => keys,
        _ => unreachable!("a configuration is an object of plain values"),
    };
    let (given, asked) = (keys(given), keys(asked));
    // What is usual is not written down, on either side.
    let all: BTreeSet<&String> = given.keys().chain(asked.keys()).collect();
    let said = |value: Option<&serde_json::Value>| {
        value.map_or("the default".to_owned(), |v| v.to_string())
    };
    let differences: Vec<String> = all
        .into_iter()
        .filter(|key| *key != "dropout" && !free.contains(&key.as_str()))
        .filter(|key| given.get(*key) != asked.get(*key))
        .map(|key| {
            let [given, asked] = [&given, &asked].map(|config| said(config.get(key)));
            format!("`model.{key}`: {given} in the model, {asked} in the recipe")
        })
        .collect();
    if differences.is_empty() {
        return Ok(());
    }
    Err(TrainError::OtherModel {
        model: model.to_owned(),
        differences,
    })
}
