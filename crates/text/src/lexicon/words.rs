//! Single words and their translations, found in a parallel corpus: pairs that teach a model what frequent words
//! mean when they stand alone, inflected forms included, which dictionaries leave out.
//!
//! A [`Lexicon`] over whole words is learned in both directions. A translation counts for what both say: the
//! probability of the target word given the source word, times the probability of the source word given the
//! target word. Either alone would pair rare words with the frequent ones beside them.

use std::path::PathBuf;

use super::{Lexicon, PairOptions, TokenPairs};
use crate::error::Result;
use crate::lines::LineReader;
use crate::special::SPECIALS;
use crate::tokenizer::{Tokenizer, TokenizerKind, TokenizerOptions};

/// Which words, and how sure their translations must be.
#[derive(Clone, Debug, PartialEq)]
pub struct WordOptions {
    /// Source words that occur less often are left out.
    pub min_count: usize,
    /// The least product of both probabilities.
    pub min_score: f32,
    /// At most so many translations of a word. Further ones need at least half of the best one's score.
    pub most: usize,
    /// What to read of the corpus.
    pub pairs: PairOptions,
}

impl Default for WordOptions {
    fn default() -> Self {
        Self {
            min_count: 20,
            min_score: 0.02,
            most: 2,
            pairs: PairOptions {
                longest: 60,
                ..PairOptions::default()
            },
        }
    }
}

/// Frequent words of a corpus with their translations, the most frequent first. `progress` is told how much is done,
/// from 0 to 1.
pub fn word_pairs(
    src: &[PathBuf],
    tgt: &[PathBuf],
    options: &WordOptions,
    mut progress: impl FnMut(f64),
) -> Result<Vec<(String, String)>> {
    let (src_words, tgt_words) = (words(src)?, words(tgt)?);
    let mut learned = |step, from: (&[PathBuf], &Tokenizer), to| -> Result<Lexicon> {
        let pairs = TokenPairs::read(from, to, &options.pairs, |_| {})?;
        Ok(Lexicon::learn(&pairs, ROUNDS, |done| {
            progress((step as f64 + done) / 2.0);
        }))
    };
    let there = learned(0, (src, &src_words), (tgt, &tgt_words))?;
    let back = learned(1, (tgt, &tgt_words), (src, &src_words))?;

    // The other direction's targets are the words of this one's sources.
    let counts = &back.tgt_counts;
    let mut sources: Vec<u32> = (SPECIALS.len() as u32..counts.len() as u32)
        .filter(|&id| counts[id as usize] >= options.min_count as u64)
        .collect();
    sources.sort_by_key(|&id| std::cmp::Reverse(counts[id as usize]));
    let mut found = Vec::new();
    for source in sources {
        let Some(word) = src_words.token(source).filter(|word| is_word(word)) else {
            continue;
        };
        let mut scored: Vec<(f32, &str)> = there.translations[source as usize]
            .iter()
            .filter_map(|&(target, probability)| {
                let word = tgt_words.token(target).filter(|word| is_word(word))?;
                let list = &back.translations[target as usize];
                let (_, inverse) = list.iter().find(|(id, _)| *id == source)?;
                Some((probability * inverse, word))
            })
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        let best = scored.first().map_or(0.0, |(score, _)| *score);
        let least = options.min_score.max(best / 2.0);
        let good = scored.into_iter().take_while(|(score, _)| *score >= least);
        for (_, translation) in good.take(options.most) {
            found.push((word.to_owned(), translation.to_owned()));
        }
    }
    Ok(found)
}

/// Enough for probabilities that hardly change any more.
const ROUNDS: usize = 6;

/// Every word that occurs at least twice.
fn words(files: &[PathBuf]) -> Result<Tokenizer> {
    let mut lines = Vec::new();
    for file in files {
        for line in LineReader::open(file)? {
            lines.push(line?);
        }
    }
    let options = TokenizerOptions {
        kind: TokenizerKind::Word,
        vocab_size: 0,
        min_frequency: 2,
        lowercase: false,
    };
    Tokenizer::train(&options, &mut lines.iter().map(String::as_str))
}

/// No number, no punctuation, and no contraction such as "I've", which is more than one word.
fn is_word(token: &str) -> bool {
    token.chars().any(char::is_alphabetic)
        && token
            .chars()
            .all(|sign| sign.is_alphabetic() || sign == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// German and English in changing company; "noch nicht" is "not yet".
    const PAIRS: [(&str, &str); 12] = [
        ("der Hund schläft .", "the dog sleeps ."),
        ("der Hund rennt .", "the dog runs ."),
        ("die Katze schläft .", "the cat sleeps ."),
        ("die Katze rennt .", "the cat runs ."),
        ("der Hund isst nicht .", "the dog does not eat ."),
        ("die Katze isst noch nicht .", "the cat does not eat yet ."),
        ("7 Hunde schlafen .", "7 dogs sleep ."),
        ("7 Katzen rennen .", "7 cats run ."),
        ("Hunde rennen .", "dogs run ."),
        ("Katzen schlafen .", "cats sleep ."),
        ("Hunde schlafen noch .", "dogs sleep yet ."),
        ("Hund und Katze .", "dog and cat ."),
    ];

    fn pairs(options: &WordOptions) -> Vec<(String, String)> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name, side: fn(&(&str, &str)) -> String| {
            let path = folder.path().join(name);
            let lines: Vec<String> = PAIRS.iter().map(side).collect();
            std::fs::write(&path, lines.join("\n")).expect("written");
            [path]
        };
        let (src, tgt) = (
            file("src", |pair| pair.0.to_owned()),
            file("tgt", |pair| pair.1.to_owned()),
        );
        word_pairs(&src, &tgt, options, |_| {}).expect("words")
    }

    #[test]
    fn frequent_words_get_the_translations_that_both_directions_agree_on() {
        let options = WordOptions {
            min_count: 2,
            min_score: 0.2,
            ..WordOptions::default()
        };
        let found = pairs(&options);
        let has = |a: &str, b: &str| found.iter().any(|(src, tgt)| (&**src, &**tgt) == (a, b));
        for (src, tgt) in [
            ("Hund", "dog"),
            ("Katze", "cat"),
            ("Hunde", "dogs"),
            ("schläft", "sleeps"),
            ("rennen", "run"),
        ] {
            assert!(has(src, tgt), "{src} is not {tgt}: {found:?}");
        }
        assert!(
            found.iter().all(|(src, tgt)| is_word(src) && is_word(tgt)),
            "numbers and punctuation are no words: {found:?}"
        );
        assert_eq!(found[0].0, "Hund", "the most frequent first: {found:?}");
    }

    #[test]
    fn rare_words_and_further_translations_are_left_out_on_request() {
        let options = WordOptions {
            min_count: 4,
            min_score: 0.0,
            most: 1,
            ..WordOptions::default()
        };
        let found = pairs(&options);
        let sources: Vec<&str> = found.iter().map(|(src, _)| &**src).collect();
        assert!(!sources.contains(&"und"), "{found:?}");
        let mut once = sources.clone();
        once.dedup();
        assert_eq!(sources, once);
    }
}
