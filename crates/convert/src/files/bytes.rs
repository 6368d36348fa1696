//! A file's bytes, mapped into memory or unpacked, and parts of them that many tensors share.

use std::fs::{self, File};
use std::io::Read;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

use flate2::bufread::GzDecoder;
use memmap2::Mmap;

use super::limits::Budget;
use crate::error::{ConvertError, Result};

/// A part of a file or of memory; cheap to clone and to divide.
#[derive(Debug, Clone)]
pub struct Bytes {
    source: Arc<Source>,
    range: Range<usize>,
}

#[derive(Debug)]
enum Source {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Bytes {
    /// Maps a file into memory.
    pub fn map(path: &Path) -> Result<Self> {
        // Before opening, which waits for ever if it is a pipe.
        let about = fs::metadata(path).map_err(ConvertError::io("open", path))?;
        if !about.is_file() {
            let source = std::io::Error::other("it is not a file");
            return Err(ConvertError::io("read", path)(source));
        }
        let file = File::open(path).map_err(ConvertError::io("open", path))?;
        // SAFETY: the map is only sound while nobody shortens the file in place, which no program that writes
        // models does once they are complete.
        let map = unsafe { Mmap::map(&file) }.map_err(ConvertError::io("map", path))?;
        Ok(Self::whole(Source::Mapped(map)))
    }

    /// Maps a file into memory, or unpacks it if it is compressed with gzip.
    pub(crate) fn map_or_unpack(path: &Path) -> Result<(Self, Budget)> {
        let mapped = Self::map(path)?;
        let mut budget = Budget::new(path, mapped.len());
        if !mapped.starts_with(&[0x1f, 0x8b]) {
            return Ok((mapped, budget));
        }
        let unpacked = gunzip(path, &mapped, &mut budget)?;
        Ok((Self::from(unpacked), budget))
    }

    /// A part of these bytes, or nothing if it is not inside of them.
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        self.get(range.clone())?;
        let start = self.range.start;
        Some(Self {
            source: Arc::clone(&self.source),
            range: start + range.start..start + range.end,
        })
    }

    fn whole(source: Source) -> Self {
        let mut bytes = Self {
            source: Arc::new(source),
            range: 0..0,
        };
        bytes.range = 0..bytes.source.as_slice().len();
        bytes
    }
}

impl Source {
    fn as_slice(&self) -> &[u8] {
        match self {
            Source::Mapped(map) => map,
            Source::Owned(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::whole(Source::Owned(bytes))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.source.as_slice()[self.range.clone()]
    }
}

/// Unpacks a gzip file of one member, as `gzip` writes it. The size that its end states is allocated once, so that
/// no growing buffer takes more than the budget knows.
fn gunzip(path: &Path, packed: &[u8], budget: &mut Budget) -> Result<Vec<u8>> {
    let damaged = |place: String, expected: &str, found: String| ConvertError::Damaged {
        path: path.to_path_buf(),
        format: "gzip",
        place,
        expected: expected.to_string(),
        found,
    };
    let Some(&size) = packed.last_chunk::<4>() else {
        return Err(damaged(
            "byte 0".to_string(),
            "a gzip header",
            format!("{} bytes", packed.len()),
        ));
    };
    let size = u32::from_le_bytes(size) as usize;
    budget.take(size, || "what is packed in it".to_string())?;
    let mut unpacked = Vec::with_capacity(size);
    let mut decoder = GzDecoder::new(packed);
    let result = decoder
        .by_ref()
        .take(size as u64)
        .read_to_end(&mut unpacked);
    // Reading on finds the end, where the decoder compares the checksum.
    let more = result.and_then(|_| decoder.read(&mut [0]));
    let rest = decoder.into_inner().len();
    match more {
        Ok(0) if unpacked.len() == size && rest == 0 => Ok(unpacked),
        Ok(_) => Err(damaged(
            format!("byte {}", packed.len() - 4),
            "the size of what is packed, at the end of the only member",
            format!("{size} where at least {} bytes were packed", unpacked.len()),
        )),
        Err(error) => Err(damaged(
            format!("byte {}", packed.len() - rest),
            "deflated data with its checksum",
            error.to_string(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    fn unpack(packed: &[u8]) -> Result<Vec<u8>> {
        let path = Path::new("model.bin.gz");
        gunzip(path, packed, &mut Budget::new(path, packed.len()))
    }

    #[test]
    fn a_gzip_file_is_unpacked_whole_or_refused() {
        let packed = gzip(b"some weights");
        assert_eq!(unpack(&packed).expect("whole"), b"some weights");
        for cut in 2..packed.len() {
            unpack(&packed[..cut]).expect_err("cut short");
        }
        let mut two = packed.clone();
        two.extend(&packed);
        unpack(&two).expect_err("a second member would be lost");
    }

    #[test]
    fn a_gzip_bomb_is_refused_whatever_size_it_states() {
        let mut bomb = gzip(&vec![0; 40 << 20]);
        assert!(matches!(unpack(&bomb), Err(ConvertError::TooLarge { .. })));
        let end = bomb.len() - 4;
        bomb[end..].copy_from_slice(&100u32.to_le_bytes());
        assert!(matches!(unpack(&bomb), Err(ConvertError::Damaged { .. })));
    }

    #[test]
    fn parts_stay_inside() {
        let bytes = Bytes::from(vec![1, 2, 3, 4]);
        let part = bytes.slice(1..4).expect("inside");
        assert_eq!(&*part.slice(1..3).expect("inside"), [3, 4]);
        assert!(part.slice(1..4).is_none());
        assert!(bytes.slice(5..5).is_none());
    }
}
