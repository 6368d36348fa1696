//! Bergamot's lexical shortlist, `lex.*.s2t.bin`: which target ids may translate which source id.
//!
//! ```text
//! u64 magic, checksum, first, best, n_offsets, n_ids; u64 offsets[n_offsets]; u32 ids[n_ids]
//! ```

use std::path::Path;

use super::bytes::Bytes;
use super::cursor::Cursor;
use crate::error::Result;

const FORMAT: &str = "Bergamot shortlist";
const MAGIC: u64 = 0xf11a_48d5_0134_17f5;

/// Magic and checksum, which the checksum leaves out.
const UNCHECKED: usize = 2 * size_of::<u64>();

/// A lexical shortlist as Bergamot writes it.
#[derive(Debug, PartialEq, Eq)]
pub struct BergamotShortlist {
    /// The most frequent target ids, `0..first`, are candidates of every sentence.
    pub first: u32,
    /// How many target ids a source id has at most.
    pub best: u32,
    /// Where the target ids of each source id begin in `ids`; one more than there are source ids.
    pub offsets: Vec<u64>,
    /// Target ids, source id by source id.
    pub ids: Vec<u32>,
}

/// Reads a shortlist and verifies its checksum, also one that is packed with gzip.
pub fn read(path: &Path) -> Result<BergamotShortlist> {
    let (bytes, mut budget) = Bytes::map_or_unpack(path)?;
    let mut cursor = Cursor::new(path, FORMAT, &bytes);
    let magic = cursor.u64("the magic number")?;
    if magic != MAGIC {
        return Err(cursor.damaged_at(
            "byte 0".to_string(),
            format!("the magic number {MAGIC:#x}"),
            format!("{magic:#x}"),
        ));
    }
    let stated = cursor.u64("the checksum")?;
    let first = cursor.u64("the number of frequent ids")?;
    let best = cursor.u64("the number of ids of a source id")?;
    let n_offsets = cursor.size_u64("the number of offsets")?;
    let n_ids = cursor.size_u64("the number of ids")?;
    let expected = n_offsets
        .checked_mul(size_of::<u64>())
        .zip(n_ids.checked_mul(size_of::<u32>()))
        .and_then(|(offsets, ids)| offsets.checked_add(ids));
    if expected != Some(cursor.left()) {
        return Err(cursor.damaged(
            format!("{n_offsets} offsets and {n_ids} ids"),
            format!("{} bytes", cursor.left()),
        ));
    }
    let checksum = checksum(&bytes[UNCHECKED..]);
    if checksum != stated {
        return Err(cursor.damaged_at(
            "byte 8".to_string(),
            format!("the checksum {checksum:#x} of the rest of the file"),
            format!("{stated:#x}"),
        ));
    }

    budget.take(cursor.left(), || "the lists".to_string())?;
    let (offsets, _) = cursor
        .take(n_offsets * size_of::<u64>(), "offsets")?
        .as_chunks();
    let offsets: Vec<u64> = offsets
        .iter()
        .map(|&offset| u64::from_le_bytes(offset))
        .collect();
    let (ids, _) = cursor.take(n_ids * size_of::<u32>(), "ids")?.as_chunks();
    let ids: Vec<u32> = ids.iter().map(|&id| u32::from_le_bytes(id)).collect();
    let ends = offsets.first() == Some(&0) && offsets.last() == Some(&(ids.len() as u64));
    if !ends || !offsets.is_sorted() {
        return Err(cursor.damaged_at(
            "the offsets".to_string(),
            format!("numbers that rise from 0 to {}", ids.len()),
            "others",
        ));
    }
    let small = |number: u64| {
        u32::try_from(number)
            .map_err(|_| cursor.damaged_at("byte 16".to_string(), "numbers of ids", number))
    };
    Ok(BergamotShortlist {
        first: small(first)?,
        best: small(best)?,
        offsets,
        ids,
    })
}

/// Bergamot's hash over whole words of 8 bytes; a last half word is left out.
fn checksum(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks();
    words.iter().fold(0u64, |hash, &word| {
        let mixed = u64::from_le_bytes(word)
            .wrapping_add(0x9e37_79b9)
            .wrapping_add(hash << 6)
            .wrapping_add(hash >> 2);
        hash ^ mixed
    })
}
