//! The pairs of two files as raw bytes, in chunks: whoever looks for damage takes lines that are not text, too.
//!
//! Both files are read at the same time, and the next chunk while the one before it is worked on
//! ([`PairReader::each_chunk`]), so that reading compressed files costs no waiting.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::TextError;
use crate::lines::{BYTE_ORDER_MARK, LineReader};

/// Lines in a chunk.
pub(super) const CHUNK: usize = 8192;

/// Lines one behind the other.
#[derive(Debug, Default)]
pub(super) struct RawLines {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl RawLines {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }

    fn push(&mut self, line: &[u8]) {
        self.bytes.extend_from_slice(line);
        self.ends.push(self.bytes.len());
    }
}

/// The lines of both sides from the same place on; one side may have ended earlier.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// The number of the first line, from 0.
    pub(super) first: usize,
    pub(super) src: RawLines,
    pub(super) tgt: RawLines,
    /// Bytes read of both files so far.
    pub(super) bytes_read: u64,
}

impl Chunk {
    /// Lines that both sides have.
    pub(super) fn pairs(&self) -> usize {
        self.src.len().min(self.tgt.len())
    }

    fn is_empty(&self) -> bool {
        self.src.len() == 0 && self.tgt.len() == 0
    }

    /// A pair by its place in the chunk.
    pub(super) fn pair(&self, index: usize) -> (&[u8], &[u8]) {
        (self.src.get(index), self.tgt.get(index))
    }
}

/// A line as text, unless it is none.
pub(super) fn text(line: &[u8]) -> Option<&str> {
    std::str::from_utf8(line)
        .ok()
        .filter(|text| !text.contains('\0'))
}

/// Reads two files side by side.
pub(super) struct PairReader {
    src: LineReader,
    tgt: LineReader,
    next: usize,
}

impl PairReader {
    pub(super) fn open(src: &Path, tgt: &Path) -> Result<Self, TextError> {
        Ok(Self {
            src: LineReader::open(src)?,
            tgt: LineReader::open(tgt)?,
            next: 0,
        })
    }

    /// Calls `work` with one chunk after the other; all have [`CHUNK`] lines of each side but the last ones.
    pub(super) fn each_chunk<E: From<TextError> + Send>(
        mut self,
        mut work: impl FnMut(&Chunk) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        let mut chunk = self.read()?;
        while !chunk.is_empty() {
            let (next, done) = rayon::join(|| self.read(), || work(&chunk));
            done?;
            chunk = next?;
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Chunk, TextError> {
        let first = self.next;
        let (src, tgt) = rayon::join(
            || read(&mut self.src, first == 0),
            || read(&mut self.tgt, first == 0),
        );
        self.next += CHUNK;
        Ok(Chunk {
            first,
            src: src?,
            tgt: tgt?,
            bytes_read: self.src.bytes_read() + self.tgt.bytes_read(),
        })
    }
}

fn read(lines: &mut LineReader, from_the_start: bool) -> Result<RawLines, TextError> {
    let mut read = RawLines::default();
    while read.len() < CHUNK
        && let Some(line) = lines.next_bytes()?
    {
        let mut mark = [0; 3];
        let mark = BYTE_ORDER_MARK.encode_utf8(&mut mark).as_bytes();
        let first = from_the_start && read.len() == 0;
        // Whoever trains on the file does not see the mark either.
        let line = line.strip_prefix(mark).filter(|_| first).unwrap_or(line);
        read.push(line);
    }
    Ok(read)
}

/// The files of both sides, one of each after the other.
pub(super) fn matched<'a>(
    src: &'a [PathBuf],
    tgt: &'a [PathBuf],
) -> Result<Vec<(&'a Path, &'a Path)>, TextError> {
    if src.is_empty() || src.len() != tgt.len() {
        return Err(TextError::FileCounts {
            src: src.len(),
            tgt: tgt.len(),
        });
    }
    Ok(src
        .iter()
        .map(PathBuf::as_path)
        .zip(tgt.iter().map(PathBuf::as_path))
        .collect())
}

/// The size of all files together, as they lie on the disk; what has no size counts nothing.
pub(super) fn bytes_of(files: &[(&Path, &Path)]) -> u64 {
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    files.iter().map(|(src, tgt)| size(src) + size(tgt)).sum()
}
