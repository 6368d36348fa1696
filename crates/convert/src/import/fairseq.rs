//! Checkpoints of fairseq with their dictionaries: a [`super::mapping`] that needs no file.
//!
//! The arguments of the training are inside the checkpoint (`args`, or `cfg.model` in newer ones) or, where only the
//! weights were kept, in a `config.json` beside them. Dictionaries are `dict.LANGUAGE.txt`; where the languages are not
//! named, the alphabet decides nothing, so the sizes of the tables do.

use std::path::{Path, PathBuf};

use attentive_model::generation::{BeamRule, Generation};
use serde_json::Value;

use super::mapping::{self, Mapping, VocabularyFiles};
use super::{Model, files_of, folder_of, name_of, refused, whole_files};
use crate::error::{ConvertError, Result};
use crate::files::{Tensors, safetensors, torch};

/// Reads a checkpoint.
pub(super) fn read(weights: &Path) -> Result<Model> {
    let folder = folder_of(weights);
    let beside = folder.join("config.json");
    let (tensors, values) = if weights.extension().is_some_and(|end| end == "safetensors") {
        (safetensors::read(weights)?, Value::Null)
    } else {
        torch::read_with_values(weights)?
    };
    let prefix = if tensors
        .names()
        .any(|name| name.starts_with("model.encoder."))
    {
        "model."
    } else {
        ""
    };
    let inside = [
        values.get("args"),
        values.get("cfg").and_then(|cfg| cfg.get("model")),
    ];
    let arguments = match inside.into_iter().flatten().find(|value| value.is_object()) {
        Some(arguments) => arguments.clone(),
        None => {
            let bytes = whole_files::settings(&beside)?;
            let wrong = |error: serde_json::Error| {
                refused(
                    &beside,
                    "the arguments",
                    error.to_string(),
                    "JSON is needed",
                )
            };
            serde_json::from_slice(&bytes).map_err(wrong)?
        }
    };
    let arguments = Arguments {
        path: weights,
        values: &arguments,
    };
    let [source, target] = dictionaries(folder, &tensors, prefix, &arguments)?;
    let language = |path: &Path| {
        let name = name_of(path).strip_prefix("dict.")?.strip_suffix(".txt")?;
        Some(name.to_owned())
    };
    let generation = Generation {
        source_language: language(&source),
        target_language: language(&target),
        beam: Some(5),
        beam_rule: BeamRule::FullUntilEnough,
        max_length: Some(200),
        origin: Some(name_of(weights).to_owned()),
        ..Generation::default()
    };
    let (tokenizer, pieces) = tokenizer(folder)?;
    let mapping = Mapping {
        weights: None,
        output_first: true,
        names: Some("fairseq".to_owned()),
        prefix: prefix.to_owned(),
        model: arguments.model()?,
        vocabulary: VocabularyFiles {
            source,
            target,
            tokenizer,
            pieces,
            target_pieces: None,
            start: Some("</s>".to_owned()),
            end: None,
            padding: None,
            unknown: None,
        },
        tensors: Default::default(),
        generation,
    };
    mapping::convert(weights, Path::new(""), &tensors, mapping, "fairseq")
}

/// Which dictionary is whose: named by the arguments, else the one that fits the table.
fn dictionaries(
    folder: &Path,
    tensors: &Tensors,
    prefix: &str,
    arguments: &Arguments<'_>,
) -> Result<[PathBuf; 2]> {
    let named =
        ["source_lang", "target_lang"].map(|key| arguments.values.get(key).and_then(Value::as_str));
    if let [Some(source), Some(target)] = named {
        let paths = [source, target].map(|language| folder.join(format!("dict.{language}.txt")));
        if paths.iter().all(|path| path.is_file()) {
            return Ok(paths);
        }
    }
    let found: Vec<PathBuf> = files_of(folder)?
        .into_iter()
        .filter(|path| name_of(path).starts_with("dict.") && name_of(path).ends_with(".txt"))
        .collect();
    let lines = |path: &PathBuf| -> Result<usize> {
        let bytes = whole_files::tokenizer(path)?;
        Ok(bytes.iter().filter(|byte| **byte == b'\n').count() + 4)
    };
    let rows = ["encoder", "decoder"].map(|side| {
        let table = tensors.get(&format!("{prefix}{side}.embed_tokens.weight"));
        table
            .and_then(|table| table.shape.first().copied())
            .unwrap_or(0)
    });
    let unclear = |found: String| {
        let remedy = "name the languages with `source_lang` and `target_lang` in config.json, or use --mapping";
        Err(refused(folder, "the dictionaries", found, remedy))
    };
    match &found[..] {
        [one] => Ok([one.clone(), one.clone()]),
        [a, b] if rows[0] == rows[1] => {
            unclear(format!("{} and {} of one size", name_of(a), name_of(b)))
        }
        [a, b] => {
            let (a_rows, b_rows) = (lines(a)?, lines(b)?);
            if a_rows.abs_diff(rows[0]) < b_rows.abs_diff(rows[0]) {
                Ok([a.clone(), b.clone()])
            } else {
                Ok([b.clone(), a.clone()])
            }
        }
        _ => unclear(format!("{} dict.*.txt", found.len())),
    }
}

/// Codes of subword-nmt, a SentencePiece model, or neither.
fn tokenizer(folder: &Path) -> Result<(String, Option<PathBuf>)> {
    for path in files_of(folder)? {
        let name = name_of(&path);
        if name.ends_with(".code") || name.ends_with("bpecodes") || name.ends_with(".codes") {
            return Ok(("subword-nmt".to_owned(), Some(path)));
        }
        if name.ends_with(".model") || name.ends_with(".spm") {
            return Ok(("sentencepiece".to_owned(), Some(path)));
        }
    }
    Ok(("spaces".to_owned(), None))
}

/// The arguments of fairseq's training.
struct Arguments<'a> {
    path: &'a Path,
    values: &'a Value,
}

impl Arguments<'_> {
    fn flag(&self, key: &str) -> bool {
        self.values
            .get(key)
            .and_then(Value::as_bool)
            .unwrap_or(false)
    }

    fn refuse(&self, found: String, remedy: &str) -> ConvertError {
        refused(self.path, "the arguments", found, remedy)
    }

    /// A value that must be the same for both stacks.
    fn both(&self, end: &str) -> Result<&Value> {
        let [encoder, decoder] =
            ["encoder", "decoder"].map(|stack| self.values.get(format!("{stack}_{end}")));
        match (encoder, decoder) {
            (Some(encoder), Some(decoder)) if encoder == decoder => Ok(encoder),
            (None, _) | (_, None) => Err(self.refuse(
                format!("no `encoder_{end}` or `decoder_{end}`"),
                "they are needed",
            )),
            (Some(a), Some(b)) => Err(self.refuse(
                format!("`encoder_{end}` {a} and `decoder_{end}` {b}"),
                "they must be the same",
            )),
        }
    }

    /// `[model]` of a mapping.
    fn model(&self) -> Result<toml::Table> {
        let mut model = toml::Table::new();
        let mut number = |ours: &str, value: &Value| {
            let value = value
                .as_i64()
                .ok_or_else(|| self.refuse(format!("`{ours}` {value}"), "a number is needed"))?;
            model.insert(ours.to_owned(), toml::Value::Integer(value));
            Ok::<_, ConvertError>(())
        };
        number("d_model", self.both("embed_dim")?)?;
        number("d_ff", self.both("ffn_embed_dim")?)?;
        number("heads", self.both("attention_heads")?)?;
        for stack in ["encoder_layers", "decoder_layers"] {
            number(stack, self.values.get(stack).unwrap_or(&Value::Null))?;
        }
        number("position_offset", &Value::from(2))?;
        let mut text = |ours: &str, value: &str| model.insert(ours.to_owned(), value.into());
        let pre = self.both("normalize_before")?.as_bool().unwrap_or(false);
        text("norm", if pre { "pre" } else { "post" });
        text("positions", "timing_signal");
        let activation = self
            .values
            .get("activation_fn")
            .and_then(Value::as_str)
            .unwrap_or("relu");
        let known = ["relu", "gelu", "swish"];
        if !known.contains(&activation) {
            let found = format!("`activation_fn` {activation:?}");
            return Err(self.refuse(found, "relu, gelu and swish are known"));
        }
        text("activation", activation);
        if self.flag("layernorm_embedding") {
            text("embedding_norm", "layer_norm");
        }
        for key in [
            "encoder_learned_pos",
            "decoder_learned_pos",
            "no_token_positional_embeddings",
            "adaptive_input",
        ] {
            if self.flag(key) {
                return Err(self.refuse(format!("`{key}`"), "a model without it is needed"));
            }
        }
        if self.flag("no_scale_embedding") {
            model.insert("embedding_scale".to_owned(), toml::Value::Float(1.0));
        }
        Ok(model)
    }
}
