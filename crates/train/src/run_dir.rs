//! The folder of a run: which checkpoints there are, which is `best`, which is `last`, who may write.
//!
//! ```text
//! RUN/recipe.toml                the resolved recipe
//! RUN/metrics.jsonl              one line per event
//! RUN/checkpoints/step-000123/   a complete checkpoint, itself a model directory
//! RUN/best, RUN/last             links to two of them
//! ```
//! Checkpoints are written by [`crate::checkpoint`]; `attentive-runtime` opens `RUN` as a model.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::checkpoint::{self, Position};
use crate::durable::{self, StorageError, TEMPORARY};
use crate::manifest::{CheckpointKind, Manifest};

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
        let fail = |source| StorageError::io("create the run folder", path, source);
        let checkpoints = path.join("checkpoints");
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
        self.path.join("checkpoints")
    }

    /// `RUN/recipe.toml`.
    pub fn recipe_path(&self) -> PathBuf {
        self.path.join("recipe.toml")
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
        durable::point(&self.path.join(link.name()), target)
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
                durable::remove_folder(&path)?;
                removed.push(path);
            }
        }
        Ok(removed)
    }

    /// Removes what an interrupted process left; the lock says that nobody is still writing it.
    fn clean_up(&self) -> Result<(), StorageError> {
        for folder in [self.path.clone(), self.checkpoints_path()] {
            let fail = |source| StorageError::io("read", &folder, source);
            for entry in fs::read_dir(&folder).map_err(fail)? {
                let path = entry.map_err(fail)?.path();
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
                    removed.map_err(|source| StorageError::io("remove", &path, source))?;
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

/// A folder with anything but hidden files in it belongs to someone else.
fn refuse_foreign(path: &Path) -> Result<(), StorageError> {
    let fail = |source| StorageError::io("read", path, source);
    for entry in fs::read_dir(path).map_err(fail)? {
        let found = entry
            .map_err(fail)?
            .file_name()
            .to_string_lossy()
            .into_owned();
        if !found.starts_with('.') {
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
    let file = open.map_err(|source| StorageError::io("create", &path, source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StorageError::Locked {
            path: run.to_owned(),
        }),
        // A file system without locks must not keep anyone from training.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(file),
        Err(TryLockError::Error(source)) => Err(StorageError::io("lock", &path, source)),
    }
}
