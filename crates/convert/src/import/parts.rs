//! The weights of a model on their way from another program to ours: matrices and vectors under our names.
//!
//! Every format's importer collects [`Parts`]; they become the weights file of a model directory here. A matrix
//! stands output by output, as PyTorch, CTranslate2 and int8 formats have it, and is turned round when it is written.

use std::collections::BTreeMap;
use std::path::Path;

use attentive_model::config::{ModelConfig, TransformerConfig};
use attentive_model::int8::{Int8Weights, pack};
use attentive_model::tensors::{Role, TensorSpec};
use attentive_model::{ModelDir, Tokenizers};

use super::{WeightKind, refused, vocabulary::Order};
use crate::error::{ConvertError, Result};
use crate::files::{Dtype, Tensor, Tensors};
use crate::transpose::transposed;

/// A row for each output of a linear layer, or for each token of a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Matrix {
    pub rows: usize,
    pub columns: usize,
    data: Data,
}

#[derive(Debug, Clone, PartialEq)]
enum Data {
    F32(Vec<f32>),
    /// `value = integer * scale`, with a scale for each row.
    I8 {
        values: Vec<i8>,
        scales: Vec<f32>,
    },
}

impl Matrix {
    /// A tensor that stands output by output.
    pub fn new(tensor: &Tensor, [rows, columns]: [usize; 2]) -> Self {
        Self::of_floats(rows, columns, tensor.to_f32())
    }

    pub fn of_floats(rows: usize, columns: usize, values: Vec<f32>) -> Self {
        assert_eq!(values.len(), rows * columns, "values of a matrix");
        let data = Data::F32(values);
        Self {
            rows,
            columns,
            data,
        }
    }

    /// Integers with a scale for each row. The kernels have no use for -128, which no program writes that makes
    /// its scales of the largest value; where it occurs, the matrix is one of numbers.
    pub fn of_int8(tensor: &Tensor, [rows, columns]: [usize; 2], scales: Vec<f32>) -> Self {
        assert_eq!(
            (tensor.dtype, scales.len()),
            (Dtype::I8, rows),
            "int8 with scales"
        );
        let values: Vec<i8> = tensor.bytes().iter().map(|&byte| byte as i8).collect();
        assert_eq!(values.len(), rows * columns, "values of a matrix");
        let usable = !values.contains(&i8::MIN);
        let matrix = Self {
            rows,
            columns,
            data: Data::I8 { values, scales },
        };
        if usable { matrix } else { matrix.into_floats() }
    }

    /// With inputs for outputs.
    pub fn transposed(self) -> Self {
        let Self { rows, columns, .. } = self;
        let values = transposed(&self.floats(), rows);
        Self::of_floats(columns, rows, values)
    }

    /// Some of the rows.
    pub fn part(&self, rows: std::ops::Range<usize>) -> Self {
        let cut =
            |range: &std::ops::Range<usize>| range.start * self.columns..range.end * self.columns;
        let data = match &self.data {
            Data::F32(values) => Data::F32(values[cut(&rows)].to_vec()),
            Data::I8 { values, scales } => Data::I8 {
                values: values[cut(&rows)].to_vec(),
                scales: scales[rows.clone()].to_vec(),
            },
        };
        Self {
            rows: rows.len(),
            columns: self.columns,
            data,
        }
    }

    /// A table of tokens in the order of our ids; tokens that the other program lacks have zeros.
    pub fn in_order(&self, order: &Order) -> Self {
        let columns = self.columns;
        let sources = || order.rows().iter().map(|row| row.of_embedding());
        let row = |row: usize| row * columns..(row + 1) * columns;
        let data = match &self.data {
            Data::F32(values) => {
                let mut ordered = vec![0.0; order.len() * columns];
                for (place, source) in ordered.chunks_exact_mut(columns.max(1)).zip(sources()) {
                    if let Some(source) = source {
                        place.copy_from_slice(&values[row(source)]);
                    }
                }
                Data::F32(ordered)
            }
            Data::I8 { values, scales } => {
                let mut ordered = vec![0; order.len() * columns];
                for (place, source) in ordered.chunks_exact_mut(columns.max(1)).zip(sources()) {
                    if let Some(source) = source {
                        place.copy_from_slice(&values[row(source)]);
                    }
                }
                let scale = |source: Option<usize>| source.map_or(1.0, |source| scales[source]);
                Data::I8 {
                    values: ordered,
                    scales: sources().map(scale).collect(),
                }
            }
        };
        Self {
            rows: order.len(),
            columns,
            data,
        }
    }

    fn is_int8(&self) -> bool {
        matches!(self.data, Data::I8 { .. })
    }

    fn floats(&self) -> std::borrow::Cow<'_, [f32]> {
        match &self.data {
            Data::F32(values) => values.into(),
            Data::I8 { values, scales } => {
                let rows = values.chunks_exact(self.columns.max(1)).zip(scales);
                let real = |(row, scale): (&[i8], &f32)| {
                    let scale = *scale;
                    row.iter()
                        .map(move |&value| f32::from(value) * scale)
                        .collect::<Vec<_>>()
                };
                rows.flat_map(real).collect::<Vec<_>>().into()
            }
        }
    }

    fn into_floats(self) -> Self {
        let values = self.floats().into_owned();
        Self::of_floats(self.rows, self.columns, values)
    }

    /// Integers and their scales: as they are, or the nearest ones with 127 for the largest value of a row.
    fn into_int8(self) -> (Vec<i8>, Vec<f32>) {
        let values = match self.data {
            Data::I8 { values, scales } => return (values, scales),
            Data::F32(values) => values,
        };
        let (mut integers, mut scales) = (Vec::with_capacity(values.len()), Vec::new());
        for row in values.chunks_exact(self.columns.max(1)) {
            let largest = row.iter().fold(0.0f32, |most, value| most.max(value.abs()));
            let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
            let nearest =
                |value: &f32| (value / scale).round_ties_even().clamp(-127.0, 127.0) as i8;
            integers.extend(row.iter().map(nearest));
            scales.push(scale);
        }
        (integers, scales)
    }
}

/// Matrices and vectors under our names.
#[derive(Debug, Default)]
pub(super) struct Parts {
    matrices: BTreeMap<String, Matrix>,
    vectors: BTreeMap<String, Vec<f32>>,
}

impl Parts {
    pub fn matrix(&mut self, name: impl Into<String>, matrix: Matrix) {
        self.matrices.insert(name.into(), matrix);
    }

    pub fn vector(&mut self, name: impl Into<String>, values: Vec<f32>) {
        self.vectors.insert(name.into(), values);
    }

    /// Source, target and output tables in the order of their ids. Says which of them are one, and keeps that once.
    pub fn embeddings(
        &mut self,
        source: (&Matrix, &Order),
        target: (&Matrix, &Order),
        output: Option<&Matrix>,
    ) -> attentive_model::config::Tying {
        use attentive_model::config::Tying;
        let equal = |a: &Matrix, b: &Matrix| std::ptr::eq(a, b) || a == b;
        let output = output.filter(|output| !equal(output, target.0));
        let tying = match output {
            Some(output) => {
                self.matrix("embeddings.projection", output.in_order(target.1));
                Tying::None
            }
            None if source.1 == target.1 && equal(source.0, target.0) => Tying::All,
            None => Tying::Output,
        };
        if tying != Tying::All {
            self.matrix("embeddings.source.weight", source.0.in_order(source.1));
        }
        self.matrix("embeddings.target.weight", target.0.in_order(target.1));
        tying
    }

    /// Refuses a configuration with more layers than there are tensors, before it is asked for a list of them.
    pub fn has_layers(&self, source: &Path, config: &TransformerConfig) -> Result<()> {
        let layers = config.encoder_layers.saturating_add(config.decoder_layers);
        enough_tensors(source, self.matrices.len() + self.vectors.len(), layers)
    }

    /// Writes config, tokenizers and weights into a folder; says what became different from what was asked for.
    pub fn write(
        mut self,
        folder: &Path,
        source: &Path,
        config: &TransformerConfig,
        tokenizers: &Tokenizers,
        kind: WeightKind,
    ) -> Result<Option<String>> {
        let specs = config.tensors();
        let mut warning = None;
        let (int8, all) = (
            self.matrices.values().filter(|m| m.is_int8()).count(),
            self.matrices.len(),
        );
        if kind == WeightKind::AsIs && int8 > 0 && int8 < all {
            warning = Some(format!(
                "{int8} of {all} matrices are int8; all of them become f32 (--weights int8 makes all of them int8)"
            ));
        }
        if kind == WeightKind::Int8 || kind == WeightKind::AsIs && int8 > 0 && int8 == all {
            let mut weights = Int8Weights::default();
            for spec in &specs {
                if is_matrix(spec) {
                    let matrix = self.take_matrix(source, spec)?;
                    let (rows, columns) = (matrix.rows, matrix.columns);
                    let (values, scales) = matrix.into_int8();
                    let packed = pack(&values, rows, columns);
                    weights.add_matrix(&spec.name, (columns, rows), packed, scales);
                } else {
                    let values = self.take_vector(source, spec)?;
                    weights.add_floats(&spec.name, &spec.shape, values);
                }
            }
            ModelDir::save_int8(folder, config, tokenizers, &weights)?;
        } else {
            let mut weights = Vec::with_capacity(specs.len());
            for spec in &specs {
                weights.push(if is_matrix(spec) {
                    let matrix = self.take_matrix(source, spec)?;
                    let floats = matrix.floats();
                    if spec.role == Role::Embedding {
                        floats.into_owned()
                    } else {
                        transposed(&floats, matrix.rows)
                    }
                } else {
                    self.take_vector(source, spec)?
                });
            }
            let tensors = specs.iter().zip(&weights);
            let tensors = tensors.map(|(spec, values)| (&*spec.name, &*spec.shape, &values[..]));
            ModelDir::save(folder, config, tokenizers, tensors)?;
        }
        Ok(warning)
    }

    fn take_matrix(&mut self, source: &Path, spec: &TensorSpec) -> Result<Matrix> {
        let found = self.matrices.remove(&spec.name);
        let matrix = found.ok_or_else(|| self.missing(source, spec))?;
        let (rows, columns) = (matrix.rows, matrix.columns);
        let shape = if spec.role == Role::Embedding {
            [rows, columns]
        } else {
            [columns, rows]
        };
        fits(source, spec, &shape)?;
        Ok(matrix)
    }

    fn take_vector(&mut self, source: &Path, spec: &TensorSpec) -> Result<Vec<f32>> {
        let found = self.vectors.remove(&spec.name);
        let values = found.ok_or_else(|| self.missing(source, spec))?;
        if values.len() != spec.len() {
            fits(source, spec, &[values.len()])?;
        }
        Ok(values)
    }

    fn missing(&self, source: &Path, spec: &TensorSpec) -> ConvertError {
        ConvertError::MissingTensor {
            path: source.to_path_buf(),
            name: spec.name.clone(),
            count: self.matrices.len() + self.vectors.len(),
        }
    }
}

/// Refuses a configuration with more layers than `count`, the number of tensors.
pub(super) fn enough_tensors(source: &Path, count: usize, layers: usize) -> Result<()> {
    if layers <= count {
        return Ok(());
    }
    let found = format!("{layers} layers with {count} tensors");
    let remedy = "the weights and the configuration beside them belong to different models";
    Err(refused(source, "the model", found, remedy))
}

fn is_matrix(spec: &TensorSpec) -> bool {
    matches!(spec.role, Role::Embedding | Role::Projection | Role::Linear)
}

fn fits(source: &Path, spec: &TensorSpec, found: &[usize]) -> Result<()> {
    if spec.shape == found {
        return Ok(());
    }
    Err(ConvertError::WrongShape {
        path: source.to_path_buf(),
        name: spec.name.clone(),
        expected: spec.shape.clone(),
        found: found.to_vec(),
    })
}

/// A vector of `width` values, whatever the dimensions of one around it: `[n]` or `[1, n]`.
pub(super) fn vector(tensors: &Tensors, name: &str, width: usize) -> Result<Vec<f32>> {
    let found = tensors.get(name);
    match found {
        Some(tensor) if tensor.len() == width => Ok(tensor.to_f32()),
        _ => Ok(tensors.require(name, &[width])?.to_f32()),
    }
}
