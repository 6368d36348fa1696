//! Copying and reversing: tasks made up on the spot, learned in seconds.
//!
//! A model that cannot learn to copy a random sequence has a mistake in it, whatever its loss on
//! real text says. [`crate::data::corpus`] uses these lines in place of files.

use std::collections::HashSet;

use crate::data::random::SplitMix64;
use crate::recipe::{Synthetic, SyntheticTask};

/// The lines of a synthetic task, source and target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntheticText {
    /// Training pairs.
    pub train: Vec<(String, String)>,
    /// Validation pairs, all different, none of which stands in `train`.
    pub val: Vec<(String, String)>,
}

/// Makes up the lines; the same settings give the same lines on every machine.
///
/// The settings must have passed the checks of a recipe: with too few possible lines there would be
/// no unseen ones to find.
pub fn generate(settings: &Synthetic) -> SyntheticText {
    let mut random = SplitMix64::new(&[settings.seed]);
    let words: Vec<String> = (0..settings.symbols).map(word).collect();
    let mut unseen: HashSet<Vec<usize>> = HashSet::new();
    let mut val = Vec::with_capacity(settings.val_lines);
    while val.len() < settings.val_lines {
        let line = draw(settings, &mut random);
        if unseen.insert(line.clone()) {
            val.push(pair(settings.task, &words, &line));
        }
    }
    let mut train = Vec::with_capacity(settings.lines);
    while train.len() < settings.lines {
        let line = draw(settings, &mut random);
        if !unseen.contains(&line) {
            train.push(pair(settings.task, &words, &line));
        }
    }
    SyntheticText { train, val }
}

/// One random line as numbers of words.
fn draw(settings: &Synthetic, random: &mut SplitMix64) -> Vec<usize> {
    let lengths = settings.max_length - settings.min_length + 1;
    let length = settings.min_length + random.below(lengths);
    (0..length)
        .map(|_| random.below(settings.symbols))
        .collect()
}

fn pair(task: SyntheticTask, words: &[String], line: &[usize]) -> (String, String) {
    let src: Vec<&str> = line.iter().map(|&number| words[number].as_str()).collect();
    let mut tgt = src.clone();
    if task == SyntheticTask::Reverse {
        tgt.reverse();
    }
    (src.join(" "), tgt.join(" "))
}

/// `a` to `z`, then `aa`, `ab` and so on.
fn word(mut number: usize) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push(b'a' + (number % 26) as u8);
        if number < 26 {
            break;
        }
        number = number / 26 - 1;
    }
    letters.iter().rev().map(|&letter| letter as char).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Synthetic {
        Synthetic {
            lines: 300,
            val_lines: 50,
            ..Synthetic::default()
        }
    }

    #[test]
    fn reversed_lines_are_the_source_from_last_to_first() {
        for (src, tgt) in generate(&settings()).train {
            let turned: Vec<&str> = tgt.split(' ').rev().collect();
            assert_eq!(src, turned.join(" "));
        }
    }

    #[test]
    fn copied_lines_are_the_source() {
        let text = generate(&Synthetic {
            task: SyntheticTask::Copy,
            ..settings()
        });
        assert!(
            text.train
                .iter()
                .chain(&text.val)
                .all(|(src, tgt)| src == tgt)
        );
    }

    #[test]
    fn lengths_and_words_stay_within_the_settings() {
        let text = generate(&Synthetic {
            symbols: 30,
            ..settings()
        });
        let mut lengths = HashSet::new();
        let mut words = HashSet::new();
        for (src, _) in text.train.iter().chain(&text.val) {
            lengths.insert(src.split(' ').count());
            words.extend(src.split(' ').map(str::to_owned));
        }
        assert_eq!(lengths, (3..=10).collect());
        assert_eq!(words.len(), 30);
        assert!(words.contains("z") && words.contains("aa") && words.contains("ad"));
    }

    #[test]
    fn the_seed_decides_the_lines() {
        assert_eq!(generate(&settings()), generate(&settings()));
        assert_ne!(
            generate(&settings()),
            generate(&Synthetic {
                seed: 2,
                ..settings()
            })
        );
    }

    #[test]
    fn no_validation_line_stands_in_the_training_lines_even_if_few_lines_are_possible() {
        let crowded = Synthetic {
            symbols: 2,
            min_length: 1,
            max_length: 4,
            lines: 500,
            val_lines: 8,
            ..Synthetic::default()
        };
        let text = generate(&crowded);
        assert_eq!((text.train.len(), text.val.len()), (500, 8));
        let train: HashSet<&String> = text.train.iter().map(|(src, _)| src).collect();
        let val: HashSet<&String> = text.val.iter().map(|(src, _)| src).collect();
        assert_eq!(val.len(), 8);
        assert!(train.is_disjoint(&val));
    }
}
