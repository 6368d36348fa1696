//! Where `profiles.txt` comes from: words and parts of words, counted in text of many languages.
//!
//! ```sh
//! ATTENTIVE_LEIPZIG=FOLDER ATTENTIVE_WRITE_TABLE=1 cargo test -p attentive-text language::learn_profiles
//! ```
//!
//! The folder holds, for each code in `everyday.txt`, a folder `CODE` with `sentences.txt`, `single-words.txt` and
//! `word-pairs.txt`: the test data of the crates `lingua-LANGUAGE-language-model` 1.3.0 (Apache-2.0), which are
//! sentences of the Leipzig Corpora Collection (CC BY). Without `ATTENTIVE_WRITE_TABLE` the test checks that the
//! table is what the data gives. What is kept are counts, rounded ([`super::profiles`] reads them).

use std::collections::BTreeMap;
use std::path::Path;

use super::profiles::{LENGTHS, STEP, TEXT};
use super::scripts::writes;
use super::table::{EDGE, parts_of_length};
use super::words;
use crate::lines::read_lines;

// A `#` comes before every key, so the header is part of the sorted table.
const HEADER: &str = "\
# Words and parts of words, `_` is the edge of a word; then the languages that have them, each with its points:
# how many half steps their logarithms of probability are above those of what is left out. Learned from
# sentences of the Leipzig Corpora Collection (CC BY) and everyday.txt by language/learn_profiles.rs.
";

const EVERYDAY: &str = include_str!("everyday.txt");

/// How many words and how many parts are kept of each language: the most frequent ones.
const WORDS: usize = 450;
const PARTS: usize = 900;

/// How often an everyday word occurs at least.
const EVERYDAY_COUNT: f64 = 20.0;

/// What a word out of a list of words counts.
const LISTED_COUNT: f64 = 0.3;

/// How far what is kept is above what is not.
const LEAST: f64 = 2.0;

type Counts = BTreeMap<String, f64>;

/// The words of a language with their edges, and how often they occur.
fn count(folder: &Path, code: &str, everyday: &str) -> Counts {
    let mut counts = Counts::new();
    for (file, weight) in [
        ("sentences.txt", 1.0),
        ("single-words.txt", LISTED_COUNT),
        ("word-pairs.txt", LISTED_COUNT),
    ] {
        let lines = read_lines(&folder.join(code).join(file)).unwrap();
        for word in lines.iter().flat_map(|line| words(line)) {
            if word.chars().all(|letter| writes(code, letter)) {
                *counts.entry(format!("{EDGE}{word}{EDGE}")).or_default() += weight;
            }
        }
    }
    for word in everyday.split(' ') {
        let count = counts.entry(format!("{EDGE}{word}{EDGE}")).or_default();
        *count = count.max(EVERYDAY_COUNT);
    }
    counts
}

/// The most frequent entries with the logarithms of their shares.
fn shares(counts: &Counts, all: f64, most: usize) -> Vec<(String, f64)> {
    let mut entries: Vec<_> = counts.iter().collect();
    entries.sort_by(|(a, a_count), (b, b_count)| b_count.total_cmp(a_count).then(a.cmp(b)));
    let entries = entries.into_iter().take(most);
    entries
        .map(|(entry, count)| (entry.clone(), (count / all).ln()))
        .collect()
}

fn learn(folder: &Path) -> String {
    // Words have the length 0 here: what is left out is less probable than all that is kept of this length.
    let mut kept: Vec<(usize, String, &str, f64)> = Vec::new();
    for line in EVERYDAY.lines().filter(|line| !line.starts_with('#')) {
        let (code, everyday) = line.split_once(' ').unwrap();
        let whole = count(folder, code, everyday);
        for (word, share) in shares(&whole, whole.values().sum(), WORDS) {
            kept.push((0, word, code, share));
        }
        let mut parts: BTreeMap<usize, Counts> = BTreeMap::new();
        for (word, count) in &whole {
            for length in LENGTHS {
                for part in parts_of_length(word, length) {
                    let sums = parts.entry(length).or_default();
                    *sums.entry(part.to_string()).or_default() += count.sqrt();
                }
            }
        }
        let all = |length: usize| parts[&length].values().sum::<f64>();
        let merged: Counts = parts.values().flat_map(|counts| counts.clone()).collect();
        for (part, share) in shares(&merged, 1.0, PARTS) {
            let length = part.chars().count();
            kept.push((length, part, code, share - all(length).ln()));
        }
    }
    let mut least: BTreeMap<usize, f64> = BTreeMap::new();
    for (length, _, _, share) in &kept {
        let least = least.entry(*length).or_default();
        *least = least.min(*share);
    }
    let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (length, entry, code, share) in kept {
        let steps = ((share - least[&length] + LEAST) / STEP).round() as u32;
        let digit = char::from_digit(steps.min(35), 36).unwrap();
        rows.entry(entry)
            .or_default()
            .push(format!("{code}{digit}"));
    }
    let mut text = HEADER.to_string();
    for (entry, mut languages) in rows {
        languages.sort();
        text += &format!("{entry} {}\n", languages.join(" "));
    }
    text
}

#[test]
fn the_profiles_are_what_the_text_gives() {
    let Some(folder) = std::env::var_os("ATTENTIVE_LEIPZIG") else {
        eprintln!(
            "SKIPPED: set ATTENTIVE_LEIPZIG to the folder of sentences to learn the profiles again"
        );
        return;
    };
    let learned = learn(Path::new(&folder));
    assert!(learned.len() < 600_000, "{} bytes", learned.len());
    if std::env::var_os("ATTENTIVE_WRITE_TABLE").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/language/profiles.txt");
        std::fs::write(path, learned).unwrap();
    } else {
        assert!(learned == TEXT, "profiles.txt is not what the text gives");
    }
}
