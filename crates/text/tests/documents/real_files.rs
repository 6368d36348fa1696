//! Real files of every format.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use attentive_text::documents::Format;

use super::check;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn real_files_come_back() {
    let Some(folder) = env::var_os("ATTENTIVE_DOCUMENTS") else {
        println!("SKIPPED: ATTENTIVE_DOCUMENTS names no folder of documents");
        return;
    };
    let mut paths = Vec::new();
    files(Path::new(&folder), &mut paths);
    paths.sort();
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut failures = Vec::new();
    for path in &paths {
        let Some(format) = Format::of_name(path) else {
            continue;
        };
        let bytes = fs::read(path).expect("readable");
        match check(path, &bytes, format) {
            Ok(texts) => {
                let count = counts.entry(format.name()).or_default();
                *count = (count.0 + 1, count.1 + texts);
            }
            Err(problem) => failures.push(problem),
        }
    }
    for (format, (files, texts)) in &counts {
        println!("{format}: {files} files with {texts} texts");
    }
    let total: usize = counts.values().map(|(files, _)| files).sum();
    assert!(
        failures.is_empty(),
        "{} of {total} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(total >= 50, "only {total} files");
}
