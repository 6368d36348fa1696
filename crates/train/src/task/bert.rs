//! What both tasks of BERT begin with and save: a vocabulary, a configuration, and weights that are random or those of
//! another BERT, whose head may be another one.
//!
//! Neighbors: [`super::masked_language_model`] pre-trains, [`super::classification`] fine-tunes.

use std::path::Path;

use attentive_model::{
    config::{self, AnyConfig, BertConfig, BertHead},
    directory::{AnyModelDir, ModelDir, Tokenizers},
};
use attentive_nn::{attention::pruning::TokenPruning, models::bert::Bert, parameters};
use attentive_text::{Tokenizer, tokenizer::vocabulary_file};
use burn::tensor::Device;

use crate::{
    Recipe, Result, TrainError,
    events::{Event, Observer},
};

/// Keys of `[model]` in which a BERT may differ from the one that it starts from.
const FREE: [&str; 3] = ["head", "labels", "pruning"];

/// A vocabulary, and an architecture for it.
#[derive(Debug, Clone)]
pub struct Architecture {
    /// Cuts text.
    pub tokenizer: Tokenizer,
    /// For its vocabulary, with its labels.
    pub config: BertConfig,
}

impl Architecture {
    /// That of a new run, and its first weights. `texts` are what a vocabulary is learned from, `labels` the classes of the
    /// examples.
    pub fn begin(
        recipe: &Recipe,
        texts: &mut dyn Iterator<Item = &str>,
        labels: Vec<String>,
        device: &Device,
        observer: &mut dyn Observer,
    ) -> Result<(Self, Bert)> {
        let folder = &recipe.training.start_from;
        if folder.is_empty() {
            let tokenizer = tokenizer(recipe, texts, observer)?;
            let this = Self::new(recipe, tokenizer, labels)?;
            let model = new_model(recipe, &this.config, device);
            return Ok((this, model));
        }
        observer.event(&Event::Preparing("reading the model to start from"));
        let given = AnyModelDir::open(folder)?;
        let config: &BertConfig = given.config_of()?;
        let mut this = Self::new(recipe, given.tokenizer()?.clone(), labels)?;
        super::refuse_other_sizes(&given.path, config, &this.config, &FREE)?;
        let classifies = |config: &BertConfig| config.head == BertHead::Classification;
        if classifies(config) && classifies(&this.config) {
            let asked = match &recipe.model.config {
                AnyConfig::Bert(model) => model.labels.clone(),
                _ => Vec::new(),
            };
            if !asked.is_empty() && asked != config.labels {
                let given_labels = config.labels.clone();
                return Err(TrainError::OtherLabels {
                    model: given.path,
                    given: given_labels,
                    asked,
                });
            }
            this.config.labels = config.labels.clone();
        }
        let old = Bert::load(config, &ModelDir::weights_path(&given.path), device)?;
        let mut old: std::collections::BTreeMap<_, _> = parameters::named(&old)
            .into_iter()
            .map(|parameter| (parameter.name, parameter.values))
            .collect();
        let new = new_model(recipe, &this.config, device);
        // A head that the other model does not have begins with random weights.
        let model = parameters::replace(new, |name, values| old.remove(name).unwrap_or(values));
        Ok((this, model))
    }

    /// That of a run that is continued.
    pub fn resume(recipe: &Recipe, checkpoint: &Path) -> Result<Self> {
        let tokenizer = Tokenizers::load(checkpoint)?.tgt;
        let saved: BertConfig = config::read(&checkpoint.join("config.json"))?;
        Self::new(recipe, tokenizer, saved.labels)
    }

    fn new(recipe: &Recipe, tokenizer: Tokenizer, labels: Vec<String>) -> Result<Self> {
        let size = tokenizer.vocab_size();
        let mut recipe = recipe.clone();
        if let AnyConfig::Bert(model) = &mut recipe.model.config
            && model.labels.is_empty()
        {
            model.labels = labels;
        }
        let config = super::model_config(&recipe, size, size)?;
        Ok(Self { tokenizer, config })
    }

    /// Reads the model of a model directory.
    pub fn load_model(&self, dir: &Path, device: &Device) -> Result<Bert> {
        let file = ModelDir::weights_path(dir);
        Ok(Bert::load(&self.config, &file, device)?)
    }

    /// Writes a model directory.
    pub fn save_model(&self, dir: &Path, model: &Bert) -> Result<()> {
        let tensors = parameters::export(model);
        let list = super::listed(&tensors);
        let tokenizers = Tokenizers::shared(self.tokenizer.clone());
        Ok(ModelDir::save(dir, &self.config, &tokenizers, list)?)
    }
}

/// Random weights, and the first thresholds if tokens are pruned.
fn new_model(recipe: &Recipe, config: &BertConfig, device: &Device) -> Bert {
    let mut model = Bert::new(config, recipe.training.seed, device);
    let last = recipe.pruning.initial_threshold;
    if let Some(pruning) = &mut model.pruning {
        *pruning = TokenPruning::new(config.layers, last, device);
    }
    model
}

/// Of a `vocab.txt`, or learned.
fn tokenizer(
    recipe: &Recipe,
    texts: &mut dyn Iterator<Item = &str>,
    observer: &mut dyn Observer,
) -> Result<Tokenizer> {
    let section = &recipe.tokenizer;
    if section.vocabulary.is_empty() {
        observer.event(&Event::Preparing("learning the vocabulary"));
        return Ok(Tokenizer::train(&section.options(), texts)?);
    }
    let file = Path::new(&recipe.data.dir).join(&section.vocabulary);
    let tokens = vocabulary_file::txt(file)?.into_iter();
    let tokens: Vec<String> = tokens.map(|(token, _)| token).collect();
    Ok(Tokenizer::wordpiece_of_vocabulary(
        &tokens,
        section.lowercase,
    )?)
}
