//! Learning byte-pair merges (Sennrich et al. 2016): the most frequent pair of neighbours becomes a
//! symbol of its own, again and again.
//!
//! Ties go to the pair with the lower ids, so the outcome depends on the counts alone and never on
//! the order of a hash map. Before: [`super::word_counts`]. After: [`super::model`].

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::word_counts::WordCount;

/// Two neighbouring symbols. Symbol `b < 256` is the byte `b`; symbol `256 + i` is merge `i`.
pub(super) type Pair = (u32, u32);

/// Up to `most` merges, in the order in which they are to be applied; fewer if no pair is left that
/// occurs `min_frequency` times.
pub(super) fn learn_merges(words: &[WordCount], most: usize, min_frequency: u64) -> Vec<Pair> {
    let least = min_frequency.max(1);
    let mut text = Text::new(words);
    let mut spellings: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let mut known: HashSet<Vec<u8>> = spellings.iter().cloned().collect();
    // One entry for each pair. Counts only ever fall once a pair exists, so an entry is at worst
    // too high, and is put back with the true count when it reaches the top.
    let mut queue: BinaryHeap<(u64, Reverse<Pair>)> = text
        .counts
        .iter()
        .map(|(pair, count)| (*count, Reverse(*pair)))
        .collect();
    let mut merges = Vec::new();
    while merges.len() < most {
        let Some((count, Reverse(pair))) = queue.pop() else {
            break;
        };
        let now = text.counts[&pair];
        if now != count {
            queue.push((now, Reverse(pair)));
            continue;
        }
        if count < least {
            break;
        }
        let spelling = [&spellings[pair.0 as usize][..], &spellings[pair.1 as usize]].concat();
        // "aa"+"a" and "a"+"aa" spell the same token, and a token needs only one way to be made.
        if !known.insert(spelling.clone()) {
            continue;
        }
        let symbol = spellings.len() as u32;
        spellings.push(spelling);
        merges.push(pair);
        let new_pairs = text.merge(pair, symbol);
        queue.extend(
            new_pairs
                .into_iter()
                .map(|pair| (text.counts[&pair], Reverse(pair))),
        );
    }
    merges
}

/// The training text as words of symbols, with the counts of all neighbours kept up to date.
struct Text {
    words: Vec<(Vec<u32>, u64)>,
    counts: HashMap<Pair, u64>,
    /// The words that hold a pair, or once held it.
    places: HashMap<Pair, Vec<usize>>,
}

impl Text {
    fn new(words: &[WordCount]) -> Self {
        let words: Vec<(Vec<u32>, u64)> = words
            .iter()
            .map(|word| {
                (
                    word.bytes.iter().copied().map(u32::from).collect(),
                    word.count,
                )
            })
            .collect();
        let mut text = Self {
            words: Vec::new(),
            counts: HashMap::new(),
            places: HashMap::new(),
        };
        for (place, (symbols, count)) in words.iter().enumerate() {
            for pair in neighbours(symbols) {
                *text.counts.entry(pair).or_default() += count;
                note(&mut text.places, pair, place);
            }
        }
        text.words = words;
        text
    }

    /// Replaces a pair by a new symbol everywhere; gives the pairs that this brought into being.
    fn merge(&mut self, pair: Pair, symbol: u32) -> HashSet<Pair> {
        let mut new_pairs = HashSet::new();
        for place in self.places.remove(&pair).unwrap_or_default() {
            let (symbols, count) = &mut self.words[place];
            let merged = replaced(symbols, pair, symbol);
            for old in neighbours(symbols) {
                if let Some(total) = self.counts.get_mut(&old) {
                    *total -= *count;
                }
            }
            for new in neighbours(&merged) {
                *self.counts.entry(new).or_default() += *count;
                if new.0 == symbol || new.1 == symbol {
                    note(&mut self.places, new, place);
                    new_pairs.insert(new);
                }
            }
            *symbols = merged;
        }
        new_pairs
    }
}

fn neighbours(symbols: &[u32]) -> impl Iterator<Item = Pair> + '_ {
    symbols.windows(2).map(|window| (window[0], window[1]))
}

fn note(places: &mut HashMap<Pair, Vec<usize>>, pair: Pair, place: usize) {
    let places = places.entry(pair).or_default();
    if places.last() != Some(&place) {
        places.push(place);
    }
}

fn replaced(symbols: &[u32], pair: Pair, symbol: u32) -> Vec<u32> {
    let mut merged = Vec::with_capacity(symbols.len());
    let mut at = 0;
    while at < symbols.len() {
        if symbols[at] == pair.0 && symbols.get(at + 1) == Some(&pair.1) {
            merged.push(symbol);
            at += 2;
        } else {
            merged.push(symbols[at]);
            at += 1;
        }
    }
    merged
}
