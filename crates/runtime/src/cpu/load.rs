//! The weights of a model directory as the layers that [`super::encoder`] and [`super::decoder`] run.
//!
//! Every tensor's shape is checked against the schema ([`attentive_model::tensors`]). Neighbors: the weights of
//! the matrices come from [`super::matrices`], or in f32 from [`super::cache`].

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use attentive_model::config::{
    Autoregression, EmbeddingNorm, ModelConfig, PositionKind, TransformerConfig, Tying,
};
use attentive_model::tensors::{Role, TensorSpec};
use attentive_model::weights::Weights;

use super::Compute;
use super::cache;
use super::matrices::WeightsFile;
use super::matrix::{Matrix, Numbers};
use super::packing::{Plain, padded};
use super::rowwise::Norm;
use super::simd::Isa;
use crate::error::Result;

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
    pub encoder_embedding_norm: Option<Norm>,
    pub decoder_embedding_norm: Option<Norm>,
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
    pub past: PastLayer,
    pub past_norm: Norm,
    pub cross_attention: Attention,
    pub cross_attention_norm: Norm,
    pub feed_forward: FeedForward,
    pub feed_forward_norm: Norm,
}

/// How a decoder layer looks back at the target so far.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // A model has a handful of them.
pub(crate) enum PastLayer {
    Attention(Attention),
    Ssru(Ssru),
}

/// The matrices of a simpler simple recurrent unit ([`super::ssru`]).
#[derive(Debug)]
pub(crate) struct Ssru {
    /// `W`; its bias is zero.
    pub input: Matrix,
    /// `Wf` and `bf`.
    pub forget: Matrix,
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
    Rows(Arc<Weights>, Range<usize>),
    /// The outputs of a matrix.
    Outputs(Arc<Matrix>),
}

impl Table {
    /// Adds row `index`, times `factor`, to `out`.
    pub fn add_row(&self, index: usize, factor: f32, out: &mut [f32]) {
        match self {
            Self::Rows(weights, place) => {
                let rows = weights.bytes(place.clone()).as_chunks().0;
                let row = &rows[index * out.len()..][..out.len()];
                for (out, value) in out.iter_mut().zip(row) {
                    *out += f32::from_le_bytes(*value) * factor;
                }
            }
            Self::Outputs(matrix) => matrix.add_output(index, factor, out),
        }
    }

    /// The last row's number; for positions, which repeat it beyond.
    pub fn last_row(&self, width: usize) -> usize {
        match self {
            Self::Rows(_, place) => place.len() / (4 * width) - 1,
            Self::Outputs(matrix) => matrix.outputs() - 1,
        }
    }
}

/// Reads all layers; `compute` must have been decided ([`Compute::Auto`] means f32 here). Packed f32 is
/// taken from the folder `cache`, or kept there for the next time.
pub(crate) fn network(
    config: &TransformerConfig,
    weights: Weights,
    compute: Compute,
    isa: Isa,
    cache: Option<&Path>,
) -> Result<Network> {
    let file = WeightsFile {
        stored_int8: weights.is_int8(),
        weights: Arc::new(weights),
        compute,
        isa,
    };
    let tensors = config.tensors();
    let matrices = tensors.iter().filter(|spec| match spec.role {
        Role::Linear | Role::Projection => true,
        // In f32 a table that is nothing else is read where it is mapped.
        Role::Embedding => {
            compute == Compute::Int8 || config.tying != Tying::None && spec.name == TARGET
        }
        Role::Positions | Role::Norm | Role::Bias => false,
    });
    let matrices: Vec<_> = matrices.collect();
    let numbers = match cache {
        Some(folder) if compute != Compute::Int8 => cache::numbers(folder, &file, &matrices)?,
        _ => file.numbers(&matrices)?,
    };
    let tensors = tensors.into_iter().map(|spec| (spec.name.clone(), spec));
    let reader = Reader {
        tensors: tensors.collect(),
        norm_epsilon: config.norm_epsilon as f32,
        numbers: numbers.into(),
        file,
    };
    let bias = reader.vector("embeddings.projection_bias")?;
    let (projection, target) = match config.tying {
        Tying::None => {
            let projection = reader.matrix("embeddings.projection", &bias)?;
            (Arc::new(projection), reader.table(TARGET)?)
        }
        Tying::Output | Tying::All => {
            let projection = Arc::new(reader.matrix(TARGET, &bias)?);
            let table = Table::Outputs(projection.clone());
            (projection, table)
        }
    };
    let source = match config.tying {
        Tying::All => target.clone(),
        Tying::None | Tying::Output => reader.table("embeddings.source.weight")?,
    };
    let positions = |side: &str| match config.positions {
        PositionKind::Learned => {
            let name = format!("embeddings.{side}_positions.weight");
            reader.table_f32(&name).map(Some)
        }
        _ => Ok(None),
    };
    let norm = |exists: bool, name: &str| exists.then(|| reader.norm(name)).transpose();
    let normalized = config.embedding_norm == EmbeddingNorm::LayerNorm;
    let embedding_norm = |side: &str| norm(normalized, &format!("{side}.embedding_norm"));
    let final_norm = |side: &str| norm(config.has_final_norm(), &format!("{side}.final_norm"));
    Ok(Network {
        source,
        target,
        source_positions: positions("source")?,
        target_positions: positions("target")?,
        projection,
        encoder: (0..config.encoder_layers)
            .map(|layer| reader.encoder_layer(layer))
            .collect::<Result<_>>()?,
        decoder: (0..config.decoder_layers)
            .map(|layer| reader.decoder_layer(layer, config.autoregression))
            .collect::<Result<_>>()?,
        encoder_embedding_norm: embedding_norm("encoder")?,
        decoder_embedding_norm: embedding_norm("decoder")?,
        encoder_norm: final_norm("encoder")?,
        decoder_norm: final_norm("decoder")?,
    })
}

const TARGET: &str = "embeddings.target.weight";

struct Reader {
    file: WeightsFile,
    /// The schema of the model, by name.
    tensors: HashMap<String, TensorSpec>,
    /// The weights of all matrices; whoever needs one takes it.
    numbers: RefCell<HashMap<String, Numbers>>,
    norm_epsilon: f32,
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

    fn decoder_layer(&self, layer: usize, autoregression: Autoregression) -> Result<DecoderLayer> {
        let name = |part: &str| format!("decoder.layers.{layer}.{part}");
        let (past, past_norm) = match autoregression {
            Autoregression::SelfAttention => {
                let attention = self.attention(&name("self_attention"))?;
                (PastLayer::Attention(attention), "self_attention_norm")
            }
            Autoregression::Ssru => (PastLayer::Ssru(self.ssru(&name("ssru"))?), "ssru_norm"),
        };
        Ok(DecoderLayer {
            past,
            past_norm: self.norm(&name(past_norm))?,
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

    fn ssru(&self, name: &str) -> Result<Ssru> {
        let forget = self.linear(&format!("{name}.forget"))?;
        let no_bias = vec![0.0; forget.outputs()];
        Ok(Ssru {
            input: self.matrix(&format!("{name}.input.weight"), &no_bias)?,
            forget,
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
        let MatrixLayout { k, n, .. } = self.file.layout(self.spec(name)?)?;
        let numbers = self.numbers.borrow_mut().remove(name);
        let numbers = numbers.ok_or_else(|| self.file.damaged(format!("`{name}` is no matrix")))?;
        Ok(Matrix::new(k, n, numbers, bias))
    }

    /// A table of token vectors.
    fn table(&self, name: &str) -> Result<Table> {
        match self.file.compute {
            Compute::F32 | Compute::F32Int8Output | Compute::Auto => self.table_f32(name),
            Compute::Int8 => {
                let bias = vec![0.0; self.spec(name)?.shape[0]];
                Ok(Table::Outputs(Arc::new(self.matrix(name, &bias)?)))
            }
        }
    }

    fn table_f32(&self, name: &str) -> Result<Table> {
        let place = self.file.weights.f32_place(name, &self.spec(name)?.shape)?;
        Ok(Table::Rows(self.file.weights.clone(), place))
    }

    fn vector(&self, name: &str) -> Result<Vec<f32>> {
        let place = self.file.weights.f32_place(name, &self.spec(name)?.shape)?;
        Ok(self.file.floats(place))
    }

    /// The tensor's entry in the schema.
    fn spec(&self, name: &str) -> Result<&TensorSpec> {
        let spec = self.tensors.get(name);
        spec.ok_or_else(|| {
            self.file
                .damaged(format!("the model has no tensor `{name}`"))
        })
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
