//! Learning a unigram language model over subwords (Kudo 2018): start with far too many pieces,
//! estimate their probabilities by expectation-maximization, prune the pieces that the likelihood
//! needs least, and repeat until few enough remain.
//!
//! All sums run in one fixed order over sorted words, so the outcome is the same in every process.
//! Before: [`super::seeds`] finds the first pieces. After: [`super::model`] makes the model.

use std::collections::HashMap;

use super::lattice::{BestSegmentation, Lattice, PRUNED, add_edges};
use super::seeds::{Seed, find_seeds};
use super::word_counts::WordCount;

/// A subword and the natural logarithm of its probability.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) bytes: Box<[u8]>,
    pub(super) score: f64,
}

/// Up to `most` pieces, likeliest first; all 256 bytes are always among them.
pub(super) fn learn_pieces(words: &[WordCount], most: usize, min_frequency: u64) -> Vec<Piece> {
    let seeds = find_seeds(words, min_frequency.max(2), SEEDS);
    let ids: HashMap<&[u8], u32> = seeds.iter().map(|seed| &*seed.bytes).zip(0..).collect();
    let mut lattice = Lattice::new(words, &ids);
    let counts: Vec<f64> = seeds.iter().map(|seed| seed.count as f64).collect();
    let mut scores = estimate(&counts);
    // A few more than wanted, so that the last choice is by probability.
    let enough = most + most / 10;
    loop {
        for _ in 0..ROUNDS {
            scores = estimate(&lattice.expected_counts(&scores));
            lattice.remove_pruned(&scores);
        }
        let left = scores.iter().filter(|score| **score != PRUNED).count();
        if left <= enough {
            break;
        }
        let size = enough.max((left as f64 * SHRINK) as usize);
        prune(&mut scores, size, &lattice, &seeds, &ids);
        lattice.remove_pruned(&scores);
    }
    drop(ids);
    finished(seeds, &scores, most)
}

/// How many substrings to start with, how often to estimate before each pruning, and what share of
/// the pieces a pruning leaves: as in Kudo's SentencePiece, but with fewer seeds, since redundant
/// ones are left out beforehand.
const SEEDS: usize = 300_000;
const ROUNDS: usize = 2;
const SHRINK: f64 = 0.75;

/// Pieces expected less often than this are pruned; bytes never are, and count this much.
const LEAST_EXPECTED: f64 = 0.5;

/// The first seeds are the bytes, which always stay.
const BYTES: usize = 256;

/// Scores from expected counts, with the digamma function where one would expect the logarithm: the
/// variational estimate under a sparse prior, which favors few, frequent pieces.
fn estimate(expected: &[f64]) -> Vec<f64> {
    let count = |(piece, expected): (usize, &f64)| match *expected {
        enough if enough >= LEAST_EXPECTED => enough,
        _ if piece < BYTES => LEAST_EXPECTED,
        _ => 0.0,
    };
    let counts: Vec<f64> = expected.iter().enumerate().map(count).collect();
    let total = digamma(counts.iter().sum());
    counts
        .iter()
        .map(|count| {
            if *count > 0.0 {
                digamma(*count) - total
            } else {
                PRUNED
            }
        })
        .collect()
}

/// Leaves the bytes and those pieces, `size` in all, whose removal would cost the most likelihood.
fn prune(
    scores: &mut [f64],
    size: usize,
    lattice: &Lattice,
    seeds: &[Seed],
    ids: &HashMap<&[u8], u32>,
) {
    let counts = lattice.best_counts(scores);
    let total: f64 = counts.iter().sum();
    let (mut best, mut edges) = (BestSegmentation::default(), Vec::new());
    let mut losses: Vec<(f64, usize)> = Vec::new();
    for (piece, &count) in counts.iter().enumerate().skip(BYTES) {
        if count == 0.0 {
            continue;
        }
        // Without the piece, each of its uses becomes one use of every piece that replaces it.
        edges.clear();
        add_edges(&seeds[piece].bytes, ids, &mut edges);
        edges.retain(|edge| edge.piece as usize != piece);
        best.find(seeds[piece].bytes.len(), &edges, scores);
        let replacements: Vec<u32> = best.pieces().collect();
        let new_total = total + count * (replacements.len() as f64 - 1.0);
        let with = (count / total).ln();
        let new_log_prob = |other: &u32| ((counts[*other as usize] + count) / new_total).ln();
        let without: f64 = replacements.iter().map(new_log_prob).sum();
        losses.push((count * (with - without), piece));
    }
    losses.sort_unstable_by(|(a, a_piece), (b, b_piece)| b.total_cmp(a).then(a_piece.cmp(b_piece)));
    losses.truncate(size.saturating_sub(BYTES));
    let mut kept = scores[..BYTES].to_vec();
    kept.resize(scores.len(), PRUNED);
    for (_, piece) in losses {
        kept[piece] = scores[piece];
    }
    scores.copy_from_slice(&kept);
}

fn finished(seeds: Vec<Seed>, scores: &[f64], most: usize) -> Vec<Piece> {
    // Six decimal places survive JSON exactly, so a tokenizer is the same when saved and loaded.
    let rounded = |score: f64| (score * 1e6).round() / 1e6;
    let pieces = seeds
        .into_iter()
        .zip(scores)
        .filter(|(_, score)| **score != PRUNED);
    let mut bytes: Vec<Piece> = pieces
        .map(|(seed, score)| Piece {
            bytes: seed.bytes,
            score: rounded(*score),
        })
        .collect();
    let mut longer = bytes.split_off(BYTES);
    let by_score = |a: &Piece, b: &Piece| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| a.bytes.cmp(&b.bytes))
    };
    longer.sort_unstable_by(by_score);
    longer.truncate(most - BYTES);
    let mut pieces = bytes;
    pieces.extend(longer);
    pieces.sort_unstable_by(by_score);
    pieces
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

#[cfg(test)]
mod tests {
    use super::*;

    fn learn(words: &[(&str, u64)], most: usize) -> Vec<Piece> {
        let word = |(word, count): &(&str, u64)| WordCount {
            bytes: word.as_bytes().into(),
            count: *count,
        };
        let mut words: Vec<WordCount> = words.iter().map(word).collect();
        words.sort_unstable();
        learn_pieces(&words, most, 1)
    }

    fn rank(pieces: &[Piece], bytes: &[u8]) -> Option<usize> {
        pieces.iter().position(|piece| &*piece.bytes == bytes)
    }

    #[test]
    fn frequent_words_become_pieces_and_likelier_ones_come_first() {
        let pieces = learn(&[(" the", 90), (" cat", 40), (" dog", 20), (" x", 1)], 300);
        let ranks = [&b" the"[..], b" cat", b" dog"].map(|bytes| rank(&pieces, bytes).unwrap());
        assert_eq!(ranks, [0, 1, 2]);
        assert!(pieces.is_sorted_by(|a, b| a.score >= b.score));
    }

    #[test]
    fn all_bytes_stay_with_scores_below_zero_even_when_there_is_no_room() {
        for most in [256, 257, 300] {
            let pieces = learn(
                &[(" the", 90), (" there", 40), (" then", 40), (" them", 9)],
                most,
            );
            assert!(pieces.len() <= most);
            for byte in 0..=255 {
                let rank = rank(&pieces, &[byte]).expect("every byte is a piece");
                assert!(
                    (-40.0..0.0).contains(&pieces[rank].score),
                    "{:?}",
                    pieces[rank]
                );
            }
        }
    }

    #[test]
    fn pruning_keeps_what_the_text_needs_most() {
        let words: Vec<(String, u64)> = (0..400).map(|n| (format!(" w{n}"), 2)).collect();
        let mut words: Vec<(&str, u64)> = words
            .iter()
            .map(|(word, count)| (word.as_str(), *count))
            .collect();
        words.push((" needed", 500));
        let pieces = learn(&words, 256 + 20);
        assert_eq!(pieces.len(), 256 + 20);
        assert_eq!(rank(&pieces, b" needed"), Some(0));
    }

    #[test]
    fn digamma_has_its_known_values() {
        let euler = 0.577_215_664_901_532_9;
        for (x, expected) in [
            (1.0, -euler),
            (0.5, -euler - 2.0 * 2.0_f64.ln()),
            (100.0, 4.600_161_852_738_087),
        ] {
            assert!((digamma(x) - expected).abs() < 1e-7, "{x}: {}", digamma(x));
        }
    }

    #[test]
    fn scores_survive_json() {
        for piece in learn(&[(" the", 90), (" cat", 41), (" dog", 20)], 300) {
            let json = serde_json::to_string(&piece.score).unwrap();
            assert_eq!(serde_json::from_str::<f64>(&json).unwrap(), piece.score);
        }
    }
}
