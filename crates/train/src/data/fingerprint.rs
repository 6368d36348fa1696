//! Tells one corpus from another, file by file, so that a run is never continued on changed text.
//!
//! The text counts, not the file: a corpus may move or be compressed again. Checkpoints carry the
//! fingerprint in their state; [`crate::data::corpus`] takes it while reading.

use serde::{Deserialize, Serialize};

/// One entry per file, in the order of reading.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorpusFingerprint {
    files: Vec<FilePrint>,
}

/// What one file held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FilePrint {
    /// As the recipe spells it.
    file: String,
    /// What it is there for, such as `training source`.
    role: String,
    lines: usize,
    blake3: String,
}

/// The fingerprint of lines that come one at a time.
#[derive(Debug, Clone, Default)]
pub struct LinesPrint {
    hasher: blake3::Hasher,
    lines: usize,
}

impl LinesPrint {
    /// The next line.
    pub fn add(&mut self, line: &str) {
        self.hasher.update(line.as_bytes());
        self.hasher.update(b"\n");
        self.lines += 1;
    }

    /// How many lines there were.
    pub fn lines(&self) -> usize {
        self.lines
    }
}

impl CorpusFingerprint {
    /// Adds the lines of one file.
    pub fn add(&mut self, file: &str, role: &str, lines: &[String]) {
        let mut print = LinesPrint::default();
        lines.iter().for_each(|line| print.add(line));
        self.add_print(file, role, print);
    }

    /// Adds `count` things that are no text, such as images.
    pub fn add_bytes(&mut self, file: &str, role: &str, count: usize, parts: &[&[u8]]) {
        let mut print = LinesPrint::default();
        for part in parts {
            print.hasher.update(part);
        }
        print.lines = count;
        self.add_print(file, role, print);
    }

    /// Adds a file whose lines were read before.
    pub fn add_print(&mut self, file: &str, role: &str, print: LinesPrint) {
        self.files.push(FilePrint {
            file: file.to_owned(),
            role: role.to_owned(),
            lines: print.lines,
            blake3: print.hasher.finalize().to_hex().to_string(),
        });
    }

    /// What is different in the text of today (`now`) from the text of the run (`self`).
    pub fn differences(&self, now: &CorpusFingerprint) -> Vec<String> {
        let mut found = Vec::new();
        for before in &self.files {
            let same =
                |other: &&FilePrint| (&other.file, &other.role) == (&before.file, &before.role);
            let (role, file) = (&before.role, &before.file);
            let images = role.ends_with("images");
            let (unit, content) = if images {
                ("images", "pixels or classes")
            } else {
                ("lines", "text")
            };
            match now.files.iter().find(same) {
                None => found.push(format!("the {role} file {file} is no longer read")),
                Some(after) if after.lines != before.lines => found.push(format!(
                    "the {role} file {file} had {} {unit} when the run began and now has {}",
                    before.lines, after.lines
                )),
                Some(after) if after.blake3 != before.blake3 => found.push(format!(
                    "the {role} file {file} still has {} {unit}, but their {content} {} changed",
                    before.lines,
                    if images { "have" } else { "has" }
                )),
                Some(_) => {}
            }
        }
        for after in &now.files {
            let known = self
                .files
                .iter()
                .any(|before| (&before.file, &before.role) == (&after.file, &after.role));
            if !known {
                found.push(format!("the {} file {} is new", after.role, after.file));
            }
        }
        if found.is_empty() && self != now {
            found.push("the files are the same, but in another order".to_owned());
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(files: &[(&str, &[&str])]) -> CorpusFingerprint {
        let mut print = CorpusFingerprint::default();
        for (file, lines) in files {
            let lines: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
            print.add(file, "training source", &lines);
        }
        print
    }

    #[test]
    fn the_same_text_has_no_differences() {
        let text: &[(&str, &[&str])] = &[("a.de", &["eins", "zwei"]), ("b.de", &["drei"])];
        assert_eq!(print(text).differences(&print(text)), Vec::<String>::new());
    }

    #[test]
    fn a_changed_line_names_the_file_and_its_side() {
        let before = print(&[("a.de", &["eins", "zwei"])]);
        let found = before.differences(&print(&[("a.de", &["eins", "zwie"])]));
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("training source file a.de"), "{found:?}");
        assert!(found[0].contains("text has changed"), "{found:?}");
    }

    #[test]
    fn a_line_more_or_less_is_told_with_both_counts() {
        let found = print(&[("a", &["x", "y"])]).differences(&print(&[("a", &["x"])]));
        assert!(
            found[0].contains("2 lines") && found[0].contains("now has 1"),
            "{found:?}"
        );
    }

    #[test]
    fn line_breaks_cannot_hide_a_change() {
        assert_ne!(print(&[("a", &["xy"])]), print(&[("a", &["x", "y"])]));
        assert_ne!(print(&[("a", &["x", ""])]), print(&[("a", &["x"])]));
        // As many lines and as many letters, but broken elsewhere.
        assert_ne!(print(&[("a", &["xy", "z"])]), print(&[("a", &["x", "yz"])]));
    }

    #[test]
    fn new_missing_and_reordered_files_are_named() {
        let two = print(&[("a", &["x"]), ("b", &["y"])]);
        let one = print(&[("a", &["x"])]);
        let turned = print(&[("b", &["y"]), ("a", &["x"])]);
        assert!(two.differences(&one)[0].contains("file b is no longer read"));
        assert!(one.differences(&two)[0].contains("file b is new"));
        assert!(two.differences(&turned)[0].contains("another order"));
    }
}
