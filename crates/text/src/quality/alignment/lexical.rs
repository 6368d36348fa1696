//! How well two lines fit: by a lexicon of the corpus' own words, and by their lengths.
//!
//! The lexicon is IBM Model 1 ([`Lexicon`]) over the beginnings of words. Of each source word the few likeliest
//! translations count, and a target is a set of bits, so that comparing two lines takes some tens of nanoseconds and
//! each line can be compared with many. What comes out is a cell: how much of the source is found, and how odd the
//! lengths are, in steps. `segments` learns what the cells mean.

use std::collections::HashMap;

use super::super::words::words;
use crate::lexicon::{Lexicon, TokenPairs};
use crate::special::SPECIALS;

/// What is known about words and lengths.
pub(super) struct Words {
    /// Source words by their hashes.
    sources: HashMap<u64, Word>,
    /// Median and spread of [`log_ratio`].
    usual: f32,
    spread: f32,
}

/// A source word.
#[derive(Debug, Clone, Copy)]
struct Word {
    /// How much it tells: the rarer it is, the more.
    weight: f32,
    /// The bits of its likeliest translations; the first one again where it has fewer.
    translations: [u16; BEST],
}

/// A source line, as it is compared.
#[derive(Debug, Default)]
pub(super) struct Source {
    log_length: f32,
    words: Vec<Word>,
}

/// A target line, as it is compared.
#[derive(Debug, Default)]
pub(super) struct Target {
    log_length: f32,
    /// A bit for each of its words.
    bits: [u64; BITS / 64],
}

/// Translations of a word that count.
const BEST: usize = 4;

/// A translation must be so probable.
const LEAST: f32 = 0.04;

/// So many different words of each side are learned, of those that occur more than once.
const MOST_WORDS: usize = 30_000;

/// Rounds of learning: more than a shortlist needs, because only the best translations count.
const ROUNDS: usize = 4;

/// Words of a line that count.
const MOST_IN_LINE: usize = 60;

/// Bits of a target line.
const BITS: usize = 1024;

/// Steps of the share of words that are found, and one more for lines of which nothing is known.
const SHARES: u8 = 10;

/// Steps of the oddness of the lengths.
const LENGTHS: u8 = 6;

/// The number of cells.
pub(super) const CELLS: usize = (SHARES as usize + 1) * LENGTHS as usize;

impl Words {
    /// Learns from pairs of text.
    pub(super) fn learn(pairs: &[(String, String)]) -> Self {
        let src_ids = frequent(pairs.iter().map(|(src, _)| &**src));
        let tgt_ids = frequent(pairs.iter().map(|(_, tgt)| &**tgt));
        let first = SPECIALS.len();
        let mut tokens = TokenPairs::new(first + src_ids.len(), first + tgt_ids.len());
        let ids = |line: &str, known: &HashMap<u64, (u32, usize)>| -> Vec<u32> {
            let known = words(line).filter_map(|word| known.get(&word).map(|(id, _)| *id));
            known.take(MOST_IN_LINE).collect()
        };
        for (src, tgt) in pairs {
            let (src, tgt) = (ids(src, &src_ids), ids(tgt, &tgt_ids));
            if !src.is_empty() && !tgt.is_empty() {
                tokens.push(&src, &tgt);
            }
        }
        let lexicon = Lexicon::learn(&tokens, ROUNDS, |_| {});
        let bit_of: HashMap<u32, u16> = tgt_ids
            .iter()
            .map(|(hash, (id, _))| (*id, bit(*hash)))
            .collect();
        let lines = pairs.len().max(1) as f32;
        let sources = src_ids.iter().filter_map(|(hash, (id, count))| {
            let list = lexicon.translations.get(*id as usize)?;
            let likely = list
                .iter()
                .take(BEST)
                .filter(|(_, probability)| *probability >= LEAST);
            let bits: Vec<u16> = likely
                .filter_map(|(target, _)| bit_of.get(target).copied())
                .collect();
            let first = *bits.first()?;
            let mut translations = [first; BEST];
            translations[..bits.len()].copy_from_slice(&bits);
            let weight = (lines / *count as f32).ln().clamp(0.1, 8.0);
            Some((
                *hash,
                Word {
                    weight,
                    translations,
                },
            ))
        });
        let mut words = Self {
            sources: sources.collect(),
            usual: 0.0,
            spread: 1.0,
        };
        let mut ratios: Vec<f32> = pairs
            .iter()
            .map(|(src, tgt)| log_length(tgt) - log_length(src))
            .collect();
        words.usual = median(&mut ratios);
        let usual = words.usual;
        ratios
            .iter_mut()
            .for_each(|ratio| *ratio = (*ratio - usual).abs());
        words.spread = median(&mut ratios).max(0.02) / 0.6745;
        words
    }

    /// A source line as it is compared.
    pub(super) fn source(&self, line: &str) -> Source {
        let known = words(line).filter_map(|word| self.sources.get(&word).copied());
        Source {
            log_length: log_length(line),
            words: known.take(MOST_IN_LINE).collect(),
        }
    }

    /// A target line as it is compared.
    pub(super) fn target(&self, line: &str) -> Target {
        let mut target = Target {
            log_length: log_length(line),
            ..Target::default()
        };
        for word in words(line).take(MOST_IN_LINE) {
            let bit = bit(word) as usize;
            target.bits[bit / 64] |= 1 << (bit % 64);
        }
        target
    }

    /// The cell of two lines.
    pub(super) fn compare(&self, src: &Source, tgt: &Target) -> u8 {
        let has = |bit: u16| tgt.bits[bit as usize / 64] >> (bit % 64) & 1 == 1;
        let (mut found, mut all) = (0.0, 0.0);
        for word in &src.words {
            all += word.weight;
            if word.translations.iter().any(|bit| has(*bit)) {
                found += word.weight;
            }
        }
        let share = if all < 1.0 {
            SHARES
        } else {
            ((found / all * f32::from(SHARES)) as u8).min(SHARES - 1)
        };
        let odd = (tgt.log_length - src.log_length - self.usual).abs() / self.spread;
        let length = [0.5, 1.0, 1.5, 2.25, 3.5]
            .iter()
            .filter(|step| odd > **step)
            .count() as u8;
        share * LENGTHS + length
    }
}

/// The words that occur more than once, the most frequent ones, with an id and in how many lines they occur.
fn frequent<'a>(lines: impl Iterator<Item = &'a str>) -> HashMap<u64, (u32, usize)> {
    let mut counts: HashMap<u64, usize> = HashMap::new();
    let mut in_line = Vec::new();
    for line in lines {
        in_line.clear();
        in_line.extend(words(line));
        in_line.sort_unstable();
        in_line.dedup();
        for word in &in_line {
            *counts.entry(*word).or_default() += 1;
        }
    }
    let mut all: Vec<(u64, usize)> = counts.into_iter().filter(|(_, count)| *count > 1).collect();
    // The order of a hash map changes, so equals are sorted by their hashes.
    all.sort_unstable_by_key(|(word, count)| (usize::MAX - count, *word));
    all.truncate(MOST_WORDS);
    let ids = SPECIALS.len() as u32..;
    ids.zip(all)
        .map(|(id, (word, count))| (word, (id, count)))
        .collect()
}

/// The bit of a target word.
fn bit(word: u64) -> u16 {
    (word.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54) as u16
}

fn log_length(line: &str) -> f32 {
    ((line.chars().count() + 5) as f32).ln()
}

fn median(values: &mut [f32]) -> f32 {
    values.sort_unstable_by(f32::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
