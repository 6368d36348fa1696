//! BPE segmentation (Sennrich et al., 2016): joins the neighbors whose union scores highest, until none
//! is in the vocabulary.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use super::model_file::{Piece, PieceKind};
use crate::tokenizer::trie::Trie;

/// The vocabulary of a BPE model.
#[derive(Debug, Clone)]
pub(super) struct Bpe {
    pieces: HashMap<String, (f32, PieceKind)>,
}

/// A part of the text that is one piece so far; its neighbors are numbers of symbols.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    start: usize,
    end: usize,
    left: Option<usize>,
    right: Option<usize>,
    /// A user-defined symbol, which is never joined.
    frozen: bool,
}

/// Two neighbors that could be joined.
#[derive(Debug)]
struct Pair {
    score: f32,
    left: usize,
    right: usize,
    /// Bytes of both; a pair of which one has grown since is out of date.
    size: usize,
}

impl Bpe {
    /// Reads the vocabulary.
    pub fn new(pieces: &[Piece]) -> Self {
        let entry = |piece: &Piece| (piece.text.clone(), (piece.score, piece.kind));
        Self {
            pieces: pieces.iter().map(entry).collect(),
        }
    }

    /// The pieces of normalized text, and whether each is known.
    pub fn segment<'t>(&self, text: &'t str, user_defined: &Trie) -> Vec<(&'t str, bool)> {
        let mut symbols = characters(text, user_defined);
        let mut agenda = BinaryHeap::new();
        // Where unused pieces were joined, as they are split again in the end.
        let mut unused: HashMap<&str, usize> = HashMap::new();
        for left in 0..symbols.len().saturating_sub(1) {
            self.push_pair(text, &symbols, left, &mut agenda, &mut unused);
        }
        while let Some(pair) = agenda.pop() {
            let (left, right) = (symbols[pair.left], symbols[pair.right]);
            let is_empty = |symbol: Symbol| symbol.start == symbol.end;
            if is_empty(left) || is_empty(right) || right.end - left.start != pair.size {
                continue;
            }
            symbols[pair.left].end = right.end;
            symbols[pair.left].right = right.right;
            if let Some(next) = right.right {
                symbols[next].left = Some(pair.left);
            }
            symbols[pair.right].end = right.start;
            if let Some(previous) = left.left {
                self.push_pair(text, &symbols, previous, &mut agenda, &mut unused);
            }
            self.push_pair(text, &symbols, pair.left, &mut agenda, &mut unused);
        }
        let mut pieces = Vec::new();
        let mut next = (!symbols.is_empty()).then_some(0);
        while let Some(index) = next {
            let symbol = symbols[index];
            self.emit(&text[symbol.start..symbol.end], &unused, &mut pieces);
            next = symbol.right;
        }
        pieces
    }

    /// Puts a symbol and its right neighbor on the agenda when the vocabulary has their union.
    fn push_pair<'t>(
        &self,
        text: &'t str,
        symbols: &[Symbol],
        left: usize,
        agenda: &mut BinaryHeap<Pair>,
        unused: &mut HashMap<&'t str, usize>,
    ) {
        let Some(right) = symbols[left].right else {
            return;
        };
        if symbols[left].frozen || symbols[right].frozen {
            return;
        }
        let union = &text[symbols[left].start..symbols[right].end];
        let Some(&(score, kind)) = self.pieces.get(union) else {
            return;
        };
        if !kind.is_text() {
            return;
        }
        agenda.push(Pair {
            score,
            left,
            right,
            size: union.len(),
        });
        if kind == PieceKind::Unused {
            unused.insert(union, symbols[left].end - symbols[left].start);
        }
    }

    /// Appends a piece, or the parts of an unused one.
    fn emit<'t>(
        &self,
        piece: &'t str,
        unused: &HashMap<&'t str, usize>,
        out: &mut Vec<(&'t str, bool)>,
    ) {
        let mut open = vec![piece];
        while let Some(piece) = open.pop() {
            let kind = self.pieces.get(piece).map(|&(_, kind)| kind);
            match (kind, unused.get(piece)) {
                (Some(PieceKind::Unused), Some(&left)) => {
                    open.extend([&piece[left..], &piece[..left]]);
                }
                (kind, _) => out.push((piece, !matches!(kind, None | Some(PieceKind::Unknown)))),
            }
        }
    }
}

/// The text as characters and whole user-defined symbols.
fn characters(text: &str, user_defined: &Trie) -> Vec<Symbol> {
    let mut symbols: Vec<Symbol> = Vec::with_capacity(text.len());
    for (piece, protected) in super::characters(text, user_defined) {
        let index = symbols.len();
        let start = symbols.last().map_or(0, |symbol| symbol.end);
        let end = start + piece.len();
        symbols.push(Symbol {
            start,
            end,
            left: index.checked_sub(1),
            right: (end < text.len()).then_some(index + 1),
            frozen: protected,
        });
    }
    symbols
}

impl Ord for Pair {
    /// The highest score first, of equal ones the leftmost.
    fn cmp(&self, other: &Self) -> Ordering {
        let score = self.score.total_cmp(&other.score);
        score.then_with(|| other.left.cmp(&self.left))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pair {}
