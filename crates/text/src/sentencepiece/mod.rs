//! SentencePiece `.model` files (Kudo and Richardson, 2018): text -> pieces, as the Python package cuts them.
//!
//! File -> `proto` -> `model_file`; text -> `normalizer` -> `unigram` or `bpe` (with `trie`) -> pieces.
//! BLEU's `spm` tokenizer uses it; no other library is needed.

mod bpe;
mod model_file;
mod normalizer;
mod proto;
pub(crate) mod trie;
mod unigram;

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::path::Path;

use crate::error::{Result, TextError};
use bpe::Bpe;
use model_file::{Algorithm, ModelFile, PieceKind};
use normalizer::{Normalizer, SPACE};
use trie::Trie;
use unigram::Unigram;

/// A SentencePiece model, ready to cut text into pieces.
#[derive(Clone)]
pub struct SentencePiece {
    normalizer: Normalizer,
    user_defined: Trie,
    segmenter: Segmenter,
    byte_fallback: bool,
    pieces: usize,
    fingerprint: blake3::Hash,
}

#[derive(Clone)]
enum Segmenter {
    Unigram(Unigram, Trie),
    Bpe(Bpe),
    Word(HashSet<String>),
    Char(HashSet<String>),
}

impl SentencePiece {
    /// Reads a model file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(|source| TextError::Open {
            path: path.to_owned(),
            source,
        })?;
        Self::from_bytes(&bytes).map_err(|problem| TextError::SentencePieceFile {
            path: path.to_owned(),
            problem,
        })
    }

    /// The text as pieces: what `encode(text, out_type=str)` gives in Python.
    ///
    /// A space is `▁`. Text that no piece covers comes as it is, or as bytes (`<0xE2>`) when the model has
    /// them.
    pub fn pieces(&self, text: &str) -> Vec<String> {
        let normalized = self.normalizer.normalize(text, &self.user_defined);
        let segments = match &self.segmenter {
            Segmenter::Unigram(model, trie) => model.segment(&normalized, trie),
            Segmenter::Bpe(model) => model.segment(&normalized, &self.user_defined),
            Segmenter::Word(known) => words(&normalized, self.normalizer.spaces_end_words())
                .map(|word| (word, known.contains(word)))
                .collect(),
            Segmenter::Char(known) => characters(&normalized, &self.user_defined)
                .map(|(piece, _)| (piece, known.contains(piece)))
                .collect(),
        };
        self.finish(&segments)
    }

    /// The BLAKE3 hash of the file, which names it when scores are published.
    pub fn fingerprint(&self) -> String {
        self.fingerprint.to_hex().to_string()
    }

    fn from_bytes(bytes: &[u8]) -> std::result::Result<Self, String> {
        let file = ModelFile::parse(bytes)?;
        let of_kind = |accepts: fn(PieceKind) -> bool| {
            let numbered = file.pieces.iter().zip(0..);
            numbered
                .filter(move |(piece, _)| accepts(piece.kind))
                .map(|(piece, id)| (piece.text.as_str(), id))
        };
        let known = || {
            let known = of_kind(|kind| kind != PieceKind::Unknown);
            known.map(|(text, _)| text.to_owned()).collect()
        };
        let segmenter = match file.algorithm {
            Algorithm::Unigram => Segmenter::Unigram(
                Unigram::new(&file.pieces),
                Trie::new(of_kind(PieceKind::is_text)),
            ),
            Algorithm::Bpe => Segmenter::Bpe(Bpe::new(&file.pieces)),
            Algorithm::Word => Segmenter::Word(known()),
            Algorithm::Char => Segmenter::Char(known()),
        };
        Ok(Self {
            user_defined: Trie::new(of_kind(|kind| kind == PieceKind::UserDefined)),
            segmenter,
            byte_fallback: file.byte_fallback,
            pieces: file.pieces.len(),
            normalizer: Normalizer::new(file.normalizer)?,
            fingerprint: blake3::hash(bytes),
        })
    }

    /// Joins runs of unknown text, or spells it in bytes.
    fn finish(&self, segments: &[(&str, bool)]) -> Vec<String> {
        let mut pieces: Vec<String> = Vec::with_capacity(segments.len());
        let mut after_unknown = false;
        for &(piece, known) in segments {
            match pieces.last_mut() {
                _ if !known && self.byte_fallback => {
                    pieces.extend(piece.bytes().map(|byte| format!("<0x{byte:02X}>")));
                }
                Some(last) if !known && after_unknown => last.push_str(piece),
                _ => pieces.push(piece.to_owned()),
            }
            after_unknown = !known;
        }
        pieces
    }
}

impl fmt::Debug for SentencePiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentencePiece")
            .field("pieces", &self.pieces)
            .field("fingerprint", &self.fingerprint())
            .finish()
    }
}

impl PartialEq for SentencePiece {
    /// Models of the same file are the same.
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

/// The text as characters and whole user-defined symbols, and whether each is such a symbol.
fn characters<'t>(text: &'t str, user_defined: &Trie) -> impl Iterator<Item = (&'t str, bool)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?.len_utf8();
        let symbol = user_defined.longest(rest.as_bytes());
        let (piece, after) = rest.split_at(symbol.unwrap_or(first));
        rest = after;
        Some((piece, symbol.is_some()))
    })
}

/// The text cut before every `▁`, or behind every one.
fn words(text: &str, behind: bool) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?.len_utf8();
        let end = match behind {
            true => rest.find(SPACE).map(|at| at + SPACE.len_utf8()),
            false => rest[first..].find(SPACE).map(|at| first + at),
        };
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(word)
    })
}
