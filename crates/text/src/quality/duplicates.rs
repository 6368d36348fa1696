//! Pairs and sides that occur again, found by hashes of 64 bits: no text is kept.
//!
//! [`Table`] is for whoever wants to know how many there are and where, after the last pair; [`Seen`] says at once
//! whether a pair was there before, for whoever leaves it out.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use rayon::slice::ParallelSliceMut;

use super::held_out::key;
use super::{Check, CheckSet, hash};

/// The hashes of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairHash {
    /// Of the source as it stands.
    pub src: u64,
    /// Of the target as it stands.
    pub tgt: u64,
    /// Of the source's letters and digits, see [`key`].
    pub src_key: Option<u64>,
    /// Of the target's.
    pub tgt_key: Option<u64>,
}

impl PairHash {
    /// Of a pair.
    pub fn of(src: &str, tgt: &str) -> Self {
        Self {
            src: hash(src.trim().as_bytes()),
            tgt: hash(tgt.trim().as_bytes()),
            src_key: key(src),
            tgt_key: key(tgt),
        }
    }

    fn exact(&self) -> u64 {
        joined(self.src, self.tgt)
    }

    fn near(&self) -> u64 {
        joined(
            self.src_key.unwrap_or(self.src),
            self.tgt_key.unwrap_or(self.tgt),
        )
    }
}

/// One hash for two, in which their order matters.
fn joined(a: u64, b: u64) -> u64 {
    (a ^ b.rotate_left(31)).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ b
}

/// So many different translations of one sentence are many.
pub const MANY: usize = 10;

/// Pairs that have gone by.
#[derive(Debug, Default)]
pub struct Seen {
    exact: HashSet<u64, Ready>,
    near: HashSet<u64, Ready>,
    src: HashMap<u64, u8, Ready>,
    tgt: HashMap<u64, u8, Ready>,
}

impl Seen {
    /// Remembers a pair, and says what it is again; only what is asked for is remembered.
    pub fn check(&mut self, pair: &PairHash, asked: CheckSet) -> Option<Check> {
        if asked.has(Check::Duplicates) && !self.exact.insert(pair.exact()) {
            return Some(Check::Duplicates);
        }
        if asked.has(Check::NearDuplicates) && !self.near.insert(pair.near()) {
            return Some(Check::NearDuplicates);
        }
        if asked.has(Check::ManyTranslations) {
            let most = MANY as u8;
            let (src, tgt) = (
                self.src.entry(pair.src).or_default(),
                self.tgt.entry(pair.tgt).or_default(),
            );
            if *src >= most || *tgt >= most {
                return Some(Check::ManyTranslations);
            }
            *src += 1;
            *tgt += 1;
        }
        None
    }
}

/// All pairs of a corpus.
#[derive(Debug, Default)]
pub struct Table {
    /// Source, target, near-duplicate hash, number of the pair.
    pairs: Vec<(u64, u64, u64, u32)>,
}

/// What a [`Table`] says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repetitions {
    /// Pairs that were there before.
    pub duplicates: usize,
    /// Some of them: the pair, and where it was first.
    pub duplicate_examples: Vec<(u32, u32)>,
    /// Pairs that were there before, but for case and punctuation.
    pub near_duplicates: usize,
    /// Some of them.
    pub near_examples: Vec<(u32, u32)>,
    /// Pairs of a side that has more than [`MANY`] different other sides.
    pub many_translations: usize,
    /// Some of these sides: the first pair, and how many other sides.
    pub many_examples: Vec<(u32, usize)>,
}

impl Table {
    /// Adds the next pair.
    pub fn push(&mut self, number: u32, pair: &PairHash) {
        self.pairs.push((pair.src, pair.tgt, pair.near(), number));
    }

    /// Counts what occurs again; gives at most so many examples of each.
    pub fn repetitions(mut self, examples: usize) -> Repetitions {
        let mut found = Repetitions::default();
        let pairs = &mut self.pairs;
        pairs.par_sort_unstable_by_key(|pair| (pair.2, pair.3));
        let mut in_group: HashSet<(u64, u64)> = HashSet::new();
        for group in pairs
            .chunk_by(|a, b| a.2 == b.2)
            .filter(|group| group.len() > 1)
        {
            in_group.clear();
            for pair in group {
                let again = !in_group.insert((pair.0, pair.1));
                let place = (pair.3, group[0].3);
                if again {
                    found.duplicates += 1;
                    keep_first(&mut found.duplicate_examples, place, examples);
                } else if in_group.len() > 1 {
                    found.near_duplicates += 1;
                    keep_first(&mut found.near_examples, place, examples);
                }
            }
        }
        for side in [
            |p: &(u64, u64, u64, u32)| (p.0, p.1),
            |p: &(u64, u64, u64, u32)| (p.1, p.0),
        ] {
            pairs.par_sort_unstable_by_key(|pair| (side(pair), pair.3));
            for group in pairs.chunk_by(|a, b| side(a).0 == side(b).0) {
                let others = group.chunk_by(|a, b| side(a).1 == side(b).1).count();
                if others > MANY {
                    found.many_translations += group.len();
                    let first = group.iter().map(|pair| pair.3).min().unwrap_or_default();
                    found.many_examples.push((first, others));
                }
            }
        }
        found
            .many_examples
            .sort_by_key(|(first, others)| (usize::MAX - others, *first));
        found.many_examples.truncate(examples);
        found
    }
}

/// Keeps the examples that come first in the corpus.
fn keep_first(examples: &mut Vec<(u32, u32)>, place: (u32, u32), most: usize) {
    let at = examples.partition_point(|known| *known < place);
    if at < most {
        examples.insert(at, place);
        examples.truncate(most);
    }
}

/// Hashes are hashed already.
type Ready = BuildHasherDefault<Itself>;

#[derive(Debug, Default)]
struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIRS: [(&str, &str); 6] = [
        ("ein Hund", "a dog"),
        ("eine Katze", "a cat"),
        ("ein Hund", "a dog"),
        ("Ein Hund!", "A dog."),
        ("ein Hund", "one dog"),
        ("ein Hund", "a dog"),
    ];

    #[test]
    fn what_occurs_again_is_counted_with_its_first_place() {
        let mut table = Table::default();
        for (number, (src, tgt)) in (0..).zip(PAIRS) {
            table.push(number, &PairHash::of(src, tgt));
        }
        let found = table.repetitions(1);
        assert_eq!((found.duplicates, found.near_duplicates), (2, 1));
        assert_eq!(found.duplicate_examples, [(2, 0)]);
        assert_eq!(found.near_examples, [(3, 0)]);
        assert_eq!(found.many_translations, 0);
    }

    #[test]
    fn a_side_with_many_others_is_counted_once_for_each_of_its_pairs() {
        let mut table = Table::default();
        for number in 0..12 {
            let pair = PairHash::of("Seite", &format!("page {number}"));
            table.push(number, &pair);
        }
        table.push(12, &PairHash::of("x", "y"));
        let found = table.repetitions(3);
        assert_eq!(
            (found.many_translations, found.many_examples),
            (12, vec![(0, 12)])
        );
    }

    #[test]
    fn pairs_that_have_gone_by_are_known_at_once() {
        let run = |asked: &[Check]| -> Vec<Option<Check>> {
            let asked = asked.iter().copied().collect();
            let mut seen = Seen::default();
            let pairs = PAIRS.iter().map(|(src, tgt)| PairHash::of(src, tgt));
            pairs.map(|pair| seen.check(&pair, asked)).collect()
        };
        let (exact, near) = (Some(Check::Duplicates), Some(Check::NearDuplicates));
        assert_eq!(
            run(&[Check::Duplicates]),
            [None, None, exact, None, None, exact]
        );
        assert_eq!(
            run(&[Check::Duplicates, Check::NearDuplicates]),
            [None, None, exact, near, None, exact]
        );
        let mut seen = Seen::default();
        let asked = [Check::ManyTranslations].into_iter().collect();
        let again = (0..15).filter(|number| {
            let pair = PairHash::of("Seite", &format!("page {number}"));
            seen.check(&pair, asked).is_some()
        });
        assert_eq!(again.count(), 15 - MANY);
    }
}
