//! The first, far too large vocabulary of the Unigram trainer: every substring worth considering.
//!
//! Substrings are counted length by length; one is only looked at when both of its halves (all but
//! the last byte, all but the first) were frequent, so rare long strings never take memory. The
//! halves that only ever occur inside one longer string are left out: that string does their work.

use std::collections::HashMap;

use super::word_counts::WordCount;

/// A substring and how often it occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seed {
    pub(super) bytes: Box<[u8]>,
    pub(super) count: u64,
}

/// The most bytes in a piece: a long word with its space, in scripts of two bytes a letter too.
pub(super) const LONGEST: usize = 32;

/// All 256 bytes, in order, then the substrings of two bytes or more that occur `least` times, the
/// weightiest `most` of them (count times length), in the order of their bytes.
pub(super) fn find_seeds(words: &[WordCount], least: u64, most: usize) -> Vec<Seed> {
    let mut level = Level::of_bytes(words);
    let mut seeds: Vec<Seed> = (0..=255)
        .zip(&level.frequent)
        .map(|(byte, found)| Seed {
            bytes: [byte].into(),
            count: found.count,
        })
        .collect();
    let mut longer: Vec<Seed> = Vec::new();
    while level.length < LONGEST && !level.frequent.is_empty() {
        let (next, is_redundant) = level.longer(words, least);
        if level.length > 1 {
            longer.extend(level.seeds(words, &is_redundant));
        }
        level = next;
    }
    longer.extend(level.seeds(words, &vec![false; level.frequent.len()]));
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

/// The frequent substrings of one length, numbered.
struct Level {
    length: usize,
    frequent: Vec<Found>,
    /// For each word, the number of the substring that starts at each position, or `RARE`.
    starts: Vec<Vec<u32>>,
}

const RARE: u32 = u32::MAX;

/// A substring: how often it occurs, and one word and position where it does.
#[derive(Clone, Copy)]
struct Found {
    count: u64,
    place: (usize, usize),
}

impl Level {
    fn of_bytes(words: &[WordCount]) -> Self {
        let mut frequent = vec![
            Found {
                count: 0,
                place: (0, 0)
            };
            256
        ];
        for word in words {
            for byte in &word.bytes {
                frequent[usize::from(*byte)].count += word.count;
            }
        }
        let numbers = |word: &WordCount| word.bytes.iter().copied().map(u32::from).collect();
        Self {
            length: 1,
            frequent,
            starts: words.iter().map(numbers).collect(),
        }
    }

    /// The level of substrings one byte longer, and which substrings of this level are redundant.
    fn longer(&self, words: &[WordCount], least: u64) -> (Self, Vec<bool>) {
        let mut found: HashMap<(u32, u32), Found> = HashMap::new();
        for (index, (word, starts)) in words.iter().zip(&self.starts).enumerate() {
            for (at, halves) in frequent_halves(starts) {
                let first = Found {
                    count: 0,
                    place: (index, at),
                };
                found.entry(halves).or_insert(first).count += word.count;
            }
        }
        let mut frequent: Vec<_> = found
            .into_iter()
            .filter(|(_, found)| found.count >= least)
            .collect();
        frequent.sort_unstable_by_key(|(halves, _)| *halves);

        let mut is_redundant = vec![false; self.frequent.len()];
        for ((left, right), found) in &frequent {
            for half in [*left as usize, *right as usize] {
                is_redundant[half] |= self.frequent[half].count == found.count;
            }
        }
        let numbers: HashMap<(u32, u32), u32> = frequent
            .iter()
            .map(|(halves, _)| *halves)
            .zip(0..)
            .collect();
        let renumber = |starts: &Vec<u32>| {
            let mut longer = vec![RARE; starts.len().saturating_sub(1)];
            for (at, halves) in frequent_halves(starts) {
                longer[at] = numbers.get(&halves).copied().unwrap_or(RARE);
            }
            longer
        };
        let starts = self.starts.iter().map(renumber).collect();
        let frequent = frequent.into_iter().map(|(_, found)| found).collect();
        (
            Self {
                length: self.length + 1,
                frequent,
                starts,
            },
            is_redundant,
        )
    }

    fn seeds(&self, words: &[WordCount], is_redundant: &[bool]) -> Vec<Seed> {
        let seed = |(found, _): (&Found, &bool)| {
            let (word, at) = found.place;
            Seed {
                bytes: words[word].bytes[at..at + self.length].into(),
                count: found.count,
            }
        };
        let all = self.frequent.iter().zip(is_redundant);
        all.filter(|(_, is_redundant)| !**is_redundant)
            .map(seed)
            .collect()
    }
}

/// The positions where both halves of a substring one byte longer are frequent, and the halves.
fn frequent_halves(starts: &[u32]) -> impl Iterator<Item = (usize, (u32, u32))> + '_ {
    let halves = starts.windows(2).map(|window| (window[0], window[1]));
    halves
        .enumerate()
        .filter(|(_, (left, right))| *left != RARE && *right != RARE)
}

fn weight(seed: &Seed) -> u64 {
    seed.count * seed.bytes.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(words: &[(&str, u64)], least: u64, most: usize) -> Vec<(String, u64)> {
        let word = |(word, count): &(&str, u64)| WordCount {
            bytes: word.as_bytes().into(),
            count: *count,
        };
        let words: Vec<WordCount> = words.iter().map(word).collect();
        let seeds = find_seeds(&words, least, most);
        assert!(
            seeds[..256]
                .iter()
                .zip(0..=255)
                .all(|(seed, byte)| *seed.bytes == [byte])
        );
        let longer = seeds[256..].iter();
        longer
            .map(|seed| {
                (
                    String::from_utf8_lossy(&seed.bytes).into_owned(),
                    seed.count,
                )
            })
            .collect()
    }

    fn counted(seeds: &[(&str, u64)]) -> Vec<(String, u64)> {
        seeds
            .iter()
            .map(|(seed, count)| ((*seed).to_owned(), *count))
            .collect()
    }

    #[test]
    fn substrings_that_never_stand_alone_are_left_out() {
        // "bc" only occurs inside "abc", but "ab" and "xa" occur in other places too.
        let seeds = found(&[("abc", 2), ("xa", 1), ("xab", 1)], 2, 99);
        assert_eq!(seeds, counted(&[("ab", 3), ("abc", 2), ("xa", 2)]));
    }

    #[test]
    fn repeats_inside_a_word_count_each_time() {
        assert_eq!(
            found(&[("aaaa", 1)], 2, 99),
            counted(&[("aa", 3), ("aaa", 2)])
        );
    }

    #[test]
    fn only_the_weightiest_are_kept() {
        let words = [("abcd", 4), ("xy", 5), ("qr", 2)];
        assert_eq!(found(&words, 2, 2), counted(&[("abcd", 4), ("xy", 5)]));
        assert_eq!(found(&words, 3, 99), counted(&[("abcd", 4), ("xy", 5)]));
    }

    #[test]
    fn no_seed_is_longer_than_the_longest_piece() {
        let long = "abcdefghij".repeat(10);
        let seeds = found(&[(long.as_str(), 2)], 2, 1000);
        assert_eq!(
            seeds.iter().map(|(seed, _)| seed.len()).max(),
            Some(LONGEST)
        );
    }
}
