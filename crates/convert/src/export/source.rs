//! The model that is exported, in the layouts that other programs have.
//!
//! Our matrices are `[in, out]`, one key head may serve several queries, and int8 weights are packed for the
//! kernels. Others have `[out, in]`, as many key heads as query heads, and rows. Next: one of the formats.

use attentive_model::config::{
    Autoregression, ModelConfig, PositionKind, TransformerConfig, Tying,
};
use attentive_model::directory::ModelDir;
use attentive_model::generation::Generation;
use attentive_model::weights::Weights;

use super::ExportFormat;
use crate::error::{ConvertError, Result};
use crate::import::exported::Exported;
use crate::transpose::transposed;

/// A model directory, open for exporting.
pub(super) struct Source<'a> {
    pub model: &'a ModelDir,
    pub config: &'a TransformerConfig,
    weights: Weights,
    format: ExportFormat,
}

/// A linear layer as other programs have it: `[outputs, inputs]`, with a key head for every query head.
pub(super) struct Linear {
    pub inputs: usize,
    pub weight: Matrix,
    pub bias: Vec<f32>,
}

/// The numbers of a matrix, row by row.
pub(super) enum Matrix {
    Real(Vec<f32>),
    /// 8-bit numbers, each worth the scale of its row.
    Int8 {
        values: Vec<i8>,
        scales: Vec<f32>,
    },
}

impl Matrix {
    /// The numbers in f32.
    pub fn real(self) -> Vec<f32> {
        match self {
            Self::Real(values) => values,
            Self::Int8 { values, scales } => {
                let width = values.len() / scales.len();
                let rows = values.chunks_exact(width).zip(&scales);
                rows.flat_map(|(row, scale)| row.iter().map(move |&value| f32::from(value) * scale))
                    .collect()
            }
        }
    }
}

impl<'a> Source<'a> {
    pub fn new(model: &'a ModelDir, format: ExportFormat) -> Result<Self> {
        Ok(Self {
            model,
            config: &model.config,
            weights: model.weights()?,
            format,
        })
    }

    /// An error that says what the format cannot express.
    pub fn cannot(&self, what: impl Into<String>) -> ConvertError {
        ConvertError::CannotExpress {
            model: self.model.path.clone(),
            format: self.format.name(),
            what: what.into(),
        }
    }

    /// Refuses what the format cannot express.
    pub fn require(&self, holds: bool, what: &str) -> Result<()> {
        if holds {
            Ok(())
        } else {
            Err(self.cannot(what))
        }
    }

    /// A linear layer of the stacks.
    pub fn linear(&self, name: &str) -> Result<Linear> {
        let shape = self.shape(&format!("{name}.weight"));
        let inputs = shape[0];
        let mut weight = self.matrix(&format!("{name}.weight"), shape[1], inputs)?;
        let mut bias = self.tensor(&format!("{name}.bias"))?;
        if name.ends_with(".key") || name.ends_with(".value") {
            weight = match weight {
                Matrix::Real(values) => Matrix::Real(self.every_head(values, inputs)),
                Matrix::Int8 { values, scales } => Matrix::Int8 {
                    values: self.every_head(values, inputs),
                    scales: self.every_head(scales, 1),
                },
            };
            bias = self.every_head(bias, 1);
        }
        Ok(Linear {
            inputs,
            weight,
            bias,
        })
    }

    /// The rows of keys or values, each of `width` numbers, with as many heads as the queries have: those of a group
    /// are the same.
    fn every_head<T: Copy>(&self, values: Vec<T>, width: usize) -> Vec<T> {
        let head = self.config.head_dim() * width;
        let times = self.config.heads / self.config.kv_heads;
        let heads = values.chunks_exact(head);
        let repeated = heads.flat_map(|head| std::iter::repeat_n(head, times));
        repeated.flatten().copied().collect()
    }

    /// A table of tokens, `[vocab, d_model]`.
    pub fn table(&self, name: &str) -> Result<Matrix> {
        let shape = self.shape(name);
        match self.packed(name, shape[0], shape[1])? {
            Some(matrix) => Ok(matrix),
            None => Ok(Matrix::Real(self.tensor(name)?)),
        }
    }

    /// A matrix that we have as `[in, out]`, as `[out, in]`.
    pub fn matrix(&self, name: &str, outputs: usize, inputs: usize) -> Result<Matrix> {
        match self.packed(name, outputs, inputs)? {
            Some(matrix) => Ok(matrix),
            None => Ok(Matrix::Real(transposed(&self.tensor(name)?, inputs))),
        }
    }

    /// The matrix if it is one of 8 bits, packed as the kernels read it.
    fn packed(&self, name: &str, rows: usize, columns: usize) -> Result<Option<Matrix>> {
        let matrix = self.weights.int8_matrix(name, rows, columns)?;
        Ok(matrix.map(|(values, scales)| Matrix::Int8 { values, scales }))
    }

    /// Values of a tensor that is f32 in every model: norms, biases, positions.
    pub fn tensor(&self, name: &str) -> Result<Vec<f32>> {
        Ok(self.weights.tensor(name)?.1)
    }

    fn shape(&self, name: &str) -> Vec<usize> {
        let tensors = self.config.tensors();
        let found = tensors.into_iter().find(|tensor| tensor.name == name);
        found.expect("a name of the schema").shape
    }

    /// The output projection, `[vocab, d_model]`, where it is not the table of target tokens.
    pub fn untied_projection(&self) -> Result<Option<Matrix>> {
        let (vocab, width) = (self.config.tgt_vocab, self.config.d_model);
        (self.config.tying == Tying::None)
            .then(|| self.matrix("embeddings.projection", vocab, width))
            .transpose()
    }

    /// The name of the table of source tokens.
    pub fn source_table(&self) -> &'static str {
        if self.config.tying == Tying::All {
            TARGET_TABLE
        } else {
            "embeddings.source.weight"
        }
    }

    /// What is added at the positions from 0 on, `[rows, d_model]`; `side` is `source` or `target`.
    pub fn positions(&self, side: &str, rows: usize) -> Result<Vec<f32>> {
        let config = self.config;
        if config.positions == PositionKind::Learned {
            return self.tensor(&format!("embeddings.{side}_positions.weight"));
        }
        let places = config.position_offset..config.position_offset + rows;
        Ok(places
            .flat_map(|place| config.positions.sinusoid(place, config.d_model))
            .collect())
    }

    /// How many positions a table for other programs has.
    pub fn position_rows(&self) -> usize {
        self.config.max_positions
    }

    /// What importing needs to give this model back as it is, for the key `attentive` of a `config.json`. Key heads
    /// that serve several queries have been repeated.
    pub fn exported(&self) -> Exported {
        Exported {
            config: TransformerConfig {
                kv_heads: self.config.heads,
                ..self.config.clone()
            },
            generation: Generation {
                shortlist: None,
                ..self.model.generation.clone()
            },
        }
    }

    /// Refuses tokens around sources and before targets, which other programs' tokenizers do not add.
    pub fn require_plain_text(&self) -> Result<()> {
        let generation = &self.model.generation;
        let plain = generation.source_prefix.is_empty()
            && generation.source_end
            && generation.target_prefix.is_empty();
        self.require(
            plain,
            "tokens around a source or before a target (generation.json)",
        )
    }

    /// Refuses SSRU decoders.
    pub fn require_self_attention(&self) -> Result<()> {
        let holds = self.config.autoregression == Autoregression::SelfAttention;
        self.require(holds, "an SSRU decoder")
    }
}

/// The name of the table of target tokens.
pub(super) const TARGET_TABLE: &str = "embeddings.target.weight";
