//! Learning a unigram language model over subwords (Kudo 2018): start with far too many pieces,
//! estimate their probabilities by expectation-maximisation, drop those whose loss would cost the
//! likelihood least, and repeat until few enough remain.
//!
//! All sums run in one fixed order over sorted words, so the outcome is the same in every process.
//! Before: [`super::seeds`] finds the first pieces. After: [`super::subword`] makes the model.

use std::collections::HashMap;

use super::seeds::{LONGEST, find_seeds};
use super::subword::WordCount;

/// A subword and the natural logarithm of its probability.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) bytes: Box<[u8]>,
    pub(super) score: f64,
}

/// Up to `most` pieces, likeliest first; all 256 bytes are always among them.
pub(super) fn learn_pieces(words: &[WordCount], most: usize, min_frequency: u64) -> Vec<Piece> {
    let seeds = find_seeds(words, min_frequency.max(2), SEEDS);
    let total: f64 = seeds.iter().map(|seed| seed.count as f64).sum();
    let score = |count: u64| (count as f64).max(LEAST_EXPECTED).ln() - total.ln();
    let mut pieces: Vec<Piece> = seeds
        .into_iter()
        .map(|seed| Piece {
            score: score(seed.count),
            bytes: seed.bytes,
        })
        .collect();
    // A few more than wanted, so that the last choice is by probability.
    let enough = most + most / 10;
    let mut lattice = Lattice::new(words, &pieces);
    loop {
        for _ in 0..ROUNDS {
            let expected = lattice.expected_counts(&pieces);
            let kept = reestimate(&mut pieces, &expected);
            lattice.retain(&kept);
        }
        if pieces.len() <= enough {
            break;
        }
        let size = enough.max((pieces.len() as f64 * SHRINK) as usize);
        let kept = keep_most_useful(&mut pieces, &lattice, size);
        lattice.retain(&kept);
    }
    finished(pieces, most)
}

/// How many substrings to start with, rounds of estimation before each pruning, and what share of
/// the pieces a pruning leaves: as in Kudo's SentencePiece, with fewer seeds, as redundant ones are
/// left out beforehand.
const SEEDS: usize = 300_000;
const ROUNDS: usize = 2;
const SHRINK: f64 = 0.75;

/// Pieces expected less often than this are dropped; bytes never are, and count this much.
const LEAST_EXPECTED: f64 = 0.5;
const BYTES: usize = 256;

/// Every way to cut every word into pieces: edges from one position in a word to a later one.
struct Lattice {
    words: Vec<WordEdges>,
    edges: Vec<Edge>,
}

struct WordEdges {
    length: usize,
    count: f64,
    end: usize,
}

/// Edges of a word are sorted by where they start.
#[derive(Clone, Copy)]
struct Edge {
    start: u32,
    length: u32,
    piece: u32,
}

impl Edge {
    fn ends(&self) -> (usize, usize) {
        (self.start as usize, (self.start + self.length) as usize)
    }
}

const GONE: u32 = u32::MAX;

impl Lattice {
    fn new(words: &[WordCount], pieces: &[Piece]) -> Self {
        let ids: HashMap<&[u8], u32> = pieces.iter().map(|piece| &*piece.bytes).zip(0..).collect();
        let mut edges = Vec::new();
        let words = words.iter().map(|word| {
            add_edges(&word.bytes, &ids, &mut edges);
            WordEdges {
                length: word.bytes.len(),
                count: word.count as f64,
                end: edges.len(),
            }
        });
        Self {
            words: words.collect(),
            edges,
        }
    }

    fn each_word(&self) -> impl Iterator<Item = (&WordEdges, &[Edge])> {
        let mut start = 0;
        self.words.iter().map(move |word| {
            let edges = &self.edges[start..word.end];
            start = word.end;
            (word, edges)
        })
    }

    /// How often each piece is used, over all ways to cut, each weighted by its probability.
    fn expected_counts(&self, pieces: &[Piece]) -> Vec<f64> {
        let mut expected = vec![0.0; pieces.len()];
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (word, edges) in self.each_word() {
            reset(&mut before, word.length + 1, f64::NEG_INFINITY);
            reset(&mut after, word.length + 1, f64::NEG_INFINITY);
            (before[0], after[word.length]) = (0.0, 0.0);
            for edge in edges {
                let (start, end) = edge.ends();
                before[end] = log_add(
                    before[end],
                    before[start] + pieces[edge.piece as usize].score,
                );
            }
            for edge in edges.iter().rev() {
                let (start, end) = edge.ends();
                after[start] =
                    log_add(after[start], after[end] + pieces[edge.piece as usize].score);
            }
            for edge in edges {
                let (start, end) = edge.ends();
                let score = pieces[edge.piece as usize].score;
                expected[edge.piece as usize] +=
                    word.count * (before[start] + score + after[end] - after[0]).exp();
            }
        }
        expected
    }

    /// How often each piece is used when every word is cut in its likeliest way.
    fn best_counts(&self, pieces: &[Piece]) -> Vec<f64> {
        let mut counts = vec![0.0; pieces.len()];
        let mut best = BestCut::default();
        for (word, edges) in self.each_word() {
            best.find(word.length, edges.iter().copied(), pieces);
            for piece in best.pieces() {
                counts[piece as usize] += word.count;
            }
        }
        counts
    }

    /// Follows the pieces to their new places and drops the edges of those that are gone.
    fn retain(&mut self, new_places: &[u32]) {
        let mut kept = 0;
        let mut at = 0;
        for word in &mut self.words {
            for index in at..word.end {
                let edge = self.edges[index];
                let piece = new_places[edge.piece as usize];
                if piece != GONE {
                    self.edges[kept] = Edge { piece, ..edge };
                    kept += 1;
                }
            }
            at = word.end;
            word.end = kept;
        }
        self.edges.truncate(kept);
    }
}

/// The likeliest way to cut one word (Viterbi).
#[derive(Default)]
struct BestCut {
    scores: Vec<f64>,
    last: Vec<Option<Edge>>,
}

impl BestCut {
    fn find(&mut self, length: usize, edges: impl Iterator<Item = Edge>, pieces: &[Piece]) {
        reset(&mut self.scores, length + 1, f64::NEG_INFINITY);
        reset(&mut self.last, length + 1, None);
        self.scores[0] = 0.0;
        for edge in edges {
            let (start, end) = edge.ends();
            let score = self.scores[start] + pieces[edge.piece as usize].score;
            if score > self.scores[end] {
                self.scores[end] = score;
                self.last[end] = Some(edge);
            }
        }
    }

    fn pieces(&self) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.last.len() - 1;
        std::iter::from_fn(move || {
            let edge = self.last[at]?;
            at = edge.start as usize;
            Some(edge.piece)
        })
    }
}

/// New scores from expected counts; gives the new place of each piece, or `GONE`.
fn reestimate(pieces: &mut Vec<Piece>, expected: &[f64]) -> Vec<u32> {
    let counts: Vec<f64> = expected
        .iter()
        .enumerate()
        .map(|(piece, count)| {
            if piece < BYTES {
                count.max(LEAST_EXPECTED)
            } else {
                *count
            }
        })
        .collect();
    let keep: Vec<bool> = counts
        .iter()
        .map(|count| *count >= LEAST_EXPECTED)
        .collect();
    let total: f64 = counts
        .iter()
        .zip(&keep)
        .filter(|(_, keep)| **keep)
        .map(|(count, _)| count)
        .sum();
    for (piece, count) in pieces.iter_mut().zip(&counts) {
        // The digamma function instead of the logarithm favours few, frequent pieces: the
        // variational estimate under a sparse prior.
        piece.score = digamma(count.max(LEAST_EXPECTED)) - digamma(total);
    }
    retain_pieces(pieces, &keep)
}

/// Keeps the bytes and the `size` pieces in all whose removal would cost the most likelihood.
fn keep_most_useful(pieces: &mut Vec<Piece>, lattice: &Lattice, size: usize) -> Vec<u32> {
    let counts = lattice.best_counts(pieces);
    let total: f64 = counts.iter().sum();
    let ids: HashMap<&[u8], u32> = pieces.iter().map(|piece| &*piece.bytes).zip(0..).collect();
    let (mut best, mut edges) = (BestCut::default(), Vec::new());
    let mut losses: Vec<(f64, usize)> = Vec::new();
    for (piece, count) in counts
        .iter()
        .enumerate()
        .skip(BYTES)
        .filter(|(_, count)| **count > 0.0)
    {
        let bytes = &pieces[piece].bytes;
        edges.clear();
        add_edges(bytes, &ids, &mut edges);
        let without = edges
            .iter()
            .copied()
            .filter(|edge| edge.piece as usize != piece);
        best.find(bytes.len(), without, pieces);
        // Without the piece, each of its uses becomes one use of every piece that replaces it.
        let replacements: Vec<u32> = best.pieces().collect();
        let new_total = total + count * (replacements.len() - 1) as f64;
        let log_prob = (count / total).ln();
        let replaced: f64 = replacements
            .iter()
            .map(|other| ((counts[*other as usize] + count) / new_total).ln())
            .sum();
        losses.push((count * (log_prob - replaced), piece));
    }
    losses.sort_unstable_by(|(a, a_piece), (b, b_piece)| b.total_cmp(a).then(a_piece.cmp(b_piece)));
    losses.truncate(size.saturating_sub(BYTES));
    let mut keep = vec![false; pieces.len()];
    keep[..BYTES].fill(true);
    for (_, piece) in losses {
        keep[piece] = true;
    }
    drop(ids);
    retain_pieces(pieces, &keep)
}

fn retain_pieces(pieces: &mut Vec<Piece>, keep: &[bool]) -> Vec<u32> {
    let mut next = 0;
    let place = |keep: &bool| {
        if !keep {
            return GONE;
        }
        next += 1;
        next - 1
    };
    let places = keep.iter().map(place).collect();
    let mut keep = keep.iter();
    pieces.retain(|_| keep.next().copied().unwrap_or(false));
    places
}

fn finished(pieces: Vec<Piece>, most: usize) -> Vec<Piece> {
    let by_score = |a: &Piece, b: &Piece| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| a.bytes.cmp(&b.bytes))
    };
    let (mut kept, mut longer): (Vec<Piece>, Vec<Piece>) =
        pieces.into_iter().partition(|piece| piece.bytes.len() == 1);
    longer.sort_by(by_score);
    longer.truncate(most - kept.len());
    kept.extend(longer);
    for piece in &mut kept {
        // Six places survive JSON exactly, so that a saved and loaded tokenizer is the same.
        piece.score = (piece.score * 1e6).round() / 1e6;
    }
    kept.sort_by(by_score);
    kept
}

fn add_edges(word: &[u8], ids: &HashMap<&[u8], u32>, edges: &mut Vec<Edge>) {
    for start in 0..word.len() {
        for end in start + 1..=word.len().min(start + LONGEST) {
            if let Some(&piece) = ids.get(&word[start..end]) {
                edges.push(Edge {
                    start: start as u32,
                    length: (end - start) as u32,
                    piece,
                });
            }
        }
    }
}

fn reset<T: Clone>(values: &mut Vec<T>, length: usize, value: T) {
    values.clear();
    values.resize(length, value);
}

fn log_add(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY {
        high
    } else {
        high + (low - high).exp().ln_1p()
    }
}

/// The derivative of ln Γ, by its recurrence and its asymptotic series.
fn digamma(mut x: f64) -> f64 {
    let mut result = 0.0;
    while x < 6.0 {
        result -= 1.0 / x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    result + x.ln() - 0.5 / x - square * (1.0 / 12.0 - square * (1.0 / 120.0 - square / 252.0))
}
