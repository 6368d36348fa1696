//! Subword tokenizers: byte-level BPE and Unigram, kept as a `tokenizer.json` of the `tokenizers`
//! library.
//!
//! The library holds the models and the file format. The cut into pre-tokens is done in
//! [`super::bytes`] (the same cut, faster) and so is training ([`super::bpe`], [`super::unigram`]):
//! the library's trainers walk hash maps in random order and so differ from run to run.
//!
//! One space is put before the text and taken away again after decoding, so that a word is the same
//! token at the start of a line as anywhere else.

use std::collections::HashMap;

use tokenizers::decoders::DecoderWrapper;
use tokenizers::models::ModelWrapper;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::models::unigram::Unigram;
use tokenizers::normalizers::{Lowercase, NormalizerWrapper};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, Model};

use super::bytes::{ALPHABET, bytes_of, lowercased, pre_tokens, spell};
use super::options::{TokenizerKind, TokenizerOptions};
use super::vocabulary::Vocabulary;
use super::{bpe, unigram};
use crate::error::{Result, TextError};
use crate::special::{BOS, EOS, PAD, SPECIALS, UNK};

/// A tokenizer whose vocabulary holds every byte, so that no text is unknown to it.
#[derive(Debug)]
pub(super) struct SubwordTokenizer {
    library: tokenizers::Tokenizer,
    kind: TokenizerKind,
    lowercase: bool,
    vocabulary: Vocabulary,
    /// What each id stands for; `<unk>` stands for its own spelling, the other specials for nothing.
    bytes: Vec<Box<[u8]>>,
}

/// A pre-token of the training text and how often it occurs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WordCount {
    pub(super) bytes: Box<[u8]>,
    pub(super) count: u64,
}

impl SubwordTokenizer {
    pub(super) fn train(
        options: &TokenizerOptions,
        texts: &mut dyn Iterator<Item = &str>,
    ) -> Result<Self> {
        let words = count_words(texts, options.lowercase);
        if words.is_empty() {
            return Err(TextError::NoText);
        }
        let room = options.vocab_size - SPECIALS.len();
        let min_frequency = options.min_frequency as u64;
        let model = match options.kind {
            TokenizerKind::Unigram => {
                unigram_model(&unigram::learn_pieces(&words, room, min_frequency))
            }
            _ => bpe_model(&bpe::learn_merges(
                &words,
                room - ALPHABET.len(),
                min_frequency,
            )),
        };
        let refused = |problem| TextError::Library { problem };
        let library = model
            .and_then(|model| around(model, options.lowercase))
            .map_err(refused)?;
        Self::new(library).map_err(refused)
    }

    /// Reads a `tokenizer.json`; says what is wrong if it is not one of ours.
    pub(super) fn from_json(json: &str) -> std::result::Result<Self, String> {
        let library = json
            .parse::<tokenizers::Tokenizer>()
            .map_err(|error| error.to_string())?;
        Self::new(library)
    }

    pub(super) fn to_json(&self) -> Result<String> {
        self.library
            .to_string(true)
            .map_err(|error| TextError::Library {
                problem: error.to_string(),
            })
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
            spell(pre_token, &mut spelling);
            // `new` made sure that every byte is a piece, so there is always a way to cut.
            let tokens = self
                .library
                .get_model()
                .tokenize(&spelling)
                .expect("every byte is a piece");
            ids.extend(tokens.iter().map(|token| token.id));
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

    /// How people see an id: `▁` for the space before, `<0xE2>` for bytes that are no character.
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
    fn new(library: tokenizers::Tokenizer) -> std::result::Result<Self, String> {
        let kind = match library.get_model() {
            ModelWrapper::BPE(model) if model.dropout.is_some_and(|dropout| dropout > 0.0) => {
                return Err("its BPE model has dropout, so it would cut at random".to_owned());
            }
            ModelWrapper::BPE(_) => TokenizerKind::Bpe,
            ModelWrapper::Unigram(_) => TokenizerKind::Unigram,
            _ => return Err("its model is neither BPE nor Unigram".to_owned()),
        };
        let lowercase = match library.get_normalizer() {
            None => false,
            Some(NormalizerWrapper::Lowercase(_)) => true,
            Some(_) => return Err("its normalizer is neither absent nor Lowercase".to_owned()),
        };
        match library.get_pre_tokenizer() {
            Some(PreTokenizerWrapper::ByteLevel(level))
                if !level.add_prefix_space && level.use_regex => {}
            _ => return Err("its pre-tokenizer is not ByteLevel without a prefix space".to_owned()),
        }
        if library.get_vocab_size(true) != library.get_vocab_size(false) {
            return Err("it has added tokens that are not part of its model".to_owned());
        }
        let vocabulary = Vocabulary::new(tokens_by_id(library.get_model())?)?;
        if let Some(missing) = ALPHABET
            .iter()
            .position(|byte| vocabulary.id(byte.encode_utf8(&mut [0; 4])).is_none())
        {
            return Err(format!("its vocabulary lacks the byte {missing:#04x}"));
        }
        let bytes = stood_for(&vocabulary)?;
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

/// All pre-tokens in the order of their bytes, so that training sees no hash map's order.
fn count_words(texts: &mut dyn Iterator<Item = &str>, lowercase: bool) -> Vec<WordCount> {
    let mut counts: HashMap<Box<[u8]>, u64> = HashMap::new();
    let mut line = String::new();
    for text in texts.filter(|text| !text.is_empty()) {
        line.clear();
        line.push(' ');
        line.push_str(&lowercased(text, lowercase));
        for pre_token in pre_tokens(&line) {
            match counts.get_mut(pre_token.as_bytes()) {
                Some(count) => *count += 1,
                None => drop(counts.insert(pre_token.as_bytes().into(), 1)),
            }
        }
    }
    let mut words: Vec<WordCount> = counts
        .into_iter()
        .map(|(bytes, count)| WordCount { bytes, count })
        .collect();
    words.sort_unstable();
    words
}

/// The ids are the specials, the bytes, then one token for each merge.
fn bpe_model(merges: &[bpe::Pair]) -> std::result::Result<ModelWrapper, String> {
    let mut symbols: Vec<String> = ALPHABET.iter().map(char::to_string).collect();
    let mut named = Vec::with_capacity(merges.len());
    for &(left, right) in merges {
        let (left, right) = (
            symbols[left as usize].clone(),
            symbols[right as usize].clone(),
        );
        symbols.push(format!("{left}{right}"));
        named.push((left, right));
    }
    let specials = SPECIALS.iter().map(|special| (*special).to_owned());
    let vocab: Vocab = specials.chain(symbols).zip(0..).collect();
    let builder = BPE::builder()
        .vocab_and_merges(vocab, named)
        .unk_token(SPECIALS[UNK as usize].to_owned());
    builder
        .cache_capacity(CACHE)
        .build()
        .map(ModelWrapper::BPE)
        .map_err(|error| error.to_string())
}

fn unigram_model(pieces: &[unigram::Piece]) -> std::result::Result<ModelWrapper, String> {
    let spelled = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| ALPHABET[usize::from(*byte)])
            .collect()
    };
    let specials = SPECIALS.iter().map(|special| ((*special).to_owned(), 0.0));
    let vocab = specials
        .chain(
            pieces
                .iter()
                .map(|piece| (spelled(&piece.bytes), piece.score)),
        )
        .collect();
    Unigram::from(vocab, Some(UNK as usize), false)
        .map(ModelWrapper::Unigram)
        .map_err(|error| error.to_string())
}

/// The model with all that its file needs for other programs to cut text in the same way.
fn around(
    model: ModelWrapper,
    lowercase: bool,
) -> std::result::Result<tokenizers::Tokenizer, String> {
    let byte_level = ByteLevel::new(false, true, true);
    let mut library = tokenizers::Tokenizer::new(model);
    library.with_normalizer(lowercase.then_some(NormalizerWrapper::Lowercase(Lowercase)));
    library.with_pre_tokenizer(Some(PreTokenizerWrapper::ByteLevel(byte_level)));
    library.with_decoder(Some(DecoderWrapper::ByteLevel(byte_level)));
    let specials = SPECIALS.map(|special| AddedToken::from(special, true));
    library.add_special_tokens(&specials);
    Ok(library)
}

fn tokens_by_id(model: &ModelWrapper) -> std::result::Result<Vec<String>, String> {
    let count = u32::try_from(model.get_vocab_size()).map_err(|error| error.to_string())?;
    (0..count)
        .map(|id| {
            model
                .id_to_token(id)
                .ok_or_else(|| format!("no token has the id {id}"))
        })
        .collect()
}

fn stood_for(vocabulary: &Vocabulary) -> std::result::Result<Vec<Box<[u8]>>, String> {
    let bytes = |(id, token): (u32, &String)| match id {
        BOS | EOS | PAD => Ok(Box::default()),
        UNK => Ok(token.as_bytes().into()),
        _ => bytes_of(token)
            .map(Vec::into_boxed_slice)
            .ok_or_else(|| format!("token {token:?} is not made of bytes")),
    };
    (0..).zip(vocabulary.tokens()).map(bytes).collect()
}

/// How many pre-tokens the BPE model remembers the cut of; the words of a large corpus fit.
const CACHE: usize = 100_000;
