//! Texts of many languages, cut where people would cut them.
//!
//! `fixtures/sentences/CODE.txt` holds texts that are hard to cut, written for this test: one each line, `|` where a
//! sentence ends (before the white space), `§` for a mark of `keep`.

use std::path::Path;

use attentive_text::sentences::split;

#[test]
fn real_texts_are_cut_where_people_would_cut_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sentences");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 14, "only {} languages", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let language = file.file_stem().unwrap().to_str().unwrap();
        let texts = std::fs::read_to_string(&file).unwrap();
        assert!(texts.lines().count() >= 20, "{language} has few texts");
        for line in texts.lines() {
            let text = line.replace('§', "\u{E000}");
            let expected: Vec<&str> = text.split('|').map(str::trim).collect();
            let whole = text.replace('|', "");
            let found = split(&whole, Some(language));
            let found: Vec<&str> = found.iter().map(|sentence| sentence.text).collect();
            if found != expected {
                wrong.push(format!("{language}: {}", found.join("| ")));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
