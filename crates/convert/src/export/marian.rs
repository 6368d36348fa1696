//! `model.npz` with its vocabularies and a `decoder.yml`, for `marian-decoder`.
//!
//! Marian starts from a vector of zeros, has neither `<s>` nor `<blank>` in its vocabulary, and knows one formula of
//! positions, so that this is for models that came from Marian (or were made like its own): all others are refused.
//! Matrices are `[in, out]` as ours are. Ids are `</s>`, `<unk>`, then the rest in our order.

use std::fmt::Write as _;
use std::path::Path;

use attentive_model::config::{
    Activation, Autoregression, EmbeddingNorm, NormPlacement, PositionKind, Tying,
};
use attentive_model::durable;
use attentive_text::Tokenizer;
use attentive_text::special::{BOS, EOS, PAD, SPECIALS, UNK};
use attentive_text::tokenizer::SentencePiece;

use super::npz;
use super::source::{Source, TARGET_TABLE};
use crate::error::{ConvertError, Result};
use crate::transpose::transposed;

/// Writes the folder.
pub(super) fn write(source: &Source<'_>, folder: &Path) -> Result<Vec<String>> {
    check(source)?;
    let mut warnings = Vec::new();
    if source.config.norm_epsilon != EPSILON {
        warnings.push(format!(
            "Marian adds {EPSILON:e} to the variance in its norms, this model {:e}: its numbers will differ from \
             about the fifth digit on",
            source.config.norm_epsilon
        ));
    }
    let both = &source.model.tokenizers;
    let shared = source.config.tying == Tying::All;
    let vocabularies = if shared {
        let name = vocabulary(source, &both.tgt, "vocab", folder)?;
        [name.clone(), name]
    } else {
        [
            vocabulary(source, &both.src, "source", folder)?,
            vocabulary(source, &both.tgt, "target", folder)?,
        ]
    };
    let decoder = format!(
        "models:\n  - model.npz\nvocabs:\n  - {}\n  - {}\nbeam-size: 4\nnormalize: 1\nrelative-paths: true\n",
        vocabularies[0], vocabularies[1]
    );
    let path = folder.join("decoder.yml");
    durable::write(&path, decoder.as_bytes()).map_err(ConvertError::io("write", &path))?;
    let mut arrays = arrays(source)?;
    let mut options: Vec<u8> = options(source).into_bytes();
    options.push(0);
    arrays.push(npz::Array::bytes("special:model.yml", options));
    let path = folder.join("model.npz");
    npz::write(&path, &arrays).map_err(ConvertError::io("write", &path))?;
    Ok(warnings)
}

/// What Marian adds to the variance in every norm.
const EPSILON: f64 = 1e-6;

/// Refuses what Marian cannot express.
fn check(source: &Source<'_>) -> Result<()> {
    let config = source.config;
    let positions = config.positions == PositionKind::TimingSignal && config.position_offset == 0;
    source.require(
        positions,
        "positions by another formula than the timing signal (`model.positions`)",
    )?;
    source.require(
        config.embedding_scale.is_none(),
        "an embedding scale other than the root of the width",
    )?;
    source.require(
        config.embedding_norm == EmbeddingNorm::None,
        "a norm of the embeddings",
    )?;
    let pre = config.norm == NormPlacement::Pre;
    source.require(
        config.has_final_norm() == pre,
        "final norms that do not follow from the norms of the layers",
    )?;
    match config.activation {
        Activation::Relu | Activation::Swish | Activation::GeluSigmoid => {}
        Activation::Gelu => {
            return Err(source.cannot("the exact GELU (its `gelu` is the one of a sigmoid)"));
        }
        Activation::GeluTanh => {
            return Err(source.cannot("the GELU of tanh (its `gelu` is the one of a sigmoid)"));
        }
    }
    let table = source.table(TARGET_TABLE)?.real();
    let start = &table[BOS as usize * config.d_model..][..config.d_model];
    source.require(
        start.iter().all(|&x| x == 0.0),
        "a start token `<s>` with a vector of its own",
    )?;
    let bias = source.tensor("embeddings.projection_bias")?;
    let absent = [BOS, PAD].iter().all(|&id| bias[id as usize] <= ABSENT);
    source.require(
        absent,
        "tokens `<s>` and `<blank>` that take part in the softmax",
    )
}

/// A token with such a bias adds exactly nothing to the softmax.
const ABSENT: f32 = -1e8;

/// Our ids in Marian's order.
fn ids(vocab: usize) -> impl Iterator<Item = usize> {
    [EOS as usize, UNK as usize]
        .into_iter()
        .chain(SPECIALS.len()..vocab)
}

/// Rows in Marian's order.
fn rows(values: &[f32], vocab: usize) -> Vec<f32> {
    let width = values.len() / vocab;
    ids(vocab)
        .flat_map(|id| &values[id * width..][..width])
        .copied()
        .collect()
}

fn arrays(source: &Source<'_>) -> Result<Vec<npz::Array>> {
    let config = source.config;
    let (d, f) = (config.d_model, config.d_ff);
    let mut all = Vec::new();
    let mut add = |name: String, shape: [usize; 2], values: Vec<f32>| {
        all.push(npz::Array::f32(&name, shape, &values));
    };
    let (src, tgt) = (config.src_vocab, config.tgt_vocab);
    let target = rows(&source.table(TARGET_TABLE)?.real(), tgt);
    if config.tying == Tying::All {
        add("Wemb".into(), [tgt - 2, d], target);
    } else {
        let table = rows(&source.table(source.source_table())?.real(), src);
        add("encoder_Wemb".into(), [src - 2, d], table);
        add("decoder_Wemb".into(), [tgt - 2, d], target);
    }
    if let Some(projection) = source.untied_projection()? {
        add(
            "decoder_ff_logit_out_Wt".into(),
            [tgt - 2, d],
            rows(&projection.real(), tgt),
        );
    }
    let bias = source.tensor("embeddings.projection_bias")?;
    add(
        "decoder_ff_logit_out_b".into(),
        [1, tgt - 2],
        rows(&bias, tgt),
    );

    let pre = if config.norm == NormPlacement::Pre {
        "_pre"
    } else {
        ""
    };
    for (stack, layers) in [
        ("encoder", config.encoder_layers),
        ("decoder", config.decoder_layers),
    ] {
        for layer in 0..layers {
            let ours = format!("{stack}.layers.{layer}");
            let theirs = format!("{stack}_l{}", layer + 1);
            let mut norm = |our: &str, their: &str| -> Result<()> {
                for (leaf, name) in [("weight", "scale"), ("bias", "bias")] {
                    let values = source.tensor(&format!("{ours}.{our}.{leaf}"))?;
                    add(format!("{theirs}_{their}_ln_{name}{pre}"), [1, d], values);
                }
                Ok(())
            };
            let ssru = stack == "decoder" && config.autoregression == Autoregression::Ssru;
            if ssru {
                // The norm before the cell has the name of the cell, the one behind it that of a network.
                let name = if pre.is_empty() { "rnn_ffn" } else { "rnn" };
                norm("ssru_norm", name)?;
            } else {
                norm("self_attention_norm", "self_Wo")?;
            }
            norm("feed_forward_norm", "ffn_ffn")?;
            if stack == "decoder" {
                norm("cross_attention_norm", "context_Wo")?;
            }
            let mut linear =
                |our: &str, weight: &str, bias: &str, shape: [usize; 2]| -> Result<()> {
                    let linear = source.linear(&format!("{ours}.{our}"))?;
                    add(
                        format!("{theirs}_{weight}"),
                        shape,
                        transposed(&linear.weight.real(), shape[1]),
                    );
                    add(format!("{theirs}_{bias}"), [1, shape[1]], linear.bias);
                    Ok(())
                };
            linear("feed_forward.inner", "ffn_W1", "ffn_b1", [d, f])?;
            linear("feed_forward.outer", "ffn_W2", "ffn_b2", [f, d])?;
            let attentions = [
                ("self_attention", "self", !ssru),
                ("cross_attention", "context", stack == "decoder"),
            ];
            for (our, their, _) in attentions.into_iter().filter(|(.., there)| *there) {
                for (part, letter) in [
                    ("query", "q"),
                    ("key", "k"),
                    ("value", "v"),
                    ("output", "o"),
                ] {
                    let (weight, bias) =
                        (format!("{their}_W{letter}"), format!("{their}_b{letter}"));
                    linear(&format!("{our}.{part}"), &weight, &bias, [d, d])?;
                }
            }
            if ssru {
                linear("ssru.forget", "rnn_Wf", "rnn_bf", [d, d])?;
                let input = source.matrix(&format!("{ours}.ssru.input.weight"), d, d)?;
                add(
                    format!("{theirs}_rnn_W"),
                    [d, d],
                    transposed(&input.real(), d),
                );
            }
        }
        if config.has_final_norm() {
            for (leaf, name) in [("weight", "scale"), ("bias", "bias")] {
                let values = source.tensor(&format!("{stack}.final_norm.{leaf}"))?;
                add(format!("{stack}_top_ln_{name}"), [1, d], values);
            }
        }
    }
    Ok(all)
}

/// What Marian calls `special:model.yml`.
fn options(source: &Source<'_>) -> String {
    let config = source.config;
    let (preprocess, postprocess, top) = match config.norm {
        NormPlacement::Pre => ("n", "da", "n"),
        NormPlacement::Post => ("", "dan", ""),
    };
    let activation = match config.activation {
        Activation::Swish => "swish",
        // x * sigmoid(1.702 x); `check` refused the others.
        Activation::GeluSigmoid | Activation::Gelu | Activation::GeluTanh => "gelu",
        Activation::Relu => "relu",
    };
    let ssru = config.autoregression == Autoregression::Ssru;
    let mut yml = String::new();
    let mut line = |key: &str, value: &dyn std::fmt::Display| {
        writeln!(yml, "{key}: {value}").expect("a String takes everything");
    };
    line("type", &"transformer");
    line("version", &"v1.12.0");
    line("dim-emb", &config.d_model);
    line(
        "dim-vocabs",
        &format!(
            "\n  - {}\n  - {}",
            config.src_vocab - 2,
            config.tgt_vocab - 2
        ),
    );
    line("enc-depth", &config.encoder_layers);
    line("dec-depth", &config.decoder_layers);
    line("transformer-heads", &config.heads);
    line("transformer-dim-ffn", &config.d_ff);
    line("transformer-ffn-depth", &2);
    line("transformer-ffn-activation", &activation);
    line(
        "transformer-decoder-autoreg",
        &if ssru { "rnn" } else { "self-attention" },
    );
    line("dec-cell", &if ssru { "ssru" } else { "gru" });
    line("transformer-preprocess", &format!("\"{preprocess}\""));
    line("transformer-postprocess", &postprocess);
    line("transformer-postprocess-emb", &"d");
    line("transformer-postprocess-top", &format!("\"{top}\""));
    line("transformer-train-position-embeddings", &false);
    line("transformer-tied-layers", &"[]");
    line("tied-embeddings", &(config.tying == Tying::Output));
    line("tied-embeddings-all", &(config.tying == Tying::All));
    line("layer-normalization", &false);
    line("skip", &false);
    line("max-length", &config.max_positions);
    yml
}

/// Writes the vocabulary, and gives the name of its file: the SentencePiece file, if its ids are Marian's, else tokens
/// with their ids.
fn vocabulary(
    source: &Source<'_>,
    tokenizer: &Tokenizer,
    name: &str,
    folder: &Path,
) -> Result<String> {
    let vocab = tokenizer.vocab_size();
    let tokens = || ids(vocab).map(|id| tokenizer.token(id as u32).expect("every id has a token"));
    let (name, file) = match tokenizer.sentencepiece() {
        Some(file) => {
            let pieces = SentencePiece::from_bytes(file, &source.model.path)?;
            let has_its_ids = tokenizer.file_extension() == "spm";
            let same = has_its_ids && pieces.ids().iter().map(|&id| id as usize).eq(ids(vocab));
            source.require(same, "a SentencePiece file whose pieces are in another order than `</s>`, `<unk>`, the rest")?;
            (format!("{name}.spm"), file.to_vec())
        }
        None => {
            let lines = tokens()
                .enumerate()
                .map(|(id, token)| format!("{}: {id}\n", serde_json::json!(token)));
            (
                format!("{name}.yml"),
                lines.collect::<String>().into_bytes(),
            )
        }
    };
    let path = folder.join(&name);
    durable::write(&path, &file).map_err(ConvertError::io("write", &path))?;
    Ok(name)
}
