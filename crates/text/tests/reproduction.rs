//! The vocabulary of the published word-level reproduction, on its own data.
//!
//! The data is not part of this repository: set `ATTENTIVE_DATA` to the folder that holds
//! `multi30k-spacy`, or the test says that it skipped.

use std::path::PathBuf;

use attentive_text::lines::read_lines;
use attentive_text::{Tokenizer, TokenizerKind, TokenizerOptions};

#[test]
fn multi30k_words_seen_twice_give_the_published_vocabularies() {
    let Some(data) = std::env::var_os("ATTENTIVE_DATA") else {
        eprintln!(
            "SKIPPED: set ATTENTIVE_DATA to the data folder to check the Multi30k vocabularies"
        );
        return;
    };
    let folder = PathBuf::from(data).join("multi30k-spacy");
    // The published run has 8317 German entries, with a slightly different German tokenizer.
    for (language, expected) in [("de", 8316), ("en", 6384)] {
        let mut lines = Vec::new();
        for set in ["train", "val", "test_2016_flickr"] {
            lines.extend(read_lines(&folder.join(format!("{set}.{language}.tok.gz"))).unwrap());
        }
        assert_eq!(lines.len(), 29_000 + 1_014 + 1_000);
        let options = TokenizerOptions {
            kind: TokenizerKind::Tabs,
            vocab_size: 0,
            min_frequency: 2,
            lowercase: false,
        };
        let tokenizer = Tokenizer::train(&options, &mut lines.iter().map(String::as_str)).unwrap();
        assert_eq!(tokenizer.vocab_size(), expected, "{language}");
    }
}
