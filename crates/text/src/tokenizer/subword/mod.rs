//! Subword tokenizers: byte-level BPE and Unigram, kept as a `tokenizer.json` of the `tokenizers`
//! library.
//!
//! The library holds the BPE model, its trainer ([`bpe`]) and the file format. Three steps around it
//! are our own. The cut into pre-tokens ([`bytes`]) is the library's cut, several times faster, and so
//! is that of a pre-token by a Unigram model ([`unigram_model`]). Unigram training ([`unigram`]) gives
//! the same file in every run; the library's does not, as it walks hash maps in random order.
//!
//! One space is put before the text and taken away again after decoding, so that a word is the same
//! token at the start of a line as anywhere else.

pub(super) mod bpe;
mod bytes;
mod lattice;
mod model;
mod seeds;
mod unigram;
mod unigram_model;
mod word_counts;

use tokenizers::Model as _;
use tokenizers::models::ModelWrapper;
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;

use super::lowercased;
use super::options::{TokenizerKind, TokenizerOptions};
use super::vocabulary::Vocabulary;
use super::word_ids::{Reached, WordCounter};
use crate::error::{Result, TextError};
use crate::special::{BOS, EOS, PAD, SPECIALS, UNK};
use bytes::{ALPHABET, bytes_of, pre_tokens, spell, spell_into};
use unigram_model::{TokenizerFile, UnigramModel, Vocab};

/// A tokenizer whose vocabulary holds every byte, so that no text is unknown to it.
#[derive(Debug)]
pub(super) struct SubwordTokenizer {
    model: Model,
    lowercase: bool,
    vocabulary: Vocabulary,
    /// What each id stands for; `<unk>` stands for its own spelling, other specials for nothing.
    bytes: Vec<Box<[u8]>>,
}

#[derive(Debug)]
enum Model {
    Bpe(Box<tokenizers::Tokenizer>),
    Unigram(UnigramModel),
}

impl SubwordTokenizer {
    pub(super) fn train(
        options: &TokenizerOptions,
        texts: &mut dyn Iterator<Item = &str>,
    ) -> Result<Self> {
        let words = word_counts::count_words(texts, options.lowercase);
        if words.is_empty() {
            return Err(TextError::NoText);
        }
        let room = options.vocab_size - SPECIALS.len();
        let least = options.min_frequency as u64;
        let model = match options.kind {
            TokenizerKind::Unigram => {
                model::from_pieces(&unigram::learn_pieces(&words, room, least))?
            }
            _ => model::from_merges(&bpe::learn_merges(&words, room - ALPHABET.len(), least)?)?,
        };
        let made = match model {
            ModelWrapper::Unigram(unigram) => {
                Self::from_pieces(unigram.iter().cloned().collect(), options.lowercase)
            }
            other => Self::from_library(model::with_pipeline(other, options.lowercase)),
        };
        made.map_err(|problem| TextError::Library { problem })
    }

    /// Reads a `tokenizer.json`; says what is wrong if it cannot be used.
    pub(super) fn from_json(json: &str) -> std::result::Result<Self, String> {
        let file: TokenizerFile = serde_json::from_str(json).map_err(|error| error.to_string())?;
        match (file.model.kind.as_deref(), file.model.vocab) {
            (Some("Unigram") | None, Some(Vocab::Pieces(pieces))) => {
                let lowercase = match file.normalizer.as_ref().map(|part| part.kind.as_str()) {
                    None => false,
                    Some("Lowercase") => true,
                    Some(_) => return Err(OTHER_NORMALIZER.to_owned()),
                };
                let level = file.pre_tokenizer.filter(|part| part.kind == "ByteLevel");
                let fits = level.is_some_and(|level| {
                    level.use_regex.unwrap_or(true) && level.add_prefix_space == Some(false)
                });
                if !fits {
                    return Err(OTHER_PRE_TOKENIZER.to_owned());
                }
                let in_model = |id: u32, content: &str| {
                    pieces
                        .get(id as usize)
                        .is_some_and(|piece| piece.0 == content)
                };
                if !file
                    .added_tokens
                    .iter()
                    .all(|token| in_model(token.id, &token.content))
                {
                    return Err(ADDED_TOKENS.to_owned());
                }
                Self::from_pieces(pieces, lowercase)
            }
            _ => {
                let library = json.parse::<tokenizers::Tokenizer>();
                Self::from_library(library.map_err(|error| error.to_string())?)
            }
        }
    }

    pub(super) fn to_json(&self) -> Result<String> {
        match &self.model {
            Model::Bpe(library) => library.to_string(true).map_err(model::refused),
            Model::Unigram(unigram) => {
                let tokens = self.vocabulary.tokens().iter().cloned();
                let pieces = tokens.zip(unigram.scores().iter().copied()).collect();
                let model = model::from_spelled_pieces(pieces)?;
                let library = model::with_pipeline(model, self.lowercase);
                library.to_string(true).map_err(model::refused)
            }
        }
    }

    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        self.encode_with_dropout(text, &mut || false)
    }

    /// As [`Self::encode`] without the pieces that are dropped; only a Unigram model can do so.
    pub(super) fn encode_with_dropout(
        &self,
        text: &str,
        dropped: &mut dyn FnMut() -> bool,
    ) -> Vec<u32> {
        if text.is_empty() {
            return Vec::new();
        }
        let text = format!(" {}", lowercased(text, self.lowercase));
        let mut ids = Vec::with_capacity(text.len() / 3);
        let mut spelling = String::new();
        for pre_token in pre_tokens(&text) {
            self.cut(pre_token.as_bytes(), dropped, &mut spelling, &mut ids);
        }
        ids
    }

    /// Adds the ids of a pre-token; `spelling` is room to write in.
    fn cut(
        &self,
        pre_token: &[u8],
        dropped: &mut dyn FnMut() -> bool,
        spelling: &mut String,
        ids: &mut Vec<u32>,
    ) {
        match &self.model {
            Model::Unigram(model) => model.segment(pre_token, dropped, ids),
            Model::Bpe(library) => {
                spelling.clear();
                spell_into(pre_token, spelling);
                // `from_library` made sure that every byte is a piece, so there is always a way.
                let tokens = library.get_model().tokenize(spelling);
                let tokens = tokens.expect("every byte is a piece");
                ids.extend(tokens.iter().map(|token| token.id));
            }
        }
    }

    /// See [`super::Tokenizer::ids_of_token`]; `id` is none of a special token.
    pub(super) fn ids_of_token(&self, other: &Self, id: u32) -> Vec<u32> {
        let bytes = other.bytes_of_id(id);
        let text = std::str::from_utf8(bytes).map(|text| lowercased(text, self.lowercase));
        let bytes = text.as_deref().map_or(bytes, str::as_bytes);
        if let Some(same) = self.vocabulary.id(&spell(bytes)) {
            return vec![same];
        }
        let mut ids = Vec::new();
        self.cut(bytes, &mut || false, &mut String::new(), &mut ids);
        ids
    }

    pub(super) fn decode(&self, ids: &[u32]) -> String {
        let bytes: Vec<u8> = ids
            .iter()
            .flat_map(|id| self.bytes_of_id(*id))
            .copied()
            .collect();
        let text = String::from_utf8_lossy(&bytes);
        text.strip_prefix(' ').unwrap_or(&text).to_owned()
    }

    pub(super) fn reached(&self, ids: &[u32]) -> Vec<Reached> {
        let mut counter = WordCounter::default();
        let reached = |id: &u32| {
            counter.push_bytes(self.bytes_of_id(*id));
            counter.reached()
        };
        ids.iter().map(reached).collect()
    }

    /// How people see an id: `▁` for a space, `<0xE2>` for bytes that are no character.
    pub(super) fn label(&self, id: u32) -> String {
        if let Some(special) = SPECIALS.get(id as usize) {
            return (*special).to_owned();
        }
        let bytes = self.bytes_of_id(id);
        match std::str::from_utf8(bytes) {
            Ok(text) => text.replace(' ', "▁"),
            Err(_) => bytes.iter().map(|byte| format!("<0x{byte:02X}>")).collect(),
        }
    }

    pub(super) fn kind(&self) -> TokenizerKind {
        match self.model {
            Model::Bpe(_) => TokenizerKind::Bpe,
            Model::Unigram(_) => TokenizerKind::Unigram,
        }
    }

    pub(super) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// A Unigram model of pieces, spelled, with their scores.
    fn from_pieces(
        pieces: Vec<(String, f64)>,
        lowercase: bool,
    ) -> std::result::Result<Self, String> {
        let (tokens, scores) = pieces.into_iter().unzip();
        let (vocabulary, bytes) = checked(tokens)?;
        Ok(Self {
            model: Model::Unigram(UnigramModel::new(scores, &bytes)),
            lowercase,
            vocabulary,
            bytes,
        })
    }

    /// A BPE model; checks everything that encoding and decoding rely on.
    fn from_library(mut library: tokenizers::Tokenizer) -> std::result::Result<Self, String> {
        check_bpe(library.get_model())?;
        let lowercase = match library.get_normalizer() {
            None => false,
            Some(NormalizerWrapper::Lowercase(_)) => true,
            Some(_) => return Err(OTHER_NORMALIZER.to_owned()),
        };
        match library.get_pre_tokenizer() {
            Some(PreTokenizerWrapper::ByteLevel(level))
                if level.use_regex && !level.add_prefix_space => {}
            _ => return Err(OTHER_PRE_TOKENIZER.to_owned()),
        }
        if library.get_vocab_size(true) != library.get_vocab_size(false) {
            return Err(ADDED_TOKENS.to_owned());
        }
        let (vocabulary, bytes) = checked(tokens_by_id(library.get_model())?)?;
        let mut model = library.get_model().clone();
        model.resize_cache(CACHE);
        library.with_model(model);
        Ok(Self {
            model: Model::Bpe(Box::new(library)),
            lowercase,
            vocabulary,
            bytes,
        })
    }

    fn bytes_of_id(&self, id: u32) -> &[u8] {
        self.bytes
            .get(id as usize)
            .unwrap_or(&self.bytes[UNK as usize])
    }
}

/// How many pre-tokens the model remembers the cut of; the words of a large corpus fit.
const CACHE: usize = 100_000;

const OTHER_NORMALIZER: &str = "its normalizer is neither absent nor Lowercase";
const OTHER_PRE_TOKENIZER: &str = "its pre-tokenizer is not ByteLevel without prefix space";
const ADDED_TOKENS: &str = "it has added tokens that are not part of its model";

/// What each id stands for.
type BytesOfIds = Vec<Box<[u8]>>;

/// The vocabulary, and what each id stands for.
fn checked(tokens: Vec<String>) -> std::result::Result<(Vocabulary, BytesOfIds), String> {
    let vocabulary = Vocabulary::new(tokens)?;
    if let Some(byte) = missing_byte(&vocabulary) {
        return Err(format!("its vocabulary lacks the byte {byte:#04x}"));
    }
    let bytes = bytes_by_id(&vocabulary)?;
    Ok((vocabulary, bytes))
}

fn check_bpe(model: &ModelWrapper) -> std::result::Result<(), String> {
    match model {
        ModelWrapper::BPE(bpe) if bpe.dropout.is_some_and(|dropout| dropout > 0.0) => {
            Err("its BPE model has dropout, so it would cut at random".to_owned())
        }
        ModelWrapper::BPE(bpe)
            if bpe.continuing_subword_prefix.is_some() || bpe.end_of_word_suffix.is_some() =>
        {
            Err(
                "its BPE model marks the starts or ends of words, which bytes do not need"
                    .to_owned(),
            )
        }
        ModelWrapper::BPE(_) => Ok(()),
        _ => Err("its model is neither BPE nor Unigram".to_owned()),
    }
}

fn tokens_by_id(model: &ModelWrapper) -> std::result::Result<Vec<String>, String> {
    let count = u32::try_from(model.get_vocab_size()).map_err(|error| error.to_string())?;
    let token = |id| {
        model
            .id_to_token(id)
            .ok_or_else(|| format!("no token has the id {id}"))
    };
    (0..count).map(token).collect()
}

fn missing_byte(vocabulary: &Vocabulary) -> Option<usize> {
    ALPHABET
        .iter()
        .position(|byte| vocabulary.id(byte.encode_utf8(&mut [0; 4])).is_none())
}

fn bytes_by_id(vocabulary: &Vocabulary) -> std::result::Result<Vec<Box<[u8]>>, String> {
    let bytes = |(id, token): (u32, &String)| match id {
        BOS | EOS | PAD => Ok(Box::default()),
        UNK => Ok(token.as_bytes().into()),
        _ => bytes_of(token).ok_or_else(|| format!("token {token:?} is not made of bytes")),
    };
    (0..).zip(vocabulary.tokens()).map(bytes).collect()
}
