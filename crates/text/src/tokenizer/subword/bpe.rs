//! Learning byte-pair merges (Sennrich et al. 2016) with the trainer of the `tokenizers` library: the most
//! frequent pair of neighbors becomes a symbol of its own, again and again.
//!
//! The trainer numbers the bytes in the order of the characters that spell them, and gives ties to the
//! pair with the lower numbers. Here a byte is spelled by a character that sorts as the byte does, so what
//! is learned depends on the counts alone. The symbols need not be bytes: those of [`crate::tokenizer::wordpiece_training`]
//! are characters. Before: [`super::word_counts`]. After: [`super::model`].

use std::collections::HashMap;

use ahash::AHashMap;
use compact_str::CompactString;
use serde::Deserialize;
use tokenizers::models::bpe::{BPE, BpeTrainer};

use super::model::refused;
use super::word_counts::WordCount;
use crate::error::{Result, TextError};

/// The bytes of two neighbors that become one symbol.
pub(super) type Merge = (Box<[u8]>, Box<[u8]>);

/// Up to `most` merges, in the order in which they are to be applied; fewer if no pair is left that
/// occurs `min_frequency` times.
pub(super) fn learn_merges(
    words: &[WordCount],
    most: usize,
    min_frequency: u64,
) -> Result<Vec<Merge>> {
    let symbols = |word: &WordCount| word.bytes.iter().copied().map(u16::from).collect();
    let words: Vec<Word> = words
        .iter()
        .map(|word| (symbols(word), word.count))
        .collect();
    let merges = learn_symbol_merges(&words, 256, most, min_frequency)?;
    let bytes = |symbols: Vec<u16>| symbols.into_iter().map(|byte| byte as u8).collect();
    let merges = merges.into_iter();
    Ok(merges
        .map(|(left, right)| (bytes(left), bytes(right)))
        .collect())
}

/// The symbols of a word, numbered from 0, and how often it occurs.
pub(in crate::tokenizer) type Word = (Vec<u16>, u64);

/// The merges of words over an alphabet of so many symbols.
pub(in crate::tokenizer) fn learn_symbol_merges(
    words: &[Word],
    alphabet: u16,
    most: usize,
    min_frequency: u64,
) -> Result<Vec<(Vec<u16>, Vec<u16>)>> {
    check_counts(words)?;
    let spelled = |word: &[u16]| word.iter().copied().map(character_of).collect();
    let counts: AHashMap<CompactString, u64> = words
        .iter()
        .map(|(word, count)| (spelled(word), *count))
        .collect();
    let trainer = BpeTrainer::builder()
        .initial_alphabet((0..alphabet).map(character_of).collect())
        .vocab_size(usize::from(alphabet) + most)
        .min_frequency(min_frequency)
        .show_progress(false)
        .build();
    let mut model = BPE::default();
    trainer.do_train(&counts, &mut model).map_err(refused)?;
    // The model shows its merges only in the form that it is written in.
    let learned = serde_json::to_value(&model).and_then(serde_json::from_value);
    let Learned { merges } = learned.map_err(|error| refused(error.into()))?;
    let symbols = |part: &str| part.chars().map(symbol_of).collect();
    Ok(merges
        .iter()
        .map(|(left, right)| (symbols(left), symbols(right)))
        .collect())
}

#[derive(Deserialize)]
struct Learned {
    merges: Vec<(String, String)>,
}

/// Refuses more text than the trainer, which counts in 32 bits, can count. No pair of symbols is more
/// frequent than the two first symbols where its symbols meet.
fn check_counts(words: &[Word]) -> Result<()> {
    let mut pairs: HashMap<&[u16], u64> = HashMap::new();
    for (word, count) in words {
        for pair in word.windows(2) {
            *pairs.entry(pair).or_default() += count;
        }
    }
    match pairs.values().max() {
        Some(&count) if count > i32::MAX as u64 => Err(TextError::TooMuchText { count }),
        _ => Ok(()),
    }
}

/// Characters that need no escapes, in the order of the symbols.
const FIRST_CHARACTER: u32 = 0x100;

fn character_of(symbol: u16) -> char {
    char::from_u32(FIRST_CHARACTER + u32::from(symbol)).expect("below the surrogates")
}

fn symbol_of(character: char) -> u16 {
    (character as u32 - FIRST_CHARACTER) as u16
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn counted(words: &[(&str, u64)]) -> Vec<WordCount> {
        let word = |(word, count): &(&str, u64)| WordCount {
            bytes: word.as_bytes().into(),
            count: *count,
        };
        words.iter().map(word).collect()
    }

    /// Merges by their spelling, such as `"he+n"`.
    fn learned(words: &[(&str, u64)], most: usize, min_frequency: u64) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let merges = learn_merges(&counted(words), most, min_frequency).unwrap();
        let name = |(left, right): &Merge| format!("{}+{}", text(left), text(right));
        merges.iter().map(name).collect()
    }

    #[test]
    fn the_most_frequent_pair_is_merged_first() {
        let words = [("hen", 4), ("ben", 3), ("he", 2)];
        // e+n 7, h+e 6 (then 2), h+en 4, b+en 3, h+e 2.
        assert_eq!(learned(&words, 99, 1), ["e+n", "h+en", "b+en", "h+e"]);
        assert_eq!(learned(&words, 2, 1), ["e+n", "h+en"]);
        assert_eq!(learned(&words, 99, 3), ["e+n", "h+en", "b+en"]);
    }

    #[test]
    fn ties_go_to_the_lower_bytes() {
        let words = [("zy", 2), ("ab", 2), (" z", 2), ("ba", 2)];
        assert_eq!(learned(&words, 99, 1), [" +z", "a+b", "b+a", "z+y"]);
    }

    #[test]
    fn overlapping_pairs_are_counted_and_merged_from_the_left() {
        // In "aaa" the pair a+a occurs twice but only one merge fits.
        assert_eq!(learned(&[("aaa", 1)], 99, 1), ["a+a", "aa+a"]);
    }

    #[test]
    fn text_that_cannot_be_counted_is_refused() {
        let most = i32::MAX as u64;
        assert_eq!(learned(&[("ab", most)], 99, 1), ["a+b"]);
        let error = learn_merges(&counted(&[("xab", most), ("ab", 1)]), 99, 1).unwrap_err();
        assert!(error.to_string().contains("2147483648 times"), "{error}");
    }

    proptest! {
        /// Tokens must differ, with runs of one letter as the hardest case.
        #[test]
        fn no_pair_and_no_token_comes_twice(text in proptest::collection::vec("[ab]{1,12}", 1..12)) {
            let unique: HashSet<&String> = text.iter().collect();
            let words: Vec<(&str, u64)> = unique.iter().map(|word| (word.as_str(), 1)).collect();
            let names = learned(&words, 999, 1);
            let tokens: HashSet<String> = names.iter().map(|name| name.replace('+', "")).collect();
            prop_assert_eq!(tokens.len(), names.len(), "{:?}", names);
            for word in text.iter().filter(|word| word.len() > 1) {
                prop_assert!(tokens.contains(word), "{} is not among {:?}", word, names);
            }
        }
    }
}
