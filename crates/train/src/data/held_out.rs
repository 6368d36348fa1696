//! Held-out text: sentences of test sets, which training must not see (`data.held_out`).
//!
//! A score on sentences that were learned says nothing, and large corpora hold many of them by accident. Lines
//! are compared by their letters and digits in lower case, so that another punctuation or spelling of spaces
//! hides nothing. Neighbor: [`crate::data::corpus`] leaves such pairs out.

use std::collections::HashSet;

use attentive_text::parallel::ParallelCorpus;

/// Sentences that must not be learned.
#[derive(Debug, Clone, Default)]
pub struct HeldOut {
    /// Their letters and digits, hashed: a test set of any size takes little memory.
    sentences: HashSet<blake3::Hash>,
}

impl HeldOut {
    /// Holds these lines out.
    pub fn add(&mut self, lines: &[String]) {
        self.sentences
            .extend(lines.iter().filter_map(|line| key(line)));
    }

    /// Removes the pairs of which a side is held out; returns how many they were.
    pub fn remove_from(&self, corpus: &mut ParallelCorpus) -> usize {
        if self.sentences.is_empty() {
            return 0;
        }
        let before = corpus.len();
        let pairs = corpus.src.drain(..).zip(corpus.tgt.drain(..));
        let (src, tgt) = pairs
            .filter(|(src, tgt)| !self.holds(src) && !self.holds(tgt))
            .unzip();
        (corpus.src, corpus.tgt) = (src, tgt);
        before - corpus.len()
    }

    fn holds(&self, line: &str) -> bool {
        key(line).is_some_and(|key| self.sentences.contains(&key))
    }
}

/// The letters and digits of a line, hashed; nothing if it has none.
fn key(line: &str) -> Option<blake3::Hash> {
    let letters = line.chars().filter(|character| character.is_alphanumeric());
    let letters: String = letters.flat_map(char::to_lowercase).collect();
    (!letters.is_empty()).then(|| blake3::hash(letters.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[&str]) -> Vec<String> {
        text.iter().map(|line| line.to_string()).collect()
    }

    #[test]
    fn a_pair_goes_if_a_side_is_held_out_however_it_is_punctuated() {
        let mut held_out = HeldOut::default();
        held_out.add(&lines(&["Ein Hund bellt.", "A cat sleeps.", "...", ""]));
        let mut corpus = ParallelCorpus {
            src: lines(&[
                "ein hund  bellt!",
                "Die Katze schläft.",
                "Zwei Hunde bellen.",
                "?!",
            ]),
            tgt: lines(&["A dog barks.", "a cat sleeps", "Two dogs bark.", "!"]),
        };
        assert_eq!(held_out.remove_from(&mut corpus), 2);
        assert_eq!(corpus.src, ["Zwei Hunde bellen.", "?!"]);
        assert_eq!(corpus.tgt, ["Two dogs bark.", "!"]);
        assert_eq!(HeldOut::default().remove_from(&mut corpus), 0);
    }
}
