//! What can go wrong between a recipe and a trained model.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use attentive_model::ModelError;
use attentive_nn::error::NnError;
use attentive_nn::ops::Precision;
use attentive_runtime::error::RuntimeError;
use attentive_text::error::TextError;

use crate::data::corpus::Report;
use crate::data::image_files::ImageError;
use crate::data::labelled::LabelledError;
use crate::data::prepared::PreparedError;
use crate::recipe::RecipeError;

/// A result of this crate.
pub type Result<T, E = TrainError> = std::result::Result<T, E>;

/// What can go wrong between a recipe and a trained model.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The recipe.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// Reading text, learning or applying a tokenizer.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Reading or writing a model directory.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Translating the validation set.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// Loading a model onto a device.
    #[error(transparent)]
    Nn(#[from] NnError),
    /// Reading images.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The architecture does not hold together once the vocabularies are known.
    #[error("the model cannot be built:{}", problems.iter().map(|one| format!("\n  {one}")).collect::<String>())]
    Architecture {
        /// One sentence per problem.
        problems: Vec<String>,
    },
    /// The recipe is for a model of another family than the task trains.
    #[error("the recipe is for a model of the family `{found}`, but this task trains `{expected}`")]
    OtherFamily {
        /// The recipe's family.
        found: &'static str,
        /// The task's.
        expected: &'static str,
    },
    /// Less text than the model sees at once.
    #[error(
        "the training text has {tokens} tokens, but the model sees {context} at once and predicts one more; give \
         more text (`data.text`) or lower `model.context`"
    )]
    ShortText {
        /// Of the training text.
        tokens: usize,
        /// The model's.
        context: usize,
    },
    /// A vocabulary in which nothing can be hidden.
    #[error("the vocabulary of `training.start_from` has no [MASK]: it predicts no hidden tokens")]
    NoMask,
    /// There is nothing to pre-train on.
    #[error("the training text has no sentences with tokens: check `data.text`")]
    NoSentences,
    /// The labels of the recipe, or of the data, are not those of the model to start from.
    #[error(
        "the model of `training.start_from` ({}) knows the labels {}, but `model.labels` has {}: leave the key out, or start \
         from a model without a classifier",
        model.display(), given.join(", "), asked.join(", ")
    )]
    OtherLabels {
        /// Its folder.
        model: PathBuf,
        /// Its labels.
        given: Vec<String>,
        /// The recipe's.
        asked: Vec<String>,
    },
    /// The model to start from is of another kind than the recipe's.
    #[error(
        "the model of `training.start_from` ({}) is not the recipe's:{}\nGive `[model]` the values of that \
         model.",
        model.display(),
        differences.iter().map(|one| format!("\n  {one}")).collect::<String>()
    )]
    OtherModel {
        /// Its folder.
        model: PathBuf,
        /// One sentence per difference.
        differences: Vec<String>,
    },
    /// The vocabularies of another model are for both sides together, and the recipe wants one each, or the other way.
    #[error(
        "the model of `tokenizer.from_model` ({}) has {}: set `tokenizer.shared` = {shared}",
        model.display(),
        if *shared { "one vocabulary for both languages" } else { "a vocabulary for each language" }
    )]
    OtherSharing {
        /// Its folder.
        model: PathBuf,
        /// Whether it has one for both.
        shared: bool,
    },
    /// More processes than batches in a step.
    #[error(
        "`training.accumulate` ({batches}) must be at least the number of processes ({processes}): each of them \
         computes a batch of every step. Raise it, and lower `training.batch_tokens` as much"
    )]
    TooManyProcesses {
        /// How many.
        processes: usize,
        /// Batches in a step.
        batches: usize,
    },
    /// Processes that do not belong together.
    #[error(
        "rank {rank} of {size} is not like rank 0:{}\nStart every rank with the same program, the same recipe and \
         the same data.",
        differences.iter().map(|one| format!("\n  {one}")).collect::<String>()
    )]
    UnlikeRanks {
        /// The one that differs.
        rank: usize,
        /// How many there are.
        size: usize,
        /// One sentence per difference.
        differences: Vec<String>,
    },
    /// The run would go on in another precision than it was begun with.
    #[error("{}", other_precision(run, *before, *possible))]
    OtherPrecision {
        /// The run's folder.
        run: PathBuf,
        /// What it was begun with.
        before: Precision,
        /// Whether the device has it.
        possible: bool,
    },
    /// The recipe asks for a precision that the device does not have.
    #[error(
        "`training.precision` (\"bf16\") needs a CPU with bf16 products (AVX512-BF16) or a GPU that computes in bf16, \
         and {device} does not. Set it to \"auto\" or \"f32\""
    )]
    Precision {
        /// The device, in words.
        device: &'static str,
    },
    /// Training diverged.
    #[error(
        "{message}. This happened {times} times in a row, so the run stops; its last checkpoint is intact. \
         Lower the learning rate (`schedule.factor` or `schedule.learning_rate`), lengthen \
         `schedule.warmup`, or set `training.clip_norm`"
    )]
    NotFinite {
        /// What was not finite, and where.
        message: String,
        /// Times in a row.
        times: u64,
    },
    /// A prepared corpus.
    #[error(transparent)]
    Prepared(#[from] PreparedError),
    /// A file of labelled texts.
    #[error(transparent)]
    Labelled(#[from] LabelledError),
    /// The run's folder and its checkpoints.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Files that the recipe names are not there.
    #[error("{}", missing_files(missing, dir))]
    MissingFiles {
        /// The files.
        missing: Vec<PathBuf>,
        /// The recipe's `data.dir`.
        dir: String,
    },
    /// Every pair was left out.
    #[error(
        "none of the {} {role} pairs can be used: {} have an empty side, {} have more than {longest} \
         tokens on a side; check the files, or raise `data.max_length`",
        report.read, report.empty, report.too_long
    )]
    NothingLeft {
        /// `training` or `validation`.
        role: &'static str,
        /// What became of the pairs.
        report: Report,
        /// The recipe's `data.max_length`.
        longest: usize,
    },
    /// The run was begun with something else.
    #[error(
        "the {what} has changed since {} was begun:{}\nUndo the change to continue the run, or start \
         a new one in another folder.",
        run.display(),
        differences.iter().map(|one| format!("\n  {one}")).collect::<String>()
    )]
    Changed {
        /// `recipe` or `corpus`.
        what: &'static str,
        /// The run's folder.
        run: PathBuf,
        /// One sentence per difference.
        differences: Vec<String>,
    },
}

impl TrainError {
    /// The same error, but if a full disk is at the bottom of it, said so with what to do about it.
    pub fn while_writing(self, path: &Path) -> Self {
        if matches!(self, TrainError::Storage(_)) || !disk_is_full(&self) {
            return self;
        }
        let source = io::Error::new(io::ErrorKind::StorageFull, self.to_string());
        TrainError::Storage(StorageError::DiskFull {
            path: path.to_owned(),
            source,
        })
    }
}

/// What can go wrong between a run and its folder.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// No space left.
    #[error(
        "the disk is full: could not write {} ({source})\nNothing half-written was kept, and earlier \
         checkpoints are untouched. Free some space, or lower `checkpoints.keep_last`, and start the \
         same command again: it continues from the last checkpoint.",
        path.display()
    )]
    DiskFull {
        /// What was to be written.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Anything else that the system refuses.
    #[error("could not {action} {}: {source}", path.display())]
    Io {
        /// What was tried: `write`, `read` and so on.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A checkpoint is not what its manifest says.
    #[error("the checkpoint {} is damaged: {}\n{remedy}", path.display(), problems.join("; "))]
    Damaged {
        /// The checkpoint.
        path: PathBuf,
        /// One sentence per file.
        problems: Vec<String>,
        /// What to do.
        remedy: String,
    },
    /// There are checkpoints, and none can be used.
    #[error(
        "no checkpoint of {} is intact:{}\nRestore the folder from a copy, or start anew in another \
         folder; nothing here has been changed.",
        path.display(),
        found.iter().map(|one| format!("\n  {one}")).collect::<String>()
    )]
    NoneIntact {
        /// The run.
        path: PathBuf,
        /// Each checkpoint with what is wrong with it.
        found: Vec<String>,
    },
    /// Another process trains in this folder.
    #[error(
        "another training is writing to {}: wait for it to end, or choose another folder",
        path.display()
    )]
    Locked {
        /// The run.
        path: PathBuf,
    },
    /// The folder belongs to something else.
    #[error(
        "{} is not empty and not a training run ({found} is in it): choose a new folder",
        path.display()
    )]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// One of the things in it.
        found: String,
    },
}

impl StorageError {
    /// Wraps a system error, and tells a full disk from the rest.
    pub fn io(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self {
        let path = path.to_owned();
        move |source| {
            let path = path.clone();
            if is_full(&source) {
                StorageError::DiskFull { path, source }
            } else {
                StorageError::Io {
                    action,
                    path,
                    source,
                }
            }
        }
    }
}

/// Whether a full disk (or an exhausted quota) is at the bottom of an error.
fn disk_is_full(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(is_full) {
            return true;
        }
        cause = error.source();
    }
    false
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

fn other_precision(run: &Path, before: Precision, possible: bool) -> String {
    let run = run.display();
    let name = match before {
        Precision::F32 => "f32",
        Precision::Bf16 => "bf16",
    };
    let remedy = if possible {
        format!("Continue it with --set training.precision={name}.")
    } else {
        format!(
            "Continue it on a CPU with {name} products, or begin another run with its weights: --set \
             training.start_from={run}"
        )
    };
    format!(
        "the run {run} was begun with matrix products in {name}; in another precision it would not be the \
         same run.\n{remedy}"
    )
}

fn missing_files(missing: &[PathBuf], dir: &str) -> String {
    let list: String = missing
        .iter()
        .map(|path| format!("\n  {}", path.display()))
        .collect();
    let (files, are) = if missing.len() == 1 {
        ("a file", "is")
    } else {
        ("files", "are")
    };
    let remedy = if dir.is_empty() {
        "set `data.dir` to the folder of the corpus (--set data.dir=FOLDER)".to_owned()
    } else {
        format!("is `data.dir` ({dir}) the right folder? --set data.dir=FOLDER changes it")
    };
    format!("{files} that the recipe names {are} not there:{list}\n{remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_below_another_crates_error_is_said_so() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let path = PathBuf::from("RUN/model.safetensors");
        let error = ModelError::Io {
            action: "write",
            path: path.clone(),
            source: full,
        };
        let message = TrainError::from(error).while_writing(&path).to_string();
        assert!(message.contains("the disk is full"), "{message}");
        assert!(message.contains("RUN/model.safetensors"), "{message}");
        assert!(
            message.contains("earlier checkpoints are untouched"),
            "{message}"
        );
    }

    #[test]
    fn a_full_disk_is_told_from_other_errors() {
        let path = Path::new("x");
        let wrapped = |kind| StorageError::io("write", path)(io::Error::from(kind));
        let full = wrapped(io::ErrorKind::StorageFull);
        assert!(matches!(full, StorageError::DiskFull { .. }) && disk_is_full(&full));
        assert!(!disk_is_full(&wrapped(io::ErrorKind::PermissionDenied)));
    }

    #[test]
    fn other_errors_stay_what_they_are_while_writing() {
        let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let path = PathBuf::from("x");
        let error = ModelError::Io {
            action: "write",
            path: path.clone(),
            source: denied,
        };
        assert!(matches!(
            TrainError::from(error).while_writing(&path),
            TrainError::Model(_)
        ));
    }

    #[test]
    fn missing_files_are_listed_with_the_way_to_name_the_right_folder() {
        let missing = vec![PathBuf::from("data/a.de"), PathBuf::from("data/a.en")];
        let message = TrainError::MissingFiles {
            missing,
            dir: "data".to_owned(),
        }
        .to_string();
        for part in [
            "data/a.de",
            "data/a.en",
            "`data.dir` (data)",
            "--set data.dir",
        ] {
            assert!(message.contains(part), "{message}");
        }
    }
}
