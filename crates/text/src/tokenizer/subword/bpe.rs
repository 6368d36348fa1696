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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[(&str, u64)]) -> Vec<WordCount> {
        let word = |(word, count): &(&str, u64)| WordCount {
            bytes: word.as_bytes().into(),
            count: *count,
        };
        words.iter().map(word).collect()
    }

    /// Merges by their spelling, such as `"he+n"`.
    fn named(merges: &[Pair]) -> Vec<String> {
        let mut spellings: Vec<String> =
            (0..=255).map(|byte| char::from(byte).to_string()).collect();
        let mut names = Vec::new();
        for (left, right) in merges {
            let (left, right) = (&spellings[*left as usize], &spellings[*right as usize]);
            names.push(format!("{left}+{right}"));
            spellings.push(format!("{left}{right}"));
        }
        names
    }

    #[test]
    fn the_most_frequent_pair_is_merged_first() {
        let words = words(&[("hen", 4), ("ben", 3), ("he", 2)]);
        // e+n 7, h+e 6 (then 2), h+en 4, b+en 3, h+e 2.
        assert_eq!(
            named(&learn_merges(&words, 99, 1)),
            ["e+n", "h+en", "b+en", "h+e"]
        );
        assert_eq!(named(&learn_merges(&words, 2, 1)), ["e+n", "h+en"]);
        assert_eq!(named(&learn_merges(&words, 99, 3)), ["e+n", "h+en", "b+en"]);
    }

    #[test]
    fn ties_go_to_the_lower_ids() {
        let words = words(&[("zy", 2), ("ab", 2), ("ba", 2)]);
        assert_eq!(named(&learn_merges(&words, 99, 1)), ["a+b", "b+a", "z+y"]);
    }

    #[test]
    fn overlapping_pairs_are_counted_and_merged_from_the_left() {
        // In "aaa" the pair a+a occurs twice but only one merge fits.
        assert_eq!(
            named(&learn_merges(&words(&[("aaa", 1)]), 99, 1)),
            ["a+a", "aa+a"]
        );
        assert_eq!(replaced(&[1, 1, 1, 2, 1, 1], (1, 1), 9), [9, 1, 2, 9]);
    }

    #[test]
    fn a_token_is_made_in_one_way_only() {
        // After a+a: "aa a" three times, "b a aa" is "ba aa"; "a"+"aa" would spell "aaa" again.
        let words = words(&[
            ("aaa", 30),
            ("aaab", 9),
            ("xaaa", 8),
            ("aaaaa", 7),
            ("ba", 1),
        ]);
        let merges = learn_merges(&words, 99, 1);
        let spelled: Vec<String> = named(&merges)
            .iter()
            .map(|name| name.replace('+', ""))
            .collect();
        let distinct: HashSet<&String> = spelled.iter().collect();
        assert_eq!(distinct.len(), spelled.len(), "{spelled:?}");
    }

    #[test]
    fn counts_stay_true_while_merging() {
        let mut text = Text::new(&words(&[("abab", 2), ("aabb", 3), ("bab", 5)]));
        let ab = (u32::from(b'a'), u32::from(b'b'));
        assert_eq!(text.counts[&ab], 2 * 2 + 3 + 5);
        text.merge(ab, 256);
        let mut recounted: HashMap<Pair, u64> = HashMap::new();
        for (symbols, count) in &text.words {
            for pair in neighbours(symbols) {
                *recounted.entry(pair).or_default() += count;
            }
        }
        text.counts.retain(|_, count| *count > 0);
        assert_eq!(text.counts, recounted);
    }
}
