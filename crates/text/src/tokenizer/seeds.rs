//! The first, far too large vocabulary of the Unigram trainer: every substring worth considering.
//!
//! Substrings are counted length by length; one is only looked at when both its shorter halves (all
//! but the last byte, all but the first) were frequent, so rare long strings never take memory.

use std::collections::HashMap;

use super::subword::WordCount;

/// A substring and how often it occurs.
pub(super) struct Seed {
    pub(super) bytes: Box<[u8]>,
    pub(super) count: u64,
}

/// All 256 bytes, in order, then the substrings of two bytes or more that occur `least` times, the
/// weightiest `most` of them (count times length), in the order of their bytes.
pub(super) fn find_seeds(words: &[WordCount], least: u64, most: usize) -> Vec<Seed> {
    let mut level = Level::bytes(words);
    let mut seeds: Vec<Seed> = (0..=255)
        .zip(&level.counts)
        .map(|(byte, count)| Seed {
            bytes: [byte].into(),
            count: *count,
        })
        .collect();
    let mut longer = Vec::new();
    for length in 1..LONGEST {
        let (next, redundant) = level.extended(words, length, least);
        if length > 1 {
            longer.extend(level.seeds(words, length, &redundant));
        }
        level = next;
    }
    longer.extend(level.seeds(words, LONGEST, &vec![false; level.counts.len()]));
    longer.sort_unstable_by(|a, b| {
        weight(b)
            .cmp(&weight(a))
            .then_with(|| a.bytes.cmp(&b.bytes))
    });
    longer.truncate(most);
    longer.sort_unstable_by(|a, b| a.bytes.cmp(&b.bytes));
    seeds.extend(longer);
    seeds
}

/// The most bytes in a piece: a long word with its space, in scripts of two bytes a letter too.
pub(super) const LONGEST: usize = 32;

const RARE: u32 = u32::MAX;

/// The frequent substrings of one length.
struct Level {
    counts: Vec<u64>,
    /// A word and a position in it where each of them stands.
    examples: Vec<(usize, usize)>,
    /// For each word, the substring that starts at each position, or `RARE`.
    starts: Vec<Vec<u32>>,
}

impl Level {
    fn bytes(words: &[WordCount]) -> Self {
        let mut counts = vec![0; 256];
        for word in words {
            for byte in &word.bytes {
                counts[usize::from(*byte)] += word.count;
            }
        }
        let starts = words
            .iter()
            .map(|word| word.bytes.iter().copied().map(u32::from).collect())
            .collect();
        Self {
            counts,
            examples: Vec::new(),
            starts,
        }
    }

    /// The level of substrings one byte longer, and which substrings of this level are redundant:
    /// those that only ever occur inside one and the same longer one.
    fn extended(&self, words: &[WordCount], length: usize, least: u64) -> (Self, Vec<bool>) {
        let mut found: HashMap<(u32, u32), Found> = HashMap::new();
        for (place, (word, starts)) in words.iter().zip(&self.starts).enumerate() {
            for (at, pair) in halves(starts) {
                let found = found.entry(pair).or_insert(Found {
                    count: 0,
                    example: (place, at),
                });
                found.count += word.count;
            }
        }
        let mut frequent: Vec<((u32, u32), Found)> = found
            .into_iter()
            .filter(|(_, found)| found.count >= least)
            .collect();
        frequent.sort_unstable_by_key(|(pair, _)| *pair);
        let mut redundant = vec![false; self.counts.len()];
        for ((left, right), found) in &frequent {
            for half in [*left as usize, *right as usize] {
                redundant[half] |= self.counts[half] == found.count;
            }
        }
        let numbers: HashMap<(u32, u32), u32> =
            frequent.iter().map(|(pair, _)| *pair).zip(0..).collect();
        let renumber = |starts: &Vec<u32>| {
            let mut next = vec![RARE; starts.len().saturating_sub(1)];
            for (at, pair) in halves(starts) {
                next[at] = numbers.get(&pair).copied().unwrap_or(RARE);
            }
            next
        };
        debug_assert!(length >= 1);
        let starts = self.starts.iter().map(renumber).collect();
        let (counts, examples) = frequent
            .into_iter()
            .map(|(_, found)| (found.count, found.example))
            .unzip();
        (
            Self {
                counts,
                examples,
                starts,
            },
            redundant,
        )
    }

    fn seeds<'l>(
        &'l self,
        words: &'l [WordCount],
        length: usize,
        redundant: &'l [bool],
    ) -> impl Iterator<Item = Seed> + 'l {
        let all = self.counts.iter().zip(&self.examples).zip(redundant);
        all.filter(|(_, redundant)| !**redundant)
            .map(move |((count, (word, at)), _)| Seed {
                bytes: words[*word].bytes[*at..*at + length].into(),
                count: *count,
            })
    }
}

struct Found {
    count: u64,
    example: (usize, usize),
}

/// Positions where both halves of a substring one byte longer are frequent, and the halves.
fn halves(starts: &[u32]) -> impl Iterator<Item = (usize, (u32, u32))> + '_ {
    let pairs = starts.windows(2).map(|window| (window[0], window[1]));
    pairs
        .enumerate()
        .filter(|(_, (left, right))| *left != RARE && *right != RARE)
}

fn weight(seed: &Seed) -> u64 {
    seed.count * seed.bytes.len() as u64
}
