//! What training learned, as a model of the `tokenizers` library with all that its `tokenizer.json`
//! needs for other programs to cut text in the same way.

use tokenizers::AddedToken;
use tokenizers::decoders::DecoderWrapper;
use tokenizers::models::ModelWrapper;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::models::unigram::Unigram;
use tokenizers::normalizers::{Lowercase, NormalizerWrapper};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use super::bpe::Merge;
use super::bytes::{ALPHABET, spell};
use super::unigram::Piece;
use crate::error::{Result, TextError};
use crate::special::{SPECIALS, UNK};

/// A BPE model whose ids are the specials, the bytes, then one token for each merge.
pub(super) fn from_merges(merges: &[Merge]) -> Result<ModelWrapper> {
    let named: Vec<(String, String)> = merges
        .iter()
        .map(|(left, right)| (spell(left), spell(right)))
        .collect();
    let specials = SPECIALS.iter().map(|special| (*special).to_owned());
    let bytes = ALPHABET.iter().map(char::to_string);
    let merged = named.iter().map(|(left, right)| format!("{left}{right}"));
    let vocab: Vocab = specials.chain(bytes).chain(merged).zip(0..).collect();
    let builder = BPE::builder()
        .vocab_and_merges(vocab, named)
        .unk_token(SPECIALS[UNK as usize].to_owned());
    builder.build().map(ModelWrapper::BPE).map_err(refused)
}

/// A Unigram model whose ids are the specials, then the pieces in their order.
pub(super) fn from_pieces(pieces: &[Piece]) -> Result<ModelWrapper> {
    let specials = SPECIALS.iter().map(|special| ((*special).to_owned(), 0.0));
    let vocab = specials.chain(
        pieces
            .iter()
            .map(|piece| (spell(&piece.bytes), piece.score)),
    );
    from_spelled_pieces(vocab.collect())
}

/// A Unigram model of a whole vocabulary, specials included.
pub(super) fn from_spelled_pieces(vocab: Vec<(String, f64)>) -> Result<ModelWrapper> {
    Unigram::from(vocab, Some(UNK as usize), false)
        .map(ModelWrapper::Unigram)
        .map_err(refused)
}

/// The model in its pipeline: lowercasing, the pre-tokenizer, the decoder, the special tokens.
pub(super) fn with_pipeline(model: ModelWrapper, lowercase: bool) -> tokenizers::Tokenizer {
    let byte_level = ByteLevel::new(false, true, true);
    let mut library = tokenizers::Tokenizer::new(model);
    library.with_normalizer(lowercase.then_some(NormalizerWrapper::Lowercase(Lowercase)));
    library.with_pre_tokenizer(Some(PreTokenizerWrapper::ByteLevel(byte_level)));
    library.with_decoder(Some(DecoderWrapper::ByteLevel(byte_level)));
    library.add_special_tokens(&SPECIALS.map(|special| AddedToken::from(special, true)));
    library
}

/// The library's own errors are boxed strings; none of them can happen with what training gives.
pub(super) fn refused(error: tokenizers::Error) -> TextError {
    TextError::Library {
        problem: error.to_string(),
    }
}
