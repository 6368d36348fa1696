//! The weights of a model directory as the layers that [`super::encoder`] and [`super::decoder`] run.
//!
//! f32 is packed; int8 is used where the file is mapped, or made from f32. Every tensor's shape is checked
//! against the schema ([`attentive_model::tensors`]).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use attentive_model::ModelError;
use attentive_model::config::{ModelConfig, NormPlacement, PositionKind, TransformerConfig, Tying};
use attentive_model::tensors::{Role, TensorSpec};
use attentive_model::weights::Weights;

use super::Compute;
use super::matrix::{Bytes, Matrix, Plain, packed_len, padded, quantize};
use super::rowwise::Norm;
use super::simd::{Isa, LANES};
use crate::error::{Result, RuntimeError};

/// All layers of a Transformer.
#[derive(Debug)]
pub(crate) struct Network {
    pub source: Table,
    pub target: Table,
    pub source_positions: Option<Table>,
    pub target_positions: Option<Table>,
    pub projection: Arc<Matrix>,
    pub encoder: Vec<EncoderLayer>,
    pub decoder: Vec<DecoderLayer>,
    pub encoder_norm: Option<Norm>,
    pub decoder_norm: Option<Norm>,
}

#[derive(Debug)]
pub(crate) struct EncoderLayer {
    pub attention: Attention,
    pub attention_norm: Norm,
    pub feed_forward: FeedForward,
    pub feed_forward_norm: Norm,
}

#[derive(Debug)]
pub(crate) struct DecoderLayer {
    pub self_attention: Attention,
    pub self_attention_norm: Norm,
    pub cross_attention: Attention,
    pub cross_attention_norm: Norm,
    pub feed_forward: FeedForward,
    pub feed_forward_norm: Norm,
}

#[derive(Debug)]
pub(crate) struct Attention {
    pub query: Matrix,
    pub key: Matrix,
    pub value: Matrix,
    pub output: Matrix,
}

#[derive(Debug)]
pub(crate) struct FeedForward {
    pub inner: Matrix,
    pub outer: Matrix,
}

/// Vectors by number: of tokens or of positions.
#[derive(Debug, Clone)]
pub(crate) enum Table {
    /// Rows of little-endian f32 in the mapped file.
    F32(Arc<Weights>, Range<usize>),
    /// The outputs of an int8 matrix.
    Int8(Arc<Matrix>),
}

impl Table {
    /// Adds row `index`, times `factor`, to `out`.
    pub fn add_row(&self, index: usize, factor: f32, out: &mut [f32]) {
        match self {
            Self::F32(weights, place) => {
                let rows = weights.bytes(place.clone()).as_chunks().0;
                let row = &rows[index * out.len()..][..out.len()];
                for (out, value) in out.iter_mut().zip(row) {
                    *out += f32::from_le_bytes(*value) * factor;
                }
            }
            Self::Int8(matrix) => matrix.add_output(index, factor, out),
        }
    }

    /// The last row's number; for positions, which repeat it beyond.
    pub fn last_row(&self, width: usize) -> usize {
        match self {
            Self::F32(_, place) => place.len() / (4 * width) - 1,
            Self::Int8(matrix) => matrix.outputs() - 1,
        }
    }
}

/// Reads all layers; `compute` must have been decided ([`Compute::Auto`] means f32 here).
pub(crate) fn network(
    config: &TransformerConfig,
    weights: Weights,
    compute: Compute,
    isa: Isa,
) -> Result<Network> {
    let tensors = config.tensors().into_iter();
    let reader = Reader {
        tensors: tensors.map(|spec| (spec.name.clone(), spec)).collect(),
        norm_epsilon: config.norm_epsilon as f32,
        stored_int8: weights.is_int8(),
        weights: Arc::new(weights),
        compute,
        isa,
    };
    let bias = reader.vector("embeddings.projection_bias")?;
    let target_name = "embeddings.target.weight";
    let (projection, target) = match config.tying {
        Tying::None => {
            let projection = reader.matrix("embeddings.projection", &bias)?;
            (Arc::new(projection), reader.table(target_name)?)
        }
        Tying::Output | Tying::All => {
            let projection = Arc::new(reader.matrix(target_name, &bias)?);
            let table = match compute {
                Compute::Int8 => Table::Int8(projection.clone()),
                Compute::F32 | Compute::Auto => reader.table(target_name)?,
            };
            (projection, table)
        }
    };
    let source = match config.tying {
        Tying::All => target.clone(),
        Tying::None | Tying::Output => reader.table("embeddings.source.weight")?,
    };
    let positions = |side: &str| match config.positions {
        PositionKind::Sinusoidal => Ok(None),
        PositionKind::Learned => {
            let name = format!("embeddings.{side}_positions.weight");
            reader.table_f32(&name).map(Some)
        }
    };
    let final_norm = |side: &str| match config.norm {
        NormPlacement::Pre => reader.norm(&format!("{side}.final_norm")).map(Some),
        NormPlacement::Post => Ok(None),
    };
    let network = Network {
        source,
        target,
        source_positions: positions("source")?,
        target_positions: positions("target")?,
        projection,
        encoder: (0..config.encoder_layers)
            .map(|layer| reader.encoder_layer(layer))
            .collect::<Result<_>>()?,
        decoder: (0..config.decoder_layers)
            .map(|layer| reader.decoder_layer(layer))
            .collect::<Result<_>>()?,
        encoder_norm: final_norm("encoder")?,
        decoder_norm: final_norm("decoder")?,
    };
    if !reader.stored_int8 {
        // Everything was packed; of the file only rows of tables are needed again.
        reader.weights.release();
    }
    Ok(network)
}

struct Reader {
    /// The schema of the model, by name.
    tensors: HashMap<String, TensorSpec>,
    norm_epsilon: f32,
    weights: Arc<Weights>,
    stored_int8: bool,
    compute: Compute,
    isa: Isa,
}

impl Reader {
    fn encoder_layer(&self, layer: usize) -> Result<EncoderLayer> {
        let name = |part: &str| format!("encoder.layers.{layer}.{part}");
        Ok(EncoderLayer {
            attention: self.attention(&name("self_attention"))?,
            attention_norm: self.norm(&name("self_attention_norm"))?,
            feed_forward: self.feed_forward(&name("feed_forward"))?,
            feed_forward_norm: self.norm(&name("feed_forward_norm"))?,
        })
    }

    fn decoder_layer(&self, layer: usize) -> Result<DecoderLayer> {
        let name = |part: &str| format!("decoder.layers.{layer}.{part}");
        Ok(DecoderLayer {
            self_attention: self.attention(&name("self_attention"))?,
            self_attention_norm: self.norm(&name("self_attention_norm"))?,
            cross_attention: self.attention(&name("cross_attention"))?,
            cross_attention_norm: self.norm(&name("cross_attention_norm"))?,
            feed_forward: self.feed_forward(&name("feed_forward"))?,
            feed_forward_norm: self.norm(&name("feed_forward_norm"))?,
        })
    }

    fn attention(&self, name: &str) -> Result<Attention> {
        Ok(Attention {
            query: self.linear(&format!("{name}.query"))?,
            key: self.linear(&format!("{name}.key"))?,
            value: self.linear(&format!("{name}.value"))?,
            output: self.linear(&format!("{name}.output"))?,
        })
    }

    fn feed_forward(&self, name: &str) -> Result<FeedForward> {
        Ok(FeedForward {
            inner: self.linear(&format!("{name}.inner"))?,
            outer: self.linear(&format!("{name}.outer"))?,
        })
    }

    fn norm(&self, name: &str) -> Result<Norm> {
        let weight = self.vector(&format!("{name}.weight"))?;
        let width = weight.len();
        Ok(Norm {
            weight: padded(&weight),
            bias: padded(&self.vector(&format!("{name}.bias"))?),
            keep: padded(&vec![1.0; width]),
            width,
            epsilon: self.norm_epsilon,
        })
    }

    fn linear(&self, name: &str) -> Result<Matrix> {
        let bias = self.vector(&format!("{name}.bias"))?;
        self.matrix(&format!("{name}.weight"), &bias)
    }

    fn matrix(&self, name: &str, bias: &[f32]) -> Result<Matrix> {
        let spec = self.spec(name)?;
        let Some(layout) = MatrixLayout::of(spec) else {
            return Err(self.damaged(format!("tensor `{name}` is not a matrix")));
        };
        let MatrixLayout { k, n, .. } = layout;
        if self.stored_int8 {
            let place = self.weights.i8_place(name, &packed_shape(k, n))?;
            debug_assert_eq!(place.len(), packed_len(k, n));
            let scale = self.weights.f32_place(&scale_name(name), &[n])?;
            let panels = Bytes::Mapped(self.weights.clone(), place);
            if panels.get().contains(&i8::MIN) {
                let reason = format!("tensor `{name}` holds -128, which is never written");
                return Err(self.damaged(reason));
            }
            return Ok(Matrix::int8(
                k,
                n,
                panels,
                &self.floats(scale),
                bias,
                self.isa,
            ));
        }
        let plain = plain(&self.weights, spec, layout)?;
        Ok(match self.compute {
            Compute::F32 | Compute::Auto => Matrix::f32(plain, bias),
            Compute::Int8 => {
                let (panels, scales) = quantize(plain);
                Matrix::int8(k, n, Bytes::Own(panels), &scales, bias, self.isa)
            }
        })
    }

    /// A table of token vectors.
    fn table(&self, name: &str) -> Result<Table> {
        match self.compute {
            Compute::F32 | Compute::Auto => self.table_f32(name),
            Compute::Int8 => {
                let bias = vec![0.0; self.spec(name)?.shape[0]];
                Ok(Table::Int8(Arc::new(self.matrix(name, &bias)?)))
            }
        }
    }

    fn table_f32(&self, name: &str) -> Result<Table> {
        let place = self.weights.f32_place(name, &self.spec(name)?.shape)?;
        Ok(Table::F32(self.weights.clone(), place))
    }

    fn vector(&self, name: &str) -> Result<Vec<f32>> {
        let place = self.weights.f32_place(name, &self.spec(name)?.shape)?;
        Ok(self.floats(place))
    }

    fn floats(&self, place: Range<usize>) -> Vec<f32> {
        let values = self.weights.bytes(place).as_chunks().0.iter();
        values.map(|&value| f32::from_le_bytes(value)).collect()
    }

    /// The tensor's entry in the schema.
    fn spec(&self, name: &str) -> Result<&TensorSpec> {
        let spec = self.tensors.get(name);
        spec.ok_or_else(|| self.damaged(format!("the model has no tensor `{name}`")))
    }

    fn damaged(&self, reason: String) -> RuntimeError {
        let path = self.weights.path().to_path_buf();
        ModelError::DamagedWeights { path, reason }.into()
    }
}

/// How a tensor of the schema serves as a matrix with `k` inputs and `n` outputs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MatrixLayout {
    pub k: usize,
    pub n: usize,
    /// Stored as `[n, k]` instead of `[k, n]`.
    pub transposed: bool,
}

impl MatrixLayout {
    /// Nothing for vectors and for positions, which are only added.
    pub fn of(spec: &TensorSpec) -> Option<Self> {
        let transposed = match spec.role {
            Role::Linear | Role::Projection => false,
            Role::Embedding => true,
            Role::Positions | Role::Norm | Role::Bias => return None,
        };
        let [rows, columns] = spec.shape[..] else {
            return None;
        };
        let (k, n) = if transposed {
            (columns, rows)
        } else {
            (rows, columns)
        };
        Some(Self { k, n, transposed })
    }
}

/// A matrix of an f32 file.
pub(crate) fn plain<'a>(
    weights: &'a Weights,
    spec: &TensorSpec,
    layout: MatrixLayout,
) -> Result<Plain<'a>> {
    let place = weights.f32_place(&spec.name, &spec.shape)?;
    let values = weights.bytes(place).as_chunks().0;
    let MatrixLayout { k, n, transposed } = layout;
    Ok(Plain {
        values,
        k,
        n,
        transposed,
    })
}

/// The shape of a packed int8 matrix in the weights file.
pub(crate) fn packed_shape(k: usize, n: usize) -> [usize; 4] {
    [n.div_ceil(LANES), k.div_ceil(4), LANES, 4]
}

/// The name of the scales of an int8 tensor.
pub(crate) fn scale_name(name: &str) -> String {
    format!("{name}.scale")
}
