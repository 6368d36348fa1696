//! An f32 model directory to an int8 one: a quarter of the size, and faster.
//!
//! Matrices and token tables become packed bytes with one scale per output ([`attentive_model::int8`]), which
//! [`super::load`] uses where they are mapped. Norms, biases and learned positions stay f32.

use std::fs;
use std::path::Path;

use attentive_model::config::ModelConfig;
use attentive_model::int8::Int8Weights;
use attentive_model::weights::Weights;
use attentive_model::{ModelDir, ModelError, durable};

use super::load::{MatrixLayout, plain};
use super::packing;
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
    let mut int8 = Int8Weights::default();
    let mut kept = 0;
    for spec in dir.config.tensors() {
        if let Some(layout) = MatrixLayout::of(&spec) {
            let (bytes, scales) = packing::quantize(plain(weights, &spec, layout)?);
            int8.add_matrix(&spec.name, (layout.k, layout.n), bytes.to_vec(), scales);
        } else {
            let (shape, values) = weights.tensor(&spec.name)?;
            int8.add_floats(spec.name, &shape, values);
            kept += 1;
        }
    }
    ModelDir::save_int8(to, &dir.config, &dir.tokenizers, &int8)?;
    dir.copy_generation(to)?;
    let size = |path: &Path| {
        fs::metadata(path)
            .map(|data| data.len())
            .map_err(ModelError::io("read", path))
    };
    Ok(QuantizeReport {
        bytes_before: size(weights.path())?,
        bytes_after: size(&ModelDir::weights_path(to))?,
        quantized: int8.matrices(),
        kept,
    })
}
