//! Where results go: standard output, or a file that appears only when it is complete.
//!
//! A command that fails half way leaves the old file, or none ([`DurableFile`]). Devices and pipes
//! (`/dev/null`) are written to directly.

use std::fs::{self, File};
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use attentive_model::durable::DurableFile;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::exit::Ending;

/// Where results go.
pub enum Output {
    /// Standard output.
    Stdout(BufWriter<StdoutLock<'static>>),
    /// A file.
    File(FileOutput),
}

/// A file that is being written.
pub struct FileOutput {
    target: PathBuf,
    writer: Writer,
}

enum Writer {
    File(DurableFile),
    Device(BufWriter<File>),
}

impl Output {
    /// The file, or standard output without one or with `-`.
    pub fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        match path {
            None => Ok(Self::stdout()),
            Some(path) if path == Path::new("-") => Ok(Self::stdout()),
            Some(path) => FileOutput::create(path).map(Self::File),
        }
    }

    /// Standard output.
    pub fn stdout() -> Self {
        Self::Stdout(BufWriter::new(io::stdout().lock()))
    }

    /// Completes what was written; without this a file is thrown away.
    pub fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Stdout(mut stdout) => stdout.flush().context("cannot write to standard output"),
            Self::File(file) => file.finish(),
        }
    }
}

impl FileOutput {
    /// Begins a file; folders on the way to it are made.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        // A link is followed, so that the file it leads to is replaced and not the link.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let shown = path.display();
        if target.is_dir() {
            bail!("cannot write {shown}: it is a folder; give the name of a file in it");
        }
        if target.file_name().is_none() {
            bail!("cannot write {shown}: that is not the name of a file");
        }
        if target.exists() && !target.is_file() {
            let file = File::create(&target).with_context(|| format!("cannot write {shown}"))?;
            let writer = Writer::Device(BufWriter::new(file));
            return Ok(Self { target, writer });
        }
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot write {shown}: no folder can be made for it"))?;
        }
        let file = DurableFile::create(&target).with_context(|| format!("cannot write {shown}"))?;
        let writer = Writer::File(file);
        Ok(Self { target, writer })
    }

    fn writer(&mut self) -> &mut dyn Write {
        match &mut self.writer {
            Writer::File(file) => file,
            Writer::Device(file) => file,
        }
    }

    /// Completes the file; without this it is thrown away.
    pub fn finish(self) -> anyhow::Result<()> {
        let written = match self.writer {
            Writer::File(file) => file.commit(),
            Writer::Device(mut file) => file.flush(),
        };
        Ok(written.map_err(|error| named(&self.target, error))?)
    }
}

/// The same error, with the file's name.
fn named(target: &Path, error: io::Error) -> io::Error {
    let message = format!("cannot write {}: {error}", target.display());
    io::Error::new(error.kind(), message)
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::File(output) => output.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::File(output) => output.flush(),
        }
    }
}

impl Write for FileOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer().write(bytes);
        written.map_err(|error| named(&self.target, error))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.writer().flush();
        flushed.map_err(|error| named(&self.target, error))
    }
}

/// A file of text, compressed if its name says so.
pub enum TextOutput {
    Plain(FileOutput),
    Gzip(GzEncoder<FileOutput>),
}

impl TextOutput {
    /// Opens a file that appears when it is finished.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        let file = FileOutput::create(path)?;
        Ok(if path.extension().is_some_and(|end| end == "gz") {
            Self::Gzip(GzEncoder::new(file, Compression::default()))
        } else {
            Self::Plain(file)
        })
    }

    /// The two sides of a corpus.
    pub fn create_pair(src: &Path, tgt: &Path) -> anyhow::Result<[Self; 2]> {
        if src == tgt {
            let message = "--out-src and --out-tgt are the same file";
            return Err(Ending::Usage(message.to_owned()).into());
        }
        Ok([Self::create(src)?, Self::create(tgt)?])
    }

    /// Writes what is left, and puts the file where it belongs.
    pub fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Plain(file) => file.finish(),
            Self::Gzip(file) => file.finish().context("cannot compress")?.finish(),
        }
    }
}

impl Write for TextOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(file) => file.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_file_appears_only_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/out.txt");
        let mut output = Output::open(Some(&path)).unwrap();
        writeln!(output, "one").unwrap();
        assert!(!path.exists());
        output.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
        assert_eq!(names(path.parent().unwrap()), ["out.txt"]);
    }

    #[test]
    fn a_failed_command_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.txt");
        fs::write(&path, "old").unwrap();
        let mut output = Output::open(Some(&path)).unwrap();
        writeln!(output, "new").unwrap();
        drop(output);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), ["out.txt"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_devices_are_not_replaced() {
        use std::os::unix::fs::FileTypeExt;
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        let mut output = Output::open(Some(&link)).unwrap();
        write!(output, "new").unwrap();
        output.finish().unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");

        Output::open(Some(Path::new("/dev/null")))
            .unwrap()
            .finish()
            .unwrap();
        assert!(
            fs::metadata("/dev/null")
                .unwrap()
                .file_type()
                .is_char_device()
        );
    }

    #[test]
    fn a_folder_is_not_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let error = Output::open(Some(folder.path())).err().unwrap().to_string();
        assert!(error.contains("it is a folder"), "{error}");
    }
}
