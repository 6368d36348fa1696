//! An f32 model directory to an int8 one: a quarter of the size, and faster.
//!
//! Matrices and token tables become packed bytes with one scale per output ([`super::matrix`]), which
//! [`super::load`] uses where they are mapped. Norms, biases and learned positions stay f32.

use std::fs;
use std::path::Path;

use attentive_model::config::ModelConfig;
use attentive_model::weights::{Values, Weights};
use attentive_model::{ModelDir, ModelError, durable};

use super::aligned::Aligned;
use super::load::{MatrixLayout, packed_shape, plain, scale_name};
use super::matrix;
use super::{Compute, CpuModel};
use crate::error::Result;

/// Inputs whose products still fit 32 bits, whatever they are: `2^31 / (255 * 127)`.
pub(crate) const WIDEST: usize = 65_536;

/// What became of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuantizeReport {
    /// Bytes of weights before.
    pub bytes_before: u64,
    /// Bytes of weights after.
    pub bytes_after: u64,
    /// Matrices and tables that are int8 now.
    pub quantized: usize,
    /// Norms, biases and positions, which stayed f32.
    pub kept: usize,
}

/// Writes the model of `from` (a model directory or a training run) to the new directory `to`, in int8.
///
/// `to` appears complete or not at all, and must not exist yet (an empty directory may).
pub fn quantize(from: &Path, to: &Path) -> Result<QuantizeReport> {
    let dir = ModelDir::open(from)?;
    let weights = dir.weights()?;
    let cannot = |path: &Path, reason: String| {
        let path = path.to_path_buf();
        Err(ModelError::WrongCompute { path, reason }.into())
    };
    if weights.is_int8() {
        return cannot(
            weights.path(),
            "the weights are int8 already; give the f32 model".to_string(),
        );
    }
    let widest = dir.config.d_model.max(dir.config.d_ff);
    if widest > WIDEST {
        return cannot(
            weights.path(),
            format!("a width of {widest} is too much for int8 (at most {WIDEST})"),
        );
    }
    if to.exists() && !fs::read_dir(to).is_ok_and(|mut entries| entries.next().is_none()) {
        return cannot(
            to,
            "exists already; choose another place or remove it".to_string(),
        );
    }
    // What cannot be translated with is refused now, and not when the copy is used.
    CpuModel::open(&dir, Compute::F32)?;
    let failed = |error| ModelError::io("create", to)(error).into();
    durable::write_folder(to, failed, |folder| write(&dir, &weights, folder))
}

fn write(dir: &ModelDir, weights: &Weights, to: &Path) -> Result<QuantizeReport> {
    let mut small = Vec::new();
    let mut packed: Vec<Packed> = Vec::new();
    for spec in dir.config.tensors() {
        let Some(layout) = MatrixLayout::of(&spec) else {
            let (shape, values) = weights.tensor(&spec.name)?;
            small.push((spec.name, shape, values));
            continue;
        };
        let MatrixLayout { k, n, .. } = layout;
        let (bytes, scales) = matrix::quantize(plain(weights, &spec, layout)?);
        small.push((scale_name(&spec.name), vec![n], scales));
        packed.push(Packed {
            name: spec.name,
            shape: packed_shape(k, n),
            bytes,
        });
    }
    // Bytes first: their sizes keep what follows on a cache line.
    let tensors = packed
        .iter()
        .map(|packed| (&*packed.name, &packed.shape[..], Values::I8(&packed.bytes)));
    let rest = small
        .iter()
        .map(|(name, shape, values)| (&**name, &shape[..], Values::F32(values)));
    dir.save_mixed(to, tensors.chain(rest))?;
    let size = |path: &Path| {
        fs::metadata(path)
            .map(|data| data.len())
            .map_err(ModelError::io("read", path))
    };
    Ok(QuantizeReport {
        bytes_before: size(weights.path())?,
        bytes_after: size(&ModelDir::weights_path(to))?,
        quantized: packed.len(),
        kept: small.len() - packed.len(),
    })
}

struct Packed {
    name: String,
    shape: [usize; 4],
    bytes: Aligned<i8>,
}
