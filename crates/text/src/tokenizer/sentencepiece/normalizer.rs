//! Text as the model was trained on it: characters replaced by the model's own table, spaces tidied.
//!
//! The table is a double-array trie (darts-clone's format) from character sequences to replacements; for
//! most models it is NFKC. Spaces become `▁`, one of them before the first word.

use crate::tokenizer::trie::Trie;

/// What stands for a space in pieces.
pub(super) const SPACE: char = '▁';

/// What a model file says about normalizing.
#[derive(Debug, Clone)]
pub(super) struct NormalizerSpec {
    pub charsmap: Vec<u8>,
    pub add_dummy_prefix: bool,
    pub remove_extra_whitespaces: bool,
    pub escape_whitespaces: bool,
    pub whitespace_as_suffix: bool,
}

impl Default for NormalizerSpec {
    fn default() -> Self {
        Self {
            charsmap: Vec::new(),
            add_dummy_prefix: true,
            remove_extra_whitespaces: true,
            escape_whitespaces: true,
            whitespace_as_suffix: false,
        }
    }
}

/// Normalizes text.
#[derive(Debug, Clone)]
pub(super) struct Normalizer {
    spec: NormalizerSpec,
    charsmap: Charsmap,
}

impl Normalizer {
    /// Reads the table; the error is a phrase that says what is wrong.
    pub fn new(mut spec: NormalizerSpec) -> Result<Self, String> {
        let charsmap = Charsmap::parse(&std::mem::take(&mut spec.charsmap))?;
        Ok(Self { spec, charsmap })
    }

    /// Whether a space belongs to the word before it.
    pub fn spaces_end_words(&self) -> bool {
        self.spec.whitespace_as_suffix
    }

    /// Whether decoding drops the space that the text begins with.
    pub fn strips_first_space(&self) -> bool {
        self.spec.add_dummy_prefix || self.spec.remove_extra_whitespaces
    }

    /// Whether several spaces count as one, and those at both ends as none.
    pub fn removes_extra_spaces(&self) -> bool {
        self.spec.remove_extra_whitespaces
    }

    /// The text as pieces are cut from it; `protected` symbols are never changed.
    pub fn normalize(&self, text: &str, protected: &Trie) -> String {
        let spec = &self.spec;
        let mut rest = text;
        if spec.remove_extra_whitespaces {
            while let Some((" ", length)) = self.next(rest, protected) {
                rest = &rest[length..];
            }
        }
        if rest.is_empty() {
            return String::new();
        }
        let space = if spec.escape_whitespaces { SPACE } else { ' ' };
        let mut out = String::with_capacity(rest.len() + rest.len() / 2 + 3);
        if spec.add_dummy_prefix && !spec.whitespace_as_suffix {
            out.push(space);
        }
        let mut after_space = spec.remove_extra_whitespaces;
        while let Some((replacement, length)) = self.next(rest, protected) {
            rest = &rest[length..];
            let replacement = if after_space {
                replacement.trim_start_matches(' ')
            } else {
                replacement
            };
            if !replacement.is_empty() {
                out.extend(
                    replacement
                        .chars()
                        .map(|c| if c == ' ' { space } else { c }),
                );
                after_space = spec.remove_extra_whitespaces && replacement.ends_with(' ');
            }
        }
        if spec.remove_extra_whitespaces {
            out.truncate(out.trim_end_matches(space).len());
        }
        if spec.add_dummy_prefix && spec.whitespace_as_suffix {
            out.push(space);
        }
        out
    }

    /// What the beginning of `text` becomes, and how many bytes of `text` that was.
    fn next<'a>(&'a self, text: &'a str, protected: &Trie) -> Option<(&'a str, usize)> {
        let first = text.chars().next()?.len_utf8();
        if let Some(length) = protected.longest(text.as_bytes()) {
            return Some((&text[..length], length));
        }
        // A damaged table could end a match inside a character; such a match is none.
        match self.charsmap.longest(text.as_bytes()) {
            Some((replacement, length)) if text.is_char_boundary(length) => {
                Some((replacement, length))
            }
            _ => Some((&text[..first], first)),
        }
    }
}

/// The table of replacements.
#[derive(Debug, Clone, Default)]
struct Charsmap {
    units: Vec<u32>,
    replacements: String,
}

impl Charsmap {
    /// Reads `u32 size, size bytes of units, replacements each ended by NUL`.
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let (size, rest) = bytes
            .split_first_chunk::<4>()
            .ok_or("its table of characters is cut off")?;
        let size = u32::from_le_bytes(*size) as usize;
        if size > rest.len() || !size.is_multiple_of(4) {
            return Err(format!(
                "its table of characters says it has {size} bytes, found {}",
                rest.len()
            ));
        }
        let (units, replacements) = rest.split_at(size);
        let units: Vec<u32> = units
            .chunks_exact(4)
            .map(|unit| u32::from_le_bytes([unit[0], unit[1], unit[2], unit[3]]))
            .collect();
        let replacements = std::str::from_utf8(replacements)
            .map_err(|_| "the replacements in its table of characters are not UTF-8")?;
        if units.is_empty() || !replacements.ends_with('\0') {
            return Err("its table of characters is incomplete".to_owned());
        }
        let is_value = |unit: &&u32| **unit & VALUE != 0;
        for unit in units.iter().filter(is_value) {
            if replacements.get((unit & !VALUE) as usize..).is_none() {
                return Err("its table of characters points to no replacement".to_owned());
            }
        }
        Ok(Self {
            units,
            replacements: replacements.to_owned(),
        })
    }

    /// The replacement of the longest sequence that `text` begins with, and the sequence's length.
    fn longest(&self, text: &[u8]) -> Option<(&str, usize)> {
        let mut best = None;
        let mut node = offset(*self.units.first()?);
        for (index, &byte) in text.iter().enumerate() {
            let position = node ^ usize::from(byte);
            let Some(&unit) = self.units.get(position) else {
                break;
            };
            if unit & (VALUE | 0xff) != u32::from(byte) {
                break;
            }
            node = position ^ offset(unit);
            if unit >> 8 & 1 == 1 {
                best = self.units.get(node).map(|value| (value, index + 1));
            }
        }
        let (value, length) = best?;
        let replacement = self.replacements.get((value & !VALUE) as usize..)?;
        let end = replacement.find('\0')?;
        Some((&replacement[..end], length))
    }
}

/// The bit of units that hold values and not labels.
const VALUE: u32 = 1 << 31;

/// How far a node's children are.
fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & 0x200) >> 6)) as usize
}
