//! The folder of a run: which checkpoints there are, which is `best`, which is `last`, who may write.
//!
//! ```text
//! RUN/recipe.toml                the resolved recipe
//! RUN/metrics.jsonl              one line per event
//! RUN/checkpoints/step-000123/   a complete checkpoint, itself a model directory
//! RUN/average/                   the average of the last epochs' checkpoints, a model directory
//! RUN/best, RUN/last             links to two of these
//! ```
//! Checkpoints are written by [`crate::run::checkpoint`]; `attentive-runtime` opens `RUN` as a model.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use attentive_model::durable::{self, TEMPORARY};

use crate::Recipe;
use crate::error::StorageError;
use crate::recipe::RECIPE_FILE;
use crate::run::checkpoint::{self, Position};
use crate::run::manifest::{CheckpointKind, Manifest};

/// The folder of the checkpoints in the folder of a run.
pub const CHECKPOINTS: &str = "checkpoints";

/// The folder of the average of checkpoints.
const AVERAGE: &str = "average";

/// A link in the folder of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// The best model so far.
    Best,
    /// The newest checkpoint.
    Last,
}

impl Link {
    /// Both.
    pub const ALL: [Link; 2] = [Link::Best, Link::Last];

    /// Its file name.
    pub fn name(self) -> &'static str {
        match self {
            Link::Best => "best",
            Link::Last => "last",
        }
    }
}

/// The folder of a run, locked for this process as long as this value lives.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Closing the file gives up the lock.
    _lock: File,
}

/// Where to continue.
#[derive(Debug)]
pub struct Latest {
    /// The newest intact checkpoint; nothing in a new run.
    pub checkpoint: Option<PathBuf>,
    /// Newer ones that cannot be used, each with what is wrong; to be shown.
    pub damaged: Vec<StorageError>,
}

impl RunDir {
    /// Opens the folder of a run, or makes a new one; refuses a folder that holds anything else.
    pub fn open_or_create(path: &Path) -> Result<Self, StorageError> {
        let fail = StorageError::io("create the run folder", path);
        let checkpoints = path.join(CHECKPOINTS);
        if path.is_dir() && !checkpoints.is_dir() {
            refuse_foreign(path)?;
        }
        fs::create_dir_all(&checkpoints).map_err(fail)?;
        let run = RunDir {
            path: path.to_owned(),
            _lock: lock(path)?,
        };
        run.clean_up()?;
        Ok(run)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `RUN/checkpoints`.
    pub fn checkpoints_path(&self) -> PathBuf {
        self.path.join(CHECKPOINTS)
    }

    /// The folder of the checkpoint of this position.
    pub fn checkpoint_path(&self, position: Position) -> PathBuf {
        self.checkpoints_path().join(position.folder_name())
    }

    /// `RUN/recipe.toml`.
    pub fn recipe_path(&self) -> PathBuf {
        self.path.join(RECIPE_FILE)
    }

    /// `RUN/average`: the average of the last epochs' checkpoints.
    pub fn average_path(&self) -> PathBuf {
        self.path.join(AVERAGE)
    }

    /// Writes `RUN/recipe.toml`.
    pub fn write_recipe(&self, recipe: &Recipe) -> Result<(), StorageError> {
        let path = self.recipe_path();
        durable::write(&path, recipe.to_toml().as_bytes()).map_err(StorageError::io("write", &path))
    }

    /// `RUN/metrics.jsonl`.
    pub fn metrics_path(&self) -> PathBuf {
        self.path.join("metrics.jsonl")
    }

    /// Every checkpoint, oldest first, intact or not.
    pub fn checkpoints(&self) -> Result<Vec<(Position, PathBuf)>, StorageError> {
        checkpoint::list(&self.checkpoints_path())
    }

    /// The checkpoints that were written at the end of an epoch, oldest first.
    pub fn epoch_checkpoints(&self) -> Result<Vec<PathBuf>, StorageError> {
        let all = self.checkpoints()?.into_iter().map(|(_, path)| path);
        Ok(all.filter(|path| is_epoch(path)).collect())
    }

    /// The newest checkpoint that is intact, and the newer ones that are not.
    ///
    /// If there are checkpoints but none is intact this is an error: starting over in silence would
    /// bury them.
    pub fn latest_intact(&self) -> Result<Latest, StorageError> {
        let mut damaged = Vec::new();
        for (_, path) in self.checkpoints()?.into_iter().rev() {
            match checkpoint::verify(&path) {
                Ok(_) => {
                    return Ok(Latest {
                        checkpoint: Some(path),
                        damaged,
                    });
                }
                Err(error) => damaged.push(error),
            }
        }
        if damaged.is_empty() {
            return Ok(Latest {
                checkpoint: None,
                damaged,
            });
        }
        let describe = |error: &StorageError| match error {
            StorageError::Damaged { path, problems, .. } => {
                format!("{}: {}", path.display(), problems.join("; "))
            }
            other => other.to_string(),
        };
        let found = damaged.iter().map(describe).collect();
        Err(StorageError::NoneIntact {
            path: self.path.clone(),
            found,
        })
    }

    /// Makes `best` or `last` point to a checkpoint (or to a model in the run's folder).
    pub fn point(&self, link: Link, target: &Path) -> Result<(), StorageError> {
        // Relative, so that the run can be moved.
        let target = target.strip_prefix(&self.path).unwrap_or(target);
        let link = self.path.join(link.name());
        durable::replace_link(&link, target).map_err(StorageError::io("link", &link))
    }

    /// What `best` or `last` points to, if it points to anything that is there.
    pub fn target(&self, link: Link) -> Option<PathBuf> {
        let target = fs::read_link(self.path.join(link.name())).ok()?;
        let target = self.path.join(target);
        target.is_dir().then_some(target)
    }

    /// Removes old checkpoints; returns which.
    ///
    /// Kept are the newest `keep_last`, the newest `keep_epochs` that ended an epoch (to be
    /// averaged), and always what `best` and `last` point to.
    pub fn prune(
        &self,
        keep_last: usize,
        keep_epochs: usize,
    ) -> Result<Vec<PathBuf>, StorageError> {
        let linked: Vec<PathBuf> = Link::ALL
            .into_iter()
            .filter_map(|link| self.target(link))
            .collect();
        let (mut newest, mut epochs) = (keep_last, keep_epochs);
        let mut removed = Vec::new();
        for (_, path) in self.checkpoints()?.into_iter().rev() {
            let among_newest = take_one(&mut newest);
            let among_epochs = epochs > 0 && is_epoch(&path) && take_one(&mut epochs);
            if !among_newest && !among_epochs && !linked.contains(&path) {
                durable::remove_folder(&path).map_err(StorageError::io("remove", &path))?;
                removed.push(path);
            }
        }
        Ok(removed)
    }

    /// Removes what an interrupted process left; the lock says that nobody is still writing it.
    fn clean_up(&self) -> Result<(), StorageError> {
        for folder in [self.path.clone(), self.checkpoints_path()] {
            let fail = StorageError::io("read", &folder);
            for entry in fs::read_dir(&folder).map_err(&fail)? {
                let path = entry.map_err(&fail)?.path();
                checkpoint::restore_replaced(&path)?;
                let name = path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                if name.starts_with(TEMPORARY) {
                    let is_folder = path.is_dir() && !path.is_symlink();
                    let removed = if is_folder {
                        fs::remove_dir_all(&path)
                    } else {
                        fs::remove_file(&path)
                    };
                    removed.map_err(StorageError::io("remove", &path))?;
                }
            }
        }
        Ok(())
    }
}

/// Takes one from a number that is left to give; whether there was one.
fn take_one(left: &mut usize) -> bool {
    let there = *left > 0;
    *left = left.saturating_sub(1);
    there
}

fn is_epoch(checkpoint: &Path) -> bool {
    Manifest::read(checkpoint).is_ok_and(|manifest| manifest.kind == CheckpointKind::Epoch)
}

/// What a run has beside its checkpoints; a folder with only these has lost them, or never had any.
const OWN_FILES: [&str; 5] = [RECIPE_FILE, "metrics.jsonl", "tensorboard", "best", "last"];

/// A folder with anything but hidden files and a run's own in it belongs to someone else.
fn refuse_foreign(path: &Path) -> Result<(), StorageError> {
    let fail = StorageError::io("read", path);
    for entry in fs::read_dir(path).map_err(&fail)? {
        let found = entry
            .map_err(&fail)?
            .file_name()
            .to_string_lossy()
            .into_owned();
        if !found.starts_with('.') && !OWN_FILES.contains(&found.as_str()) {
            return Err(StorageError::NotARun {
                path: path.to_owned(),
                found,
            });
        }
    }
    Ok(())
}

fn lock(run: &Path) -> Result<File, StorageError> {
    let path = run.join(".lock");
    let open = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let file = open.map_err(StorageError::io("create", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StorageError::Locked {
            path: run.to_owned(),
        }),
        // A file system without locks must not keep anyone from training.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(file),
        Err(TryLockError::Error(source)) => Err(StorageError::io("lock", &path)(source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> (tempfile::TempDir, RunDir) {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::open_or_create(&dir.path().join("new/run")).unwrap();
        (dir, run)
    }

    fn save(run: &RunDir, step: u64, micro_step: u64, kind: CheckpointKind) -> PathBuf {
        let path = run.checkpoint_path(Position { step, micro_step });
        checkpoint::write(&path, kind, |folder| {
            fs::write(folder.join("model.safetensors"), b"weights").unwrap();
            Ok(())
        })
        .unwrap();
        path
    }

    fn left(run: &RunDir) -> Vec<u64> {
        run.checkpoints()
            .unwrap()
            .iter()
            .map(|(position, _)| position.step)
            .collect()
    }

    #[test]
    fn a_new_run_has_nothing_to_continue() {
        let (_dir, run) = run();
        let latest = run.latest_intact().unwrap();
        assert!(latest.checkpoint.is_none() && latest.damaged.is_empty());
        assert!(run.checkpoints_path().is_dir());
    }

    #[test]
    fn the_newest_intact_checkpoint_is_found_and_the_damaged_ones_are_told() {
        let (_dir, run) = run();
        let oldest = save(&run, 9, 0, CheckpointKind::Epoch);
        let middle = save(&run, 10, 0, CheckpointKind::Epoch);
        let newest = save(&run, 10, 3, CheckpointKind::Interval);
        assert_eq!(
            run.latest_intact().unwrap().checkpoint,
            Some(newest.clone())
        );
        fs::write(newest.join("model.safetensors"), "wei").unwrap();
        let latest = run.latest_intact().unwrap();
        assert_eq!(latest.checkpoint, Some(middle.clone()));
        assert_eq!(latest.damaged.len(), 1);
        let message = latest.damaged[0].to_string();
        assert!(
            message.contains("model.safetensors has 3 bytes, expected 7"),
            "{message}"
        );
        assert!(message.contains("step-000010 is intact"), "{message}");
        fs::remove_dir_all(middle).unwrap();
        assert_eq!(run.latest_intact().unwrap().checkpoint, Some(oldest));
    }

    #[test]
    fn a_run_with_only_damaged_checkpoints_is_not_begun_anew_in_silence() {
        let (_dir, run) = run();
        for step in [1, 2] {
            let path = save(&run, step, 0, CheckpointKind::Epoch);
            fs::remove_file(path.join("model.safetensors")).unwrap();
        }
        let message = run.latest_intact().unwrap_err().to_string();
        assert!(message.contains("no checkpoint of"), "{message}");
        assert!(
            message.contains("step-000001") && message.contains("step-000002"),
            "{message}"
        );
    }

    #[test]
    fn links_are_relative_and_move_with_the_run() {
        let (dir, run) = run();
        let path = save(&run, 7, 0, CheckpointKind::Epoch);
        run.point(Link::Best, &path).unwrap();
        run.point(Link::Last, &path).unwrap();
        let link = fs::read_link(run.path().join("best")).unwrap();
        assert_eq!(link, Path::new("checkpoints/step-000007"));
        assert_eq!(run.target(Link::Last), Some(path));
        drop(run);
        fs::rename(dir.path().join("new"), dir.path().join("moved")).unwrap();
        let moved = RunDir::open_or_create(&dir.path().join("moved/run")).unwrap();
        let target = moved.target(Link::Best).unwrap();
        assert!(target.join("model.safetensors").is_file());
    }

    #[test]
    fn a_link_to_nothing_is_no_target() {
        let (_dir, run) = run();
        assert_eq!(run.target(Link::Best), None);
        run.point(Link::Best, Path::new("checkpoints/step-000001"))
            .unwrap();
        assert_eq!(run.target(Link::Best), None);
    }

    #[test]
    fn pruning_keeps_the_newest_and_what_the_links_point_to() {
        let (_dir, run) = run();
        let paths: Vec<PathBuf> = (1..=6)
            .map(|step| save(&run, step, 0, CheckpointKind::Interval))
            .collect();
        run.point(Link::Best, &paths[1]).unwrap();
        run.point(Link::Last, &paths[5]).unwrap();
        let removed = run.prune(2, 0).unwrap();
        assert_eq!(left(&run), [2, 5, 6]);
        assert_eq!(
            removed,
            [paths[3].clone(), paths[2].clone(), paths[0].clone()]
        );
        run.prune(0, 0).unwrap();
        assert_eq!(left(&run), [2, 6]);
    }

    #[test]
    fn pruning_keeps_the_epochs_that_are_to_be_averaged() {
        let (_dir, run) = run();
        for step in 1..=8 {
            let kind = if step % 2 == 0 {
                CheckpointKind::Epoch
            } else {
                CheckpointKind::Interval
            };
            save(&run, step, 0, kind);
        }
        run.prune(1, 3).unwrap();
        assert_eq!(left(&run), [4, 6, 8]);
        let epochs = run.epoch_checkpoints().unwrap();
        assert_eq!(epochs.len(), 3);
        assert!(epochs[0].ends_with("step-000004"));
    }

    #[test]
    fn what_an_interrupted_process_left_is_cleaned_up() {
        let (dir, run) = run();
        let kept = save(&run, 1, 0, CheckpointKind::Epoch);
        let half = run.checkpoints_path().join(".tmp-step-000002-4711");
        fs::create_dir(&half).unwrap();
        fs::write(half.join("model.safetensors"), "half").unwrap();
        let file = run.path().join(".tmp-recipe.toml-4711");
        fs::write(&file, "half").unwrap();
        durable::replace_link(
            &run.path().join(".tmp-best-4711"),
            Path::new("checkpoints/step-000001"),
        )
        .unwrap();
        drop(run);
        let run = RunDir::open_or_create(&dir.path().join("new/run")).unwrap();
        assert!(!half.exists() && !file.exists());
        assert!(!run.path().join(".tmp-best-4711").is_symlink());
        assert!(kept.join("model.safetensors").is_file());
    }

    #[test]
    fn two_trainings_cannot_write_one_run() {
        let (dir, run) = run();
        let error = RunDir::open_or_create(run.path()).unwrap_err();
        assert!(matches!(error, StorageError::Locked { .. }), "{error}");
        drop(run);
        RunDir::open_or_create(&dir.path().join("new/run")).unwrap();
    }

    #[test]
    fn a_folder_that_holds_something_else_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.tex"), "").unwrap();
        let message = RunDir::open_or_create(dir.path()).unwrap_err().to_string();
        assert!(message.contains("thesis.tex"), "{message}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_run_whose_checkpoints_were_removed_can_be_begun_anew() {
        let (dir, run) = run();
        fs::write(run.recipe_path(), "").unwrap();
        fs::write(run.metrics_path(), "").unwrap();
        fs::create_dir(run.average_path()).unwrap();
        fs::remove_dir_all(run.checkpoints_path()).unwrap();
        drop(run);
        let run = RunDir::open_or_create(&dir.path().join("new/run")).unwrap();
        assert!(run.latest_intact().unwrap().checkpoint.is_none());
    }

    #[test]
    fn a_file_in_place_of_the_folder_is_an_error_with_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        fs::write(&path, "").unwrap();
        let message = RunDir::open_or_create(&path).unwrap_err().to_string();
        assert!(message.contains(&path.display().to_string()), "{message}");
    }
}
