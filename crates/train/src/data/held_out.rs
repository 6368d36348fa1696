//! Held-out text: sentences of test sets, which training must not see (`data.held_out`).
//!
//! What makes two lines the same is decided in [`attentive_text::quality::held_out`], for `doctor` and `data clean`
//! too. Neighbor: [`crate::data::corpus`] leaves such pairs out.

use attentive_text::parallel::ParallelCorpus;
use attentive_text::quality::held_out::HeldOut as Sentences;

/// Sentences that must not be learned.
#[derive(Debug, Clone, Default)]
pub struct HeldOut {
    sentences: Sentences,
}

impl HeldOut {
    /// Holds these lines out.
    pub fn add(&mut self, lines: &[String]) {
        lines.iter().for_each(|line| self.sentences.add(line));
    }

    /// Whether a side of a pair is held out.
    pub fn holds(&self, src: &str, tgt: &str) -> bool {
        !self.sentences.is_empty() && (self.sentences.holds(src) || self.sentences.holds(tgt))
    }

    /// Removes the pairs of which a side is held out; returns how many they were.
    pub fn remove_from(&self, corpus: &mut ParallelCorpus) -> usize {
        if self.sentences.is_empty() {
            return 0;
        }
        let before = corpus.len();
        let pairs = corpus.src.drain(..).zip(corpus.tgt.drain(..));
        let (src, tgt) = pairs.filter(|(src, tgt)| !self.holds(src, tgt)).unzip();
        (corpus.src, corpus.tgt) = (src, tgt);
        before - corpus.len()
    }
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
