//! Tokenizers: a line of text to token ids and back.
//!
//! Three families behind one type. Word tokenizers (`words`) know a list of words and give `<unk>`
//! for all others; subword tokenizers (`subword`) know every byte and so give back every string
//! exactly; [`SentencePiece`] files come from other programs. Models, search and training only see
//! [`Tokenizer`]; `<s>` and `</s>` are theirs to add.

mod file;
mod options;
mod sentencepiece;
mod spacing;
mod subword;
mod trie;
mod vocabulary;
mod word_ids;
mod words;

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

pub use options::{TokenizerKind, TokenizerOptions};
pub use sentencepiece::SentencePiece;

use crate::error::{Result, TextError};
use subword::SubwordTokenizer;
use words::WordTokenizer;

/// A trained tokenizer; cloning is cheap, as clones share the vocabulary.
#[derive(Clone)]
pub struct Tokenizer(Inner);

#[derive(Clone)]
enum Inner {
    Words(Arc<WordTokenizer>),
    Subword(Arc<SubwordTokenizer>),
    SentencePiece(Arc<SentencePiece>),
}

impl Tokenizer {
    /// Learns a vocabulary from lines of text. The same text and options give the same tokenizer,
    /// byte for byte, in every process.
    pub fn train(
        options: &TokenizerOptions,
        texts: &mut dyn Iterator<Item = &str>,
    ) -> Result<Self> {
        options.check()?;
        Ok(Self(match options.kind {
            TokenizerKind::Word | TokenizerKind::Tabs => {
                Inner::Words(Arc::new(WordTokenizer::train(options, texts)?))
            }
            TokenizerKind::Bpe | TokenizerKind::Unigram => {
                Inner::Subword(Arc::new(SubwordTokenizer::train(options, texts)?))
            }
            TokenizerKind::SentencePiece => return Err(TextError::NotTrained),
        }))
    }

    /// Loads a file of [`Tokenizer::to_bytes`], or a SentencePiece `.model` or `.spm` file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        file::load(path.as_ref())
    }

    /// As [`Tokenizer::load`], from bytes that are in memory already; errors call them `name`.
    pub fn from_bytes(bytes: &[u8], name: impl AsRef<Path>) -> Result<Self> {
        file::from_bytes(bytes, name.as_ref())
    }

    /// The tokenizer as one file: JSON, or a SentencePiece file as it was read. Subword kinds are
    /// `tokenizer.json` files that the `tokenizers` library reads in every language it has bindings
    /// for.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        match &self.0 {
            Inner::Words(words) => Ok(words.to_json().into_bytes()),
            Inner::Subword(subword) => subword.to_json().map(String::into_bytes),
            Inner::SentencePiece(model) => Ok(model.file().to_vec()),
        }
    }

    /// The ids of a text, without `<s>` and `</s>`. A text that spells out a special token, such
    /// as `</s>`, is ordinary text and never gives that token's id.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        match &self.0 {
            Inner::Words(words) => words.encode(text),
            Inner::Subword(subword) => subword.encode(text),
            Inner::SentencePiece(model) => model.encode(text),
        }
    }

    /// Subword regularization: the ids of another segmentation than the best, so that training sees a
    /// word in many (as BPE-dropout does, Provilkov et al. 2020). `dropped` is asked about every piece
    /// of a Unigram model at every place where it fits; the best segmentation without the dropped
    /// ones is taken. The other kinds of tokenizer know one segmentation only.
    pub fn encode_with_dropout(&self, text: &str, dropped: &mut dyn FnMut() -> bool) -> Vec<u32> {
        match &self.0 {
            Inner::Words(words) => words.encode(text),
            Inner::Subword(subword) => subword.encode_with_dropout(text, dropped),
            Inner::SentencePiece(model) => model.encode(text),
        }
    }

    /// What [`Tokenizer::encode`] saw, one string for each id, for labels: a space before a
    /// subword is shown as `▁`, bytes that are no characters as `<0xE2>`.
    pub fn pieces(&self, text: &str) -> Vec<String> {
        match &self.0 {
            Inner::SentencePiece(model) => model.pieces(text),
            _ => self.encode(text).iter().map(|id| self.label(*id)).collect(),
        }
    }

    /// The text of the ids; `<s>`, `</s>` and `<blank>` are dropped, `<unk>` is shown (as a
    /// SentencePiece file says: ` ⁇ `).
    ///
    /// Ids beyond the vocabulary are shown as `<unk>` too.
    pub fn decode(&self, ids: &[u32]) -> String {
        match &self.0 {
            Inner::Words(words) => words.decode(ids),
            Inner::Subword(subword) => subword.decode(ids),
            Inner::SentencePiece(model) => model.decode(ids),
        }
    }

    /// For each id the number of the word of [`Tokenizer::decode`]'s text that it belongs to, counted from
    /// 0. Words are what white space separates; an id that only adds white space belongs to the word
    /// before it.
    pub fn word_ids(&self, ids: &[u32]) -> Vec<usize> {
        match &self.0 {
            Inner::Words(words) => words.word_ids(ids),
            Inner::Subword(subword) => subword.word_ids(ids),
            Inner::SentencePiece(model) => model.word_ids(ids),
        }
    }

    /// How one id is shown to people; see [`Tokenizer::pieces`].
    pub fn label(&self, id: u32) -> String {
        match &self.0 {
            Inner::Subword(subword) => subword.label(id),
            _ => self.vocabulary().shown(id).to_owned(),
        }
    }

    /// The vocabulary's own spelling of an id.
    pub fn token(&self, id: u32) -> Option<&str> {
        self.vocabulary().token(id)
    }

    /// The id of a vocabulary entry, special tokens included.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.vocabulary().id(token)
    }

    /// The number of entries, special tokens included.
    pub fn vocab_size(&self) -> usize {
        self.vocabulary().len()
    }

    /// Which kind of tokenizer this is.
    pub fn kind(&self) -> TokenizerKind {
        match &self.0 {
            Inner::Words(words) => words.kind(),
            Inner::Subword(subword) => subword.kind(),
            Inner::SentencePiece(_) => TokenizerKind::SentencePiece,
        }
    }

    /// A hash of everything that decides how text is cut: tokenizers with equal fingerprints give
    /// equal ids, so training may resume with either.
    pub fn fingerprint(&self) -> String {
        let file = self
            .to_bytes()
            .expect("what was trained or loaded can be written");
        blake3::hash(&file).to_hex().to_string()
    }

    fn vocabulary(&self) -> &vocabulary::Vocabulary {
        match &self.0 {
            Inner::Words(words) => words.vocabulary(),
            Inner::Subword(subword) => subword.vocabulary(),
            Inner::SentencePiece(model) => model.vocabulary(),
        }
    }
}

/// Short, as whole vocabularies drown every message that they stand in.
impl fmt::Debug for Tokenizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Tokenizer");
        shown
            .field("kind", &self.kind())
            .field("vocab_size", &self.vocab_size())
            .finish()
    }
}

/// Lowercases character by character, as the `Lowercase` step in a `tokenizer.json` does.
fn lowercased(text: &str, lowercase: bool) -> Cow<'_, str> {
    if lowercase {
        Cow::Owned(text.chars().flat_map(char::to_lowercase).collect())
    } else {
        Cow::Borrowed(text)
    }
}
