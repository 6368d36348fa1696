//! A checkpoint: one folder that is either complete or not there.
//!
//! [`CheckpointWriter::begin`] opens a folder aside, the trainer writes into it, and
//! [`CheckpointWriter::commit`] syncs every file, adds the manifest and renames the folder into
//! place. [`verify`] tells whether a checkpoint is still what was written. Which checkpoints a run
//! has and keeps is [`crate::run_dir`].

use std::fs;
use std::path::{Path, PathBuf};

use crate::durable::{self, StorageError};
use crate::manifest::{CheckpointKind, Manifest};
use crate::run_dir::RunDir;

/// Where training stands: so many optimiser steps, and so many batches towards the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Optimiser steps done.
    pub step: u64,
    /// Batches whose gradients wait to be part of the next step.
    pub micro_step: u64,
}

impl Position {
    /// The folder's name: `step-000123`, or `step-000123-4` in the middle of an accumulation.
    pub fn folder_name(self) -> String {
        match self.micro_step {
            0 => format!("step-{:06}", self.step),
            micro => format!("step-{:06}-{micro}", self.step),
        }
    }

    /// Reads [`Position::folder_name`] back; nothing for any other name.
    pub fn from_folder_name(name: &str) -> Option<Self> {
        let mut numbers = name
            .strip_prefix("step-")?
            .split('-')
            .map(str::parse::<u64>);
        let step = numbers.next()?.ok()?;
        let micro_step = numbers.next().unwrap_or(Ok(0)).ok()?;
        let position = Position { step, micro_step };
        (position.folder_name() == name).then_some(position)
    }
}

/// A checkpoint being written; dropped without [`CheckpointWriter::commit`], it leaves no trace.
#[derive(Debug)]
pub struct CheckpointWriter {
    aside: PathBuf,
    target: PathBuf,
    kind: CheckpointKind,
    /// Set once the folder has its name and there is nothing left to clean up.
    done: bool,
}

impl CheckpointWriter {
    /// Opens a folder for the checkpoint of this position.
    pub fn begin(
        run: &RunDir,
        position: Position,
        kind: CheckpointKind,
    ) -> Result<Self, StorageError> {
        Self::begin_at(run.checkpoints_path().join(position.folder_name()), kind)
    }

    /// Opens a folder for a finished model beside the checkpoints, such as `RUN/average`.
    pub fn begin_model(run: &RunDir, name: &str) -> Result<Self, StorageError> {
        Self::begin_at(run.path().join(name), CheckpointKind::Model)
    }

    fn begin_at(target: PathBuf, kind: CheckpointKind) -> Result<Self, StorageError> {
        let aside = durable::aside(&target);
        let fail = |source| StorageError::io("create", &aside, source);
        if aside.exists() {
            fs::remove_dir_all(&aside).map_err(fail)?;
        }
        fs::create_dir(&aside).map_err(fail)?;
        Ok(CheckpointWriter {
            aside,
            target,
            kind,
            done: false,
        })
    }

    /// The folder to write files into.
    pub fn path(&self) -> &Path {
        &self.aside
    }

    /// Writes one file.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StorageError> {
        let path = self.aside.join(name);
        fs::write(&path, bytes).map_err(|source| StorageError::io("write", &path, source))
    }

    /// Makes the checkpoint real, in one moment, and returns its path.
    ///
    /// One that has the same name already is replaced: a run that was continued from an older
    /// checkpoint comes past the same steps again.
    pub fn commit(mut self) -> Result<PathBuf, StorageError> {
        let manifest = Manifest::of(&self.aside, self.kind)?;
        for file in &manifest.files {
            durable::sync_file(&self.aside.join(&file.name))?;
        }
        manifest.write(&self.aside)?;
        durable::sync_folder(&self.aside)?;
        let replaced = replaced_name(&self.target);
        let replaces = self.target.exists();
        if replaces {
            // Between the two renames only the other name exists; `restore_replaced` knows it.
            durable::rename(&self.target, &replaced)?;
        }
        if let Err(error) = durable::rename(&self.aside, &self.target) {
            if replaces {
                let _ = fs::rename(&replaced, &self.target);
            }
            return Err(error);
        }
        self.done = true;
        if replaces {
            let removed = fs::remove_dir_all(&replaced);
            removed.map_err(|source| StorageError::io("remove", &replaced, source))?;
        }
        Ok(self.target.clone())
    }
}

impl Drop for CheckpointWriter {
    fn drop(&mut self) {
        if !self.done {
            let _ = fs::remove_dir_all(&self.aside);
        }
    }
}

/// Checks every file of a checkpoint against its manifest.
///
/// The error names each file that is missing, truncated or changed, and the newest other checkpoint
/// beside it that is intact.
pub fn verify(checkpoint: &Path) -> Result<Manifest, StorageError> {
    let problems = match Manifest::read(checkpoint) {
        Err(problem) => vec![problem],
        Ok(manifest) => match manifest.problems(checkpoint) {
            problems if problems.is_empty() => return Ok(manifest),
            problems => problems,
        },
    };
    let intact = others(checkpoint)
        .into_iter()
        .find(|other| is_intact(other));
    let remedy = match intact {
        Some(other) => format!(
            "{} is intact: use that one, or restore this from a copy.",
            other.display()
        ),
        None => "No other checkpoint beside it is intact: restore it from a copy.".to_owned(),
    };
    Err(StorageError::Damaged {
        path: checkpoint.to_owned(),
        problems,
        remedy,
    })
}

/// Whether every file is as its manifest says.
fn is_intact(checkpoint: &Path) -> bool {
    Manifest::read(checkpoint).is_ok_and(|manifest| manifest.problems(checkpoint).is_empty())
}

/// The other checkpoints in the same folder, newest first.
fn others(checkpoint: &Path) -> Vec<PathBuf> {
    // `best` and `last` are links: the siblings are where they lead to.
    let real = checkpoint
        .canonicalize()
        .unwrap_or_else(|_| checkpoint.to_owned());
    let Some(folder) = real.parent() else {
        return Vec::new();
    };
    let mut all = list(folder).unwrap_or_default();
    all.retain(|(_, path)| *path != real);
    all.into_iter().rev().map(|(_, path)| path).collect()
}

/// The checkpoints in a folder, oldest first.
pub(crate) fn list(folder: &Path) -> Result<Vec<(Position, PathBuf)>, StorageError> {
    let fail = |source| StorageError::io("read", folder, source);
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if let Some(position) = entry
            .file_name()
            .to_str()
            .and_then(Position::from_folder_name)
        {
            all.push((position, entry.path()));
        }
    }
    all.sort();
    Ok(all)
}

const REPLACED: &str = ".replaced-";

fn replaced_name(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!("{REPLACED}{name}"))
}

/// Brings back a checkpoint whose replacement was cut short, and removes what is no longer needed.
pub(crate) fn restore_replaced(path: &Path) -> Result<(), StorageError> {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let Some(original) = name.strip_prefix(REPLACED) else {
        return Ok(());
    };
    let original = path.with_file_name(original);
    if original.exists() {
        return fs::remove_dir_all(path).map_err(|source| StorageError::io("remove", path, source));
    }
    durable::rename(path, &original)
}
