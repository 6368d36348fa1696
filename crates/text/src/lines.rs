//! Lines of text out of files: plain or gzip'd UTF-8, or standard input.
//!
//! Gzip is recognised by its first two bytes and not by the file's name, so a renamed or piped file
//! works too; files made of several gzip members (`cat a.gz b.gz`) are read to their end.
//! Next on the data path: [`crate::parallel`] pairs lines, [`crate::tokenizer`] cuts them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::error::{Result, TextError};

/// Reads all lines of a file, without their line ends (`\n` or `\r\n`); `-` is standard input.
pub fn read_lines(path: &Path) -> Result<Vec<String>> {
    LineReader::open(path)?.collect()
}

/// The lines of a file one at a time, for input that is larger than memory or never ends.
///
/// After the first error the iterator is finished.
pub struct LineReader {
    path: PathBuf,
    source: Box<dyn BufRead + Send>,
    buffer: Vec<u8>,
    line: usize,
    finished: bool,
}

impl LineReader {
    /// Opens a plain or gzip'd file; `-` is standard input.
    pub fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Self::from_read(io::stdin(), Path::new("standard input"));
        }
        let cannot_open = |source| TextError::Open {
            path: path.to_path_buf(),
            source,
        };
        let file = File::open(path).map_err(cannot_open)?;
        // Opening a folder succeeds on Unix; only reading it would fail, with a puzzling message.
        if file.metadata().map_err(cannot_open)?.is_dir() {
            return Err(cannot_open(io::Error::new(
                io::ErrorKind::IsADirectory,
                "it is a folder",
            )));
        }
        Self::from_read(file, path)
    }

    /// Reads from any source; `name` stands for the file in errors.
    pub fn from_read(mut source: impl Read + Send + 'static, name: &Path) -> Result<Self> {
        let head = first_two_bytes(&mut source).map_err(|source| TextError::Read {
            path: name.to_path_buf(),
            line: 1,
            source,
        })?;
        let is_gzip = head == GZIP_MAGIC;
        let whole = BufReader::with_capacity(BUFFER, Cursor::new(head).chain(source));
        let source: Box<dyn BufRead + Send> = if is_gzip {
            Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(whole)))
        } else {
            Box::new(whole)
        };
        Ok(Self {
            path: name.to_path_buf(),
            source,
            buffer: Vec::new(),
            line: 0,
            finished: false,
        })
    }

    fn read_line(&mut self) -> Result<Option<String>> {
        self.line += 1;
        self.buffer.clear();
        let path = || self.path.clone();
        let line = self.line;
        let count = self
            .source
            .read_until(b'\n', &mut self.buffer)
            .map_err(|source| TextError::Read {
                path: path(),
                line,
                source,
            })?;
        if count == 0 {
            return Ok(None);
        }
        let mut bytes = without_line_end(&self.buffer);
        if line == 1 {
            bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        }
        if bytes.contains(&0) {
            return Err(TextError::Binary { path: path(), line });
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(error) => Err(TextError::NotUtf8 {
                path: path(),
                line,
                column: error.valid_up_to() + 1,
            }),
        }
    }
}

impl Iterator for LineReader {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let next = self.read_line().transpose();
        self.finished = !matches!(next, Some(Ok(_)));
        next
    }
}

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const BUFFER: usize = 1 << 16;

/// A pipe may hand over one byte at a time, so this reads until there are two or the end.
fn first_two_bytes(source: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(2);
    source.take(2).read_to_end(&mut head)?;
    Ok(head)
}

fn without_line_end(bytes: &[u8]) -> &[u8] {
    match bytes.strip_suffix(b"\n") {
        Some(rest) => rest.strip_suffix(b"\r").unwrap_or(rest),
        None => bytes,
    }
}
