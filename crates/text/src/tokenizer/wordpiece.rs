//! WordPiece as BERT has it (Schuster and Nakajima 2012): words are cut into the longest pieces that the vocabulary has,
//! from left to right; a piece that does not begin its word begins with `##`.
//!
//! The `tokenizers` library normalizes and cuts, as its `tokenizer.json` says; the pieces are looked up in a vocabulary
//! in the order of our ids, in which `[CLS] [SEP] [PAD] [UNK]` are `<s> </s> <blank> <unk>`. Its neighbor
//! [`super::imported`] is the file.

use std::str::FromStr;

use tokenizers::models::ModelWrapper;
use tokenizers::models::bpe::Vocab;
use tokenizers::models::wordpiece::WordPiece as Model;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{AddedToken, Decoder as _, Tokenizer};

use super::vocabulary::Vocabulary;
use super::word_ids::{Reached, WordCounter};
use crate::special::{self, BOS, EOS, PAD};

/// What a piece that does not begin its word begins with.
pub(super) const CONTINUES: &str = "##";

/// The token that stands for a hidden one. Alone among the special tokens it may be written in a text.
pub const MASK: &str = "[MASK]";

/// The special tokens in the order of BERT's own vocabulary.
pub(super) const SPECIALS: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", MASK];

/// A `tokenizer.json` and a vocabulary.
#[derive(Debug)]
pub(super) struct WordPiece {
    library: Box<Tokenizer>,
    vocabulary: Vocabulary,
}

impl WordPiece {
    /// Reads the text of a `tokenizer.json` whose model is WordPiece; says what is wrong with it or with the vocabulary.
    pub(super) fn new(json: &str, tokens: Vec<String>) -> Result<Self, String> {
        let mut library = Tokenizer::from_str(json).map_err(|error| error.to_string())?;
        if !matches!(library.get_model(), ModelWrapper::WordPiece(_)) {
            return Err("its model is not WordPiece".to_owned());
        }
        // What stands around a text, and how long it may be, is not the tokenizer's to say here.
        library.with_padding(None);
        library.with_post_processor(None::<tokenizers::PostProcessorWrapper>);
        library
            .with_truncation(None)
            .map_err(|error| error.to_string())?;
        Ok(Self {
            library: Box::new(library),
            vocabulary: Vocabulary::new(tokens)?,
        })
    }

    /// The tokenizer of a vocabulary as a `vocab.txt` has it; says what is missing in it. Our ids are in the order of the
    /// file, behind the special ones.
    pub(super) fn of_vocabulary(tokens: &[String], lowercase: bool) -> Result<Self, String> {
        if let Some(missing) = SPECIALS.iter().find(|it| !tokens.iter().any(|t| t == **it)) {
            return Err(format!("it has no token {missing}"));
        }
        let framing = &SPECIALS[..4];
        let others = tokens.iter().filter(|it| !framing.contains(&it.as_str()));
        let ours = special::SPECIALS.into_iter().map(str::to_owned);
        let ours = ours.chain(others.cloned()).collect();
        Self::new(&Self::json_of_vocabulary(tokens, lowercase)?, ours)
    }

    /// The `tokenizer.json` of a model that has a `vocab.txt` alone: its tokens in their order.
    pub(super) fn json_of_vocabulary(tokens: &[String], lowercase: bool) -> Result<String, String> {
        let vocab: Vocab = tokens.iter().cloned().zip(0..).collect();
        let model = Model::builder()
            .vocab(vocab)
            .unk_token("[UNK]".to_owned())
            .build()
            .map_err(|error| error.to_string())?;
        let mut library = Tokenizer::new(model);
        library.with_normalizer(Some(BertNormalizer::new(true, true, None, lowercase)));
        library.with_pre_tokenizer(Some(BertPreTokenizer));
        library.with_decoder(Some(tokenizers::decoders::wordpiece::WordPiece::default()));
        let known = SPECIALS
            .into_iter()
            .filter(|special| tokens.iter().any(|token| token == special));
        let added: Vec<AddedToken> = known.map(|token| AddedToken::from(token, true)).collect();
        library.add_special_tokens(&added);
        library.to_string(false).map_err(|error| error.to_string())
    }

    pub(super) fn json(&self) -> String {
        // What was read from JSON has a JSON form.
        self.library
            .to_string(false)
            .expect("a tokenizer of the library can be written")
    }

    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        let id = |piece: &String| self.vocabulary.id_in_text(piece);
        self.pieces(text).iter().map(id).collect()
    }

    /// The tokens of a text, also those that the vocabulary lacks.
    pub(super) fn pieces(&self, text: &str) -> Vec<String> {
        let encoded = self.library.encode(text, false);
        encoded.map_or_else(|_| Vec::new(), |encoded| encoded.get_tokens().to_vec())
    }

    pub(super) fn decode(&self, ids: &[u32]) -> String {
        let pieces = ids.iter().filter(|id| !is_silent(**id));
        let pieces: Vec<String> = pieces
            .map(|id| self.vocabulary.shown(*id).to_owned())
            .collect();
        match self.library.get_decoder() {
            Some(decoder) => decoder.decode(pieces).unwrap_or_default(),
            None => pieces.join(" ").replace(" ##", ""),
        }
    }

    pub(super) fn reached(&self, ids: &[u32]) -> Vec<Reached> {
        let mut counter = WordCounter::default();
        let reached = |id: &u32| {
            if !is_silent(*id) {
                let piece = self.vocabulary.shown(*id);
                match piece.strip_prefix(CONTINUES) {
                    Some(rest) => counter.push(rest.chars()),
                    None => counter.push([' '].into_iter().chain(piece.chars())),
                }
            }
            counter.reached()
        };
        ids.iter().map(reached).collect()
    }

    pub(super) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }
}

/// Special tokens that add nothing to a text.
fn is_silent(id: u32) -> bool {
    [BOS, EOS, PAD].contains(&id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::UNK;

    fn tokenizer() -> WordPiece {
        let there = [
            "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "pa", "##ris", "is", "cafe", ".", "##s",
        ];
        let json = WordPiece::json_of_vocabulary(&there.map(str::to_owned), true).unwrap();
        let ours = [
            "<s>", "</s>", "<blank>", "<unk>", "[MASK]", "pa", "##ris", "is", "cafe", ".", "##s",
        ];
        WordPiece::new(&json, ours.map(str::to_owned).into()).unwrap()
    }

    #[test]
    fn words_are_cut_into_the_longest_pieces() {
        let wordpiece = tokenizer();
        assert_eq!(wordpiece.encode("Paris is CAFÉS."), [5, 6, 7, 8, 10, 9]);
        assert_eq!(
            wordpiece.decode(&[BOS, 5, 6, 7, 8, 10, 9, EOS]),
            "paris is cafes."
        );
        assert_eq!(wordpiece.encode("parsley [MASK]"), [UNK, 4]);
        let words = wordpiece.reached(&[5, 6, 7]);
        assert_eq!(
            words.iter().map(|end| end.word).collect::<Vec<_>>(),
            [0, 0, 1]
        );
    }

    #[test]
    fn special_spellings_but_the_mask_are_no_special_tokens() {
        let ids = tokenizer().encode("[CLS] [SEP] [PAD] <s> </s>");
        assert!(ids.iter().all(|id| *id >= UNK), "{ids:?}");
    }

    #[test]
    fn it_comes_back_from_its_json() {
        let wordpiece = tokenizer();
        let tokens = wordpiece.vocabulary().tokens().to_vec();
        let again = WordPiece::new(&wordpiece.json(), tokens).unwrap();
        assert_eq!(again.encode("paris is"), wordpiece.encode("paris is"));
        assert!(WordPiece::new("{}", Vec::new()).is_err());
    }
}
