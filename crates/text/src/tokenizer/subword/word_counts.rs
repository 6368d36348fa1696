//! The training text as its pre-tokens and how often each occurs, which is all that the trainers of
//! [`super::bpe`] and [`super::unigram`] look at.

use std::collections::HashMap;

use super::bytes::pre_tokens;
use crate::lines::is_blank;
use crate::tokenizer::lowercased;

/// A pre-token of the training text and how often it occurs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WordCount {
    pub(super) bytes: Box<[u8]>,
    pub(super) count: u64,
}

/// All pre-tokens in the order of their bytes, so that training never sees the order of a hash map.
pub(super) fn count_words(
    texts: &mut dyn Iterator<Item = &str>,
    lowercase: bool,
) -> Vec<WordCount> {
    let mut counts: HashMap<Box<[u8]>, u64> = HashMap::new();
    let mut line = String::new();
    for text in texts.filter(|text| !is_blank(text)) {
        line.clear();
        line.push(' ');
        line.push_str(&lowercased(text, lowercase));
        for pre_token in pre_tokens(&line) {
            // Most pre-tokens are known already, and looking one up needs no owned copy.
            match counts.get_mut(pre_token.as_bytes()) {
                Some(count) => *count += 1,
                None => drop(counts.insert(pre_token.as_bytes().into(), 1)),
            }
        }
    }
    let mut words: Vec<WordCount> = counts
        .into_iter()
        .map(|(bytes, count)| WordCount { bytes, count })
        .collect();
    words.sort_unstable();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_sorted_and_counted_with_their_space() {
        let words = count_words(&mut ["b a", "a  a", ""].into_iter(), false);
        let found: Vec<(&[u8], u64)> = words
            .iter()
            .map(|word| (&*word.bytes, word.count))
            .collect();
        assert_eq!(found, [(&b" "[..], 1), (b" a", 3), (b" b", 1)]);
    }

    #[test]
    fn many_words_leave_no_trace_of_a_hash_map() {
        let texts: Vec<String> = (0..500)
            .map(|number| format!("w{}", number * 7 % 500))
            .collect();
        let words = count_words(&mut texts.iter().map(String::as_str), false);
        assert!(words.is_sorted());
    }

    #[test]
    fn lowercase_joins_counts() {
        let words = count_words(&mut ["Ab aB"].into_iter(), true);
        assert_eq!(
            words,
            [WordCount {
                bytes: (*b" ab").into(),
                count: 2
            }]
        );
    }
}
