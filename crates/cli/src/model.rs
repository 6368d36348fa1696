//! A model directory as something that translates: opened, loaded, ready.
//!
//! On the CPU the runtime's own model translates; on other devices, and where more is asked than
//! translating, it is the network of `attentive-nn`.

use std::path::Path;

use anyhow::Context;
use attentive_nn::models::transformer::Transformer;
use attentive_runtime::model_dir::ModelDir;
use attentive_runtime::translator::{Translator, TranslatorOptions};
use attentive_runtime::{ModelConfig, RuntimeError, Tokenizers};

use crate::decoding::ComputeKind;
use crate::exit::Ending;

/// The CPU's translator for the model of a directory, or the best one of a training run.
pub fn cpu_translator(
    directory: &Path,
    compute: ComputeKind,
    options: TranslatorOptions,
) -> anyhow::Result<Translator> {
    Translator::open_with(directory, compute.into(), options).map_err(named_usage)
}

/// A network on a device.
pub struct LoadedModel {
    /// The architecture.
    pub config: ModelConfig,
    /// Both tokenizers.
    pub tokenizers: Tokenizers,
    /// The network.
    pub network: Transformer,
}

impl LoadedModel {
    /// Loads the network of a directory, or the best one of a training run.
    pub fn open(directory: &Path, device: &str) -> anyhow::Result<Self> {
        let device = attentive_nn::device::parse(device)?;
        let ModelDir {
            path,
            config,
            tokenizers,
            ..
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
        mut options: TranslatorOptions,
    ) -> anyhow::Result<Translator<Transformer>> {
        // The network's operations are spread over the threads themselves.
        options.threads = Some(1);
        let options = options.within(&self.config);
        let (network, tokenizers) = (self.network.clone(), self.tokenizers.clone());
        Translator::new(network, tokenizers, options).map_err(named_usage)
    }
}

/// Options that make no sense are the user's, and so the wrong usage.
fn named_usage(error: RuntimeError) -> anyhow::Error {
    match error {
        RuntimeError::Options(problems) => Ending::Usage(problems.join("\n")).into(),
        other => other.into(),
    }
}
