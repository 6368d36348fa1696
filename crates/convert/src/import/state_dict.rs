//! State dicts: the tensors of a PyTorch model under the names of its modules.
//!
//! [`Names`] say what our tensors are called there; fairseq's names are those of Hugging Face, too. Which
//! tensors a model has, and of what shape, is our own schema (`attentive_model::tensors`), so that nothing is left out.
//! Embeddings are not read here: their rows need another order ([`super::vocabulary`]).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use attentive_model::ModelError;
use attentive_model::config::{ModelConfig, TransformerConfig};
use attentive_model::tensors::Role;
use serde_json::Value;

use super::parts::{Matrix, Parts, enough_tensors};
use super::{folder_of, json, refused};
use crate::error::{ConvertError, Result};
use crate::files::{Tensors, safetensors, torch};

/// Another program's name for each of our modules. In both, `{layer}` stands for a layer's number. In another program's
/// name `{leaf}` stands for `weight` or `bias`, which is at the end if it is nowhere, and `#1/3` at the end chooses the
/// second of three equal parts, where several matrices are one.
#[derive(Debug, Clone)]
pub(super) struct Names {
    names: BTreeMap<String, String>,
    /// Whether matrices stand output by output, as PyTorch has them.
    pub output_first: bool,
}

/// Our modules and those of fairseq.
const FAIRSEQ: [(&str, &str); 21] = [
    (
        "encoder.layers.{layer}.self_attention.query",
        "encoder.layers.{layer}.self_attn.q_proj",
    ),
    (
        "encoder.layers.{layer}.self_attention.key",
        "encoder.layers.{layer}.self_attn.k_proj",
    ),
    (
        "encoder.layers.{layer}.self_attention.value",
        "encoder.layers.{layer}.self_attn.v_proj",
    ),
    (
        "encoder.layers.{layer}.self_attention.output",
        "encoder.layers.{layer}.self_attn.out_proj",
    ),
    (
        "encoder.layers.{layer}.self_attention_norm",
        "encoder.layers.{layer}.self_attn_layer_norm",
    ),
    (
        "encoder.layers.{layer}.feed_forward.inner",
        "encoder.layers.{layer}.fc1",
    ),
    (
        "encoder.layers.{layer}.feed_forward.outer",
        "encoder.layers.{layer}.fc2",
    ),
    (
        "encoder.layers.{layer}.feed_forward_norm",
        "encoder.layers.{layer}.final_layer_norm",
    ),
    ("encoder.final_norm", "encoder.layer_norm"),
    ("encoder.embedding_norm", "encoder.layernorm_embedding"),
    (
        "decoder.layers.{layer}.self_attention.query",
        "decoder.layers.{layer}.self_attn.q_proj",
    ),
    (
        "decoder.layers.{layer}.self_attention.key",
        "decoder.layers.{layer}.self_attn.k_proj",
    ),
    (
        "decoder.layers.{layer}.self_attention.value",
        "decoder.layers.{layer}.self_attn.v_proj",
    ),
    (
        "decoder.layers.{layer}.self_attention.output",
        "decoder.layers.{layer}.self_attn.out_proj",
    ),
    (
        "decoder.layers.{layer}.self_attention_norm",
        "decoder.layers.{layer}.self_attn_layer_norm",
    ),
    (
        "decoder.layers.{layer}.feed_forward.inner",
        "decoder.layers.{layer}.fc1",
    ),
    (
        "decoder.layers.{layer}.feed_forward.outer",
        "decoder.layers.{layer}.fc2",
    ),
    (
        "decoder.layers.{layer}.feed_forward_norm",
        "decoder.layers.{layer}.final_layer_norm",
    ),
    ("decoder.final_norm", "decoder.layer_norm"),
    ("decoder.embedding_norm", "decoder.layernorm_embedding"),
    (
        "decoder.layers.{layer}.cross_attention_norm",
        "decoder.layers.{layer}.encoder_attn_layer_norm",
    ),
];

impl Names {
    /// The names that fairseq and Hugging Face have behind `prefix`.
    pub fn fairseq(prefix: &str) -> Self {
        let prefixed =
            |(ours, theirs): (&str, &str)| (ours.to_owned(), format!("{prefix}{theirs}"));
        let mut names: BTreeMap<String, String> = FAIRSEQ.into_iter().map(prefixed).collect();
        for (ours, theirs) in [
            ("query", "q"),
            ("key", "k"),
            ("value", "v"),
            ("output", "out"),
        ] {
            names.insert(
                format!("decoder.layers.{{layer}}.cross_attention.{ours}"),
                format!("{prefix}decoder.layers.{{layer}}.encoder_attn.{theirs}_proj"),
            );
        }
        Self {
            names,
            output_first: true,
        }
    }

    /// Names that a file gives.
    pub fn new(names: BTreeMap<String, String>, output_first: bool) -> Self {
        Self {
            names,
            output_first,
        }
    }

    /// Adds names, in place of those that are there.
    pub fn add(&mut self, names: &BTreeMap<String, String>) {
        let new = names
            .iter()
            .map(|(ours, theirs)| (ours.clone(), theirs.clone()));
        self.names.extend(new);
    }

    /// Reads every tensor of the model but its embeddings.
    pub fn collect(
        &self,
        tensors: &Tensors,
        config: &TransformerConfig,
        parts: &mut Parts,
    ) -> Result<()> {
        let path = tensors.path();
        let impossible = |problems| ModelError::ImpossibleModel {
            path: path.to_path_buf(),
            problems,
        };
        config.check().map_err(impossible)?;
        enough_tensors(
            path,
            tensors.len(),
            config.encoder_layers + config.decoder_layers,
        )?;
        for spec in config.tensors() {
            if spec.name.starts_with("embeddings.") {
                continue;
            }
            let (theirs, part) = self.find(tensors.path(), &spec.name)?;
            match (spec.role, &spec.shape[..]) {
                (Role::Linear, &[inputs, outputs]) => {
                    let matrix = self.matrix(tensors, &theirs, part, [outputs, inputs])?;
                    parts.matrix(spec.name, matrix);
                }
                // Some linear layers have no bias; norms always have both.
                (Role::Bias, &[width])
                    if tensors.get(&theirs).is_none() && !spec.name.contains("norm") =>
                {
                    parts.vector(spec.name, vec![0.0; width]);
                }
                _ => {
                    let width = spec.len();
                    let values = tensors.require(&theirs, &[width * part.of])?.to_f32();
                    parts.vector(spec.name, values[part.number * width..][..width].to_vec());
                }
            }
        }
        Ok(())
    }

    /// A table of tokens with `width` columns, if the file has it.
    pub fn table(&self, tensors: &Tensors, name: &str, width: usize) -> Result<Option<Matrix>> {
        let Some(tensor) = tensors.get(name) else {
            return Ok(None);
        };
        let rows = tensor.shape.first().copied().unwrap_or(0);
        let tensor = tensors.require(name, &[rows, width])?;
        Ok(Some(Matrix::new(tensor, [rows, width])))
    }

    fn matrix(
        &self,
        tensors: &Tensors,
        name: &str,
        part: Part,
        [rows, columns]: [usize; 2],
    ) -> Result<Matrix> {
        let all = rows.saturating_mul(part.of);
        let matrix = if self.output_first {
            Matrix::new(tensors.require(name, &[all, columns])?, [all, columns])
        } else {
            Matrix::new(tensors.require(name, &[columns, all])?, [columns, all]).transposed()
        };
        Ok(matrix.part(part.number * rows..(part.number + 1) * rows))
    }

    /// Another program's name for one of our tensors.
    fn find(&self, path: &Path, ours: &str) -> Result<(String, Part)> {
        let (module, leaf) = ours.rsplit_once('.').unwrap_or((ours, "weight"));
        let mut layer = "";
        let pattern: Vec<&str> = module
            .split('.')
            .map(|word| {
                if word.bytes().all(|byte| byte.is_ascii_digit()) {
                    layer = word;
                    "{layer}"
                } else {
                    word
                }
            })
            .collect();
        let pattern = pattern.join(".");
        let theirs = self.names.get(&pattern).ok_or_else(|| {
            let found = format!("no name for `{pattern}`");
            refused(
                path,
                "the names of the tensors",
                found,
                "add it to [tensors] of the mapping",
            )
        })?;
        let (theirs, part) = match theirs.rsplit_once('#') {
            None => (theirs.as_str(), Part::WHOLE),
            Some((theirs, part)) => {
                let part = Part::parse(part).ok_or_else(|| {
                    let found = format!("the part `#{part}` of `{theirs}`");
                    refused(
                        path,
                        "the names of the tensors",
                        found,
                        "a part is written as #1/3",
                    )
                })?;
                (theirs, part)
            }
        };
        let name = theirs.replace("{layer}", layer);
        let name = if name.contains("{leaf}") {
            name.replace("{leaf}", leaf)
        } else {
            format!("{name}.{leaf}")
        };
        Ok((name, part))
    }
}

/// One of some equal parts of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    number: usize,
    of: usize,
}

impl Part {
    const WHOLE: Self = Self { number: 0, of: 1 };

    fn parse(text: &str) -> Option<Self> {
        let (number, of) = text.split_once('/')?;
        let part = Self {
            number: number.parse().ok()?,
            of: of.parse().ok()?,
        };
        (part.number < part.of && part.of <= 64).then_some(part)
    }
}

/// Reads a file of tensors, whichever of PyTorch's two formats or safetensors it is, or all files that an index names.
pub(super) fn read(path: &Path) -> Result<Tensors> {
    match path.extension().and_then(|end| end.to_str()) {
        Some("safetensors") => safetensors::read(path),
        Some("json") => shards(path),
        _ => torch::read(path),
    }
}

/// Where the weights of a Hugging Face folder are: a file, or the index of several.
pub(super) fn weights_of(folder: &Path) -> Result<PathBuf> {
    let index = WEIGHTS.map(|name| format!("{name}.index.json"));
    for name in WEIGHTS
        .iter()
        .copied()
        .chain(index.iter().map(String::as_str))
    {
        let path = folder.join(name);
        if path.is_file() {
            return Ok(path);
        }
    }
    Err(ConvertError::Unrecognized {
        path: folder.to_path_buf(),
        found: format!(
            "neither {} nor an index of several files",
            WEIGHTS.join(" nor ")
        ),
    })
}

/// The weights of a Hugging Face folder.
const WEIGHTS: [&str; 2] = ["model.safetensors", "pytorch_model.bin"];

/// Weights in several files: `weight_map` of the index says which tensor is in which of the files beside it.
fn shards(index: &Path) -> Result<Tensors> {
    let place = "the list of weights";
    let wrong = |found: String, remedy: &str| refused(index, place, found, remedy);
    let json = json(index)?;
    let map = json.get("weight_map").and_then(Value::as_object);
    let map = map.ok_or_else(|| wrong("no `weight_map`".to_owned(), "it is needed"))?;
    let mut files: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (tensor, file) in map {
        let file = file.as_str().unwrap_or_default();
        // The name of a file beside the index, and nothing that leads elsewhere.
        let mut parts = Path::new(file).components();
        if !matches!(
            (parts.next(), parts.next()),
            (Some(Component::Normal(_)), None)
        ) || file.ends_with(".json")
        {
            let remedy = "names of files beside it are read";
            return Err(wrong(format!("the file {file:?}"), remedy));
        }
        files.entry(file).or_default().insert(tensor);
    }
    let mut tensors = Tensors::new(index);
    for (file, names) in files {
        let shard = read(&folder_of(index).join(file))?;
        if let Some(missing) = names.iter().find(|name| shard.get(name).is_none()) {
            return Err(ConvertError::MissingTensor {
                path: shard.path().to_path_buf(),
                name: (*missing).to_owned(),
                count: shard.len(),
            });
        }
        tensors.extend(shard, |name| names.contains(name))?;
    }
    Ok(tensors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_with_layers_leaves_and_parts() {
        let names = Names::fairseq("model.");
        let path = Path::new("x");
        let found = names
            .find(path, "decoder.layers.11.cross_attention.output.bias")
            .unwrap();
        assert_eq!(
            found.0,
            "model.decoder.layers.11.encoder_attn.out_proj.bias"
        );
        let own = [(
            "encoder.layers.{layer}.self_attention.key",
            "enc.{layer}.in_proj_{leaf}#1/3",
        )];
        let own = own.map(|(ours, theirs)| (ours.to_owned(), theirs.to_owned()));
        let names = Names::new(own.into(), true);
        let (name, part) = names
            .find(path, "encoder.layers.2.self_attention.key.weight")
            .unwrap();
        assert_eq!(
            (name.as_str(), part),
            ("enc.2.in_proj_weight", Part { number: 1, of: 3 })
        );
        let error = names.find(path, "encoder.final_norm.bias").unwrap_err();
        assert!(
            error.to_string().contains("`encoder.final_norm`"),
            "{error}"
        );
        assert_eq!(Part::parse("3/3"), None);
    }
}
