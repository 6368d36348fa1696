//! A model as something that translates: chosen, opened, loaded, ready.
//!
//! A model is a directory, or one that is part of the program (`attentive-models`) and has a name.
//! On the CPU it is the runtime's own model; on other devices, and where a loss is asked for, it is the
//! network of `attentive-nn`.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use attentive_model::directory::ModelDir;
use attentive_model::{Tokenizers, TransformerConfig};
use attentive_models::BuiltIn;
use attentive_nn::models::transformer::Transformer;
use attentive_runtime::RuntimeError;
use attentive_runtime::translator::{Translator, TranslatorOptions};

use crate::decoding::ComputeKind;
use crate::exit::Ending;

/// Which model.
#[derive(Debug, Clone)]
pub enum Choice {
    /// That of a directory, or the best one of a training run.
    Directory(PathBuf),
    /// One that is part of the program.
    BuiltIn(&'static BuiltIn),
}

impl Choice {
    /// What `--model` means: a directory; or, if there is none of this name, a built-in model.
    pub fn of(given: &Path) -> Self {
        let built_in = given.to_str().and_then(attentive_models::named);
        match built_in.filter(|_| !given.exists()) {
            Some(model) => Self::BuiltIn(model),
            None => Self::Directory(given.to_owned()),
        }
    }

    /// What `--model` would call it.
    pub fn name(&self) -> String {
        match self {
            Self::BuiltIn(model) => model.name.to_owned(),
            Self::Directory(path) => path.display().to_string(),
        }
    }

    /// Opens it; the weights are not read yet.
    pub fn open(&self) -> anyhow::Result<ModelDir> {
        match self {
            Self::BuiltIn(model) => Ok(model.open()?),
            Self::Directory(path) => ModelDir::open(path).map_err(|error| match path.exists() {
                true => error.into(),
                false => anyhow!("{error} Built-in models: {}.", built_in_names()),
            }),
        }
    }

    /// The CPU's translator for it.
    pub fn translator(
        &self,
        compute: ComputeKind,
        options: TranslatorOptions,
    ) -> anyhow::Result<Translator> {
        Translator::of_model(self.open()?, compute.into(), options).map_err(named_usage)
    }
}

/// `de-en, en-de`
pub fn built_in_names() -> String {
    let names = attentive_models::ALL.each_ref().map(|model| model.name);
    names.join(", ")
}

/// An option that makes no sense with `--device`.
pub fn only_for_the_cpu(what: &str) -> anyhow::Error {
    Ending::Usage(format!("{what} for the CPU: leave out --device")).into()
}

/// A network on a device.
pub struct LoadedModel {
    /// The architecture.
    pub config: TransformerConfig,
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
