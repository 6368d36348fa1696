//! A checkpoint: one folder that is either complete or not there.
//!
//! [`write()`] fills it under another name, adds the manifest and renames it into place; [`verify`] tells
//! whether it is still what was written. Which checkpoints a run has and keeps is
//! [`crate::run::directory`].

use std::fs;
use std::path::{Path, PathBuf};

use attentive_model::durable;

use crate::error::{Result, StorageError};
use crate::run::manifest::{CheckpointKind, Manifest};

/// Where training stands: so many optimizer steps, and so many batches towards the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Optimizer steps done.
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

/// Writes a checkpoint, or another model of the run, with everything that `fill` puts into its folder: whole
/// or not at all.
///
/// One that has the same name already is replaced: a run that was continued from an older checkpoint comes
/// past the same steps again.
pub fn write(
    target: &Path,
    kind: CheckpointKind,
    fill: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let replaced = replaced_name(target);
    let complete = |folder: &Path| -> Result<()> {
        fill(folder).map_err(|error| error.while_writing(target))?;
        let manifest = Manifest::of(folder, kind)?;
        for file in &manifest.files {
            let path = folder.join(&file.name);
            durable::sync_file(&path).map_err(StorageError::io("write", &path))?;
        }
        manifest.write(folder)?;
        if target.exists() {
            // Until the new one is renamed only the other name exists; `restore_replaced` knows it.
            durable::rename(target, &replaced).map_err(StorageError::io("write", target))?;
        }
        Ok(())
    };
    let failed = |source| StorageError::io("write", target)(source).into();
    if let Err(error) = durable::write_folder(target, failed, complete) {
        restore_replaced(&replaced)?;
        return Err(error);
    }
    if replaced.exists() {
        fs::remove_dir_all(&replaced).map_err(StorageError::io("remove", &replaced))?;
    }
    Ok(())
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
    let fail = StorageError::io("read", folder);
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).map_err(&fail)? {
        let entry = entry.map_err(&fail)?;
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

/// Brings back a checkpoint whose replacement was cut short, and removes what is no longer needed; other
/// names are left alone.
pub(crate) fn restore_replaced(path: &Path) -> Result<(), StorageError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some(original) = name.strip_prefix(REPLACED).filter(|_| path.exists()) else {
        return Ok(());
    };
    let original = path.with_file_name(original);
    if original.exists() {
        return fs::remove_dir_all(path).map_err(StorageError::io("remove", path));
    }
    durable::rename(path, &original).map_err(StorageError::io("write", &original))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::directory::RunDir;

    fn run() -> (tempfile::TempDir, RunDir) {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::open_or_create(&dir.path().join("run")).unwrap();
        (dir, run)
    }

    fn at(step: u64) -> Position {
        Position {
            step,
            micro_step: 0,
        }
    }

    fn save(run: &RunDir, step: u64, weights: &[u8]) -> PathBuf {
        let path = run.checkpoint_path(at(step));
        write(&path, CheckpointKind::Epoch, |folder| {
            put(&folder.join("model.safetensors"), weights)?;
            put(&folder.join("state.json"), b"{}")
        })
        .unwrap();
        path
    }

    fn put(path: &Path, bytes: &[u8]) -> Result<()> {
        Ok(fs::write(path, bytes).map_err(StorageError::io("write", path))?)
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_committed_checkpoint_is_intact_and_has_its_name() {
        let (_dir, run) = run();
        let path = save(&run, 123, b"weights");
        assert_eq!(path, run.path().join("checkpoints/step-000123"));
        assert_eq!(
            names(&path),
            ["manifest.json", "model.safetensors", "state.json"]
        );
        let manifest = verify(&path).unwrap();
        assert_eq!(manifest.kind, CheckpointKind::Epoch);
        assert_eq!(manifest.files.len(), 2);
        assert_eq!(manifest.files[0].bytes, 7);
    }

    #[test]
    fn a_checkpoint_that_is_not_completed_leaves_no_trace_and_the_one_that_was_there() {
        let (_dir, run) = run();
        for old in [&[][..], &["step-000001"]] {
            let failed = write(
                &run.checkpoint_path(at(1)),
                CheckpointKind::Interval,
                |folder| {
                    put(&folder.join("model.safetensors"), b"half")?;
                    assert_eq!(names(&run.checkpoints_path()).len(), 1 + old.len());
                    put(&folder.join("no/such/folder"), b"")
                },
            );
            assert!(failed.is_err());
            assert_eq!(names(&run.checkpoints_path()), old);
            save(&run, 1, b"weights");
        }
        verify(&run.checkpoint_path(at(1))).unwrap();
    }

    /// `/dev/full` refuses every write as a full disk does.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_said_so_and_keeps_the_earlier_checkpoint() {
        let (_dir, run) = run();
        let old = save(&run, 1, b"weights");
        let error = write(
            &run.checkpoint_path(at(2)),
            CheckpointKind::Epoch,
            |folder| {
                let weights = folder.join("model.safetensors");
                std::os::unix::fs::symlink("/dev/full", &weights).unwrap();
                put(&weights, b"weights")
            },
        )
        .unwrap_err();
        let message = error.to_string();
        for part in ["the disk is full", "model.safetensors", "Free some space"] {
            assert!(message.contains(part), "{message}");
        }
        assert_eq!(names(&run.checkpoints_path()), ["step-000001"]);
        assert_eq!(run.latest_intact().unwrap().checkpoint, Some(old));
    }

    #[test]
    fn a_truncated_a_changed_and_a_missing_file_are_named_with_the_remedy() {
        let (_dir, run) = run();
        let old = save(&run, 1, b"weights");
        let new = save(&run, 2, b"weights");
        let weights = new.join("model.safetensors");
        for (spoil, expected) in [
            (
                Some(&b"weig"[..]),
                "model.safetensors has 4 bytes, expected 7",
            ),
            (Some(b"weightz"), "model.safetensors has checksum "),
            (None, "model.safetensors is missing (expected 7 bytes)"),
        ] {
            match spoil {
                Some(bytes) => fs::write(&weights, bytes).unwrap(),
                None => fs::remove_file(&weights).unwrap(),
            }
            let message = verify(&new).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
            assert!(message.contains(&new.display().to_string()), "{message}");
            assert!(
                message.contains(&format!("{} is intact", old.display())),
                "{message}"
            );
        }
        assert!(verify(&old).is_ok());
    }

    #[test]
    fn every_damaged_file_is_named() {
        let (_dir, run) = run();
        let path = save(&run, 1, b"weights");
        fs::write(path.join("model.safetensors"), b"").unwrap();
        fs::remove_file(path.join("state.json")).unwrap();
        let message = verify(&path).unwrap_err().to_string();
        assert!(
            message.contains("model.safetensors") && message.contains("state.json"),
            "{message}"
        );
        assert!(
            message.contains("No other checkpoint beside it is intact"),
            "{message}"
        );
    }

    #[test]
    fn a_truncated_manifest_is_damage_and_no_panic() {
        let (_dir, run) = run();
        let path = save(&run, 1, b"weights");
        let manifest = fs::read(path.join("manifest.json")).unwrap();
        for length in 0..manifest.len() - 2 {
            fs::write(path.join("manifest.json"), &manifest[..length]).unwrap();
            let message = verify(&path).unwrap_err().to_string();
            assert!(
                message.contains("manifest.json is not a manifest"),
                "{length}: {message}"
            );
        }
        fs::remove_file(path.join("manifest.json")).unwrap();
        assert!(
            verify(&path)
                .unwrap_err()
                .to_string()
                .contains("manifest.json cannot be read")
        );
    }

    #[test]
    fn a_checkpoint_of_the_same_step_is_replaced() {
        let (_dir, run) = run();
        save(&run, 5, b"old");
        let path = save(&run, 5, b"new");
        assert_eq!(fs::read(path.join("model.safetensors")).unwrap(), b"new");
        assert!(verify(&path).is_ok());
        assert_eq!(names(&run.checkpoints_path()), ["step-000005"]);
    }

    #[test]
    fn a_replacement_that_was_cut_short_gives_back_the_old_checkpoint() {
        let (dir, run) = run();
        let path = save(&run, 5, b"old");
        fs::rename(&path, replaced_name(&path)).unwrap();
        drop(run);
        let run = RunDir::open_or_create(&dir.path().join("run")).unwrap();
        assert_eq!(run.latest_intact().unwrap().checkpoint, Some(path.clone()));
        // And once the new one has its name, the old one goes.
        let again = replaced_name(&path);
        fs::create_dir(&again).unwrap();
        drop(run);
        RunDir::open_or_create(&dir.path().join("run")).unwrap();
        assert!(path.exists() && !again.exists());
    }

    #[test]
    fn a_model_beside_the_checkpoints_is_written_the_same_way() {
        let (_dir, run) = run();
        let path = run.path().join("average");
        write(&path, CheckpointKind::Model, |folder| {
            put(&folder.join("model.safetensors"), b"mean")
        })
        .unwrap();
        assert_eq!(verify(&path).unwrap().kind, CheckpointKind::Model);
        assert_eq!(run.checkpoints().unwrap(), []);
    }

    #[test]
    fn positions_and_folder_names_are_the_same_thing() {
        for (position, name) in [
            (at(0), "step-000000"),
            (at(123), "step-000123"),
            (
                Position {
                    step: 123,
                    micro_step: 4,
                },
                "step-000123-4",
            ),
            (at(12_345_678), "step-12345678"),
        ] {
            assert_eq!(position.folder_name(), name);
            assert_eq!(Position::from_folder_name(name), Some(position));
        }
        for other in [
            "step-",
            "step-12",
            "step-000001-0",
            "step-000001-2-3",
            ".tmp-step-000001-7",
            "x",
        ] {
            assert_eq!(Position::from_folder_name(other), None, "{other}");
        }
        assert!(
            at(123)
                < Position {
                    step: 123,
                    micro_step: 4
                }
        );
        assert!(
            Position {
                step: 123,
                micro_step: 4
            } < at(124)
        );
    }
}
