//! A model directory with arbitrary weights, for tests and examples of everything that opens one.
//!
//! What it says makes no sense, but always the same. The tokenizer knows the letters a to z.

use std::path::Path;

use attentive_text::{Tokenizer, TokenizerKind, TokenizerOptions};

use crate::config::{ModelConfig, Preset, TransformerConfig, Tying};
use crate::directory::{ModelDir, Tokenizers};
use crate::error::Result;

/// Writes a small Transformer into a folder.
pub fn write(folder: impl AsRef<Path>) -> Result<()> {
    write_with(folder, |_| {}, |_, _| {})
}

/// As [`write()`], with changes: of the configuration, but not its vocabularies, and of the values of each tensor.
pub fn write_with(
    folder: impl AsRef<Path>,
    configure: impl FnOnce(&mut TransformerConfig),
    change: impl Fn(&str, &mut [f32]),
) -> Result<()> {
    let options = TokenizerOptions {
        kind: TokenizerKind::Word,
        vocab_size: 0,
        min_frequency: 1,
        lowercase: false,
    };
    let letters: Vec<String> = ('a'..='z').map(String::from).collect();
    let tokenizer = Tokenizer::train(&options, &mut letters.iter().map(String::as_str))?;
    let vocab = tokenizer.vocab_size();
    let mut config = Preset::Tiny.config(vocab, vocab);
    (config.d_model, config.d_ff, config.tying) = (32, 64, Tying::All);
    configure(&mut config);
    write_model(folder, &config, &Tokenizers::shared(tokenizer), change)
}

/// As [`write_with`], with tokenizers of one's own, whose vocabularies the configuration must have.
pub fn write_model(
    folder: impl AsRef<Path>,
    config: &TransformerConfig,
    tokenizers: &Tokenizers,
    change: impl Fn(&str, &mut [f32]),
) -> Result<()> {
    let mut seed = 1;
    let tensors: Vec<_> = config
        .tensors()
        .into_iter()
        .map(|spec| {
            let mut values = arbitrary(&spec.shape, &mut seed);
            change(&spec.name, &mut values);
            (spec.name, spec.shape, values)
        })
        .collect();
    let tensors = tensors
        .iter()
        .map(|(name, shape, values)| (&name[..], &shape[..], &values[..]));
    ModelDir::save(folder, config, tokenizers, tensors)
}

/// Spread like those of a trained model, so that probabilities are neither even nor sure.
fn arbitrary(shape: &[usize], seed: &mut u64) -> Vec<f32> {
    let spread = if shape.len() == 2 { 0.3 } else { 1.0 };
    let mut value = || {
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        spread * ((*seed >> 40) as f32 / (1u64 << 23) as f32 - 1.0)
    };
    (0..shape.iter().product()).map(|_| value()).collect()
}
