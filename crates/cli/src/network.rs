//! A model as a network of `attentive-nn`, for devices other than the CPU and for the loss.
//!
//! [`crate::model`] is the way of everything else.

use std::path::Path;

use anyhow::Context;
use attentive_model::directory::{AnyModelDir, ModelDir};
use attentive_model::{Generation, Tokenizers, TransformerConfig};
use attentive_nn::models::{gpt::Gpt, transformer::Transformer};
use attentive_runtime::translator::{Translator, TranslatorOptions};
use attentive_text::Tokenizer;

use crate::model::named_usage;

/// A network on a device.
pub struct LoadedModel {
    /// The architecture.
    pub config: TransformerConfig,
    /// Both tokenizers.
    pub tokenizers: Tokenizers,
    /// How text is framed.
    pub generation: Generation,
    /// The network.
    pub network: Transformer,
}

/// A language model on a device.
pub struct LoadedGpt {
    /// Cuts text and puts it together.
    pub tokenizer: Tokenizer,
    /// The network.
    pub network: Gpt,
}

impl LoadedGpt {
    /// Loads the network of a directory, or the best one of a training run.
    pub fn open(directory: &Path, device: &str) -> anyhow::Result<Self> {
        let device = attentive_nn::device::parse(device)?;
        let model = AnyModelDir::open(directory)?;
        let config = model.config_of()?;
        let network = Gpt::load(config, &ModelDir::weights_path(&model.path), &device)
            .with_context(|| format!("cannot load the model {}", directory.display()))?;
        Ok(Self {
            tokenizer: model.tokenizer()?.clone(),
            network,
        })
    }
}

impl LoadedModel {
    /// Loads the network of a directory, or the best one of a training run.
    pub fn open(directory: &Path, device: &str) -> anyhow::Result<Self> {
        let device = attentive_nn::device::parse(device)?;
        let ModelDir {
            path,
            config,
            tokenizers,
            generation,
            ..
        } = ModelDir::open(directory)?;
        let weights = path.join("model.safetensors");
        let network = Transformer::load(&config, &weights, &device)
            .with_context(|| format!("cannot load the model {}", directory.display()))?;
        Ok(Self {
            config,
            tokenizers,
            generation,
            network,
        })
    }

    /// A translator with these options, as far as the model can follow them.
    pub fn translator(
        &self,
        mut options: TranslatorOptions,
    ) -> anyhow::Result<Translator<Transformer>> {
        // The network's operations are spread over the threads themselves.
        options.threads = Some(1);
        let options = options.within(&self.config);
        let (network, tokenizers) = (self.network.clone(), self.tokenizers.clone());
        let translator = Translator::new(network, tokenizers, options).map_err(named_usage)?;
        Ok(translator.framed(&self.generation))
    }
}
