//! Training lines in other forms, anew in every epoch: what people type is not what corpora hold.
//!
//! A line may lose its capitals, its final punctuation or its umlauts, something that stands on both
//! sides may become a mark ([`attentive_text::keep`]), and subwords may be hidden so that words are cut
//! in many ways. What becomes of a line is a pure function of seed, epoch and line, so that a continued
//! run sees what an uninterrupted one saw. Neighbors: [`crate::data::corpus`] asks for every line.

use attentive_text::keep::MARKS;
use attentive_text::language::without_umlauts;
use attentive_text::tokenizer::Tokenizer;

use crate::data::random::SplitMix64;
use crate::recipe::Augmentation;

impl Augmentation {
    /// Whether every epoch sees the same lines.
    pub fn is_off(&self) -> bool {
        *self == Augmentation::default()
    }

    /// One pair of lines in the form that this draw gives them.
    pub fn vary(&self, src: &str, tgt: &str, random: &mut SplitMix64) -> (String, String) {
        let (mut src, mut tgt) = (src.trim().to_owned(), tgt.trim().to_owned());
        if random.chance(self.marks) {
            (src, tgt) = with_marks(&src, &tgt, random);
        }
        if random.chance(self.no_punctuation)
            && let (Some(shorter_src), Some(shorter_tgt)) =
                (src.strip_suffix(FINAL), tgt.strip_suffix(FINAL))
            && !shorter_src.is_empty()
            && !shorter_tgt.is_empty()
        {
            (src, tgt) = (shorter_src.to_owned(), shorter_tgt.to_owned());
        }
        if random.chance(self.plain_umlauts) {
            src = without_umlauts(&src);
        }
        if random.chance(self.lowercase) {
            src = src.to_lowercase();
        }
        (src, tgt)
    }

    /// The tokens of a line, with subwords hidden at random.
    pub fn encode(&self, tokenizer: &Tokenizer, line: &str, random: &mut SplitMix64) -> Vec<u32> {
        let mut hidden = || random.chance(self.subword_dropout);
        tokenizer.encode_with_dropout(line, &mut hidden)
    }
}

/// What a line may lose at its end.
const FINAL: [char; 3] = ['.', '!', '?'];

/// Puts marks into both sides: in the place of words that both have, mostly names and numbers, or else
/// at the beginning or at the end of both.
fn with_marks(src: &str, tgt: &str, random: &mut SplitMix64) -> (String, String) {
    let mut common: Vec<&str> = words(src)
        .filter(|word| occurs_once(src, word) && occurs_once(tgt, word))
        .collect();
    let most = 1 + random.below(3) / 2; // one mark twice as often as two
    while common.len() > most {
        common.remove(random.below(common.len()));
    }
    if common.is_empty() {
        let mark = MARKS[0];
        return if random.chance(0.3) {
            (format!("{mark} {src}"), format!("{mark} {tgt}"))
        } else {
            (format!("{src} {mark}"), format!("{tgt} {mark}"))
        };
    }
    let mut pair = (src.to_owned(), tgt.to_owned());
    for (word, mark) in common.into_iter().zip(MARKS) {
        let mark = mark.to_string();
        pair = (
            pair.0.replacen(word, &mark, 1),
            pair.1.replacen(word, &mark, 1),
        );
    }
    pair
}

/// The words of a line without the punctuation around them.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|word| !word.is_empty())
}

/// Whether the text of a word stands in the line as a word and nowhere else.
fn occurs_once(line: &str, word: &str) -> bool {
    line.matches(word).count() == 1 && words(line).any(|other| other == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(change: impl FnOnce(&mut Augmentation)) -> Augmentation {
        let mut augmentation = Augmentation::default();
        change(&mut augmentation);
        augmentation
    }

    fn vary(augmentation: &Augmentation, src: &str, tgt: &str) -> (String, String) {
        augmentation.vary(src, tgt, &mut SplitMix64::new(&[1]))
    }

    const ALWAYS: f64 = 1.0;

    #[test]
    fn nothing_changes_unless_a_recipe_asks_for_it() {
        let pair = vary(&Augmentation::default(), "Schöne Grüße!", "Best wishes!");
        assert_eq!(pair, ("Schöne Grüße!".into(), "Best wishes!".into()));
        assert!(Augmentation::default().is_off());
        assert!(!only(|a| a.marks = 0.1).is_off());
    }

    #[test]
    fn only_the_source_loses_its_capitals_and_umlauts() {
        let all = only(|a| (a.lowercase, a.plain_umlauts) = (ALWAYS, ALWAYS));
        let pair = vary(&all, "Schöne Grüße, Özlem!", "Best wishes, Özlem!");
        assert_eq!(
            pair,
            (
                "schoene gruesse, oezlem!".into(),
                "Best wishes, Özlem!".into()
            )
        );
    }

    #[test]
    fn final_punctuation_goes_from_both_sides_or_from_none() {
        let all = only(|a| a.no_punctuation = ALWAYS);
        assert_eq!(vary(&all, "Wer?", "Who?"), ("Wer".into(), "Who".into()));
        assert_eq!(vary(&all, "Wer?", "Who"), ("Wer?".into(), "Who".into()));
        assert_eq!(vary(&all, "?", "Who?"), ("?".into(), "Who?".into()));
    }

    #[test]
    fn a_mark_stands_for_the_same_word_on_both_sides() {
        let (src, tgt) = vary(
            &only(|a| a.marks = ALWAYS),
            "Heute ist Tom da.",
            "Tom is here.",
        );
        assert_eq!(
            (src.as_str(), tgt.as_str()),
            ("Heute ist \u{E000} da.", "\u{E000} is here.")
        );
    }

    #[test]
    fn marks_are_numbered_in_the_order_of_the_source() {
        let all = only(|a| a.marks = ALWAYS);
        let mut seen_two = false;
        for seed in 0..50 {
            let mut random = SplitMix64::new(&[seed]);
            let (src, tgt) = all.vary("Tom mag Mary.", "Mary is liked by Tom.", &mut random);
            if src == "\u{E000} mag \u{E001}." {
                assert_eq!(tgt, "\u{E001} is liked by \u{E000}.");
                seen_two = true;
            } else {
                assert_eq!(src.matches(MARKS).count(), 1, "{src}");
                assert_eq!(tgt.matches(MARKS).count(), 1, "{tgt}");
            }
        }
        assert!(seen_two);
    }

    #[test]
    fn a_pair_without_common_words_gets_its_mark_at_an_end() {
        let all = only(|a| a.marks = ALWAYS);
        let mut places = std::collections::HashSet::new();
        for seed in 0..50 {
            let (src, tgt) = all.vary("Guten Tag", "Good day", &mut SplitMix64::new(&[seed]));
            assert!(
                (src == "\u{E000} Guten Tag" && tgt == "\u{E000} Good day")
                    || (src == "Guten Tag \u{E000}" && tgt == "Good day \u{E000}"),
                "{src} {tgt}"
            );
            places.insert(src);
        }
        assert_eq!(places.len(), 2);
    }

    #[test]
    fn a_word_inside_another_is_not_replaced() {
        // "in" stands in "Berlin", too: replacing its first occurrence would tear the name apart.
        let (src, tgt) = vary(&only(|a| a.marks = ALWAYS), "in Berlin", "in Berlin");
        assert_eq!((src.as_str(), tgt.as_str()), ("in \u{E000}", "in \u{E000}"));
    }

    #[test]
    fn shares_are_kept() {
        let tenth = only(|a| a.lowercase = 0.1);
        let mut random = SplitMix64::new(&[5]);
        let lowered = (0..10_000)
            .filter(|_| tenth.vary("A", "A", &mut random).0 == "a")
            .count();
        assert!((900..1100).contains(&lowered), "{lowered}");
    }
}
