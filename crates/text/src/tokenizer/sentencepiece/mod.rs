//! SentencePiece `.model` files (Kudo and Richardson, 2018): text -> pieces -> text, as the Python package
//! does it.
//!
//! File -> `proto` -> `model_file`; text -> `normalizer` -> `unigram` or `bpe` -> pieces -> ids. The ids are
//! ours (`numbering`): the special tokens first, then the other pieces in the order of the file, or those of a
//! vocabulary that comes beside the file. Models of other programs bring such files; BLEU's `spm`
//! tokenizer counts their pieces.

mod bpe;
mod model_file;
mod normalizer;
mod numbering;
mod proto;
mod unigram;

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::path::Path;

use super::trie::Trie;
use super::vocabulary::Vocabulary;
use super::word_ids::{Reached, WordCounter};
use crate::error::{Result, TextError};
use bpe::Bpe;
use model_file::{Algorithm, ModelFile, PieceKind};
use normalizer::{Normalizer, SPACE};
use numbering::{Numbering, Origin};
use unigram::Unigram;

/// A SentencePiece model: cuts text into pieces and puts it together again.
pub struct SentencePiece {
    normalizer: Normalizer,
    denormalizer: Option<Normalizer>,
    user_defined: Trie,
    segmenter: Segmenter,
    numbering: Numbering,
    unknown_surface: String,
    file: Box<[u8]>,
}

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
        Self::from_bytes(&bytes, path)
    }

    /// As [`SentencePiece::load`], from bytes that are in memory already; errors call them `name`.
    pub fn from_bytes(bytes: &[u8], name: impl AsRef<Path>) -> Result<Self> {
        Self::parse(bytes).map_err(|problem| TextError::SentencePieceFile {
            path: name.as_ref().to_owned(),
            problem,
        })
    }

    /// A model whose pieces are looked up as strings in a vocabulary of another order and size, as that of
    /// an OPUS-MT model; the error is a phrase that says what is wrong.
    pub(super) fn with_vocabulary(
        bytes: &[u8],
        tokens: Vec<String>,
    ) -> std::result::Result<Self, String> {
        let file = ModelFile::parse(bytes)?;
        let numbering = Numbering::of_vocabulary(&file, tokens)?;
        Self::new(file, numbering, bytes)
    }

    /// The text as pieces: what `encode(text, out_type=str)` gives in Python.
    ///
    /// A space is `▁`. Text that no piece covers comes as it is, or as bytes (`<0xE2>`) when the model has
    /// them.
    pub fn pieces(&self, text: &str) -> Vec<String> {
        let (language, text) = self.numbering.language_token(text);
        let normalized = self.normalizer.normalize(text, &self.user_defined);
        let mut pieces: Vec<String> = Vec::new();
        pieces.extend(language.map(|id| self.vocabulary().shown(id).to_owned()));
        self.each_piece(&normalized, |piece, known| {
            if !known && self.numbering.has_bytes() {
                pieces.extend(piece.bytes().map(byte_piece));
            } else {
                pieces.push(piece.to_owned());
            }
        });
        pieces
    }

    /// The ids of the pieces. Text that spells a control piece is ordinary, mostly unknown text.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let (language, text) = self.numbering.language_token(text);
        let normalized = self.normalizer.normalize(text, &self.user_defined);
        let mut ids = Vec::with_capacity(normalized.len() / 3);
        ids.extend(language);
        self.each_piece(&normalized, |piece, known| {
            self.numbering.push_ids(piece, known, &mut ids);
        });
        ids
    }

    /// Each piece of normalized text, and whether it is known; of several unknown ones in a row, all at once.
    fn each_piece<'t>(&self, normalized: &'t str, mut found: impl FnMut(&'t str, bool)) {
        let (mut start, mut end) = (0, 0); // of the unknown text that was not given out yet
        for (piece, known) in self.segment(normalized) {
            if known {
                if start < end {
                    found(&normalized[start..end], false);
                }
                found(piece, true);
                start = end + piece.len();
            }
            end += piece.len();
        }
        if start < end {
            found(&normalized[start..end], false);
        }
    }

    /// The text of the ids: what `decode` gives in Python.
    ///
    /// Control pieces are dropped; unknown text, and ids beyond the vocabulary, are what the file says
    /// that they look like, usually ` ⁇ `. Bytes that are no character are `\u{fffd}`. With a vocabulary
    /// of its own, spaces at both ends are dropped, as the Marian tokenizer of `transformers` does.
    pub fn decode(&self, ids: &[u32]) -> String {
        let (mut text, mut bytes) = (String::new(), Vec::new());
        self.each_surface(ids, |surface| match surface {
            Surface::Byte(byte) => bytes.push(byte),
            Surface::Unknown => {
                push_bytes(&mut text, &mut bytes);
                text.push_str(&self.unknown_surface);
            }
            Surface::Piece(piece) => {
                push_bytes(&mut text, &mut bytes);
                text.extend(piece.chars().map(spaced));
            }
        });
        push_bytes(&mut text, &mut bytes);
        if let Some(denormalizer) = &self.denormalizer {
            text = denormalizer.normalize(&text, &Trie::default());
        }
        match self.numbering.origin() {
            Origin::File => text,
            Origin::Vocabulary => text.trim().to_owned(),
        }
    }

    pub(super) fn reached(&self, ids: &[u32]) -> Vec<Reached> {
        // A denormalizer may change any text once more is known; hardly a file has one.
        if self.denormalizer.is_some() {
            let reached = |end| {
                let mut counter = WordCounter::default();
                counter.push(self.decode(&ids[..end]).chars());
                counter.reached()
            };
            return (1..=ids.len()).map(reached).collect();
        }
        let mut counter = WordCounter::default();
        let mut reached = Vec::with_capacity(ids.len());
        self.each_surface(ids, |surface| {
            match surface {
                Surface::Byte(byte) => counter.push_bytes(&[byte]),
                Surface::Unknown => counter.push(self.unknown_surface.chars()),
                Surface::Piece(piece) => counter.push(piece.chars().map(spaced)),
            }
            reached.push(counter.reached());
        });
        reached
    }

    /// What each id adds to the text.
    fn each_surface<'s>(&'s self, ids: &[u32], mut add: impl FnMut(Surface<'s>)) {
        // The space that stands for the beginning of the text, not for a space, is yet to come.
        let mut at_start = self.normalizer.strips_first_space();
        for &id in ids {
            let surface = match self.numbering.kind(id) {
                Some(PieceKind::Byte(byte)) => Surface::Byte(byte),
                Some(PieceKind::Control) => Surface::Piece(""),
                None | Some(PieceKind::Unknown) => Surface::Unknown,
                Some(_) => {
                    let piece = self.vocabulary().shown(id);
                    let stripped = piece.strip_prefix(SPACE).filter(|_| at_start);
                    // Of several spaces all are extra, or all but the first are text.
                    at_start &= stripped.is_none() || self.normalizer.removes_extra_spaces();
                    Surface::Piece(stripped.unwrap_or(piece))
                }
            };
            at_start &= match surface {
                Surface::Byte(_) => false,
                Surface::Unknown => self.unknown_surface.is_empty(),
                Surface::Piece(piece) => piece.is_empty(),
            };
            add(surface);
        }
    }

    /// Our ids of the file's pieces, in the file's order: what turns the rows of a model that was trained
    /// with the file's ids into the rows of ours.
    pub fn ids(&self) -> &[u32] {
        self.numbering.ids()
    }

    /// The BLAKE3 hash of the file, which names it when scores are published.
    pub fn fingerprint(&self) -> String {
        blake3::hash(&self.file).to_hex().to_string()
    }

    /// The file as it was read.
    pub(super) fn file(&self) -> &[u8] {
        &self.file
    }

    /// Whether a vocabulary came beside the file.
    pub(super) fn has_own_vocabulary(&self) -> bool {
        self.numbering.origin() == Origin::Vocabulary
    }

    pub(super) fn vocabulary(&self) -> &Vocabulary {
        self.numbering.vocabulary()
    }

    fn parse(bytes: &[u8]) -> std::result::Result<Self, String> {
        let file = ModelFile::parse(bytes)?;
        let numbering = Numbering::of_file(&file)?;
        Self::new(file, numbering, bytes)
    }

    fn new(
        file: ModelFile,
        numbering: Numbering,
        bytes: &[u8],
    ) -> std::result::Result<Self, String> {
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
            normalizer: Normalizer::new(file.normalizer)?,
            denormalizer: file.denormalizer.map(Normalizer::new).transpose()?,
            unknown_surface: file.unknown_surface,
            numbering,
            file: bytes.into(),
        })
    }

    /// The pieces of normalized text, and whether each is known.
    fn segment<'t>(&self, normalized: &'t str) -> Vec<(&'t str, bool)> {
        match &self.segmenter {
            Segmenter::Unigram(model, trie) => model.segment(normalized, trie),
            Segmenter::Bpe(model) => model.segment(normalized, &self.user_defined),
            Segmenter::Word(known) => words(normalized, self.normalizer.spaces_end_words())
                .map(|word| (word, known.contains(word)))
                .collect(),
            Segmenter::Char(known) => characters(normalized, &self.user_defined)
                .map(|(piece, _)| (piece, known.contains(piece)))
                .collect(),
        }
    }
}

/// What an id adds to a text.
#[derive(Clone, Copy)]
enum Surface<'a> {
    Byte(u8),
    Unknown,
    /// Text in which spaces are `▁`.
    Piece(&'a str),
}

/// A character of a piece as it stands in a text.
fn spaced(char: char) -> char {
    if char == SPACE { ' ' } else { char }
}

/// How a byte is spelled in the vocabulary.
fn byte_piece(byte: u8) -> String {
    format!("<0x{byte:02X}>")
}

/// Appends bytes as text and forgets them; each byte that belongs to no character is `\u{fffd}`.
fn push_bytes(text: &mut String, bytes: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    bytes.clear();
}

impl fmt::Debug for SentencePiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentencePiece")
            .field("pieces", &self.ids().len())
            .field("fingerprint", &self.fingerprint())
            .finish()
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
        let end = if behind {
            rest.find(SPACE).map(|at| at + SPACE.len_utf8())
        } else {
            rest[first..].find(SPACE).map(|at| first + at)
        };
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(word)
    })
}
