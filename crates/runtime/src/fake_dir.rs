//! A model directory with arbitrary weights, for tests and examples of everything that opens one.
//!
//! What it says makes no sense, but always the same. The tokenizer knows the letters a to z.

use std::path::Path;

use attentive_text::{Tokenizer, TokenizerKind, TokenizerOptions};

use crate::config::{ModelConfig, Preset, Tying};
use crate::error::Result;
use crate::model_dir::{ModelDir, Tokenizers};

/// Writes a small Transformer into a folder.
pub fn write(folder: impl AsRef<Path>) -> Result<()> {
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

    let mut seed = 1;
    let tensors: Vec<_> = shapes(&config)
        .into_iter()
        .map(|(name, shape)| {
            let values = arbitrary(&shape, &mut seed);
            (name, shape, values)
        })
        .collect();
    let tensors = tensors
        .iter()
        .map(|(name, shape, values)| (&name[..], &shape[..], &values[..]));
    ModelDir::save(folder, &config, &Tokenizers::shared(tokenizer), tensors)
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

/// The tensors of a pre-norm model whose embeddings are all tied, as in ARCHITECTURE.md.
fn shapes(config: &ModelConfig) -> Vec<(String, Vec<usize>)> {
    let (d_model, d_ff, vocab) = (config.d_model, config.d_ff, config.tgt_vocab);
    let kv = config.kv_heads * d_model / config.heads;
    let mut shapes = vec![
        ("embeddings.target.weight".to_owned(), vec![vocab, d_model]),
        ("embeddings.projection_bias".to_owned(), vec![vocab]),
    ];
    let stacks = [
        ("encoder", config.encoder_layers, &["self"][..]),
        ("decoder", config.decoder_layers, &["self", "cross"]),
    ];
    for (stack, layers, attentions) in stacks {
        let mut norms = vec![format!("{stack}.final_norm")];
        for layer in (0..layers).map(|layer| format!("{stack}.layers.{layer}")) {
            let mut linears = vec![
                (format!("{layer}.feed_forward.inner"), [d_model, d_ff]),
                (format!("{layer}.feed_forward.outer"), [d_ff, d_model]),
            ];
            norms.push(format!("{layer}.feed_forward_norm"));
            for attention in attentions.iter().map(|kind| format!("{kind}_attention")) {
                for (part, width) in [
                    ("query", d_model),
                    ("key", kv),
                    ("value", kv),
                    ("output", d_model),
                ] {
                    linears.push((format!("{layer}.{attention}.{part}"), [d_model, width]));
                }
                norms.push(format!("{layer}.{attention}_norm"));
            }
            for (name, [rows, columns]) in linears {
                shapes.push((format!("{name}.weight"), vec![rows, columns]));
                shapes.push((format!("{name}.bias"), vec![columns]));
            }
        }
        for norm in norms {
            shapes.push((format!("{norm}.weight"), vec![d_model]));
            shapes.push((format!("{norm}.bias"), vec![d_model]));
        }
    }

    shapes
}
