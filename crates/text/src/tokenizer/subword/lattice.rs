//! All segmentations of words into pieces, and the two questions that [`super::unigram`] asks of them:
//! how often is each piece used on average, and how often in the best segmentation of every word?
//!
//! Scores are natural logarithms of probabilities throughout, so that long words do not vanish.

use std::collections::HashMap;

use super::seeds::LONGEST;
use super::word_counts::WordCount;

/// The score of a piece that was pruned: it has probability zero.
pub(super) const PRUNED: f64 = f64::NEG_INFINITY;

/// Every segmentation of every word.
pub(super) struct Lattice {
    words: Vec<Word>,
    edges: Vec<Edge>,
}

struct Word {
    length: usize,
    count: f64,
    /// Where the word's edges end in the list of all edges; they start where the last word's end.
    edges_end: usize,
}

/// One piece at one place in a word. A word's edges are sorted by where they start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    start: u32,
    length: u32,
    pub(super) piece: u32,
}

impl Edge {
    fn span(&self) -> (usize, usize) {
        (self.start as usize, (self.start + self.length) as usize)
    }
}

impl Lattice {
    pub(super) fn new(words: &[WordCount], ids: &HashMap<&[u8], u32>) -> Self {
        let mut edges = Vec::new();
        let mut with_edges = |word: &WordCount| {
            add_edges(&word.bytes, ids, &mut edges);
            Word {
                length: word.bytes.len(),
                count: word.count as f64,
                edges_end: edges.len(),
            }
        };
        Self {
            words: words.iter().map(&mut with_edges).collect(),
            edges,
        }
    }

    /// How often each piece is used over all segmentations, each weighted by its probability: the
    /// forward-backward algorithm.
    pub(super) fn expected_counts(&self, scores: &[f64]) -> Vec<f64> {
        let mut expected = vec![0.0; scores.len()];
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (word, edges) in self.words_with_edges() {
            // The log-probability of everything up to, and of everything from, each position.
            reset(&mut before, word.length + 1, f64::NEG_INFINITY);
            reset(&mut after, word.length + 1, f64::NEG_INFINITY);
            (before[0], after[word.length]) = (0.0, 0.0);
            for edge in edges {
                let (start, end) = edge.span();
                before[end] = log_add(before[end], before[start] + scores[edge.piece as usize]);
            }
            for edge in edges.iter().rev() {
                let (start, end) = edge.span();
                after[start] = log_add(after[start], after[end] + scores[edge.piece as usize]);
            }
            for edge in edges {
                let (start, end) = edge.span();
                let through = before[start] + scores[edge.piece as usize] + after[end];
                expected[edge.piece as usize] += word.count * (through - after[0]).exp();
            }
        }
        expected
    }

    /// How often each piece is used in the likeliest segmentation of every word.
    pub(super) fn best_counts(&self, scores: &[f64]) -> Vec<f64> {
        let mut counts = vec![0.0; scores.len()];
        let mut best = BestSegmentation::default();
        for (word, edges) in self.words_with_edges() {
            best.find(word.length, edges, scores);
            for piece in best.pieces() {
                counts[piece as usize] += word.count;
            }
        }
        counts
    }

    /// Removes the edges of pruned pieces, which would only cost time.
    pub(super) fn remove_pruned(&mut self, scores: &[f64]) {
        let (mut at, mut kept) = (0, 0);
        for word in &mut self.words {
            for index in at..word.edges_end {
                let edge = self.edges[index];
                if scores[edge.piece as usize] != PRUNED {
                    self.edges[kept] = edge;
                    kept += 1;
                }
            }
            at = word.edges_end;
            word.edges_end = kept;
        }
        self.edges.truncate(kept);
    }

    fn words_with_edges(&self) -> impl Iterator<Item = (&Word, &[Edge])> {
        let mut start = 0;
        self.words.iter().map(move |word| {
            let edges = &self.edges[start..word.edges_end];
            start = word.edges_end;
            (word, edges)
        })
    }
}

/// The likeliest segmentation of one word (Viterbi); one value serves many words.
#[derive(Default)]
pub(super) struct BestSegmentation {
    scores: Vec<f64>,
    last: Vec<Option<Edge>>,
}

impl BestSegmentation {
    pub(super) fn find(&mut self, length: usize, edges: &[Edge], scores: &[f64]) {
        reset(&mut self.scores, length + 1, f64::NEG_INFINITY);
        reset(&mut self.last, length + 1, None);
        self.scores[0] = 0.0;
        for edge in edges {
            let (start, end) = edge.span();
            let score = self.scores[start] + scores[edge.piece as usize];
            if score > self.scores[end] {
                self.scores[end] = score;
                self.last[end] = Some(*edge);
            }
        }
    }

    /// The pieces of the word that was last looked at, from its end to its start.
    pub(super) fn pieces(&self) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.last.len() - 1;
        std::iter::from_fn(move || {
            let edge = self.last[at]?;
            at = edge.start as usize;
            Some(edge.piece)
        })
    }
}

/// Appends the edges of one word, in the order of where they start.
pub(super) fn add_edges(word: &[u8], ids: &HashMap<&[u8], u32>, edges: &mut Vec<Edge>) {
    for start in 0..word.len() {
        for length in 1..=LONGEST.min(word.len() - start) {
            if let Some(&piece) = ids.get(&word[start..start + length]) {
                edges.push(Edge {
                    start: start as u32,
                    length: length as u32,
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

/// `ln(exp(a) + exp(b))`, without leaving the range of numbers.
fn log_add(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY {
        high
    } else {
        high + (low - high).exp().ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECES: [&[u8]; 4] = [b"a", b"b", b"ab", b"ba"];

    fn lattice(words: &[(&str, u64)]) -> Lattice {
        let ids = PIECES.into_iter().zip(0..).collect();
        let word = |(word, count): &(&str, u64)| WordCount {
            bytes: word.as_bytes().into(),
            count: *count,
        };
        Lattice::new(&words.iter().map(word).collect::<Vec<_>>(), &ids)
    }

    fn scores(probabilities: [f64; 4]) -> [f64; 4] {
        probabilities.map(f64::ln)
    }

    fn assert_close(found: &[f64], expected: [f64; 4]) {
        let close = found
            .iter()
            .zip(expected)
            .all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(close, "{found:?} is not {expected:?}");
    }

    #[test]
    fn expected_counts_weigh_all_segmentations() {
        // "ab" is a,b with 0.4 * 0.3 = 0.12 or ab with 0.2, so 0.375 and 0.625 of each word.
        let lattice = lattice(&[("ab", 8)]);
        assert_close(
            &lattice.expected_counts(&scores([0.4, 0.3, 0.2, 0.1])),
            [3.0, 3.0, 5.0, 0.0],
        );
    }

    #[test]
    fn best_counts_take_the_likeliest_segmentation() {
        let scores = scores([0.4, 0.3, 0.2, 0.1]);
        assert_close(
            &lattice(&[("ab", 8), ("ba", 2)]).best_counts(&scores),
            [2.0, 2.0, 8.0, 0.0],
        );
        // a,ba 0.04 and ab,a 0.08 and a,b,a 0.048
        assert_close(
            &lattice(&[("aba", 1)]).best_counts(&scores),
            [1.0, 0.0, 1.0, 0.0],
        );
    }

    #[test]
    fn pruned_pieces_are_never_used() {
        let mut lattice = lattice(&[("ab", 8), ("ba", 2)]);
        let mut scores = scores([0.4, 0.3, 0.2, 0.1]);
        scores[2] = PRUNED;
        let with_edges = lattice.expected_counts(&scores);
        lattice.remove_pruned(&scores);
        let without_edges = lattice.expected_counts(&scores);
        assert_eq!(with_edges, without_edges);
        assert_eq!(without_edges[2], 0.0);
        assert_eq!(lattice.edges.len(), 2 + 3);
        assert_close(&lattice.best_counts(&scores), [10.0, 10.0, 0.0, 0.0]);
    }

    #[test]
    fn words_too_long_for_plain_probabilities_still_count() {
        let long = "ab".repeat(2000); // 0.2 to the power of 2000 is no f64
        let counts = lattice(&[(&long, 1)]).expected_counts(&scores([1e-9, 1e-9, 0.2, 1e-9]));
        assert!((counts[2] - 2000.0).abs() < 1e-3, "{counts:?}");
    }

    #[test]
    fn logarithms_add_like_numbers() {
        assert!((log_add(0.3_f64.ln(), 0.4_f64.ln()) - 0.7_f64.ln()).abs() < 1e-15);
        assert_eq!(log_add(f64::NEG_INFINITY, -2.0), -2.0);
        assert_eq!(
            log_add(f64::NEG_INFINITY, f64::NEG_INFINITY),
            f64::NEG_INFINITY
        );
    }
}
