//! A Unigram tokenizer at work: reading its `tokenizer.json`, and the best segmentation of a pre-token.
//!
//! The library that the file format comes from needs thirty megabytes and as many milliseconds for a
//! vocabulary of 8,000 pieces (a hash map in every node of its trie), which is more than a whole
//! small model. A flat trie over bytes gives the same result, tested against the library, in less of
//! both. Training is in [`super::unigram`], writing in [`super::model`].

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::special::SPECIALS;
use crate::tokenizer::trie::Trie;

/// The scores of all pieces, and the pieces by their bytes.
#[derive(Debug)]
pub(super) struct UnigramModel {
    scores: Vec<f64>,
    trie: Trie,
}

/// The best way to reach a place: its score, the piece that ends there and where that begins.
#[derive(Clone, Copy)]
struct Step {
    score: f64,
    piece: u32,
    start: usize,
}

impl UnigramModel {
    /// `bytes[id]` is what a piece stands for; special tokens are never cut out of text.
    pub(super) fn new(scores: Vec<f64>, bytes: &[Box<[u8]>]) -> Self {
        let pieces = (0..).zip(bytes).skip(SPECIALS.len());
        let trie = Trie::new(pieces.map(|(id, bytes)| (&**bytes, id)));
        Self { scores, trie }
    }

    /// Scores by id, as they are written.
    pub(super) fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// Appends the ids of the most probable segmentation. Of equal ones the one found first stays, as in
    /// the library. Every byte is a piece, so there is always one.
    ///
    /// At every place `dropped` is asked about every piece that fits there, and those that it drops
    /// are not used; pieces of a single character are never dropped.
    pub(super) fn segment(
        &self,
        text: &[u8],
        dropped: &mut dyn FnMut() -> bool,
        ids: &mut Vec<u32>,
    ) {
        let mut steps: Vec<Option<Step>> = vec![None; text.len() + 1];
        for start in 0..text.len() {
            let before = steps[start].map_or(0.0, |step| step.score);
            for (length, piece) in self.trie.prefixes(&text[start..]) {
                if has_several_characters(&text[start..start + length]) && dropped() {
                    continue;
                }
                let score = self.scores[piece as usize] + before;
                let step = &mut steps[start + length];
                if step.is_none_or(|old| score > old.score) {
                    *step = Some(Step {
                        score,
                        piece,
                        start,
                    });
                }
            }
        }
        let first = ids.len();
        let mut end = text.len();
        while let (1.., Some(step)) = (end, steps[end]) {
            ids.push(step.piece);
            end = step.start;
        }
        ids[first..].reverse();
    }
}

fn has_several_characters(piece: &[u8]) -> bool {
    let continues = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    piece.iter().skip(1).any(|byte| !continues(byte))
}

/// What of a `tokenizer.json` decides how text is cut.
#[derive(Deserialize)]
pub(super) struct TokenizerFile {
    #[serde(default)]
    pub added_tokens: Vec<AddedToken>,
    pub normalizer: Option<Part>,
    pub pre_tokenizer: Option<Part>,
    pub model: ModelPart,
}

/// A token that stands beside the model.
#[derive(Deserialize)]
pub(super) struct AddedToken {
    pub id: u32,
    pub content: String,
}

/// A step before the model.
#[derive(Deserialize)]
pub(super) struct Part {
    #[serde(rename = "type")]
    pub kind: String,
    pub use_regex: Option<bool>,
    pub add_prefix_space: Option<bool>,
}

/// The model.
#[derive(Deserialize)]
pub(super) struct ModelPart {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub vocab: Option<Vocab>,
}

/// Pieces with their scores, or something that no Unigram model has.
pub(super) enum Vocab {
    Pieces(Vec<(String, f64)>),
    Other,
}

impl<'de> Deserialize<'de> for Vocab {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Shape;
        impl<'de> Visitor<'de> for Shape {
            type Value = Vocab;

            fn expecting(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                text.write_str("a vocabulary")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vocab, A::Error> {
                let mut pieces = Vec::new();
                while let Some(piece) = list.next_element()? {
                    pieces.push(piece);
                }
                Ok(Vocab::Pieces(pieces))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocab, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Vocab::Other)
            }
        }
        deserializer.deserialize_any(Shape)
    }
}
