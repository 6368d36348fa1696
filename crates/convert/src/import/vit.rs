//! ViT directories of Hugging Face: `config.json`, the weights, and `preprocessor_config.json`.
//!
//! Tensors have the names of published checkpoints (`encoder.layer.0.attention.attention.query`) or those of later
//! versions of transformers (`layers.0.attention.q_proj`). Neighbor: [`super::bert`] reads the other encoders.

use std::path::Path;

use attentive_model::config::{Activation, ModelConfig as _, Resize, VitConfig};
use attentive_model::directory::AnyModelDir;
use attentive_model::tensors::{Role, TensorSpec};
use attentive_model::{ModelError, durable};
use serde_json::Value;

use super::huggingface::Config;
use super::parts::enough_tensors;
use super::{Imported, json, refused, state_dict};
use crate::error::{ConvertError, Result};
use crate::files::Tensors;
use crate::transpose::transposed;

/// What `config.json` calls the family.
pub(super) const MODEL_TYPE: &str = "vit";

/// Writes the model directory `out` of a ViT folder.
pub(super) fn import(folder: &Path, out: &Path) -> Result<Imported> {
    let path = folder.join("config.json");
    let config = Config::read(&path)?;
    let tensors = state_dict::read(&state_dict::weights_of(folder)?)?;
    let mut warnings = Vec::new();
    let config = architecture(folder, &config, &tensors, &mut warnings)?;
    config
        .check()
        .map_err(|problems| ModelError::ImpossibleModel {
            path: path.clone(),
            problems,
        })?;
    enough_tensors(&path, tensors.len(), config.layers)?;
    let mut list = Vec::new();
    for spec in config.tensors() {
        let values = values(&tensors, &spec, &config)?;
        list.push((spec, values));
    }
    let failed = ConvertError::io_at("create", out);
    durable::write_folder(out, failed, |folder| -> Result<()> {
        let tensors = list
            .iter()
            .map(|(spec, values)| (&spec.name[..], &spec.shape[..], &values[..]));
        Ok(AnyModelDir::save(folder, &config, tensors)?)
    })?;
    Ok(Imported {
        source_format: "Hugging Face (ViT)".to_owned(),
        languages: None,
        targets: Vec::new(),
        warnings,
    })
}

fn architecture(
    folder: &Path,
    config: &Config<'_>,
    tensors: &Tensors,
    warnings: &mut Vec<String>,
) -> Result<VitConfig> {
    let refuse =
        |found: String, known: &str| Err(refused(config.path, "the configuration", found, known));
    let activation = match config.text("hidden_act").unwrap_or("gelu") {
        "relu" => Activation::Relu,
        "silu" | "swish" => Activation::Swish,
        "gelu" => Activation::Gelu,
        "gelu_new" | "gelu_pytorch_tanh" => Activation::GeluTanh,
        "quick_gelu" => Activation::GeluSigmoid,
        other => {
            let known = "relu, silu, gelu, gelu_new, gelu_pytorch_tanh and quick_gelu are known";
            return refuse(format!("`hidden_act` {other:?}"), known);
        }
    };
    let Some(bias) = tensors.get("classifier.bias") else {
        return refuse(
            "a ViT without a classifier".to_owned(),
            "ViTForImageClassification is known",
        );
    };
    let name = |id: usize| {
        let known = config
            .get("id2label")
            .and_then(|names| names.get(id.to_string()));
        let known = known.and_then(Value::as_str).map(str::to_owned);
        known.unwrap_or_else(|| format!("LABEL_{id}"))
    };
    let labels = (0..bias.len()).map(name).collect();
    let number = |key: &str, default: f64| {
        let value = config.get(key).and_then(Value::as_f64);
        value.unwrap_or(default)
    };
    let channels = config.size("num_channels")?;
    let prepared = Preprocessor::read(folder, channels, warnings)?;
    Ok(VitConfig {
        image_size: config.size("image_size")?,
        channels,
        patch_size: config.size("patch_size")?,
        d_model: config.size("hidden_size")?,
        d_ff: config.size("intermediate_size")?,
        heads: config.size("num_attention_heads")?,
        layers: config.size("num_hidden_layers")?,
        dropout: number("hidden_dropout_prob", 0.0),
        activation,
        norm_epsilon: number("layer_norm_eps", 1e-12),
        mean: prepared.mean,
        deviation: prepared.deviation,
        resize: prepared.resize,
        labels,
    })
}

/// What becomes of an image before the model sees it.
struct Preprocessor {
    mean: Vec<f64>,
    deviation: Vec<f64>,
    resize: Resize,
}

impl Preprocessor {
    fn read(folder: &Path, channels: usize, warnings: &mut Vec<String>) -> Result<Self> {
        let path = folder.join("preprocessor_config.json");
        if !path.is_file() {
            warnings.push(
                "there is no preprocessor_config.json: images are scaled to the model's size, and their values to -1 \
                 to 1, which is transformers' default"
                    .to_owned(),
            );
            return Ok(Self {
                mean: vec![0.5; channels],
                deviation: vec![0.5; channels],
                resize: Resize::Bilinear,
            });
        }
        let settings = json(&path)?;
        let flag = |key: &str| settings.get(key).and_then(Value::as_bool).unwrap_or(true);
        let numbers = |key: &str, without: f64| -> Vec<f64> {
            let given = settings.get(key).filter(|_| flag("do_normalize"));
            match given {
                Some(Value::Array(list)) => list.iter().filter_map(Value::as_f64).collect(),
                Some(Value::Number(one)) => vec![one.as_f64().unwrap_or(without); channels],
                _ if flag("do_normalize") => vec![0.5; channels],
                _ => vec![without; channels],
            }
        };
        // Our values are between 0 and 1.
        let factor = settings.get("rescale_factor").and_then(Value::as_f64);
        let factor = factor.unwrap_or(1.0 / 255.0);
        if !flag("do_rescale") || (factor * 255.0 - 1.0).abs() > 1e-6 {
            let found = format!(
                "`do_rescale` {}, `rescale_factor` {factor}",
                flag("do_rescale")
            );
            return Err(refused(
                &path,
                "the preprocessor",
                found,
                "a factor of 1/255 is known",
            ));
        }
        let filter = settings.get("resample").and_then(Value::as_u64);
        if flag("do_resize") && filter.is_some_and(|filter| filter != 2) {
            warnings.push(format!(
                "images are scaled with a linear filter, and not with the filter {} of the original",
                filter.unwrap_or_default()
            ));
        }
        Ok(Self {
            mean: numbers("image_mean", 0.0),
            deviation: numbers("image_std", 1.0),
            resize: if flag("do_resize") {
                Resize::Bilinear
            } else {
                Resize::Never
            },
        })
    }
}

/// The values of one of our tensors.
fn values(tensors: &Tensors, spec: &TensorSpec, config: &VitConfig) -> Result<Vec<f32>> {
    let [published, later] = names(&spec.name);
    let name = if tensors.get(&later).is_some() {
        later
    } else {
        published
    };
    let d = config.d_model;
    match (spec.name.as_str(), spec.role) {
        ("patches.weight", _) => {
            let (channels, patch) = (config.channels, config.patch_size);
            let shape = [d, channels, patch, patch];
            Ok(transposed(&tensors.require(&name, &shape)?.to_f32(), d))
        }
        ("class_token" | "positions.weight", _) => {
            let shape = [1, spec.shape[0], d];
            Ok(tensors.require(&name, &shape)?.to_f32())
        }
        (_, Role::Linear) => {
            let shape = [spec.shape[1], spec.shape[0]];
            let matrix = tensors.require(&name, &shape)?.to_f32();
            Ok(transposed(&matrix, shape[0]))
        }
        // Without `qkv_bias`.
        (own, Role::Bias) if own.contains(".self_attention.") && tensors.get(&name).is_none() => {
            Ok(vec![0.0; spec.len()])
        }
        _ => Ok(tensors.require(&name, &spec.shape)?.to_f32()),
    }
}

/// Hugging Face's name of one of our tensors: in published checkpoints, and in later ones.
fn names(ours: &str) -> [String; 2] {
    const PARTS: [(&str, [&str; 2]); 9] = [
        (
            "self_attention.query.",
            ["attention.attention.query.", "attention.q_proj."],
        ),
        (
            "self_attention.key.",
            ["attention.attention.key.", "attention.k_proj."],
        ),
        (
            "self_attention.value.",
            ["attention.attention.value.", "attention.v_proj."],
        ),
        (
            "self_attention.output.",
            ["attention.output.dense.", "attention.o_proj."],
        ),
        ("self_attention_norm.", ["layernorm_before."; 2]),
        ("feed_forward.inner.", ["intermediate.dense.", "mlp.fc1."]),
        ("feed_forward.outer.", ["output.dense.", "mlp.fc2."]),
        ("feed_forward_norm.", ["layernorm_after."; 2]),
        ("final_norm.", ["layernorm."; 2]),
    ];
    let alone = |name: &str| [name.to_owned(), name.to_owned()];
    if ours.starts_with("classifier.") {
        return alone(ours);
    }
    if let Some(leaf) = ours.strip_prefix("patches.") {
        return alone(&format!(
            "vit.embeddings.patch_embeddings.projection.{leaf}"
        ));
    }
    match ours {
        "class_token" => return alone("vit.embeddings.cls_token"),
        "positions.weight" => return alone("vit.embeddings.position_embeddings"),
        _ => {}
    }
    let part = PARTS.into_iter().find(|(own, _)| ours.contains(own));
    let (own, theirs) = part.unwrap_or(("", [""; 2]));
    let [published, later] = theirs.map(|theirs| format!("vit.{}", ours.replacen(own, theirs, 1)));
    [
        published.replacen("vit.layers.", "vit.encoder.layer.", 1),
        later,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_hugging_face_of_any_version() {
        for (ours, published, later) in [
            (
                "layers.3.self_attention.query.weight",
                "vit.encoder.layer.3.attention.attention.query.weight",
                "vit.layers.3.attention.q_proj.weight",
            ),
            (
                "layers.0.self_attention.output.bias",
                "vit.encoder.layer.0.attention.output.dense.bias",
                "vit.layers.0.attention.o_proj.bias",
            ),
            (
                "layers.0.feed_forward.outer.weight",
                "vit.encoder.layer.0.output.dense.weight",
                "vit.layers.0.mlp.fc2.weight",
            ),
            (
                "layers.0.feed_forward_norm.weight",
                "vit.encoder.layer.0.layernorm_after.weight",
                "vit.layers.0.layernorm_after.weight",
            ),
            (
                "final_norm.bias",
                "vit.layernorm.bias",
                "vit.layernorm.bias",
            ),
            (
                "classifier.weight",
                "classifier.weight",
                "classifier.weight",
            ),
            (
                "patches.weight",
                "vit.embeddings.patch_embeddings.projection.weight",
                "vit.embeddings.patch_embeddings.projection.weight",
            ),
        ] {
            assert_eq!(names(ours), [published, later]);
        }
    }
}
