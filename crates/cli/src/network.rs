//! A model as a network of `attentive-nn`: for devices other than the CPU, for the loss, and for families that the
//! CPU's own model does not know.
//!
//! [`crate::model`] is the way of everything else.

use std::path::Path;

use anyhow::Context;
use attentive_hub::StoredModel;
use attentive_model::config::AnyConfig;
use attentive_model::directory::{AnyModelDir, ModelDir};
use attentive_model::{Generation, Tokenizers};
use attentive_nn::models::EncoderDecoder;
use attentive_nn::models::gpt::Gpt;
use attentive_nn::models::transformer::Transformer;
use attentive_runtime::translator::{Translator, TranslatorOptions};
use attentive_text::Tokenizer;

use crate::model::{Choice, named_usage};

/// A network on a device.
pub struct LoadedModel<N: EncoderDecoder = Transformer> {
    /// The architecture.
    pub config: N::Config,
    /// Both tokenizers.
    pub tokenizers: Tokenizers,
    /// How text is framed.
    pub generation: Generation,
    /// The network.
    pub network: N,
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

/// The folder of a recurrent translator, which only a network computes; nothing for other models.
pub fn recurrent(choice: &Choice) -> Option<&Path> {
    let (Choice::Directory(folder) | Choice::Pulled(StoredModel { folder, .. })) = choice else {
        return None;
    };
    let directory = AnyModelDir::open(folder).ok()?;
    matches!(directory.config, AnyConfig::Recurrent(_)).then_some(folder)
}

impl<N: EncoderDecoder> LoadedModel<N> {
    /// Loads the network of a directory, or the best one of a training run.
    pub fn open(directory: &Path, device: &str) -> anyhow::Result<Self> {
        let device = attentive_nn::device::parse(device)?;
        let opened = AnyModelDir::open(directory)?;
        let config = opened.config_of::<N::Config>()?.clone();
        let generation = match &opened.config {
            AnyConfig::Transformer(config) => Generation::read(&opened.path, config)?,
            _ => Generation::default(),
        };
        let tokenizers = opened
            .tokenizers
            .with_context(|| format!("{} has no tokenizers", directory.display()))?;
        let weights = ModelDir::weights_path(&opened.path);
        let network = N::load(&config, &weights, &device)
            .with_context(|| format!("cannot load the model {}", directory.display()))?;
        Ok(Self {
            config,
            tokenizers,
            generation,
            network,
        })
    }

    /// A translator with these options, as far as the model can follow them.
    pub fn translator(&self, mut options: TranslatorOptions) -> anyhow::Result<Translator<N>> {
        // The network's operations are spread over the threads themselves.
        options.threads = Some(1);
        let options = options.within(N::longest(&self.config));
        let (network, tokenizers) = (self.network.clone(), self.tokenizers.clone());
        let translator = Translator::new(network, tokenizers, options).map_err(named_usage)?;
        Ok(translator.framed(&self.generation))
    }
}
