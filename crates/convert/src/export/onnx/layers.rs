//! The layers of the Transformer as operations of a graph: embeddings, attention, feed-forward network, norms.
//!
//! `mod.rs` puts encoder and decoder together with them; `graph` holds the operations.

use std::collections::HashMap;

use attentive_model::config::{Activation, EmbeddingNorm, NormPlacement};

use super::graph::{Builder, Name, float, int, ints};
use super::proto::DataType;
use crate::error::Result;
use crate::export::source::{Matrix, Source, TARGET_TABLE};

/// The layers of the Transformer as operations of a graph.
pub(super) struct Net<'a> {
    source: &'a Source<'a>,
    pub graph: Builder,
    /// Values that have been rounded to 8 bits, and what became of them: several products take the same ones.
    rounded: HashMap<Name, Name>,
}

impl<'a> Net<'a> {
    pub fn new(source: &'a Source<'a>) -> Self {
        Self {
            source,
            graph: Builder::default(),
            rounded: HashMap::new(),
        }
    }

    /// `[batch, length]` ids at the positions from `start` on -> `[batch, length, d_model]`
    pub fn embed(&mut self, stack: &str, ids: &Name, start: &Name) -> Result<Name> {
        let config = self.source.config;
        let (side, table) = if stack == "encoder" {
            ("source", self.source.source_table())
        } else {
            ("target", TARGET_TABLE)
        };
        let vocab = if stack == "encoder" {
            config.src_vocab
        } else {
            config.tgt_vocab
        };
        let vectors = match self.source.table(table)? {
            Matrix::Real(values) => {
                let table = self
                    .graph
                    .constant(table, &[vocab, config.d_model], &values);
                self.graph.op("Gather", &[&table, ids])
            }
            Matrix::Int8 { values, scales } => {
                let row_scales = format!("{table}.scale");
                let row_scales = self.graph.constant(&row_scales, &[vocab, 1], &scales);
                // The tokens that are taken have scales of their own, which one operation cannot apply.
                let table = self.turned(table, &values, [vocab, config.d_model]);
                let columns = self
                    .graph
                    .op_with("Gather", &[&table, ids], vec![int("axis", 1)]); // [d_model, batch, length]
                let order = vec![ints("perm", &[1, 2, 0])];
                let rows = self.graph.op_with("Transpose", &[&columns], order);
                let (one, zero) = (self.graph.number(1.0), self.graph.zero_i8());
                let rows = self.graph.op("DequantizeLinear", &[&rows, &one, &zero]);
                let scales = self.graph.op("Gather", &[&row_scales, ids]);
                self.graph.op("Mul", &[&rows, &scales])
            }
        };
        let factor = self.graph.number(config.embedding_factor() as f32);
        let vectors = self.graph.op("Mul", &[&vectors, &factor]);
        let rows = self.source.position_rows();
        let values = self.source.positions(side, rows)?;
        let table = self.graph.constant(
            &format!("{side}_positions"),
            &[rows, config.d_model],
            &values,
        );
        let length = self.size(ids, 1);
        let end = self.graph.op("Add", &[start, &length]);
        let one = self.graph.integer(1);
        let places = self.graph.op("Range", &[start, &end, &one]);
        let positions = self.graph.op("Gather", &[&table, &places]);
        let x = self.graph.op("Add", &[&vectors, &positions]);
        if config.embedding_norm == EmbeddingNorm::LayerNorm {
            return self.norm(&format!("{stack}.embedding_norm"), &x);
        }
        Ok(x)
    }

    /// The residual connection and the norm around a sub-layer.
    pub fn sublayer(
        &mut self,
        x: &Name,
        norm: &str,
        layer: impl FnOnce(&mut Self, &Name) -> Result<Name>,
    ) -> Result<Name> {
        match self.source.config.norm {
            NormPlacement::Pre => {
                let normed = self.norm(norm, x)?;
                let y = layer(self, &normed)?;
                Ok(self.graph.op("Add", &[x, &y]))
            }
            NormPlacement::Post => {
                let y = layer(self, x)?;
                let sum = self.graph.op("Add", &[x, &y]);
                self.norm(norm, &sum)
            }
        }
    }

    pub fn feed_forward(&mut self, layer: &str, x: &Name) -> Result<Name> {
        self.sublayer(x, &format!("{layer}.feed_forward_norm"), |net, x| {
            let inner = net.linear(&format!("{layer}.feed_forward.inner"), x)?;
            let inner = net.activate(&inner);
            net.linear(&format!("{layer}.feed_forward.outer"), &inner)
        })
    }

    fn activate(&mut self, x: &Name) -> Name {
        let graph = &mut self.graph;
        match self.source.config.activation {
            Activation::Relu => graph.op("Relu", &[x]),
            Activation::Swish => {
                let gate = graph.op("Sigmoid", &[x]);
                graph.op("Mul", &[x, &gate])
            }
            Activation::GeluSigmoid => {
                let factor = graph.number(1.702);
                let scaled = graph.op("Mul", &[x, &factor]);
                let gate = graph.op("Sigmoid", &[&scaled]);
                graph.op("Mul", &[x, &gate])
            }
            Activation::Gelu => {
                let factor = graph.number(std::f32::consts::FRAC_1_SQRT_2);
                let scaled = graph.op("Mul", &[x, &factor]);
                let inner = graph.op("Erf", &[&scaled]);
                half_of_one_plus(graph, x, &inner)
            }
            Activation::GeluTanh => {
                let [cubic, root] = [graph.number(0.044_715), graph.number(0.797_884_6)];
                let square = graph.op("Mul", &[x, x]);
                let cube = graph.op("Mul", &[&square, x]);
                let cube = graph.op("Mul", &[&cube, &cubic]);
                let sum = graph.op("Add", &[x, &cube]);
                let scaled = graph.op("Mul", &[&sum, &root]);
                let inner = graph.op("Tanh", &[&scaled]);
                half_of_one_plus(graph, x, &inner)
            }
        }
    }

    pub fn final_norm(&mut self, stack: &str, x: Name) -> Result<Name> {
        if self.source.config.has_final_norm() {
            self.norm(&format!("{stack}.final_norm"), &x)
        } else {
            Ok(x)
        }
    }

    fn norm(&mut self, name: &str, x: &Name) -> Result<Name> {
        let config = self.source.config;
        let mut constant = |leaf: &str| -> Result<Name> {
            let name = format!("{name}.{leaf}");
            let values = self.source.tensor(&name)?;
            Ok(self.graph.constant(&name, &[config.d_model], &values))
        };
        let (weight, bias) = (constant("weight")?, constant("bias")?);
        let epsilon = float("epsilon", config.norm_epsilon as f32);
        let attributes = vec![int("axis", -1), epsilon];
        Ok(self
            .graph
            .op_with("LayerNormalization", &[x, &weight, &bias], attributes))
    }

    /// `x W + b`
    fn linear(&mut self, name: &str, x: &Name) -> Result<Name> {
        let layer = self.source.linear(name)?;
        let outputs = layer.bias.len();
        let bias = self
            .graph
            .constant(&format!("{name}.bias"), &[outputs], &layer.bias);
        let shape = [outputs, layer.inputs];
        let product = self.product(x, &format!("{name}.weight"), layer.weight, shape);
        Ok(self.graph.op("Add", &[&product, &bias]))
    }

    /// `x` times a matrix `[outputs, inputs]`. Where the matrix is of 8 bits, both factors are.
    fn product(&mut self, x: &Name, name: &str, matrix: Matrix, shape: [usize; 2]) -> Name {
        let graph = &mut self.graph;
        match matrix {
            Matrix::Real(values) => {
                let weight = graph.constant(name, &shape, &values);
                let order = vec![ints("perm", &[1, 0])];
                let weight = graph.op_with("Transpose", &[&weight], order);
                graph.op("MatMul", &[x, &weight])
            }
            Matrix::Int8 { values, scales } => {
                let scales = graph.constant(&format!("{name}.row_scale"), &shape[..1], &scales);
                let weight = self.turned(name, &values, shape);
                // Nothing is between it and the product, so that a runtime may make one operation of them.
                let axis = vec![int("axis", 1)];
                let weight = self
                    .graph
                    .op_with("DequantizeLinear", &[&weight, &scales], axis);
                let x = self.rounded(x);
                self.graph.op("MatMul", &[&x, &weight])
            }
        }
    }

    /// A constant matrix of 8 bits, given as `[rows, columns]` and written as `[columns, rows]`.
    fn turned(&mut self, name: &str, values: &[i8], [rows, columns]: [usize; 2]) -> Name {
        let columns_of = |column| values.iter().skip(column).step_by(columns);
        let turned: Vec<i8> = (0..columns).flat_map(columns_of).copied().collect();
        self.graph.constant_i8(name, &[columns, rows], &turned)
    }

    /// A value as 8 bits have it: quantized with 127 for its largest number, and dequantized again.
    fn rounded(&mut self, x: &Name) -> Name {
        if let Some(rounded) = self.rounded.get(x) {
            return rounded.clone();
        }
        let graph = &mut self.graph;
        let size = graph.op("Abs", &[x]);
        let largest = graph.op_with("ReduceMax", &[&size], vec![int("keepdims", 0)]);
        let steps = graph.number(127.0);
        let scale = graph.op("Div", &[&largest, &steps]);
        // Zeros alone have no largest number.
        let least = graph.number(f32::MIN_POSITIVE);
        let scale = graph.op("Max", &[&scale, &least]);
        let zero = graph.zero_i8();
        let integers = graph.op("QuantizeLinear", &[x, &scale, &zero]);
        let rounded = graph.op("DequantizeLinear", &[&integers, &scale, &zero]);
        self.rounded.insert(x.clone(), rounded.clone());
        rounded
    }

    pub fn logits(&mut self, x: &Name) -> Result<Name> {
        let (vocab, width) = (self.source.config.tgt_vocab, self.source.config.d_model);
        let (name, matrix) = match self.source.untied_projection()? {
            Some(matrix) => ("embeddings.projection", matrix),
            None => (TARGET_TABLE, self.source.table(TARGET_TABLE)?),
        };
        let product = self.product(x, name, matrix, [vocab, width]);
        let name = "embeddings.projection_bias";
        let bias = self.source.tensor(name)?;
        let bias = self.graph.constant(name, &[vocab], &bias);
        Ok(self.graph.op("Add", &[&product, &bias]))
    }

    /// Keys and values of `[batch, length, d_model]`: `[batch, heads, length, head_dim]` each.
    pub fn keys_and_values(&mut self, attention: &str, x: &Name) -> Result<(Name, Name)> {
        let key = self.linear(&format!("{attention}.key"), x)?;
        let value = self.linear(&format!("{attention}.value"), x)?;
        Ok((self.split_heads(&key), self.split_heads(&value)))
    }

    fn split_heads(&mut self, x: &Name) -> Name {
        let config = self.source.config;
        let shape = [0, 0, config.heads as i64, config.head_dim() as i64];
        let shape = self.graph.integers(&shape);
        let heads = self.graph.op("Reshape", &[x, &shape]);
        self.graph
            .op_with("Transpose", &[&heads], vec![ints("perm", &[0, 2, 1, 3])])
    }

    pub fn attention(
        &mut self,
        name: &str,
        x: &Name,
        key: &Name,
        value: &Name,
        bias: &Name,
    ) -> Result<Name> {
        self.attention_with(name, x, key, value, Some(bias))
    }

    /// Scaled dot-product attention of the queries of `x`, with what is added to the scores.
    pub fn attention_with(
        &mut self,
        name: &str,
        x: &Name,
        key: &Name,
        value: &Name,
        bias: Option<&Name>,
    ) -> Result<Name> {
        let config = self.source.config;
        let query = self.linear(&format!("{name}.query"), x)?;
        let scale = self.graph.number((config.head_dim() as f32).powf(-0.5));
        let query = self.graph.op("Mul", &[&query, &scale]);
        let query = self.split_heads(&query);
        let key = self
            .graph
            .op_with("Transpose", &[key], vec![ints("perm", &[0, 1, 3, 2])]);
        let mut scores = self.graph.op("MatMul", &[&query, &key]);
        if let Some(bias) = bias {
            scores = self.graph.op("Add", &[&scores, bias]);
        }
        let weights = self
            .graph
            .op_with("Softmax", &[&scores], vec![int("axis", -1)]);
        let context = self.graph.op("MatMul", &[&weights, value]);
        let context =
            self.graph
                .op_with("Transpose", &[&context], vec![ints("perm", &[0, 2, 1, 3])]);
        let shape = self.graph.integers(&[0, 0, config.d_model as i64]);
        let context = self.graph.op("Reshape", &[&context, &shape]);
        self.linear(&format!("{name}.output"), &context)
    }

    /// `[batch, length]`, 1 where there is a token -> `[batch, 1, 1, length]` to add to scores
    pub fn padding_bias(&mut self, mask: &Name) -> Name {
        let mask = self
            .graph
            .op_with("Cast", &[mask], vec![int("to", DataType::Float as i64)]);
        let one = self.graph.number(1.0);
        let hidden = self.graph.op("Sub", &[&one, &mask]);
        let lowest = self.graph.number(HIDDEN);
        let bias = self.graph.op("Mul", &[&hidden, &lowest]);
        let axes = self.graph.integers(&[1, 2]);
        self.graph.op("Unsqueeze", &[&bias, &axes])
    }

    /// `[length, length]` to add to scores: nobody sees what comes later.
    pub fn causal_bias(&mut self, ids: &Name) -> Name {
        let length = self.size(ids, 1);
        let [zero, one] = [self.graph.integer(0), self.graph.integer(1)];
        let places = self.graph.op("Range", &[&zero, &length, &one]);
        let axis = self.graph.integers(&[1]);
        let query = self.graph.op("Unsqueeze", &[&places, &axis]);
        let later = self.graph.op("Greater", &[&places, &query]);
        let [seen, hidden] = [self.graph.number(0.0), self.graph.number(HIDDEN)];
        self.graph.op("Where", &[&later, &hidden, &seen])
    }

    /// One size of a value, as a single integer.
    pub fn size(&mut self, value: &Name, axis: i64) -> Name {
        let shape = self.graph.op("Shape", &[value]);
        let axis = self.graph.integer(axis);
        self.graph.op("Gather", &[&shape, &axis])
    }
}

/// `x / 2 * (1 + inner)`
fn half_of_one_plus(graph: &mut Builder, x: &Name, inner: &Name) -> Name {
    let [one, half] = [graph.number(1.0), graph.number(0.5)];
    let sum = graph.op("Add", &[inner, &one]);
    let product = graph.op("Mul", &[x, &sum]);
    graph.op("Mul", &[&product, &half])
}

/// Added to the scores of what must not be seen; its exponential is 0.
const HIDDEN: f32 = -1e9;
