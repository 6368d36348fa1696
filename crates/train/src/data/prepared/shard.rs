//! A shard: the encoded pairs of some lines of a corpus as one file, which is mapped and never read whole.
//!
//! ```text
//! header   numbers of 8 bytes (see `Header`), the key of the corpus, BLAKE3 of all this and the table
//! table    for each block: where it ends, and its BLAKE3
//! blocks   of up to 512 pairs: the length of each source and target (2 bytes each), then their tokens
//! ```
//!
//! All numbers are little-endian; a token has 2 bytes if the vocabularies allow it, else 4. `<s>` and `</s>` are not
//! stored. A block is the unit of shuffling ([`super::stream`]) and of checking: whatever is read was verified, and
//! nothing else is. Neighbors: [`super::prepare`] writes shards.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attentive_model::durable::DurableFile;
use attentive_text::special::{source_ids, target_ids};
use memmap2::Mmap;
use rayon::prelude::*;

use super::PreparedError;
use crate::data::batches::Columns;
use crate::data::corpus::{Pair, Report};

/// Pairs of a block: few enough that an epoch is well mixed, enough that reading one is worth a seek.
pub const BLOCK_PAIRS: usize = 512;

/// The longest side that a shard can hold.
pub const LONGEST: usize = u16::MAX as usize;

/// Tells which corpus a shard belongs to: BLAKE3 of the settings, the text and the vocabularies.
pub type Key = [u8; 32];

/// A shard whose header and table were verified.
#[derive(Debug)]
pub struct Shard {
    path: PathBuf,
    header: Header,
    table: Vec<Entry>,
    checksum: [u8; 32],
}

/// The file of a shard, mapped; pages that were touched are given back when it is dropped.
#[derive(Debug)]
pub struct MappedShard {
    shard: Arc<Shard>,
    map: Mmap,
}

/// The numbers at the beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// Bytes of a token.
    pub width: u64,
    /// Pairs in the shard.
    pub pairs: u64,
    /// Which file of the corpus, from 0.
    pub file: u64,
    /// The first line of that file, from 0.
    pub first_line: u64,
    /// What became of the lines.
    pub report: Report,
}

/// A block in the table.
#[derive(Debug, Clone)]
struct Entry {
    /// Where it ends, counted from the first block.
    end: u64,
    blake3: [u8; 32],
}

const MAGIC: &[u8; 8] = b"ATTNPAIR";
const FORMAT: u64 = 1;
/// Numbers of the header, behind the magic word.
const NUMBERS: usize = 15;
const HEADER_BYTES: usize = 8 + 8 * NUMBERS + 32 + 32;
const ENTRY_BYTES: usize = 8 + 32;

/// Writes the pairs of a shard; `header.pairs` and `header.width` are found out.
pub fn write(
    path: &Path,
    key: &Key,
    mut header: Header,
    pairs: &[Pair],
    vocabulary: usize,
) -> Result<(), PreparedError> {
    header.pairs = pairs.len() as u64;
    header.width = if vocabulary <= usize::from(u16::MAX) + 1 {
        2
    } else {
        4
    };
    let blocks: Vec<Vec<u8>> = pairs
        .par_chunks(BLOCK_PAIRS)
        .map(|pairs| block(pairs, header.width))
        .collect();
    let (mut table, mut end) = (Vec::new(), 0);
    for block in &blocks {
        end += block.len() as u64;
        table.extend_from_slice(&end.to_le_bytes());
        table.extend_from_slice(blake3::hash(block).as_bytes());
    }
    let write = || -> io::Result<()> {
        let mut file = DurableFile::create(path)?;
        file.write_all(&header.to_bytes(key, &table))?;
        file.write_all(&table)?;
        for block in &blocks {
            file.write_all(block)?;
        }
        file.commit()
    };
    write().map_err(PreparedError::io("write", path))
}

/// The bytes of a block; lengths fit, as nothing longer than [`LONGEST`] is prepared.
fn block(pairs: &[Pair], width: u64) -> Vec<u8> {
    // Without `</s>`, and `<s>`.
    let src = |pair: &Pair| pair.src.len() - 1;
    let tgt = |pair: &Pair| pair.tgt.len() - 2;
    let mut bytes = Vec::new();
    for pair in pairs {
        bytes.extend_from_slice(&(src(pair) as u16).to_le_bytes());
        bytes.extend_from_slice(&(tgt(pair) as u16).to_le_bytes());
    }
    for pair in pairs {
        let tokens = pair.src[..src(pair)].iter().chain(&pair.tgt[1..=tgt(pair)]);
        for token in tokens {
            bytes.extend_from_slice(&token.to_le_bytes()[..width as usize]);
        }
    }
    bytes
}

impl Shard {
    /// Reads the header and the table of a file that must belong to the corpus with this key.
    pub fn open(path: &Path, key: &Key) -> Result<Self, PreparedError> {
        let damaged = |problem: &str| PreparedError::Damaged {
            shard: path.to_owned(),
            problem: problem.to_owned(),
        };
        let mut file = File::open(path).map_err(PreparedError::io("read", path))?;
        let size = file
            .metadata()
            .map_err(PreparedError::io("read", path))?
            .len();
        let mut read = |bytes: &mut Vec<u8>, count: usize| {
            bytes.resize(count, 0);
            match file.read_exact(bytes) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    Err(damaged("it is cut off"))
                }
                other => other.map_err(PreparedError::io("read", path)),
            }
        };
        let mut bytes = Vec::new();
        read(&mut bytes, HEADER_BYTES)?;
        if bytes[..8] != *MAGIC {
            return Err(damaged("it is no shard of `attentive prepare`"));
        }
        let (numbers, hashes) = bytes[8..].split_at(8 * NUMBERS);
        let (found, checksum) = hashes.split_at(32);
        let numbers: Vec<u64> = numbers.chunks_exact(8).map(u64_at).collect();
        if numbers[0] != FORMAT {
            let problem = format!(
                "its format is {}, and this program reads {FORMAT}",
                numbers[0]
            );
            return Err(damaged(&problem));
        }
        if found != key {
            return Err(damaged("it belongs to another corpus or vocabulary"));
        }
        let checksum: [u8; 32] = checksum.try_into().unwrap_or_default();
        let covered = bytes[..HEADER_BYTES - 32].to_vec();
        let header =
            Header::from_numbers(&numbers).ok_or_else(|| damaged("its header is wrong"))?;
        let blocks = header.blocks();
        if blocks as u64 > size / ENTRY_BYTES as u64 {
            return Err(damaged("it is cut off"));
        }
        read(&mut bytes, blocks * ENTRY_BYTES)?;
        if checksum_of(&covered, &bytes) != checksum {
            return Err(damaged("the checksum of its header is wrong"));
        }
        let entry = |bytes: &[u8]| Entry {
            end: u64_at(bytes),
            blake3: bytes[8..].try_into().unwrap_or_default(),
        };
        let table: Vec<Entry> = bytes.chunks_exact(ENTRY_BYTES).map(entry).collect();
        let expected =
            (HEADER_BYTES + blocks * ENTRY_BYTES) as u64 + table.last().map_or(0, |last| last.end);
        if size != expected {
            let problem = format!("it has {size} bytes and should have {expected}");
            return Err(damaged(&problem));
        }
        Ok(Self {
            path: path.to_owned(),
            header,
            table,
            checksum,
        })
    }

    /// Tells its content from any other: the header and the table, and through it every block.
    pub fn checksum(&self) -> String {
        blake3::Hash::from_bytes(self.checksum).to_hex().to_string()
    }

    /// The numbers at the beginning.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        self.table.len()
    }

    /// Maps the file.
    pub fn map(self: &Arc<Self>) -> Result<MappedShard, PreparedError> {
        let file = File::open(&self.path).map_err(PreparedError::io("read", &self.path))?;
        // SAFETY: the map is read only, and shards are never written in place: they appear complete under their
        // name. Whoever cuts one off while it is mapped ends this process, as with every mapped file.
        let map = unsafe { Mmap::map(&file) }.map_err(PreparedError::io("map", &self.path))?;
        let shard = self.clone();
        let mapped = MappedShard { shard, map };
        match self.blocks().checked_sub(1) {
            Some(last) if mapped.block_range(last).is_none() => {
                Err(mapped.damaged("it was cut off since it was opened"))
            }
            _ => Ok(mapped),
        }
    }

    /// Verifies every block.
    pub fn verify(self: &Arc<Self>) -> Result<(), PreparedError> {
        let mapped = self.map()?;
        (0..self.blocks())
            .into_par_iter()
            .try_for_each(|block| mapped.verify(block))
    }
}

impl MappedShard {
    /// Verifies a block.
    pub fn verify(&self, block: usize) -> Result<(), PreparedError> {
        let entry = &self.shard.table[block];
        if *blake3::hash(self.block(block)).as_bytes() == entry.blake3 {
            return Ok(());
        }
        let pairs = block * BLOCK_PAIRS;
        Err(self.damaged(&format!(
            "the checksum of the block of pair {pairs} is wrong"
        )))
    }

    /// The columns of each pair of a block.
    pub fn columns(&self, block: usize) -> impl Iterator<Item = Columns> + '_ {
        self.lengths(block).map(|(src, tgt)| Columns {
            src: src as u32 + 1,
            tgt: tgt as u32 + 1,
        })
    }

    /// A pair of a block that was verified.
    pub fn pair(&self, block: usize, index: usize) -> Pair {
        let before: usize = self
            .lengths(block)
            .take(index)
            .map(|(src, tgt)| src + tgt)
            .sum();
        let (src, tgt) = self.lengths(block).nth(index).unwrap_or_default();
        let (width, pairs) = (self.shard.header.width as usize, self.pairs(block));
        let tokens = self.block(block).get(4 * pairs + before * width..);
        let tokens = tokens.unwrap_or_default().chunks_exact(width).map(|bytes| {
            let mut token = [0; 4];
            token[..width].copy_from_slice(bytes);
            u32::from_le_bytes(token)
        });
        let mut src: Vec<u32> = tokens.take(src + tgt).collect();
        let tgt = src.split_off(src.len() - tgt.min(src.len()));
        Pair {
            src: source_ids(src),
            tgt: target_ids(&tgt),
        }
    }

    fn lengths(&self, block: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let length = |bytes: &[u8]| usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
        self.block(block)
            .chunks_exact(4)
            .take(self.pairs(block))
            .map(move |pair| (length(pair), length(&pair[2..])))
    }

    /// Pairs of a block.
    fn pairs(&self, block: usize) -> usize {
        let before = block * BLOCK_PAIRS;
        (self.shard.header.pairs as usize - before).min(BLOCK_PAIRS)
    }

    fn block(&self, block: usize) -> &[u8] {
        self.block_range(block)
            .map_or(&[], |range| &self.map[range])
    }

    fn block_range(&self, block: usize) -> Option<std::ops::Range<usize>> {
        let table = &self.shard.table;
        let first = HEADER_BYTES + table.len() * ENTRY_BYTES;
        let begin = match block {
            0 => 0,
            _ => table.get(block - 1)?.end as usize,
        };
        let range = first + begin..first + table.get(block)?.end as usize;
        (range.start + 4 * self.pairs(block) <= range.end && range.end <= self.map.len())
            .then_some(range)
    }

    fn damaged(&self, problem: &str) -> PreparedError {
        PreparedError::Damaged {
            shard: self.shard.path.clone(),
            problem: problem.to_owned(),
        }
    }
}

impl Header {
    fn blocks(&self) -> usize {
        (self.pairs as usize).div_ceil(BLOCK_PAIRS)
    }

    fn to_bytes(&self, key: &Key, table: &[u8]) -> Vec<u8> {
        let report = &self.report;
        let (line, tokens) = report.first_too_long.unwrap_or_default();
        let numbers: [u64; NUMBERS] = [
            FORMAT,
            self.width,
            self.pairs,
            self.file,
            self.first_line,
            report.read as u64,
            report.held_out as u64,
            report.empty as u64,
            report.too_long as u64,
            line as u64,
            tokens as u64,
            report.src_tokens as u64,
            report.tgt_tokens as u64,
            report.src_unknown as u64,
            report.tgt_unknown as u64,
        ];
        let mut bytes = MAGIC.to_vec();
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        bytes.extend_from_slice(key);
        let checksum = checksum_of(&bytes, table);
        bytes.extend_from_slice(&checksum);
        bytes
    }

    fn from_numbers(numbers: &[u64]) -> Option<Self> {
        let [
            _,
            width,
            pairs,
            file,
            first_line,
            read,
            held_out,
            empty,
            too_long,
            line,
            tokens,
            src_tokens,
            tgt_tokens,
            src_unknown,
            tgt_unknown,
        ] = *numbers
        else {
            return None;
        };
        let report = Report {
            read: read as usize,
            held_out: held_out as usize,
            empty: empty as usize,
            too_long: too_long as usize,
            first_too_long: (tokens > 0).then_some((line as usize, tokens as usize)),
            src_tokens: src_tokens as usize,
            tgt_tokens: tgt_tokens as usize,
            src_unknown: src_unknown as usize,
            tgt_unknown: tgt_unknown as usize,
        };
        let sound = (width == 2 || width == 4) && pairs <= read;
        sound.then_some(Self {
            width,
            pairs,
            file,
            first_line,
            report,
        })
    }
}

fn checksum_of(header: &[u8], table: &[u8]) -> [u8; 32] {
    *blake3::Hasher::new()
        .update(header)
        .update(table)
        .finalize()
        .as_bytes()
}

fn u64_at(bytes: &[u8]) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(number)
}
