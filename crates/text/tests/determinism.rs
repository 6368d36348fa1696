//! The same text and options give the same file, byte for byte, in every process: each process
//! seeds its hash maps anew, so an order that leaks out of one shows here.

use std::path::{Path, PathBuf};
use std::process::Command;

use attentive_text::{Tokenizer, TokenizerKind, TokenizerOptions};

const KINDS: [TokenizerKind; 4] = [
    TokenizerKind::Word,
    TokenizerKind::Tabs,
    TokenizerKind::Bpe,
    TokenizerKind::Unigram,
];

/// When set, this process is one of the trainers and writes its files into the folder named.
const FOLDER: &str = "ATTENTIVE_TEST_TRAIN_INTO";

/// Text with many ties: every word as often as every other, every letter pair too.
fn text() -> Vec<String> {
    let letters = ["ka", "lo", "mi", "nu", "re", "so", "ti", "vu", "---", "aaa"];
    let mut lines = Vec::new();
    for first in letters {
        for second in letters {
            for third in letters {
                lines.push(format!("{first}{second}\t{third} {second}{first}{third}"));
            }
        }
    }
    lines
}

fn train_all_into(folder: &Path) {
    let text = text();
    for kind in KINDS {
        let options = TokenizerOptions {
            kind,
            vocab_size: 420,
            min_frequency: 1,
            lowercase: false,
        };
        let tokenizer = Tokenizer::train(&options, &mut text.iter().map(String::as_str)).unwrap();
        std::fs::write(
            folder.join(format!("{kind}.json")),
            tokenizer.to_bytes().unwrap(),
        )
        .unwrap();
    }
}

#[test]
fn training_gives_the_same_files_in_every_process() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return train_all_into(Path::new(&folder));
    }
    let top = tempfile::tempdir().unwrap();
    let folders: Vec<PathBuf> = (0..5).map(|run| top.path().join(run.to_string())).collect();
    for folder in &folders {
        std::fs::create_dir(folder).unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "training_gives_the_same_files_in_every_process"])
            .env(FOLDER, folder)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
    for kind in KINDS {
        let read = |folder: &PathBuf| std::fs::read(folder.join(format!("{kind}.json"))).unwrap();
        let first = read(&folders[0]);
        for other in &folders[1..] {
            assert!(
                read(other) == first,
                "{kind} tokenizers differ between two processes"
            );
        }
    }
}

/// What is learned must not change with the program's version, or a run could not be resumed.
#[test]
fn ties_are_broken_as_they_always_were() {
    let text = text();
    let options = TokenizerOptions {
        kind: TokenizerKind::Bpe,
        vocab_size: 420,
        min_frequency: 1,
        lowercase: false,
    };
    let tokenizer = Tokenizer::train(&options, &mut text.iter().map(String::as_str)).unwrap();
    assert_eq!(
        tokenizer.fingerprint(),
        "ab3ccdd8083c2424c3aead246d21e0b9ccd958d2621f641ce6414a2be4a43b6e"
    );
}

#[test]
fn the_order_of_lines_does_not_matter() {
    let text = text();
    for kind in KINDS {
        let options = TokenizerOptions {
            kind,
            vocab_size: 420,
            min_frequency: 1,
            lowercase: false,
        };
        let forwards = Tokenizer::train(&options, &mut text.iter().map(String::as_str)).unwrap();
        let backwards =
            Tokenizer::train(&options, &mut text.iter().rev().map(String::as_str)).unwrap();
        assert_eq!(forwards.fingerprint(), backwards.fingerprint(), "{kind}");
    }
}
