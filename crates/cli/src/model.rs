//! A model directory as something that translates: opened, loaded onto a device, ready.

use std::path::Path;

use anyhow::Context;
use attentive_nn::models::transformer::Transformer;
use attentive_runtime::model_dir::ModelDir;
use attentive_runtime::translator::{Translator, TranslatorOptions};
use attentive_runtime::{ModelConfig, RuntimeError, Tokenizers};

use crate::exit::Ending;

/// A model on a device.
pub struct LoadedModel {
    /// The architecture.
    pub config: ModelConfig,
    /// Both tokenizers.
    pub tokenizers: Tokenizers,
    /// The network.
    pub network: Transformer,
}

impl LoadedModel {
    /// Loads the model of a directory, or the best one of a training run.
    pub fn open(directory: &Path, device: &str) -> anyhow::Result<Self> {
        let device = attentive_nn::device::parse(device)?;
        let ModelDir {
            path,
            config,
            tokenizers,
        } = ModelDir::open(directory)?;
        let weights = path.join("model.safetensors");
        let network = Transformer::load(&config, &weights, &device)
            .with_context(|| format!("cannot load the model {}", directory.display()))?;
        Ok(Self {
            config,
            tokenizers,
            network,
        })
    }

    /// A translator with these options, as far as the model can follow them.
    pub fn translator(
        &self,
        options: TranslatorOptions,
    ) -> anyhow::Result<Translator<Transformer>> {
        let options = options.within(&self.config);
        let (network, tokenizers) = (self.network.clone(), self.tokenizers.clone());
        Translator::new(network, tokenizers, options).map_err(|error| match error {
            RuntimeError::Options(problems) => Ending::Usage(problems.join("\n")).into(),
            other => other.into(),
        })
    }
}
