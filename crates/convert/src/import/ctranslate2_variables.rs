//! The variables of a CTranslate2 model, and what of our model each of them is.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

use attentive_model::config::{EmbeddingNorm, PositionKind, TransformerConfig};

use super::parts::{Matrix, Parts};
use super::refused;
use crate::error::{ConvertError, Result};
use crate::files::ctranslate2::Ctranslate2File;
use crate::files::{Dtype, Tensor};

/// The variables of a model, and which of them were used.
pub(super) struct Variables<'a> {
    pub file: &'a Ctranslate2File,
    pub path: &'a Path,
    pub used: RefCell<BTreeSet<String>>,
}

impl Variables<'_> {
    fn get(&self, name: &str) -> Option<&Tensor> {
        let found = self.file.get(name);
        if found.is_some() {
            self.used.borrow_mut().insert(name.to_owned());
        }
        found
    }

    pub fn has(&self, name: &str) -> bool {
        self.file.get(name).is_some()
    }

    /// A number, wherever revisions of the format have it: at the top, in the encoder, in the decoder.
    pub fn number(&self, name: &str) -> Option<f32> {
        let places = ["encoder/", "decoder/", ""].map(|place| format!("{place}{name}"));
        let found = places.map(|place| {
            self.get(&place)
                .and_then(|value| value.to_f32().first().copied())
        });
        found.into_iter().flatten().next()
    }

    /// A text, which is an array of characters.
    pub fn text(&self, name: &str) -> Option<String> {
        let bytes = self.get(name)?.bytes();
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    pub fn rows(&self, name: &str) -> usize {
        let tensor = self.file.get(name);
        tensor
            .and_then(|tensor| tensor.shape.first().copied())
            .unwrap_or(0)
    }

    pub fn layers(&self, stack: &str) -> usize {
        (0..)
            .take_while(|layer| self.has(&format!("{stack}/layer_{layer}/ffn/linear_0/weight")))
            .count()
    }

    /// The number of heads; the oldest models say it by their kind only.
    pub fn heads(&self) -> Result<usize> {
        if let Some(heads) = self.number("num_heads") {
            return Ok(heads as usize);
        }
        match self.file.spec.as_str() {
            "" | "TransformerBase" => Ok(8), // Version 1 of the format does not name the kind.
            "TransformerBig" => Ok(16),
            other => Err(refused(
                self.path,
                "the variables",
                format!("no `num_heads` in {other:?}"),
                "it is needed",
            )),
        }
    }

    /// A flag (1 or missing is `sqrt(d_model)`), or a number.
    pub fn embedding_scale(&self, d_model: usize) -> Option<f64> {
        let integer = ["encoder/", "decoder/", ""].iter().any(|place| {
            let tensor = self.file.get(&format!("{place}scale_embeddings"));
            tensor.is_some_and(|tensor| tensor.dtype == Dtype::I8)
        });
        match (self.number("scale_embeddings"), integer) {
            (None, _) | (Some(1.0), true) => None,
            (Some(_), true) => Some(1.0),
            (Some(scale), false) if (scale - (d_model as f32).sqrt()).abs() < 1e-4 => None,
            (Some(scale), false) => Some(f64::from(scale)),
        }
    }

    /// A table of positions where the file has one; otherwise they are computed, from 1.
    pub fn positions(
        &self,
        mut config: TransformerConfig,
        parts: &mut Parts,
    ) -> Result<TransformerConfig> {
        let d = config.d_model;
        for (side, ours) in [("encoder", "source"), ("decoder", "target")] {
            let name = format!("{side}/position_encodings/encodings");
            if let Some(table) = self.get(&name) {
                let rows = table.shape.first().copied().unwrap_or(0);
                let table = self
                    .file
                    .tensors
                    .require(self.target(&name), &[rows, d])?
                    .to_f32();
                config.positions = PositionKind::Learned;
                (config.position_offset, config.max_positions) = (0, rows);
                parts.vector(format!("embeddings.{ours}_positions.weight"), table);
            }
        }
        Ok(config)
    }

    /// The name behind an alias.
    fn target<'n>(&'n self, name: &'n str) -> &'n str {
        self.file.aliases.get(name).map_or(name, String::as_str)
    }

    pub fn stacks(&self, config: &TransformerConfig, parts: &mut Parts) -> Result<()> {
        let (d, d_ff) = (config.d_model, config.d_ff);
        for (stack, layers) in [
            ("encoder", config.encoder_layers),
            ("decoder", config.decoder_layers),
        ] {
            for layer in 0..layers {
                let (ours, theirs) = (
                    format!("{stack}.layers.{layer}"),
                    format!("{stack}/layer_{layer}"),
                );
                let (attention, self_attention) = (
                    format!("{ours}.self_attention"),
                    format!("{theirs}/self_attention"),
                );
                self.linear(
                    parts,
                    &attention,
                    &["query", "key", "value"],
                    &format!("{self_attention}/linear_0"),
                    d,
                    d,
                )?;
                self.linear(
                    parts,
                    &attention,
                    &["output"],
                    &format!("{self_attention}/linear_1"),
                    d,
                    d,
                )?;
                self.norm(
                    parts,
                    &format!("{attention}_norm"),
                    &format!("{self_attention}/layer_norm"),
                    d,
                )?;
                if stack == "decoder" {
                    let (ours, theirs) = (
                        format!("{ours}.cross_attention"),
                        format!("{theirs}/attention"),
                    );
                    self.linear(
                        parts,
                        &ours,
                        &["query"],
                        &format!("{theirs}/linear_0"),
                        d,
                        d,
                    )?;
                    self.linear(
                        parts,
                        &ours,
                        &["key", "value"],
                        &format!("{theirs}/linear_1"),
                        d,
                        d,
                    )?;
                    self.linear(
                        parts,
                        &ours,
                        &["output"],
                        &format!("{theirs}/linear_2"),
                        d,
                        d,
                    )?;
                    self.norm(
                        parts,
                        &format!("{ours}_norm"),
                        &format!("{theirs}/layer_norm"),
                        d,
                    )?;
                }
                let (ours, theirs) = (format!("{ours}.feed_forward"), format!("{theirs}/ffn"));
                self.linear(
                    parts,
                    &ours,
                    &["inner"],
                    &format!("{theirs}/linear_0"),
                    d,
                    d_ff,
                )?;
                self.linear(
                    parts,
                    &ours,
                    &["outer"],
                    &format!("{theirs}/linear_1"),
                    d_ff,
                    d,
                )?;
                self.norm(
                    parts,
                    &format!("{ours}_norm"),
                    &format!("{theirs}/layer_norm"),
                    d,
                )?;
            }
            if config.has_final_norm() {
                self.norm(
                    parts,
                    &format!("{stack}.final_norm"),
                    &format!("{stack}/layer_norm"),
                    d,
                )?;
            }
            if config.embedding_norm == EmbeddingNorm::LayerNorm {
                self.norm(
                    parts,
                    &format!("{stack}.embedding_norm"),
                    &format!("{stack}/layernorm_embedding"),
                    d,
                )?;
            }
        }
        Ok(())
    }

    /// A linear layer, or several that are one matrix.
    fn linear(
        &self,
        parts: &mut Parts,
        ours: &str,
        names: &[&str],
        theirs: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<()> {
        let rows = names.len() * outputs;
        let matrix = self.matrix(theirs, [rows, inputs])?;
        let bias = self
            .vector(&format!("{theirs}/bias"), rows)?
            .unwrap_or_else(|| vec![0.0; rows]);
        for (number, name) in names.iter().enumerate() {
            let rows = number * outputs..(number + 1) * outputs;
            parts.matrix(format!("{ours}.{name}.weight"), matrix.part(rows.clone()));
            parts.vector(format!("{ours}.{name}.bias"), bias[rows].to_vec());
        }
        Ok(())
    }

    fn norm(&self, parts: &mut Parts, ours: &str, theirs: &str, width: usize) -> Result<()> {
        for (name, kind) in [("weight", "gamma"), ("bias", "beta")] {
            let name_there = format!("{theirs}/{kind}");
            let values = self
                .vector(&name_there, width)?
                .ok_or_else(|| self.missing(&name_there))?;
            parts.vector(format!("{ours}.{name}"), values);
        }
        Ok(())
    }

    fn missing(&self, name: &str) -> ConvertError {
        ConvertError::MissingTensor {
            path: self.path.to_path_buf(),
            name: name.to_owned(),
            count: self.file.tensors.len(),
        }
    }

    pub fn vector(&self, name: &str, width: usize) -> Result<Option<Vec<f32>>> {
        if self.get(name).is_none() {
            return Ok(None);
        }
        let tensor = self.file.tensors.require(self.target(name), &[width])?;
        Ok(Some(tensor.to_f32()))
    }

    /// A table of tokens, under one of these names.
    pub fn table(&self, names: &[&str]) -> Result<Matrix> {
        let name = names
            .iter()
            .find(|name| self.has(&format!("{name}/weight")))
            .unwrap_or(&names[0]);
        let shape = self
            .file
            .get(&format!("{name}/weight"))
            .map(|tensor| tensor.shape.clone());
        let shape: [usize; 2] = shape
            .and_then(|shape| shape.try_into().ok())
            .unwrap_or([0, 0]);
        self.matrix(name, shape)
    }

    /// A matrix of any number format.
    fn matrix(&self, name: &str, [rows, columns]: [usize; 2]) -> Result<Matrix> {
        let name = format!("{name}/weight");
        self.get(&name).ok_or_else(|| self.missing(&name))?;
        let tensor = self
            .file
            .tensors
            .require(self.target(&name), &[rows, columns])?;
        if !matches!(tensor.dtype, Dtype::I8 | Dtype::I16) {
            return Ok(Matrix::new(tensor, [rows, columns]));
        }
        let name = format!("{}_scale", self.target(&name));
        let scales = self.get(&name).ok_or_else(|| self.missing(&name))?.to_f32();
        let scales: Vec<f32> = scales.iter().map(|scale| 1.0 / scale).collect();
        let wrong = || {
            let expected = format!("one scale or {rows}");
            ConvertError::Damaged {
                path: self.path.to_path_buf(),
                format: "CTranslate2 model",
                place: format!("variable `{name}`"),
                expected,
                found: scales.len().to_string(),
            }
        };
        let scales = match scales.len() {
            1 => vec![scales[0]; rows],
            count if count == rows => scales.clone(),
            _ => return Err(wrong()),
        };
        if tensor.dtype == Dtype::I8 {
            return Ok(Matrix::of_int8(tensor, [rows, columns], scales));
        }
        let mut values = tensor.to_f32();
        for (row, scale) in values.chunks_exact_mut(columns.max(1)).zip(scales) {
            row.iter_mut().for_each(|value| *value *= scale);
        }
        Ok(Matrix::of_floats(rows, columns, values))
    }

    /// Refuses variables that nothing was made of.
    pub fn all_are_used(&self) -> Result<()> {
        const HARMLESS: [&str; 7] = [
            "alignment_layer",
            "alignment_heads",
            "embeddings_merge",
            "num_source_embeddings",
            "with_target_bos",
            "unk_token",
            "user_decoder_start_tokens",
        ];
        let used = self.used.borrow();
        let used: BTreeSet<&str> = used.iter().map(|name| self.target(name)).collect();
        for (name, tensor) in self.file.tensors.iter() {
            let leaf = name.rsplit('/').next().unwrap_or(name);
            let is = |number: f32| tensor.len() == 1 && tensor.to_f32() == [number];
            // Outputs times one are the outputs.
            let off = is(0.0) || leaf == "scale_outputs" && is(1.0);
            if !used.contains(name) && !off && !HARMLESS.contains(&leaf) {
                let found = format!("the variable `{name}`");
                return Err(refused(
                    self.path,
                    "the model",
                    found,
                    "this program's models have no such part",
                ));
            }
        }
        Ok(())
    }
}
