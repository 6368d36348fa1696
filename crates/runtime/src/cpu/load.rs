//! The weights of a model directory as the layers that [`super::encoder`] and [`super::decoder`] run.
//!
//! f32 is packed; int8 is used where the file is mapped, or made from f32. Every tensor's shape is checked
//! against the architecture. Neighbours: ARCHITECTURE.md has the table of names and shapes.

use std::ops::Range;
use std::sync::Arc;

use super::Compute;
use super::matrix::{Bytes, Matrix, Plain, packed_len, padded, quantise};
use super::rowwise::Norm;
use super::simd::{Isa, LANES};
use crate::config::{ModelConfig, NormPlacement, PositionKind, Tying};
use crate::error::{Result, RuntimeError};
use crate::weights::Weights;

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
    config: &ModelConfig,
    weights: Weights,
    compute: Compute,
    isa: Isa,
) -> Result<Network> {
    let reader = Reader {
        config,
        stored_int8: weights.is_int8(),
        weights: Arc::new(weights),
        compute,
        isa,
    };
    let (d, src_vocab, tgt_vocab) = (config.d_model, config.src_vocab, config.tgt_vocab);
    let bias = reader.vector("embeddings.projection_bias", tgt_vocab)?;
    let target_name = "embeddings.target.weight";
    let (projection, target) = match config.tying {
        Tying::None => {
            let projection = reader.matrix("embeddings.projection", d, tgt_vocab, false, &bias)?;
            (Arc::new(projection), reader.table(target_name, tgt_vocab)?)
        }
        Tying::Output | Tying::All => {
            let projection = Arc::new(reader.matrix(target_name, d, tgt_vocab, true, &bias)?);
            let table = match compute {
                Compute::Int8 => Table::Int8(projection.clone()),
                Compute::F32 | Compute::Auto => reader.table(target_name, tgt_vocab)?,
            };
            (projection, table)
        }
    };
    let source = match config.tying {
        Tying::All => target.clone(),
        Tying::None | Tying::Output => reader.table("embeddings.source.weight", src_vocab)?,
    };
    let positions = |side: &str| match config.positions {
        PositionKind::Sinusoidal => Ok(None),
        PositionKind::Learned => {
            let name = format!("embeddings.{side}_positions.weight");
            reader.table_f32(&name, config.max_positions).map(Some)
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
        reader.weights.let_go();
    }
    Ok(network)
}

struct Reader<'a> {
    config: &'a ModelConfig,
    weights: Arc<Weights>,
    stored_int8: bool,
    compute: Compute,
    isa: Isa,
}

impl Reader<'_> {
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
        let (d, kv_width) = (
            self.config.d_model,
            self.config.kv_heads * self.config.head_dim(),
        );
        Ok(Attention {
            query: self.linear(&format!("{name}.query"), d, d)?,
            key: self.linear(&format!("{name}.key"), d, kv_width)?,
            value: self.linear(&format!("{name}.value"), d, kv_width)?,
            output: self.linear(&format!("{name}.output"), d, d)?,
        })
    }

    fn feed_forward(&self, name: &str) -> Result<FeedForward> {
        let (d, d_ff) = (self.config.d_model, self.config.d_ff);
        Ok(FeedForward {
            inner: self.linear(&format!("{name}.inner"), d, d_ff)?,
            outer: self.linear(&format!("{name}.outer"), d_ff, d)?,
        })
    }

    fn norm(&self, name: &str) -> Result<Norm> {
        let width = self.config.d_model;
        Ok(Norm {
            weight: padded(&self.vector(&format!("{name}.weight"), width)?),
            bias: padded(&self.vector(&format!("{name}.bias"), width)?),
            keep: padded(&vec![1.0; width]),
            width,
            epsilon: self.config.norm_epsilon as f32,
        })
    }

    fn linear(&self, name: &str, k: usize, n: usize) -> Result<Matrix> {
        let bias = self.vector(&format!("{name}.bias"), n)?;
        self.matrix(&format!("{name}.weight"), k, n, false, &bias)
    }

    fn matrix(
        &self,
        name: &str,
        k: usize,
        n: usize,
        transposed: bool,
        bias: &[f32],
    ) -> Result<Matrix> {
        if self.stored_int8 {
            let shape = [n.div_ceil(LANES), k.div_ceil(4), LANES, 4];
            let place = self.weights.i8_place(name, &shape)?;
            debug_assert_eq!(place.len(), packed_len(k, n));
            let scales = self.vector(&scale_name(name), n)?;
            let panels = Bytes::Mapped(self.weights.clone(), place);
            if panels.get().contains(&i8::MIN) {
                let reason = format!("tensor `{name}` holds -128, which is never written");
                return Err(RuntimeError::DamagedWeights {
                    path: self.weights.path().to_path_buf(),
                    reason,
                });
            }
            return Ok(Matrix::int8(k, n, panels, &scales, bias, self.isa));
        }
        let plain = plain(&self.weights, name, k, n, transposed)?;
        Ok(match self.compute {
            Compute::F32 | Compute::Auto => Matrix::f32(plain, bias),
            Compute::Int8 => {
                let (panels, scales) = quantise(plain);
                Matrix::int8(k, n, Bytes::Own(panels), &scales, bias, self.isa)
            }
        })
    }

    /// A table of token vectors.
    fn table(&self, name: &str, rows: usize) -> Result<Table> {
        match self.compute {
            Compute::F32 | Compute::Auto => self.table_f32(name, rows),
            Compute::Int8 => {
                let bias = vec![0.0; rows];
                let matrix = self.matrix(name, self.config.d_model, rows, true, &bias)?;
                Ok(Table::Int8(Arc::new(matrix)))
            }
        }
    }

    fn table_f32(&self, name: &str, rows: usize) -> Result<Table> {
        let place = self.weights.f32_place(name, &[rows, self.config.d_model])?;
        Ok(Table::F32(self.weights.clone(), place))
    }

    fn vector(&self, name: &str, len: usize) -> Result<Vec<f32>> {
        let place = self.weights.f32_place(name, &[len])?;
        let values = self.weights.bytes(place).as_chunks().0.iter();
        Ok(values.map(|&value| f32::from_le_bytes(value)).collect())
    }
}

/// A matrix of an f32 file; `[n, k]` if `transposed`, else `[k, n]`.
pub(crate) fn plain<'a>(
    weights: &'a Weights,
    name: &str,
    k: usize,
    n: usize,
    transposed: bool,
) -> Result<Plain<'a>> {
    let shape = if transposed { [n, k] } else { [k, n] };
    let place = weights.f32_place(name, &shape)?;
    let values = weights.bytes(place).as_chunks().0;
    Ok(Plain {
        values,
        k,
        n,
        transposed,
    })
}

/// The name of the scales of an int8 tensor.
pub(crate) fn scale_name(name: &str) -> String {
    format!("{name}.scale")
}
