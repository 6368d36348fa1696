//! Subword tokenizers: byte-level BPE and Unigram, kept as a `tokenizer.json` of the `tokenizers`
//! library.
//!
//! The library holds the models and the file format. Two steps around it are our own: the cut into
//! pre-tokens ([`bytes`]: the same cut, several times faster), and training ([`bpe`], [`unigram`]:
//! the library's trainers walk hash maps in random order and so differ from run to run).
//!
//! One space is put before the text and taken away again after decoding, so that a word is the same
//! token at the start of a line as anywhere else.

mod bpe;
mod bytes;
mod lattice;
mod model;
mod seeds;
mod unigram;
mod word_counts;

use tokenizers::Model;
use tokenizers::models::ModelWrapper;
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;

use super::lowercased;
use super::options::{TokenizerKind, TokenizerOptions};
use super::vocabulary::Vocabulary;
use crate::error::{Result, TextError};
use crate::special::{BOS, EOS, PAD, SPECIALS, UNK};
use bytes::{ALPHABET, bytes_of, pre_tokens, spell_into};

/// A tokenizer whose vocabulary holds every byte, so that no text is unknown to it.
#[derive(Debug)]
pub(super) struct SubwordTokenizer {
    library: tokenizers::Tokenizer,
    kind: TokenizerKind,
    lowercase: bool,
    vocabulary: Vocabulary,
    /// What each id stands for; `<unk>` stands for its own spelling, other specials for nothing.
    bytes: Vec<Box<[u8]>>,
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
            _ => model::from_merges(&bpe::learn_merges(&words, room - ALPHABET.len(), least))?,
        };
        let library = model::with_surroundings(model, options.lowercase);
        Self::new(library).map_err(|problem| TextError::Library { problem })
    }

    /// Reads a `tokenizer.json`; says what is wrong if it cannot be used.
    pub(super) fn from_json(json: &str) -> std::result::Result<Self, String> {
        let library = json
            .parse::<tokenizers::Tokenizer>()
            .map_err(|error| error.to_string())?;
        Self::new(library)
    }

    pub(super) fn to_json(&self) -> Result<String> {
        self.library.to_string(true).map_err(model::refused)
    }

    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        if text.is_empty() {
            return Vec::new();
        }
        let text = format!(" {}", lowercased(text, self.lowercase));
        let mut ids = Vec::with_capacity(text.len() / 3);
        let mut spelling = String::new();
        for pre_token in pre_tokens(&text) {
            spelling.clear();
            spell_into(pre_token.as_bytes(), &mut spelling);
            // `new` made sure that every byte is a piece, so there is always a way to cut.
            let tokens = self.library.get_model().tokenize(&spelling);
            ids.extend(
                tokens
                    .expect("every byte is a piece")
                    .iter()
                    .map(|token| token.id),
            );
        }
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
        self.kind
    }

    pub(super) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Checks everything that encoding and decoding rely on.
    fn new(mut library: tokenizers::Tokenizer) -> std::result::Result<Self, String> {
        let kind = kind_of(library.get_model())?;
        let lowercase = match library.get_normalizer() {
            None => false,
            Some(NormalizerWrapper::Lowercase(_)) => true,
            Some(_) => return Err("its normalizer is neither absent nor Lowercase".to_owned()),
        };
        match library.get_pre_tokenizer() {
            Some(PreTokenizerWrapper::ByteLevel(level))
                if level.use_regex && !level.add_prefix_space => {}
            _ => return Err("its pre-tokenizer is not ByteLevel without prefix space".to_owned()),
        }
        if library.get_vocab_size(true) != library.get_vocab_size(false) {
            return Err("it has added tokens that are not part of its model".to_owned());
        }
        let vocabulary = Vocabulary::new(tokens_by_id(library.get_model())?)?;
        if let Some(byte) = missing_byte(&vocabulary) {
            return Err(format!("its vocabulary lacks the byte {byte:#04x}"));
        }
        let bytes = stood_for(&vocabulary)?;
        let mut model = library.get_model().clone();
        model.resize_cache(CACHE);
        library.with_model(model);
        Ok(Self {
            library,
            kind,
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

fn kind_of(model: &ModelWrapper) -> std::result::Result<TokenizerKind, String> {
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
        ModelWrapper::BPE(_) => Ok(TokenizerKind::Bpe),
        ModelWrapper::Unigram(_) => Ok(TokenizerKind::Unigram),
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

fn stood_for(vocabulary: &Vocabulary) -> std::result::Result<Vec<Box<[u8]>>, String> {
    let bytes = |(id, token): (u32, &String)| match id {
        BOS | EOS | PAD => Ok(Box::default()),
        UNK => Ok(token.as_bytes().into()),
        _ => bytes_of(token).ok_or_else(|| format!("token {token:?} is not made of bytes")),
    };
    (0..).zip(vocabulary.tokens()).map(bytes).collect()
}
