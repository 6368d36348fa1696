//! Packed f32 weights in a file of their own, which is mapped the next time instead of packing again.
//!
//! The memory for packed weights takes longer to get than their packing: a mapped file needs none. The files lie
//! in a folder of the user's, one for each weights file, under a name made of its path. A note in it says which
//! file it was made from, down to the moment that was written; one that says something else, is cut off or has
//! other tensors is made anew. It appears whole or not at all ([`attentive_model::durable`]), so that processes
//! do not disturb each other. Nothing here is an error: without the folder loading merely takes longer.
//! Neighbors: [`super::load`] asks for the weights, [`super::matrices`] packs them.

use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use attentive_model::durable::TEMPORARY;
use attentive_model::tensors::TensorSpec;
use attentive_model::weights::{Values, Weights};

use super::load::MatrixLayout;
use super::matrices::WeightsFile;
use super::matrix::{Floats, Numbers};
use super::simd::LANES;
use crate::error::Result;

/// Rises whenever [`super::matrix`] packs in another way.
const LAYOUT: u32 = 1;

/// As many models are kept.
const MOST_FILES: usize = 8;

/// What a process that was killed left unfinished is removed after this time.
const UNFINISHED: Duration = Duration::from_secs(3600);

const PREFIX: &str = "packed-";

/// The packed weights of these matrices: mapped from the folder, or packed and written there.
pub(crate) fn numbers(
    folder: &Path,
    file: &WeightsFile,
    specs: &[&TensorSpec],
) -> Result<HashMap<String, Numbers>> {
    let Some(identity) = file.weights.identity() else {
        return file.numbers(specs);
    };
    let note = format!("packed {LAYOUT} of {identity}");
    let path = place(folder, file.weights.path());
    if let Some(numbers) = mapped(&path, &note, specs) {
        return Ok(numbers);
    }
    let numbers = file.numbers(specs)?;
    // A folder that cannot be written to, or a full disk: the next time is like this time.
    let _ = write(folder, &path, &note, specs, &numbers);
    Ok(numbers)
}

fn place(folder: &Path, weights: &Path) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    std::path::absolute(weights)
        .unwrap_or_else(|_| weights.to_path_buf())
        .hash(&mut hasher);
    folder.join(format!("{PREFIX}{:016x}.safetensors", hasher.finish()))
}

fn shape(spec: &TensorSpec) -> Option<[usize; 3]> {
    let MatrixLayout { k, n, .. } = MatrixLayout::of(spec)?;
    Some([n.div_ceil(LANES), k, LANES])
}

fn mapped(path: &Path, note: &str, specs: &[&TensorSpec]) -> Option<HashMap<String, Numbers>> {
    let weights = Arc::new(Weights::open(path).ok()?);
    if weights.note() != Some(note) {
        return None;
    }
    let numbers = specs.iter().map(|spec| {
        let place = weights.f32_place(&spec.name, &shape(spec)?).ok()?;
        let floats = Floats::mapped(&weights, place)?;
        Some((spec.name.clone(), Numbers::F32(floats)))
    });
    numbers.collect()
}

fn write(
    folder: &Path,
    path: &Path,
    note: &str,
    specs: &[&TensorSpec],
    numbers: &HashMap<String, Numbers>,
) -> Result<()> {
    let tensors: Vec<_> = specs
        .iter()
        .filter_map(|spec| match &numbers[&spec.name] {
            Numbers::F32(floats) => Some((&*spec.name, shape(spec)?, floats.get())),
            Numbers::Int8(_) => None,
        })
        .collect();
    let tensors = tensors
        .iter()
        .map(|(name, shape, values)| (*name, &shape[..], Values::F32(values)));
    let _ = fs::create_dir_all(folder);
    Weights::write_noted(path, note, tensors)?;
    tidy(folder);
    Ok(())
}

/// Removes the oldest files beyond [`MOST_FILES`], and what was never finished.
fn tidy(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut kept = Vec::new();
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let Ok(modified) = entry.metadata().and_then(|data| data.modified()) else {
            continue;
        };
        if name.starts_with(PREFIX) {
            kept.push((modified, entry.path()));
        } else if name.starts_with(TEMPORARY) && age(modified) > UNFINISHED {
            let _ = fs::remove_file(entry.path());
        }
    }
    kept.sort();
    let surplus = kept.len().saturating_sub(MOST_FILES);
    for (_, path) in &kept[..surplus] {
        let _ = fs::remove_file(path);
    }
}

fn age(modified: SystemTime) -> Duration {
    modified.elapsed().unwrap_or_default()
}
