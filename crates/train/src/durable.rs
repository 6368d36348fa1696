//! Writing so that a crash, a power cut or a full disk leaves either the old or the new, never half.
//!
//! Everything that a run writes goes through here: aside first, synced, then renamed into place, and
//! the folder synced too, since a rename lives in the folder. Used by [`crate::run::checkpoint`],
//! [`crate::run::directory`] and [`crate::run::log`].

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Names that begin with this are unfinished and may be removed by whoever holds the run's lock.
pub const TEMPORARY: &str = ".tmp-";

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
    pub fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match is_full(&source) {
            true => StorageError::DiskFull { path, source },
            false => StorageError::Io {
                action,
                path,
                source,
            },
        }
    }
}

/// Whether a full disk (or an exhausted quota) is at the bottom of an error.
pub fn disk_is_full(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(is_full) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Replaces a file by these bytes, or leaves it as it is.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    let aside = aside(path);
    let written = create_synced(&aside, bytes).and_then(|()| rename(&aside, path));
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written
}

/// Writes a new file and waits until it is on the disk.
pub fn create_synced(path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    let fail = |source| StorageError::io("write", path, source);
    let mut file = File::create(path).map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    file.sync_all().map_err(fail)
}

/// Waits until a file that someone else wrote is on the disk.
pub fn sync_file(path: &Path) -> Result<(), StorageError> {
    let fail = |source| StorageError::io("write", path, source);
    // Some systems sync only what is open for writing.
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(fail)?;
    file.sync_all().map_err(fail)
}

/// Renames within a folder and waits until the folder knows.
pub fn rename(from: &Path, to: &Path) -> Result<(), StorageError> {
    fs::rename(from, to).map_err(|source| StorageError::io("write", to, source))?;
    sync_folder_of(to)
}

/// Makes `link` point to `target`, replacing what it pointed to in one moment.
pub fn point(link: &Path, target: &Path) -> Result<(), StorageError> {
    let aside = aside(link);
    let _ = fs::remove_file(&aside);
    symlink(target, &aside).map_err(|source| StorageError::io("link", link, source))?;
    let moved = rename(&aside, link);
    if moved.is_err() {
        let _ = fs::remove_file(&aside);
    }
    moved
}

/// Waits until the entries of a folder are on the disk.
pub fn sync_folder(folder: &Path) -> Result<(), StorageError> {
    if cfg!(unix) {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|source| StorageError::io("write", folder, source))?;
    }
    Ok(())
}

/// Removes a folder so that a crash on the way leaves no half of it under its own name.
pub fn remove_folder(folder: &Path) -> Result<(), StorageError> {
    let aside = aside(folder);
    rename(folder, &aside)?;
    fs::remove_dir_all(&aside).map_err(|source| StorageError::io("remove", folder, source))
}

/// Where something is written before it gets its name.
pub fn aside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{TEMPORARY}{name}-{}", std::process::id()))
}

fn sync_folder_of(path: &Path) -> Result<(), StorageError> {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => sync_folder(Path::new(".")),
        Some(folder) => sync_folder(folder),
        None => Ok(()),
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

#[cfg(unix)]
fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(windows)]
fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_dir(target, link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("recipe.toml");
        write_file(&path, b"old").unwrap();
        write_file(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_moves_from_one_target_to_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("best");
        point(&link, Path::new("checkpoints/step-000001")).unwrap();
        point(&link, Path::new("checkpoints/step-000002")).unwrap();
        assert_eq!(
            fs::read_link(&link).unwrap(),
            Path::new("checkpoints/step-000002")
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_full_disk_is_recognised_below_other_errors() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let wrapped = StorageError::Io {
            action: "write",
            path: "x".into(),
            source: full(),
        };
        assert!(disk_is_full(&wrapped));
        assert!(matches!(
            StorageError::io("write", Path::new("x"), full()),
            StorageError::DiskFull { .. }
        ));
        let other = io::Error::from(io::ErrorKind::PermissionDenied);
        assert!(!disk_is_full(&StorageError::io(
            "write",
            Path::new("x"),
            other
        )));
    }
}
