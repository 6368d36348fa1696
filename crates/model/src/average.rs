//! The mean of the weights of several models: often better than each of them, and no slower.
//!
//! Models that went on from the same weights lie in one valley of the loss, and their mean in the middle of it ("Model
//! soups", Wortsman et al. 2022, <https://arxiv.org/abs/2203.05482>). Checkpoint averaging (§6.1 of the paper) does the
//! same with the epochs of one run while it trains; here the models are directories, of any runs, also quantized.
//! Neighbors: [`crate::directory`] reads and writes them.

use std::path::{Path, PathBuf};

use crate::config::ModelConfig;
use crate::directory::ModelDir;
use crate::durable;
use crate::error::{ModelError, Result};

/// Writes the mean of the weights of `models` (model directories or training runs) to the new directory `to`, in f32.
/// Everything else is that of the first one. Returns how many numbers were averaged.
///
/// `to` appears complete or not at all, and must not exist yet.
pub fn average(models: &[PathBuf], to: &Path) -> Result<usize> {
    let refuse = |path: &Path, reason: &str| {
        Err(ModelError::WrongCompute {
            path: path.to_path_buf(),
            reason: reason.to_owned(),
        })
    };
    if to.exists() {
        return refuse(to, "exists already; choose another place or remove it");
    }
    let [first, others @ ..] = models else {
        return refuse(to, "there is no model to average");
    };
    let dir = ModelDir::open(first)?;
    let schema = dir.config.tensors();
    let mut sums = unpacked(&dir)?;
    for path in others {
        let other = ModelDir::open(path)?;
        if other.config.tensors() != schema {
            return refuse(
                path,
                "has other sizes than the first model; give models that went on from the same one",
            );
        }
        let same = |one: &attentive_text::Tokenizer, two: &attentive_text::Tokenizer| {
            one.fingerprint() == two.fingerprint()
        };
        let (own, its) = (&dir.tokenizers, &other.tokenizers);
        if !same(&own.src, &its.src) || !same(&own.tgt, &its.tgt) {
            return refuse(
                path,
                "has another vocabulary than the first model; give models that went on from the same one",
            );
        }
        for (sum, values) in sums.iter_mut().zip(unpacked(&other)?) {
            sum.iter_mut()
                .zip(values)
                .for_each(|(sum, value)| *sum += value);
        }
    }
    let share = 1.0 / models.len() as f32;
    sums.iter_mut().flatten().for_each(|sum| *sum *= share);
    let failed = |error| ModelError::io("create", to)(error);
    durable::write_folder(to, failed, |folder| {
        let tensors = schema
            .iter()
            .zip(&sums)
            .map(|(tensor, values)| (tensor.name.as_str(), &tensor.shape[..], &values[..]));
        ModelDir::save(folder, &dir.config, &dir.tokenizers, tensors)?;
        dir.copy_generation(folder)
    })?;
    Ok(sums.iter().map(Vec::len).sum())
}

/// The values of all tensors, in the order of the schema.
fn unpacked(dir: &ModelDir) -> Result<Vec<Vec<f32>>> {
    let weights = dir.weights()?;
    let tensors = dir.config.tensors();
    tensors
        .iter()
        .map(|tensor| weights.unpacked(tensor))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_dir;

    /// All numbers of a model.
    fn numbers(path: &Path) -> Vec<f32> {
        let dir = ModelDir::open(path).expect("a model");
        unpacked(&dir).expect("its weights").concat()
    }

    #[test]
    fn the_mean_of_models_has_the_mean_of_their_weights_and_all_else_of_the_first() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [one, two, mean] = ["one", "two", "mean"].map(|name| folder.path().join(name));
        fake_dir::write(&one).expect("written");
        let shift =
            |_: &str, values: &mut [f32]| values.iter_mut().for_each(|v| *v = 3.0 * *v + 1.0);
        fake_dir::write_with(&two, |_| {}, shift).expect("written");
        let count = average(&[one.clone(), two.clone()], &mean).expect("averaged");
        let found = numbers(&mean);
        assert_eq!(found.len(), count);
        for ((one, two), mean) in numbers(&one).iter().zip(numbers(&two)).zip(found) {
            assert!(
                (0.5 * (one + two) - mean).abs() < 1e-6,
                "{one}, {two}: {mean}"
            );
        }
        let config = |path: &Path| ModelDir::open(path).expect("a model").config;
        assert_eq!(config(&mean), config(&one));
    }

    #[test]
    fn other_models_and_places_that_are_taken_are_refused_and_nothing_is_written() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [one, other, mean] = ["one", "other", "mean"].map(|name| folder.path().join(name));
        fake_dir::write(&one).expect("written");
        fake_dir::write_with(&other, |config| config.d_ff = 96, |_, _| {}).expect("written");
        let refused = average(&[one.clone(), other.clone()], &mean).expect_err("other sizes");
        assert!(refused.to_string().contains("other sizes"), "{refused}");
        assert!(!mean.exists());
        let refused =
            average(std::slice::from_ref(&one), &other).expect_err("a place that is taken");
        assert!(refused.to_string().contains("exists already"), "{refused}");
        assert!(average(&[], &mean).is_err());
    }
}
