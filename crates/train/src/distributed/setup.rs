//! Processes that train together must be alike: the same program, recipe and data. Others are refused, and told apart.

use serde::{Deserialize, Serialize};

use super::{Communicator, all_gather};
use crate::{Recipe, Result, TrainError, data::fingerprint::CorpusFingerprint, recipe::Reduction};

/// What must be the same in every process, apart from the recipe and the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Setup {
    host: String,
    version: String,
    /// Of the program's file.
    program: Option<String>,
    recipe: String,
    precision: String,
    threads: usize,
}

/// Refuses processes of another program, recipe or precision. The machines of all processes come back.
pub fn check(
    communicator: &dyn Communicator,
    recipe: &Recipe,
    precision: impl std::fmt::Debug,
) -> Result<Vec<String>> {
    let alone = communicator.size() == 1;
    let own = Setup {
        host: communicator.host(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        program: if alone { None } else { program() },
        recipe: recipe.to_toml(),
        precision: format!("{precision:?}").to_lowercase(),
        threads: rayon::current_num_threads(),
    };
    let all = gathered(communicator, &own);
    let Some(Ok(first)) = all.first() else {
        return Err(unlike(
            communicator,
            0,
            vec!["another version of this program".to_owned()],
        ));
    };
    let mut hosts = Vec::new();
    for (rank, other) in all.iter().enumerate() {
        let differences = match other {
            Ok(other) => first.differences(other, recipe),
            Err(_) => vec!["another version of this program".to_owned()],
        };
        if !differences.is_empty() {
            return Err(unlike(communicator, rank, differences));
        }
        hosts.extend(other.as_ref().map(|other| other.host.clone()));
    }
    Ok(hosts)
}

/// Refuses processes that read other data.
pub fn check_data(communicator: &dyn Communicator, data: &CorpusFingerprint) -> Result<()> {
    let all = gathered(communicator, data);
    for (rank, other) in all.iter().enumerate() {
        let (Some(Ok(first)), Ok(other)) = (all.first(), other) else {
            continue;
        };
        let differences = first.differences(other);
        if !differences.is_empty() {
            let differences = differences.into_iter().map(|one| {
                one.replace(
                    " when the run began and now has ",
                    " on rank 0 and here has ",
                )
                .replace("their text has changed", "their text is another")
            });
            return Err(unlike(communicator, rank, differences.collect()));
        }
    }
    Ok(())
}

fn gathered<T: Serialize + for<'de> Deserialize<'de>>(
    communicator: &dyn Communicator,
    own: &T,
) -> Vec<serde_json::Result<T>> {
    let own = serde_json::to_vec(own).expect("plain strings and numbers");
    let all = all_gather(communicator, own);
    all.iter()
        .map(|bytes| serde_json::from_slice(bytes))
        .collect()
}

fn unlike(communicator: &dyn Communicator, rank: usize, differences: Vec<String>) -> TrainError {
    TrainError::UnlikeRanks {
        rank,
        size: communicator.size(),
        differences,
    }
}

/// A fingerprint of the program that runs, if it can be read.
fn program() -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    let file = std::env::current_exe().and_then(std::fs::File::open).ok()?;
    hasher.update_reader(file).ok()?;
    Some(hasher.finalize().to_hex()[..16].to_owned())
}

impl Setup {
    fn differences(&self, other: &Setup, recipe: &Recipe) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |what: &str, first: &str, here: &str| {
            if first != here {
                found.push(format!(
                    "{what}: {first} on rank 0, {here} on {}",
                    other.host
                ));
            }
        };
        compare("version", &self.version, &other.version);
        if let (Some(first), Some(here)) = (&self.program, &other.program) {
            compare("program (fingerprint of its file)", first, here);
        }
        compare("precision", &self.precision, &other.precision);
        // The bits of a matrix product may depend on the number of threads.
        if recipe.distributed.reduction == Reduction::Exact {
            let [first, here] = [self.threads, other.threads].map(|count| count.to_string());
            compare(
                "threads, which `distributed.reduction` (\"exact\") wants equal",
                &first,
                &here,
            );
        }
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let (first, here) = (lines(&self.recipe), lines(&other.recipe));
        for (first, here) in first.iter().zip(&here) {
            compare("recipe", first, here);
        }
        if first.len() != here.len() {
            found.push(format!(
                "recipe: {} lines on rank 0, {} here",
                first.len(),
                here.len()
            ));
        }
        found
    }
}
