//! Where `table.txt` comes from: words and parts of words, counted in Tatoeba's training text.
//!
//! ```sh
//! ATTENTIVE_DATA=FOLDER ATTENTIVE_WRITE_TABLE=1 cargo test -p attentive-text language::learn
//! ```
//!
//! Without `ATTENTIVE_WRITE_TABLE` the test checks that the table is what the data gives. Sentences stay
//! out of the repository; what is kept are counts, rounded ([`super::table`] reads them).

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::table::{self, EDGE, STEPS};
use super::{without_umlauts, words};
use crate::lines::read_lines;

const HEADER: &str = "\
# How German words and parts of words are: twice the log-odds of German against English, then what has
# them; `_` is the edge of a word. Learned from the training text of Tatoeba (tatoeba.org, CC BY 2.0 FR) by
# `language/learn.rs`, which says how to make it again.
";

/// How many words and how many parts are kept: the most frequent ones.
const WORDS: usize = 3600;
const PARTS: usize = 4300;

/// A word or a part that is rarer than this is left to its parts or left out.
const RAREST: [f64; 2] = [8.0, 60.0];

/// No single word decides more than this: ln(2000).
const MOST: f64 = 7.6;

/// How often something occurs in German and in English.
type Counts = HashMap<String, [f64; 2]>;

/// Counts words, and parts of the words. A word counts as a part only as often as the root of its own
/// count, so that `der` does not decide what every `er_` means.
fn count(sides: [&[String]; 2]) -> [Counts; 2] {
    let mut whole = Counts::new();
    for (side, lines) in sides.into_iter().enumerate() {
        for word in lines.iter().flat_map(|line| words(line)) {
            let plain = without_umlauts(&word);
            if plain != word {
                // Some keyboards have no umlauts: one in ten is taken to be written without.
                whole.entry(format!("{EDGE}{plain}{EDGE}")).or_default()[side] += 0.1;
            }
            whole.entry(format!("{EDGE}{word}{EDGE}")).or_default()[side] += 1.0;
        }
    }
    let mut part = Counts::new();
    for (word, counts) in &whole {
        for piece in table::parts(word) {
            let sums = part.entry(piece.to_string()).or_default();
            sums[0] += counts[0].sqrt();
            sums[1] += counts[1].sqrt();
        }
    }
    [whole, part]
}

/// The table as text: the same for the same sentences, whatever their order.
fn learn(german: &[String], english: &[String]) -> String {
    let mut rows: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    let counted = count([german, english]);
    for ((counts, most), rarest) in counted.iter().zip([WORDS, PARTS]).zip(RAREST) {
        let all = |side: usize| counts.values().map(|counts| counts[side]).sum::<f64>();
        let scale = all(0) / all(1);
        let mut entries: Vec<_> = counts.iter().collect();
        entries.retain(|(_, [german, english])| german + english >= rarest);
        entries.sort_by(|(a, [a0, a1]), (b, [b0, b1])| {
            (b0 + b1).total_cmp(&(a0 + a1)).then_with(|| a.cmp(b))
        });
        for (entry, [german, english]) in entries.into_iter().take(most) {
            let odds = ((german + 0.5) / (english * scale + 0.5)).ln();
            let step = (odds.clamp(-MOST, MOST) * STEPS).round() as i64;
            rows.entry(step).or_default().push(entry.clone());
        }
    }
    let mut text = HEADER.to_string();
    for (step, mut entries) in rows {
        entries.sort();
        text += &format!("{step} {}\n", entries.join(" "));
    }
    text
}

#[test]
fn the_table_is_what_the_training_text_gives() {
    let Some(data) = std::env::var_os("ATTENTIVE_DATA") else {
        eprintln!("SKIPPED: set ATTENTIVE_DATA to the data folder to learn the table again");
        return;
    };
    let read = |file| read_lines(&Path::new(&data).join("tatoeba").join(file)).unwrap();
    let learned = learn(&read("train.de.gz"), &read("train.en.gz"));
    assert!(learned.len() < 60_000, "{} bytes", learned.len());
    if std::env::var_os("ATTENTIVE_WRITE_TABLE").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/language/table.txt");
        std::fs::write(path, learned).unwrap();
    } else {
        assert!(
            learned == table::TEXT,
            "table.txt is not what the data gives"
        );
    }
}
