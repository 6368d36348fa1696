//! Unigram segmentation (Kudo, 2018): of all ways to cut the text, the one with the highest score.
//!
//! Viterbi over the text from left to right, with single-precision sums as in SentencePiece, so that
//! near ties fall the same way.

use super::model_file::{Piece, PieceKind};
use crate::tokenizer::trie::Trie;

/// How much worse an unknown character is than the worst piece.
const UNKNOWN_PENALTY: f32 = 10.0;

/// The scores of a unigram model.
#[derive(Debug, Clone)]
pub(super) struct Unigram {
    /// Scores of ordinary pieces; `None` for pieces that are never in the output.
    scores: Vec<Option<PieceScore>>,
    best: f32,
    unknown: f32,
}

#[derive(Debug, Clone, Copy)]
enum PieceScore {
    Fixed(f32),
    /// The length times the best score: a user-defined symbol always wins.
    UserDefined,
}

/// The best way to reach a place in the text.
#[derive(Debug, Clone, Copy)]
struct Step {
    score: f32,
    start: usize,
    known: bool,
}

impl Unigram {
    /// Reads the scores.
    pub fn new(pieces: &[Piece]) -> Self {
        let normal = || {
            pieces
                .iter()
                .filter(|piece| piece.kind == PieceKind::Normal)
                .map(|piece| piece.score)
        };
        let score = |piece: &Piece| match piece.kind {
            PieceKind::Normal => Some(PieceScore::Fixed(piece.score)),
            PieceKind::UserDefined => Some(PieceScore::UserDefined),
            _ => None,
        };
        Self {
            scores: pieces.iter().map(score).collect(),
            best: normal().fold(f32::MIN_POSITIVE, f32::max),
            unknown: normal().fold(f32::MAX, f32::min) - UNKNOWN_PENALTY,
        }
    }

    /// The pieces of normalized text, and whether each is known.
    pub fn segment<'t>(&self, text: &'t str, trie: &Trie) -> Vec<(&'t str, bool)> {
        let mut steps: Vec<Option<Step>> = vec![None; text.len() + 1];
        for (start, c) in text.char_indices() {
            // Every character can be cut off, so every character's start is reached.
            let before = steps[start].map_or(0.0, |step| step.score);
            let mut single = false;
            for (length, id) in trie.prefixes(&text.as_bytes()[start..]) {
                let score = match self.scores.get(id as usize) {
                    Some(Some(PieceScore::Fixed(score))) => *score,
                    Some(Some(PieceScore::UserDefined)) => length as f32 * self.best - 0.1,
                    _ => continue,
                };
                reach(&mut steps[start + length], score + before, start, true);
                single |= length == c.len_utf8();
            }
            if !single {
                let total = self.unknown + before;
                reach(&mut steps[start + c.len_utf8()], total, start, false);
            }
        }
        let mut pieces = Vec::new();
        let mut end = text.len();
        while let (1.., Some(step)) = (end, steps[end]) {
            pieces.push((&text[step.start..end], step.known));
            end = step.start;
        }
        pieces.reverse();
        pieces
    }
}

/// Keeps the better way to a place; of two equal ones the first found, which starts earlier.
fn reach(step: &mut Option<Step>, score: f32, start: usize, known: bool) {
    if step.is_none_or(|old| score > old.score) {
        *step = Some(Step {
            score,
            start,
            known,
        });
    }
}
