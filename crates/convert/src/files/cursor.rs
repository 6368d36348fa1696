//! Reads the fields of a binary file one after the other; all numbers are little endian.
//!
//! Each step says what it expects, so that a file that ends early or says nonsense gives an error with the place.

use std::fmt::Display;
use std::path::Path;

use super::limits::MAX_NAME;
use crate::error::{ConvertError, Result};

/// A place in a file, or in a part of it that has a name of its own.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    path: &'a Path,
    format: &'static str,
    /// The part of the file that is read, such as an entry of an archive; empty for the whole file.
    part: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// At the beginning of a file.
    pub fn new(path: &'a Path, format: &'static str, bytes: &'a [u8]) -> Self {
        Self::of_part(path, format, "", bytes)
    }

    /// At the beginning of a part of a file.
    pub fn of_part(path: &'a Path, format: &'static str, part: &'a str, bytes: &'a [u8]) -> Self {
        Self {
            path,
            format,
            part,
            bytes,
            at: 0,
        }
    }

    /// The file that is read.
    pub fn path(&self) -> &'a Path {
        self.path
    }

    /// How many bytes were read.
    pub fn at(&self) -> usize {
        self.at
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Goes to a byte of the file.
    pub fn seek(&mut self, at: usize, what: impl Display) -> Result<()> {
        if at > self.bytes.len() {
            return Err(self.damaged(format!("{what} at byte {at}"), self.size()));
        }
        self.at = at;
        Ok(())
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize, what: impl Display) -> Result<&'a [u8]> {
        let end = self.at.checked_add(count);
        let bytes = end.and_then(|end| self.bytes.get(self.at..end));
        let bytes =
            bytes.ok_or_else(|| self.damaged(format!("{what} of {count} bytes"), self.size()))?;
        self.at += count;
        Ok(bytes)
    }

    /// How far away the next such byte is, if it is not further than `limit`.
    pub fn find(&self, byte: u8, limit: usize) -> Option<usize> {
        let mut near = self.bytes[self.at..].iter().take(limit + 1);
        near.position(|&found| found == byte)
    }

    /// The next byte.
    pub fn u8(&mut self, what: impl Display) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array(what)?))
    }

    /// The next number of 2 bytes.
    pub fn u16(&mut self, what: impl Display) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    /// The next number of 4 bytes.
    pub fn u32(&mut self, what: impl Display) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    /// The next number of 8 bytes.
    pub fn u64(&mut self, what: impl Display) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// The next number of 8 bytes, as a size or a count in memory.
    pub fn size_u64(&mut self, what: impl Display) -> Result<usize> {
        let number = self.u64(&what)?;
        usize::try_from(number).map_err(|_| self.damaged(what, number))
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self, what: impl Display) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, what)?);
        Ok(array)
    }

    /// The next `count` bytes, which must be a name in UTF-8.
    pub fn name(&mut self, count: usize, what: impl Display) -> Result<&'a str> {
        if count > MAX_NAME {
            return Err(self.damaged(
                format!("{what} of at most {MAX_NAME} bytes"),
                format!("{count} bytes"),
            ));
        }
        let bytes = self.take(count, &what)?;
        std::str::from_utf8(bytes)
            .map_err(|_| self.damaged(format!("{what} in UTF-8"), "other bytes"))
    }

    /// An error about the place where the cursor is.
    pub fn damaged(&self, expected: impl Display, found: impl Display) -> ConvertError {
        self.damaged_at(self.place(), expected, found)
    }

    /// An error about a place with a name, such as a tensor.
    pub fn damaged_at(
        &self,
        place: String,
        expected: impl Display,
        found: impl Display,
    ) -> ConvertError {
        ConvertError::Damaged {
            path: self.path.to_path_buf(),
            format: self.format,
            place,
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }

    /// Where the cursor is, in words.
    pub fn place(&self) -> String {
        if self.part.is_empty() {
            format!("byte {}", self.at)
        } else {
            format!("byte {} of {}", self.at, self.part)
        }
    }

    fn size(&self) -> String {
        format!("an end after {} bytes", self.bytes.len())
    }
}
