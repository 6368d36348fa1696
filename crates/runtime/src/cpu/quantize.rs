//! An f32 model directory to an int8 one: a quarter of the size, and faster.
//!
//! Matrices and token tables become packed bytes with one scale per output ([`super::matrix`]), which
//! [`super::load`] uses where they are mapped. Norms, biases and learned positions stay f32.

use std::fs;
use std::path::{Path, PathBuf};

use super::aligned::Aligned;
use super::load::{plain, scale_name};
use super::matrix::quantise;
use super::simd::LANES;
use super::{Compute, CpuModel};
use crate::error::{Result, RuntimeError};
use crate::model_dir::ModelDir;
use crate::weights::{Values, Weights};

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
        Err(RuntimeError::WrongCompute { path, reason })
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
    let unfinished = unfinished(to);
    let report = write(&dir, &weights, &unfinished).and_then(|report| {
        let renamed = fs::rename(&unfinished, to).map_err(RuntimeError::io("create", to));
        renamed.map(|()| report)
    });
    if report.is_err() {
        let _ = fs::remove_dir_all(&unfinished);
    }
    report
}

/// A hidden name beside `to`.
fn unfinished(to: &Path) -> PathBuf {
    let name = to
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    to.with_file_name(format!(".{name}.unfinished-{}", std::process::id()))
}

fn write(dir: &ModelDir, weights: &Weights, to: &Path) -> Result<QuantizeReport> {
    let mut small = Vec::new();
    let mut packed: Vec<Packed> = Vec::new();
    for name in weights.names() {
        let shape = weights.shape(&name).unwrap_or_default().to_vec();
        let table = name.starts_with("embeddings.") && name.ends_with(".weight");
        let (k, n) = match shape[..] {
            [rows, columns] if !name.contains("positions") => {
                if table {
                    (columns, rows)
                } else {
                    (rows, columns)
                }
            }
            _ => {
                let (_, values) = weights.tensor(&name)?;
                small.push((name, shape, values));
                continue;
            }
        };
        let (bytes, scales) = quantise(plain(weights, &name, k, n, table)?);
        small.push((scale_name(&name), vec![n], scales));
        packed.push(Packed {
            name,
            shape: [n.div_ceil(LANES), k.div_ceil(4), LANES, 4],
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
            .map_err(RuntimeError::io("read", path))
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
