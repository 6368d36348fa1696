//! Tokenizers: a line of text to token ids and back.
//!
//! Several families behind one type. Word tokenizers (`words`) know a list of words and give `<unk>`
//! for all others, `characters` a list of characters; subword tokenizers (`subword`) know every byte and so give back every string
//! exactly; the others come from other programs: [`SentencePiece`] files, with a vocabulary of
//! their own or another one beside them, the codes of subword-nmt (`subword_nmt`), the `wordpiece` of BERT, which `wordpiece_training` learns, too.
//! [`vocabulary_file`] reads the vocabularies of other programs, `imported` is our file of such tokenizers.
//! Models, search and training only see [`Tokenizer`]; `<s>` and `</s>` are theirs to add.

mod characters;
mod file;
mod imported;
mod options;
mod sentencepiece;
mod spacing;
mod subword;
mod subword_nmt;
mod trie;
mod vocabulary;
pub mod vocabulary_file;
mod word_ids;
mod wordpiece;
mod wordpiece_training;
mod words;

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

pub use options::{TokenizerKind, TokenizerOptions};
pub use sentencepiece::SentencePiece;
pub use wordpiece::MASK;

use crate::error::{Result, TextError};
use crate::special::{SPECIALS, UNK};
use characters::Characters;
use subword::SubwordTokenizer;
use subword_nmt::SubwordNmt;
use word_ids::Reached;
use wordpiece::WordPiece;
use words::WordTokenizer;

/// All that [`Tokenizer::file_extension`] gives.
pub const FILE_EXTENSIONS: [&str; 2] = ["json", "spm"];

/// A trained tokenizer; cloning is cheap, as clones share the vocabulary.
#[derive(Clone)]
pub struct Tokenizer(Inner);

#[derive(Clone)]
enum Inner {
    Words(Arc<WordTokenizer>),
    Subword(Arc<SubwordTokenizer>),
    SentencePiece(Arc<SentencePiece>),
    SubwordNmt(Arc<SubwordNmt>),
    Characters(Arc<Characters>),
    WordPiece(Arc<WordPiece>),
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
            TokenizerKind::Characters => {
                Inner::Characters(Arc::new(Characters::train(options, texts)?))
            }
            TokenizerKind::WordPiece => {
                let tokens = wordpiece_training::learn(options, texts)?;
                return Self::wordpiece_of_vocabulary(&tokens, options.lowercase);
            }
            TokenizerKind::SentencePiece | TokenizerKind::SubwordNmt | TokenizerKind::Spaces => {
                return Err(TextError::NotTrained { kind: options.kind });
            }
        }))
    }

    /// The tokenizer of a model that has a SentencePiece file (`spm`, its bytes) and a vocabulary of another order
    /// and size, as OPUS-MT, Marian and CTranslate2 models do. Pieces are looked up in the vocabulary as
    /// strings, and those that it lacks are `<unk>`; a language token such as `>>fra<<` at the very beginning of a
    /// text is one token if the vocabulary has it.
    ///
    /// The vocabulary is in the order of our ids, and so begins with `<s>`, `</s>`, `<blank>`, `<unk>`.
    pub fn sentencepiece_with_vocabulary(spm: &[u8], vocabulary: Vec<String>) -> Result<Self> {
        imported(
            SentencePiece::with_vocabulary(spm, vocabulary),
            Inner::SentencePiece,
        )
    }

    /// The tokenizer of a model whose text was cut by subword-nmt, as that of many fairseq models: the
    /// text of a codes file, and a vocabulary in the order of our ids, in which the tokens that do not end a word
    /// end in `@@`.
    pub fn subword_nmt(codes: &str, vocabulary: Vec<String>) -> Result<Self> {
        imported(SubwordNmt::new(codes, vocabulary), Inner::SubwordNmt)
    }

    /// The tokenizer of a BERT: the text of a `tokenizer.json` with a WordPiece model, and a vocabulary in the order of
    /// our ids, in which `[CLS] [SEP] [PAD] [UNK]` are the special tokens. [`MASK`] in a text is that token.
    pub fn wordpiece(json: &str, vocabulary: Vec<String>) -> Result<Self> {
        imported(WordPiece::new(json, vocabulary), Inner::WordPiece)
    }

    /// The tokenizer of a BERT vocabulary as a `vocab.txt` has it, `[MASK]` included.
    pub fn wordpiece_of_vocabulary(tokens: &[String], lowercase: bool) -> Result<Self> {
        imported(
            WordPiece::of_vocabulary(tokens, lowercase),
            Inner::WordPiece,
        )
    }

    /// The `tokenizer.json` of a BERT that has a `vocab.txt` alone, whose tokens these are.
    pub fn wordpiece_json(tokens: &[String], lowercase: bool) -> Result<String> {
        WordPiece::json_of_vocabulary(tokens, lowercase)
            .map_err(|problem| TextError::ImportedTokenizer { problem })
    }

    /// A tokenizer of single characters, with a vocabulary in the order of our ids.
    pub fn characters(vocabulary: Vec<String>) -> Result<Self> {
        imported(Characters::new(vocabulary), Inner::Characters)
    }

    /// A tokenizer of lines that are cut already, with spaces between tokens, and a vocabulary in the order of our ids.
    pub fn spaces(vocabulary: Vec<String>) -> Result<Self> {
        imported(WordTokenizer::of_spaces(vocabulary), Inner::Words)
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
            Inner::SentencePiece(model) if model.has_own_vocabulary() => {
                Ok(imported::sentencepiece_to_json(model).into_bytes())
            }
            Inner::SentencePiece(model) => Ok(model.file().to_vec()),
            Inner::SubwordNmt(model) => Ok(imported::subword_nmt_to_json(model).into_bytes()),
            Inner::Characters(model) => Ok(imported::characters_to_json(model).into_bytes()),
            Inner::WordPiece(model) => Ok(imported::wordpiece_to_json(model).into_bytes()),
        }
    }

    /// The SentencePiece file that cuts text, if one does.
    pub fn sentencepiece(&self) -> Option<&[u8]> {
        match &self.0 {
            Inner::SentencePiece(model) => Some(model.file()),
            _ => None,
        }
    }

    /// How the name of the tokenizer's file should end: `json` or `spm`.
    pub fn file_extension(&self) -> &'static str {
        match &self.0 {
            Inner::SentencePiece(model) if !model.has_own_vocabulary() => FILE_EXTENSIONS[1],
            _ => FILE_EXTENSIONS[0],
        }
    }

    /// The ids of a text, without `<s>` and `</s>`. A text that spells out a special token, such
    /// as `</s>`, is ordinary text and never gives that token's id.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        match &self.0 {
            Inner::Words(words) => words.encode(text),
            Inner::Subword(subword) => subword.encode(text),
            Inner::SentencePiece(model) => model.encode(text),
            Inner::SubwordNmt(model) => model.encode(text),
            Inner::Characters(model) => model.encode(text),
            Inner::WordPiece(model) => model.encode(text),
        }
    }

    /// Subword regularization: the ids of another segmentation than the best, so that training sees a
    /// word in many (as BPE-dropout does, Provilkov et al. 2020). `dropped` is asked about every piece
    /// of a Unigram model at every place where it fits, and the best segmentation without the dropped
    /// ones is taken; it is asked about every merge of subword-nmt at every place, and a dropped one is not made. The
    /// other kinds of tokenizer know one segmentation only.
    pub fn encode_with_dropout(&self, text: &str, dropped: &mut dyn FnMut() -> bool) -> Vec<u32> {
        match &self.0 {
            Inner::Words(words) => words.encode(text),
            Inner::Subword(subword) => subword.encode_with_dropout(text, dropped),
            Inner::SentencePiece(model) => model.encode(text),
            Inner::SubwordNmt(model) => model.encode_with_dropout(text, dropped),
            Inner::Characters(model) => model.encode(text),
            Inner::WordPiece(model) => model.encode(text),
        }
    }

    /// What [`Tokenizer::encode`] saw, one string for each id, for labels: a space before a
    /// subword is shown as `▁`, bytes that are no characters as `<0xE2>`.
    pub fn pieces(&self, text: &str) -> Vec<String> {
        match &self.0 {
            Inner::SentencePiece(model) => model.pieces(text),
            Inner::SubwordNmt(model) => model.pieces(text),
            Inner::WordPiece(model) => model.pieces(text),
            Inner::Characters(_) => text.chars().map(String::from).collect(),
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
            Inner::SubwordNmt(model) => model.decode(ids),
            Inner::Characters(model) => model.decode(ids),
            Inner::WordPiece(model) => model.decode(ids),
        }
    }

    /// For each id the number of the word of [`Tokenizer::decode`]'s text that it belongs to, counted from
    /// 0. Words are what white space separates; an id that only adds white space belongs to the word
    /// before it.
    pub fn word_ids(&self, ids: &[u32]) -> Vec<usize> {
        self.reached(ids).iter().map(|end| end.word).collect()
    }

    /// For each id how many characters of [`Tokenizer::decode`]'s text end with it, not counting white space.
    pub fn char_ends(&self, ids: &[u32]) -> Vec<usize> {
        self.reached(ids).iter().map(|end| end.chars).collect()
    }

    fn reached(&self, ids: &[u32]) -> Vec<Reached> {
        match &self.0 {
            Inner::Words(words) => words.reached(ids),
            Inner::Subword(subword) => subword.reached(ids),
            Inner::SentencePiece(model) => model.reached(ids),
            Inner::SubwordNmt(model) => model.reached(ids),
            Inner::Characters(model) => model.reached(ids),
            Inner::WordPiece(model) => model.reached(ids),
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

    /// The ids that stand for token `id` of another tokenizer here: the entry that is spelled alike, or the pieces
    /// that its text is cut into. Where both know subwords of our own, one in the middle of a word stays one; between
    /// other kinds, whose spellings mean different things, the token is a text of its own.
    pub fn ids_of_token(&self, other: &Tokenizer, id: u32) -> Vec<u32> {
        if (id as usize) < SPECIALS.len() {
            return vec![id];
        }
        if let (Inner::Subword(own), Inner::Subword(other)) = (&self.0, &other.0) {
            return own.ids_of_token(other, id);
        }
        let same = other.token(id).filter(|_| self.kind() == other.kind());
        if let Some(same) = same.and_then(|token| self.id(token)) {
            return vec![same];
        }
        let ids = self.encode(&other.decode(&[id]));
        if ids.is_empty() { vec![UNK] } else { ids }
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
            Inner::SubwordNmt(_) => TokenizerKind::SubwordNmt,
            Inner::Characters(_) => TokenizerKind::Characters,
            Inner::WordPiece(_) => TokenizerKind::WordPiece,
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
            Inner::SubwordNmt(model) => model.vocabulary(),
            Inner::Characters(model) => model.vocabulary(),
            Inner::WordPiece(model) => model.vocabulary(),
        }
    }
}

/// A tokenizer of parts that came from another program.
fn imported<T>(
    made: std::result::Result<T, String>,
    inner: fn(Arc<T>) -> Inner,
) -> Result<Tokenizer> {
    match made {
        Ok(model) => Ok(Tokenizer(inner(Arc::new(model)))),
        Err(problem) => Err(TextError::ImportedTokenizer { problem }),
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
