//! Writing so that a crash, a power cut or a full disk leaves either the old file or the new one, never half.
//!
//! Everything that must last goes through here: it is written to a temporary file in the same folder, synced,
//! renamed into place, and the folder is synced too, since a rename is an entry of the folder. Used for model
//! directories, tokenizers, checkpoints, the files of a training run and the output files of commands.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::{NamedTempFile, TempDir};

/// Names that begin with this are unfinished, and may be removed once their writer is gone.
pub const TEMPORARY: &str = ".tmp-";

/// A file that appears under its name when it is complete ([`DurableFile::commit`]); dropped before
/// that, it leaves nothing behind.
#[derive(Debug)]
pub struct DurableFile {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl DurableFile {
    /// Begins a file that is to replace `path`; its folder must exist.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(TEMPORARY);
        // Temporary files are private by default; this one is to be like any other file.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder.tempfile_in(folder_of(path))?;
        Ok(Self {
            file: BufWriter::with_capacity(1 << 20, file),
            path: path.to_path_buf(),
        })
    }

    /// Waits until the contents are on the disk, then gives the file its name.
    pub fn commit(self) -> io::Result<()> {
        let file = self.file.into_inner()?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        sync_folder(folder_of(&self.path))
    }
}

impl Write for DurableFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Replaces a file by these bytes, or leaves it as it is.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = DurableFile::create(path)?;
    file.write_all(bytes)?;
    file.commit()
}

/// A new folder that `fill` writes into under another name, and that gets its name when it is complete.
/// The errors of `fill` and of the file system, which `failed` turns into the same type, both end it; nothing
/// is left behind then.
pub fn write_folder<T, E>(
    path: &Path,
    failed: impl Fn(io::Error) -> E,
    fill: impl FnOnce(&Path) -> Result<T, E>,
) -> Result<T, E> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
    let unfinished: TempDir = builder.tempdir_in(folder_of(path)).map_err(&failed)?;
    let result = fill(unfinished.path())?;
    sync_folder(unfinished.path()).map_err(&failed)?;
    rename(unfinished.path(), path).map_err(&failed)?;
    let _ = unfinished.keep();
    Ok(result)
}

/// Waits until a file that someone else wrote is on the disk.
pub fn sync_file(path: &Path) -> io::Result<()> {
    // Some systems sync only what is open for writing.
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    file.sync_all()
}

/// Waits until the entries of a folder are on the disk.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Renames within a folder and waits until the folder is on the disk.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_folder(folder_of(to))
}

/// Makes the symbolic link `link` point to `target`, replacing what it pointed to in one moment.
pub fn replace_link(link: &Path, target: &Path) -> io::Result<()> {
    let unfinished = temporary_name(link);
    let _ = fs::remove_file(&unfinished);
    symlink(target, &unfinished)?;
    let renamed = rename(&unfinished, link);
    if renamed.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    renamed
}

/// Removes a folder so that a crash on the way leaves no half of it under its own name.
pub fn remove_folder(folder: &Path) -> io::Result<()> {
    let unwanted = temporary_name(folder);
    rename(folder, &unwanted)?;
    fs::remove_dir_all(&unwanted)
}

/// A name beside `path` that says that it is unfinished, and that no other process or thread has.
fn temporary_name(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    path.with_file_name(format!("{TEMPORARY}{name}-{process}-{number}"))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
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

    fn entries(folder: &Path) -> usize {
        fs::read_dir(folder).expect("a folder").count()
    }

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("recipe.toml");
        write(&path, b"old").expect("a writable directory");
        write(&path, b"new").expect("a writable directory");
        assert_eq!(fs::read(&path).expect("just written"), b"new");
        assert_eq!(entries(dir.path()), 1);
    }

    #[test]
    fn a_file_that_is_not_committed_leaves_the_old_one() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("out.txt");
        write(&path, b"old").expect("a writable directory");
        let mut file = DurableFile::create(&path).expect("a writable directory");
        file.write_all(b"new").expect("written");
        drop(file);
        assert_eq!(fs::read(&path).expect("still there"), b"old");
        assert_eq!(entries(dir.path()), 1);
    }

    #[cfg(unix)]
    #[test]
    fn files_may_be_read_by_others_as_the_umask_says() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (ours, plain) = (dir.path().join("ours"), dir.path().join("plain"));
        write(&ours, b"").expect("a writable directory");
        fs::write(&plain, b"").expect("a writable directory");
        let mode = |path| {
            fs::metadata(path)
                .expect("just written")
                .permissions()
                .mode()
        };
        assert_eq!(mode(&ours), mode(&plain));
    }

    #[test]
    fn a_folder_appears_complete_or_not_at_all() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("model");
        let failed = write_folder(&path, io::Error::from, |folder| {
            fs::write(folder.join("half"), b"x")?;
            Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert!(failed.is_err());
        assert_eq!(entries(dir.path()), 0);
        write_folder(&path, io::Error::from, |folder| {
            fs::write(folder.join("whole"), b"x")
        })
        .expect("a writable directory");
        assert!(path.join("whole").is_file());
        assert_eq!(entries(dir.path()), 1);
    }

    #[test]
    fn a_link_moves_from_one_target_to_the_next() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let link = dir.path().join("best");
        for target in ["checkpoints/step-000001", "checkpoints/step-000002"] {
            replace_link(&link, Path::new(target)).expect("a writable directory");
            assert_eq!(fs::read_link(&link).expect("a link"), Path::new(target));
        }
        assert_eq!(entries(dir.path()), 1);
    }
}
