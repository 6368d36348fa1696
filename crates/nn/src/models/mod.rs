//! Model families: [`transformer`] is the encoder-decoder of the paper, [`recurrent`] what came before it, [`gpt`] its
//! decoder alone as a language model, [`bert`] its encoder alone, [`vit`] its encoder on images; [`diffusion`] draws
//! images with Transformer blocks in a U-Net.
//!
//! [`weights`] reads the weights file of a model directory, for all of them. [`EncoderDecoder`] is what training, evaluation and translation need of a network that translates, so that they are
//! written once for all of them.

pub mod bert;
pub mod diffusion;
pub mod gpt;
pub mod recurrent;
pub mod transformer;
pub mod vit;
pub mod weights;

use std::path::Path;

use attentive_model::config::{ModelConfig, RecurrentConfig, TransformerConfig};
use attentive_runtime::inspection::Inspect;
use burn::{
    module::Module,
    tensor::{Device, Int, Tensor},
};

use self::{recurrent::Recurrent, transformer::Transformer};
use crate::{error::NnError, ops::SmoothedLoss, pass::Pass};

/// A network that translates: reads a source, and predicts each token of a target from those before it.
pub trait EncoderDecoder: Module + Inspect + Send + Sync + 'static {
    /// Its architecture.
    type Config: ModelConfig;

    /// A model with Xavier-uniform matrices drawn from `seed`.
    fn create(config: &Self::Config, seed: u64, device: &Device) -> Self;

    /// Reads the weights file of a model with this architecture.
    fn load(config: &Self::Config, file: &Path, device: &Device) -> Result<Self, NnError>;

    /// The longest sequence, special tokens included, if models of this architecture have a limit.
    fn longest(config: &Self::Config) -> Option<usize>;

    /// Where the parameters live.
    fn device(&self) -> Device;

    /// Teacher forcing: reads `src` `[batch, src_len]` and all of `tgt` `[batch, tgt_len]`, none of its positions seeing
    /// its future -> what the output is predicted from, `[batch, tgt_len, width]`.
    fn teacher_forcing(
        &self,
        src: Tensor<2, Int>,
        tgt: Tensor<2, Int>,
        pass: &mut Pass,
    ) -> Tensor<3>;

    /// Logits over the target vocabulary: `[batch, len, width]` -> `[batch, len, vocab]`.
    fn logits(&self, hidden: Tensor<3>, pass: &Pass) -> Tensor<3>;

    /// The label-smoothed loss of predicting `targets`, row by row, from `hidden` `[batch, len, width]`.
    fn loss(&self, hidden: Tensor<3>, targets: &[u32], smoothing: f64, pass: &Pass)
    -> SmoothedLoss;
}

/// What both networks have as methods of their own.
macro_rules! own_methods {
    () => {
        fn create(config: &Self::Config, seed: u64, device: &Device) -> Self {
            Self::new(config, seed, device)
        }

        fn load(config: &Self::Config, file: &Path, device: &Device) -> Result<Self, NnError> {
            Self::load(config, file, device)
        }

        fn device(&self) -> Device {
            self.device()
        }

        fn logits(&self, hidden: Tensor<3>, pass: &Pass) -> Tensor<3> {
            self.logits(hidden, pass)
        }

        fn loss(
            &self,
            hidden: Tensor<3>,
            targets: &[u32],
            smoothing: f64,
            pass: &Pass,
        ) -> SmoothedLoss {
            self.loss(hidden, targets, smoothing, pass)
        }
    };
}

impl EncoderDecoder for Transformer {
    type Config = TransformerConfig;

    own_methods!();

    fn longest(config: &TransformerConfig) -> Option<usize> {
        config.position_limit()
    }

    fn teacher_forcing(
        &self,
        src: Tensor<2, Int>,
        tgt: Tensor<2, Int>,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let memory = self.encode(src, pass);
        self.decode(tgt, &memory, pass).hidden
    }
}

impl EncoderDecoder for Recurrent {
    type Config = RecurrentConfig;

    own_methods!();

    fn longest(_config: &RecurrentConfig) -> Option<usize> {
        None
    }

    fn teacher_forcing(
        &self,
        src: Tensor<2, Int>,
        tgt: Tensor<2, Int>,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let memory = self.encode(src, pass);
        let start = self.first_state(&memory, pass);
        self.decode(tgt, start, &memory, pass).hidden
    }
}
