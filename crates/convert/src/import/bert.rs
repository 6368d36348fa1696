//! BERT directories of Hugging Face: `config.json`, the weights, and `tokenizer.json` or `vocab.txt`.
//!
//! Neighbors: [`super::huggingface`] reads the encoder-decoders, [`super::vocabulary`] says which token becomes which of our
//! ids: `[CLS]`, `[SEP]`, `[PAD]` and `[UNK]` are our four special ones.

use std::path::Path;

use attentive_model::config::{
    Activation, BertConfig, BertHead, ModelConfig as _, Pooler, TokenPruning,
};
use attentive_model::tensors::{Role, TensorSpec};
use attentive_model::{ModelDir, ModelError, Tokenizers, durable};
use attentive_text::Tokenizer;
use attentive_text::tokenizer::vocabulary_file;
use serde_json::Value;

use super::huggingface::Config;
use super::parts::enough_tensors;
use super::vocabulary::{Order, Specials, Start};
use super::{Imported, json, refused, state_dict, whole_files};
use crate::error::{ConvertError, Result};
use crate::files::Tensors;
use crate::transpose::transposed;

/// What `config.json` calls the family.
pub(super) const MODEL_TYPE: &str = "bert";

/// Writes the model directory `out` of a BERT folder.
pub(super) fn import(folder: &Path, out: &Path) -> Result<Imported> {
    let path = folder.join("config.json");
    let config = Config::read(&path)?;
    let weights = state_dict::weights_of(folder)?;
    let tensors = state_dict::read(&weights)?;
    let prefix = if tensors
        .get("bert.embeddings.word_embeddings.weight")
        .is_some()
    {
        "bert."
    } else {
        ""
    };
    let rows = config.size("vocab_size")?;
    let words = format!("{prefix}embeddings.word_embeddings.weight");
    tensors.require(&words, &[rows, config.size("hidden_size")?])?;
    let (order, tokenizer) = tokenizer(folder, rows)?;
    let config = architecture(&config, &tensors, prefix, order.len())?;
    config
        .check()
        .map_err(|problems| ModelError::ImpossibleModel {
            path: path.clone(),
            problems,
        })?;
    enough_tensors(&weights, tensors.len(), config.layers)?;
    let mut list = Vec::new();
    for spec in config.tensors() {
        let values = values(&tensors, prefix, &spec, &order, rows)?;
        list.push((spec, values));
    }
    let failed = ConvertError::io_at("create", out);
    durable::write_folder(out, failed, |folder| -> Result<()> {
        let tensors = list
            .iter()
            .map(|(spec, values)| (&spec.name[..], &spec.shape[..], &values[..]));
        Ok(ModelDir::save(
            folder,
            &config,
            &Tokenizers::shared(tokenizer.clone()),
            tensors,
        )?)
    })?;
    Ok(Imported {
        source_format: "Hugging Face (BERT)".to_owned(),
        languages: None,
        targets: Vec::new(),
        warnings: Vec::new(),
    })
}

fn architecture(
    config: &Config<'_>,
    tensors: &Tensors,
    prefix: &str,
    vocab: usize,
) -> Result<BertConfig> {
    let has = |name: &str| tensors.get(name).is_some();
    let refuse =
        |found: String, known: &str| Err(refused(config.path, "the configuration", found, known));
    match config.text("position_embedding_type").unwrap_or("absolute") {
        "absolute" => {}
        other => {
            let found = format!("`position_embedding_type` {other:?}");
            return refuse(found, "absolute positions are known");
        }
    }
    let activation = match config.text("hidden_act").unwrap_or("gelu") {
        "relu" => Activation::Relu,
        "silu" | "swish" => Activation::Swish,
        "gelu" => Activation::Gelu,
        "gelu_new" | "gelu_pytorch_tanh" => Activation::GeluTanh,
        other => {
            let known = "relu, silu, gelu, gelu_new and gelu_pytorch_tanh are known";
            return refuse(format!("`hidden_act` {other:?}"), known);
        }
    };
    let classifies = has("classifier.weight");
    let head = match (
        classifies,
        has("cls.predictions.bias"),
        has("cls.seq_relationship.weight"),
    ) {
        (true, ..) => BertHead::Classification,
        (_, true, true) => BertHead::Pretraining,
        (_, true, false) => BertHead::MaskedLanguageModel,
        _ => BertHead::None,
    };
    Ok(BertConfig {
        vocab,
        d_model: config.size("hidden_size")?,
        d_ff: config.size("intermediate_size")?,
        heads: config.size("num_attention_heads")?,
        layers: config.size("num_hidden_layers")?,
        max_positions: config.size("max_position_embeddings")?,
        segments: config.size("type_vocab_size")?,
        dropout: config
            .get("hidden_dropout_prob")
            .and_then(Value::as_f64)
            .unwrap_or(0.1),
        activation,
        norm_epsilon: config
            .get("layer_norm_eps")
            .and_then(Value::as_f64)
            .unwrap_or(1e-12),
        pooler: if has(&format!("{prefix}pooler.dense.weight")) {
            Pooler::Tanh
        } else {
            Pooler::Absent
        },
        head,
        pruning: TokenPruning::None,
        labels: if classifies {
            labels(config, tensors)?
        } else {
            Vec::new()
        },
    })
}

/// The names of the classes: `id2label`, or `LABEL_0` and so on.
fn labels(config: &Config<'_>, tensors: &Tensors) -> Result<Vec<String>> {
    let classes = tensors.get("classifier.bias").map_or(0, |bias| bias.len());
    let name = |id: usize| {
        let known = config
            .get("id2label")
            .and_then(|names| names.get(id.to_string()));
        let known = known.and_then(Value::as_str).map(str::to_owned);
        known.unwrap_or_else(|| format!("LABEL_{id}"))
    };
    Ok((0..classes).map(name).collect())
}

/// The order of our ids, and the tokenizer.
fn tokenizer(folder: &Path, rows: usize) -> Result<(Order, Tokenizer)> {
    let file = |name: &str| Some(folder.join(name)).filter(|path| path.is_file());
    let (path, text, tokens) = match (file("tokenizer.json"), file("vocab.txt")) {
        (Some(path), _) => {
            let (file, text) = whole_files::tokenizer_json(&path)?;
            let tokens = vocabulary(&path, &file)?;
            (path, text, tokens)
        }
        (None, Some(path)) => {
            let tokens = vocabulary_file::txt(&path)?;
            let tokens: Vec<String> = tokens.into_iter().map(|(token, _)| token).collect();
            let settings = folder.join("tokenizer_config.json");
            let lowercase = match file("tokenizer_config.json") {
                Some(_) => json(&settings)?
                    .get("do_lower_case")
                    .and_then(Value::as_bool),
                None => None,
            };
            let text = Tokenizer::wordpiece_json(&tokens, lowercase.unwrap_or(true))?;
            (path, text, tokens)
        }
        (None, None) => {
            let remedy = "a BERT directory has one of them";
            let found = "neither tokenizer.json nor vocab.txt";
            return Err(refused(folder, "the tokenizer", found, remedy));
        }
    };
    let id = |special: &str| {
        let found = tokens.iter().position(|token| token == special);
        found.map(|id| id as u32).ok_or_else(|| {
            refused(
                &path,
                "the vocabulary",
                format!("no token {special}"),
                "BERT needs it",
            )
        })
    };
    let specials = Specials {
        start: Start::Token(id("[CLS]")?),
        end: id("[SEP]")?,
        padding: Some(id("[PAD]")?),
        unknown: Some(id("[UNK]")?),
    };
    let order = Order::new(&path, tokens, rows, specials)?;
    let tokenizer = Tokenizer::wordpiece(&text, order.tokens());
    let tokenizer = tokenizer.map_err(ConvertError::tokenizer(&path))?;
    Ok((order, tokenizer))
}

/// The tokens of a `tokenizer.json` in the order of their ids.
fn vocabulary(path: &Path, json: &Value) -> Result<Vec<String>> {
    let bad = |found: &str| {
        refused(
            path,
            "the tokenizer",
            found,
            "only WordPiece is read for BERT",
        )
    };
    let vocab = json.pointer("/model/vocab").and_then(Value::as_object);
    let vocab = vocab.ok_or_else(|| bad("a model without a `vocab` of tokens and ids"))?;
    let mut tokens: Vec<(u64, &String)> = Vec::with_capacity(vocab.len());
    for (token, id) in vocab {
        tokens.push((
            id.as_u64().ok_or_else(|| bad("a token without an id"))?,
            token,
        ));
    }
    tokens.sort_unstable();
    if tokens.iter().zip(0..).any(|((id, _), place)| *id != place) {
        return Err(bad("ids with gaps"));
    }
    Ok(tokens.into_iter().map(|(_, token)| token.clone()).collect())
}

/// The values of one of our tensors.
fn values(
    tensors: &Tensors,
    prefix: &str,
    spec: &TensorSpec,
    order: &Order,
    rows: usize,
) -> Result<Vec<f32>> {
    let name = name(prefix, &spec.name);
    // Norms of early files are called after the paper's letters.
    let name = if tensors.get(&name).is_some() {
        name
    } else {
        let old = name.replace("LayerNorm.weight", "LayerNorm.gamma");
        old.replace("LayerNorm.bias", "LayerNorm.beta")
    };
    let of_token = |values: Vec<f32>, width: usize| -> Vec<f32> {
        let row = |row: Option<usize>| match row {
            Some(row) => values[row * width..][..width].to_vec(),
            None => vec![0.0; width],
        };
        let rows = order.rows().iter().map(|place| row(place.of_embedding()));
        rows.flatten().collect()
    };
    match spec.role {
        Role::Embedding => {
            let shape = [rows, spec.shape[1]];
            Ok(of_token(tensors.require(&name, &shape)?.to_f32(), shape[1]))
        }
        Role::Linear => {
            let shape = [spec.shape[1], spec.shape[0]];
            Ok(transposed(
                &tensors.require(&name, &shape)?.to_f32(),
                shape[0],
            ))
        }
        Role::Bias if spec.name == "masked.bias" => {
            Ok(of_token(tensors.require(&name, &[rows])?.to_f32(), 1))
        }
        _ => Ok(tensors.require(&name, &spec.shape)?.to_f32()),
    }
}

/// Hugging Face's name of one of our tensors.
fn name(prefix: &str, ours: &str) -> String {
    const PARTS: [(&str, &str); 11] = [
        ("embeddings.token.", "embeddings.word_embeddings."),
        ("embeddings.segment.", "embeddings.token_type_embeddings."),
        ("embeddings.positions.", "embeddings.position_embeddings."),
        ("embeddings.norm.", "embeddings.LayerNorm."),
        ("self_attention.output.", "attention.output.dense."),
        ("self_attention.", "attention.self."),
        ("self_attention_norm.", "attention.output.LayerNorm."),
        ("feed_forward.inner.", "intermediate.dense."),
        ("feed_forward.outer.", "output.dense."),
        ("feed_forward_norm.", "output.LayerNorm."),
        ("pooler.", "pooler.dense."),
    ];
    const HEADS: [(&str, &str); 5] = [
        ("masked.transform.", "cls.predictions.transform.dense."),
        ("masked.norm.", "cls.predictions.transform.LayerNorm."),
        ("masked.bias", "cls.predictions.bias"),
        ("next_sentence.", "cls.seq_relationship."),
        ("classifier.", "classifier."),
    ];
    for (own, theirs) in HEADS {
        if let Some(rest) = ours.strip_prefix(own) {
            return format!("{theirs}{rest}");
        }
    }
    // The first that fits: longer names stand before those that they begin with.
    let part = PARTS.into_iter().find(|(own, _)| ours.contains(own));
    let name = part.map_or_else(
        || ours.to_owned(),
        |(own, theirs)| ours.replacen(own, theirs, 1),
    );
    format!("{prefix}{}", name.replacen("layers.", "encoder.layer.", 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_hugging_face() {
        for (ours, theirs) in [
            (
                "embeddings.token.weight",
                "bert.embeddings.word_embeddings.weight",
            ),
            ("embeddings.norm.bias", "bert.embeddings.LayerNorm.bias"),
            (
                "layers.11.self_attention.query.weight",
                "bert.encoder.layer.11.attention.self.query.weight",
            ),
            (
                "layers.0.self_attention.output.bias",
                "bert.encoder.layer.0.attention.output.dense.bias",
            ),
            (
                "layers.0.self_attention_norm.weight",
                "bert.encoder.layer.0.attention.output.LayerNorm.weight",
            ),
            (
                "layers.3.feed_forward.inner.weight",
                "bert.encoder.layer.3.intermediate.dense.weight",
            ),
            (
                "layers.3.feed_forward.outer.weight",
                "bert.encoder.layer.3.output.dense.weight",
            ),
            (
                "layers.3.feed_forward_norm.bias",
                "bert.encoder.layer.3.output.LayerNorm.bias",
            ),
            ("pooler.weight", "bert.pooler.dense.weight"),
            ("masked.bias", "cls.predictions.bias"),
            (
                "masked.norm.weight",
                "cls.predictions.transform.LayerNorm.weight",
            ),
            ("classifier.bias", "classifier.bias"),
        ] {
            assert_eq!(name("bert.", ours), theirs);
        }
    }
}
