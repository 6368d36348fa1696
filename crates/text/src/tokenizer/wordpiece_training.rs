//! Learning the pieces of a WordPiece vocabulary: characters that begin a word, characters within words (`##`), and what
//! frequent neighbors merge to.
//!
//! Paper: Schuster and Nakajima (2012) merge the pair that makes the text most probable. Here: the most frequent pair, as
//! Hugging Face's trainer does, whose own order of ties differs from run to run. Before: the cut into words is BERT's.
//! After: [`super::wordpiece`].

use std::collections::{BTreeMap, HashMap, HashSet};

use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::tokenizer::{
    NormalizedString, Normalizer as _, OffsetReferential, OffsetType, PreTokenizedString,
    PreTokenizer as _,
};

use super::options::TokenizerOptions;
use super::subword::bpe::{Word, learn_symbol_merges};
use super::wordpiece::{CONTINUES, MASK, SPECIALS};
use crate::error::{Result, TextError};

/// Rarer characters than so many are left out, and words with them are `[UNK]`.
const MOST_CHARACTERS: usize = 2000;

/// A character, and whether it stands within a word.
type Symbol = (bool, char);

/// The tokens of a vocabulary of at most `options.vocab_size`, as a `vocab.txt` has them.
pub(super) fn learn(
    options: &TokenizerOptions,
    texts: &mut dyn Iterator<Item = &str>,
) -> Result<Vec<String>> {
    let words = count_words(texts, options.lowercase);
    if words.is_empty() {
        return Err(TextError::NoText);
    }
    let room = options.vocab_size - SPECIALS.len();
    let alphabet = alphabet(&words, room.min(MOST_CHARACTERS));
    let number: HashMap<Symbol, u16> = alphabet.iter().copied().zip(0..).collect();
    let words: Vec<Word> = words
        .iter()
        .filter_map(|(word, count)| {
            let numbers = symbols(word).map(|symbol| number.get(&symbol).copied());
            Some((numbers.collect::<Option<Vec<u16>>>()?, *count))
        })
        .collect();
    let least = options.min_frequency as u64;
    let most = room - alphabet.len();
    let merges = learn_symbol_merges(&words, alphabet.len() as u16, most, least)?;
    let single = (0..alphabet.len() as u16).map(|symbol| vec![symbol]);
    let merged = merges
        .into_iter()
        .map(|(left, right)| [left, right].concat());
    let spelled = |piece: Vec<u16>| -> String {
        let symbols = piece.iter().map(|symbol| alphabet[usize::from(*symbol)]);
        let within = symbols.clone().next().is_some_and(|(within, _)| within);
        let begins = if within { CONTINUES } else { "" };
        let characters = symbols.map(|(_, character)| character);
        begins.chars().chain(characters).collect()
    };
    let learned = single.chain(merged).map(spelled);
    let specials = SPECIALS.into_iter().map(str::to_owned);
    let mut seen = HashSet::from([MASK.to_owned()]);
    Ok(specials
        .chain(learned.filter(|piece| seen.insert(piece.clone())))
        .collect())
}

/// The words of all texts, normalized and cut as BERT does, in the order of their spelling.
fn count_words(texts: &mut dyn Iterator<Item = &str>, lowercase: bool) -> BTreeMap<String, u64> {
    let normalizer = BertNormalizer::new(true, true, None, lowercase);
    let mut counts: HashMap<String, u64> = HashMap::new();
    for text in texts {
        let mut normalized = NormalizedString::from(text);
        // What BERT's own steps refuse, they refuse when encoding, too: such a text has no tokens.
        if normalizer.normalize(&mut normalized).is_err() {
            continue;
        }
        let mut cut = PreTokenizedString::from(normalized.get());
        if BertPreTokenizer.pre_tokenize(&mut cut).is_err() {
            continue;
        }
        for (word, _, _) in cut.get_splits(OffsetReferential::Normalized, OffsetType::Byte) {
            match counts.get_mut(word) {
                Some(count) => *count += 1,
                None => drop(counts.insert(word.to_owned(), 1)),
            }
        }
    }
    counts.into_iter().collect()
}

/// The most frequent symbols, in their own order.
fn alphabet(words: &BTreeMap<String, u64>, most: usize) -> Vec<Symbol> {
    let mut counts: BTreeMap<Symbol, u64> = BTreeMap::new();
    for (word, count) in words {
        for symbol in symbols(word) {
            *counts.entry(symbol).or_default() += count;
        }
    }
    let mut all: Vec<(Symbol, u64)> = counts.into_iter().collect();
    all.sort_by_key(|(symbol, count)| (std::cmp::Reverse(*count), *symbol));
    all.truncate(most);
    let mut kept: Vec<Symbol> = all.into_iter().map(|(symbol, _)| symbol).collect();
    kept.sort_unstable();
    kept
}

fn symbols(word: &str) -> impl Iterator<Item = Symbol> {
    let numbered = word.chars().enumerate();
    numbered.map(|(place, character)| (place > 0, character))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::TokenizerKind;

    fn learned(texts: &[&str], vocab_size: usize) -> Vec<String> {
        let options = TokenizerOptions {
            kind: TokenizerKind::WordPiece,
            vocab_size,
            min_frequency: 1,
            lowercase: true,
        };
        learn(&options, &mut texts.iter().copied()).unwrap()
    }

    #[test]
    fn characters_come_first_then_the_most_frequent_pairs() {
        let tokens = learned(&["Hugs hug hugs!", "pugs bun"], 99);
        let specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
        assert_eq!(tokens[..5], specials);
        let characters = ["!", "b", "h", "p", "##g", "##n", "##s", "##u"];
        assert_eq!(tokens[5..13], characters);
        // ##u+##g occurs 4 times, then h+##ug and ##ug+##s 3 times each.
        assert_eq!(tokens[13], "##ug");
        assert!(tokens.contains(&"hugs".to_owned()), "{tokens:?}");
    }

    #[test]
    fn the_vocabulary_has_at_most_its_size_and_is_the_same_in_every_run() {
        let text: String = (0..400).map(|i| format!("w{} ", i * 37 % 101)).collect();
        let tokens = learned(&[&text], 40);
        assert_eq!(tokens.len(), 40);
        for _ in 0..5 {
            assert_eq!(learned(&[&text], 40), tokens);
        }
        // Few tokens leave room for the most frequent characters only.
        assert_eq!(learned(&["aaab aac"], 7)[5..], ["a", "##a"]);
    }
}
