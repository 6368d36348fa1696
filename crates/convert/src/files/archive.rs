//! Zip archives, in which PyTorch and NumPy keep their arrays.
//!
//! Read here and not with the `zip` library, because what matters is where an entry lies: entries that are not
//! compressed, which is all of them in most files, are borrowed from the mapped file. And because a directory
//! of entries is counted like everything else before memory is taken for it.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

use super::bytes::Bytes;
use super::cursor::Cursor;
use super::limits::{self, Budget};
use crate::error::{ConvertError, Result};

const FORMAT: &str = "zip";

/// Signatures of the parts of an archive.
const LOCAL_HEADER: u32 = 0x0403_4b50;
const DIRECTORY_ENTRY: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const END_64_PLACE: u32 = 0x0706_4b50;

/// The size of the end of an archive without its comment, and of what says where a 64-bit end is.
const END_SIZE: usize = 22;
const END_64_PLACE_SIZE: usize = 20;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// Whether checksums are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checksums {
    /// They are: the program that wrote the archive computes them.
    Verified,
    /// They are not: PyTorch can be told not to compute them.
    Ignored,
}

/// An archive with its directory of entries.
#[derive(Debug)]
pub(crate) struct Archive<'a> {
    path: &'a Path,
    bytes: &'a Bytes,
    entries: BTreeMap<&'a str, Entry>,
}

#[derive(Debug)]
struct Entry {
    method: u16,
    crc: u32,
    packed_size: usize,
    size: usize,
    header: usize,
}

impl<'a> Archive<'a> {
    /// Reads the directory of an archive.
    pub fn open(path: &'a Path, bytes: &'a Bytes, budget: &mut Budget) -> Result<Self> {
        let mut cursor = Cursor::new(path, FORMAT, bytes);
        let (count, start) = directory_place(&mut cursor, bytes)?;
        cursor.seek(start, "the directory")?;
        let mut entries = BTreeMap::new();
        let mut total = 0usize;
        for _ in 0..count {
            let (name, entry) = directory_entry(&mut cursor)?;
            budget.take(limits::ENTRY, || format!("entry `{name}`"))?;
            total = total.saturating_add(entry.packed_size);
            if entries.insert(name, entry).is_some() {
                return Err(cursor.damaged("each entry once", format!("`{name}` twice")));
            }
        }
        // Otherwise entries would lie over each other, and small files could keep us busy for long.
        if total > bytes.len() {
            return Err(cursor.damaged("entries that fit into the file", format!("{total} bytes")));
        }
        Ok(Self {
            path,
            bytes,
            entries,
        })
    }

    /// The names of all entries in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.entries.keys().copied()
    }

    /// The contents of an entry, if there is one of this name.
    pub fn read(
        &self,
        name: &str,
        checksums: Checksums,
        budget: &mut Budget,
    ) -> Result<Option<Bytes>> {
        let Some(entry) = self.entries.get(name) else {
            return Ok(None);
        };
        let packed = self.packed(name, entry)?;
        let damaged = |expected: &str, found: String| {
            let cursor = Cursor::new(self.path, FORMAT, self.bytes);
            cursor.damaged_at(format!("entry `{name}`"), expected, found)
        };
        let contents = match entry.method {
            STORED if entry.size == packed.len() => packed,
            STORED => {
                let found = format!("{} and {}", packed.len(), entry.size);
                return Err(damaged("one size of what is not compressed", found));
            }
            DEFLATED => {
                budget.take(entry.size, || format!("entry `{name}`"))?;
                let mut contents = vec![0; entry.size];
                let mut decoder = DeflateDecoder::new(&packed[..]);
                let result = decoder.read_exact(&mut contents);
                match result.and_then(|()| decoder.read(&mut [0])) {
                    Ok(0) => Bytes::from(contents),
                    Ok(_) => {
                        let expected = format!("{} bytes of deflated data", entry.size);
                        return Err(damaged(&expected, "more".to_string()));
                    }
                    Err(error) => return Err(damaged("deflated data", error.to_string())),
                }
            }
            method => {
                return Err(ConvertError::Unsupported {
                    path: self.path.to_path_buf(),
                    place: format!("entry `{name}`"),
                    found: format!("zip's compression method {method}"),
                    remedy: "save the file again, stored or deflated, and not encrypted"
                        .to_string(),
                });
            }
        };
        if checksums == Checksums::Verified {
            let mut crc = Crc::new();
            crc.update(&contents);
            if crc.sum() != entry.crc {
                let expected = format!("data with the checksum {:#010x}", entry.crc);
                return Err(damaged(&expected, format!("{:#010x}", crc.sum())));
            }
        }
        Ok(Some(contents))
    }

    /// The bytes of an entry as they are in the file, behind a header whose length only the header knows.
    fn packed(&self, name: &str, entry: &Entry) -> Result<Bytes> {
        let mut cursor = Cursor::new(self.path, FORMAT, self.bytes);
        cursor.seek(entry.header, "an entry")?;
        signature(&mut cursor, LOCAL_HEADER, "the header of an entry")?;
        cursor.take(22, "the header of an entry")?;
        let name_len = cursor.u16("the length of a name")?;
        let extra_len = cursor.u16("the length of extra fields")?;
        let found = cursor.take(name_len.into(), "a name")?;
        if found != name.as_bytes() {
            let found = String::from_utf8_lossy(found).into_owned();
            return Err(cursor.damaged(format!("the entry `{name}`"), format!("`{found}`")));
        }
        cursor.take(extra_len.into(), "extra fields")?;
        let start = cursor.at();
        let part = start
            .checked_add(entry.packed_size)
            .and_then(|end| self.bytes.slice(start..end));
        part.ok_or_else(|| {
            let expected = format!("{} bytes", entry.packed_size);
            let found = format!("{} to the end", cursor.left());
            cursor.damaged_at(format!("entry `{name}`"), expected, found)
        })
    }
}

/// How many entries the directory has and where it begins.
fn directory_place(cursor: &mut Cursor<'_>, bytes: &[u8]) -> Result<(usize, usize)> {
    // The end is followed by a comment of up to 65535 bytes, and it says how long that is.
    let end = (0..=usize::from(u16::MAX))
        .map_while(|comment| Some((comment, bytes.len().checked_sub(END_SIZE + comment)?)))
        .find(|&(comment, at)| {
            bytes[at..].starts_with(&END.to_le_bytes())
                && bytes[at + END_SIZE - 2..].starts_with(&(comment as u16).to_le_bytes())
        });
    let Some((_, end)) = end else {
        cursor.seek(bytes.len(), "the end")?;
        return Err(cursor.damaged("a zip archive with its directory", "none"));
    };
    if let Some(place) = end.checked_sub(END_64_PLACE_SIZE) {
        cursor.seek(place, "the place of the end")?;
        if cursor.u32("a signature")? == END_64_PLACE {
            cursor.u32("a disk")?;
            let end_64 = cursor.size_u64("the place of the end")?;
            cursor.seek(end_64, "the end of the archive")?;
            signature(cursor, END_64, "the end of the archive")?;
            cursor.take(28, "the end of the archive")?;
            let count = cursor.size_u64("the number of entries")?;
            cursor.u64("the size of the directory")?;
            return Ok((count, cursor.size_u64("the place of the directory")?));
        }
    }
    cursor.seek(end + 10, "the end of the archive")?;
    let count = cursor.u16("the number of entries")?;
    cursor.u32("the size of the directory")?;
    let start = cursor.u32("the place of the directory")?;
    Ok((count.into(), start as usize))
}

fn directory_entry<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a str, Entry)> {
    signature(cursor, DIRECTORY_ENTRY, "an entry of the directory")?;
    cursor.u32("versions")?;
    let encrypted = cursor.u16("flags")? & 1 == 1;
    let method = cursor.u16("a compression method")?;
    cursor.u32("a time")?;
    let crc = cursor.u32("a checksum")?;
    let packed_size = cursor.u32("a size")?;
    let size = cursor.u32("a size")?;
    let name_len = cursor.u16("the length of a name")?;
    let extra_len = cursor.u16("the length of extra fields")?;
    let comment_len = cursor.u16("the length of a comment")?;
    cursor.take(8, "attributes")?;
    let header = cursor.u32("the place of an entry")?;
    let name = cursor.name(name_len.into(), "the name of an entry")?;
    let extra_end = cursor.at() + usize::from(extra_len);
    let mut wide = wide_numbers(cursor, extra_len.into())?;
    cursor.seek(extra_end, "a comment")?;
    cursor.take(comment_len.into(), "a comment")?;
    // A number that does not fit into 32 bits stands in the extra fields, in this order.
    let mut number = |narrow: u32| -> Result<usize> {
        if narrow != u32::MAX {
            return Ok(narrow as usize);
        }
        match &mut wide {
            Some(wide) => wide.size_u64("a 64-bit number"),
            None => Ok(narrow as usize),
        }
    };
    let (size, packed_size) = (number(size)?, number(packed_size)?);
    let entry = Entry {
        // Encryption is refused like a method of compression that is not known.
        method: if encrypted { u16::MAX } else { method },
        crc,
        packed_size,
        size,
        header: number(header)?,
    };
    Ok((name, entry))
}

/// A cursor over the 64-bit numbers of an entry, if it has any.
fn wide_numbers<'a>(cursor: &mut Cursor<'a>, extra_len: usize) -> Result<Option<Cursor<'a>>> {
    const WIDE: u16 = 1;
    let path = cursor.path();
    let extra = cursor.take(extra_len, "extra fields")?;
    let mut fields = Cursor::of_part(path, FORMAT, "extra fields of the directory", extra);
    while fields.left() >= 4 {
        let id = fields.u16("the number of an extra field")?;
        let length = fields.u16("the length of an extra field")?;
        let field = fields.take(length.into(), "an extra field")?;
        if id == WIDE {
            return Ok(Some(Cursor::of_part(path, FORMAT, "a 64-bit field", field)));
        }
    }
    Ok(None)
}

fn signature(cursor: &mut Cursor<'_>, expected: u32, what: &str) -> Result<()> {
    let place = cursor.place();
    let found = cursor.u32(what)?;
    if found != expected {
        let expected = format!("{what}, which begins with {expected:#010x}");
        return Err(cursor.damaged_at(place, expected, format!("{found:#010x}")));
    }
    Ok(())
}
