//! Parallel corpora: line N of the source is the translation of line N of the target.
//!
//! Before: [`crate::lines`]. After: tokenizers and batches. Everything that would make a model learn
//! wrong pairs in silence (a missing line, a half file) is an error here.

use std::path::{Path, PathBuf};

use crate::error::{Result, TextError};
use crate::lines::read_lines;

/// Sentence pairs; `src[i]` goes with `tgt[i]`, and both have the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParallelCorpus {
    /// The sentences to translate from.
    pub src: Vec<String>,
    /// The sentences to translate to.
    pub tgt: Vec<String>,
}

impl ParallelCorpus {
    /// Reads the corpus; file `i` of `src` pairs with file `i` of `tgt`.
    pub fn read(src: &[PathBuf], tgt: &[PathBuf]) -> Result<Self> {
        if src.is_empty() || src.len() != tgt.len() {
            return Err(TextError::FileCounts {
                src: src.len(),
                tgt: tgt.len(),
            });
        }
        let mut corpus = Self::default();
        for (src, tgt) in src.iter().zip(tgt) {
            corpus.append(src, tgt)?;
        }
        if corpus.is_empty() {
            let files = src.iter().chain(tgt).cloned().collect();
            return Err(TextError::EmptyCorpus { files });
        }
        Ok(corpus)
    }

    /// The number of sentence pairs.
    pub fn len(&self) -> usize {
        self.src.len()
    }

    /// Whether there is no pair at all; never so after [`ParallelCorpus::read`].
    pub fn is_empty(&self) -> bool {
        self.src.is_empty()
    }

    /// The pairs in order.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.src
            .iter()
            .zip(&self.tgt)
            .map(|(src, tgt)| (src.as_str(), tgt.as_str()))
    }

    fn append(&mut self, src: &Path, tgt: &Path) -> Result<()> {
        let src_lines = read_lines(src)?;
        let tgt_lines = read_lines(tgt)?;
        if src_lines.len() != tgt_lines.len() {
            return Err(TextError::LineCounts {
                src: src.to_path_buf(),
                src_lines: src_lines.len(),
                tgt: tgt.to_path_buf(),
                tgt_lines: tgt_lines.len(),
            });
        }
        self.src.extend(src_lines);
        self.tgt.extend(tgt_lines);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
            let path = self.0.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        }
    }

    #[test]
    fn files_are_joined_in_order_and_stay_paired() {
        let folder = Folder::new();
        let src = [
            folder.file("1.de", "eins\n\nzwei\n"),
            folder.file("2.de", "drei"),
        ];
        let tgt = [
            folder.file("1.en", "one\nx\ntwo\n"),
            folder.file("2.en", "three\n"),
        ];
        let corpus = ParallelCorpus::read(&src, &tgt).unwrap();
        let pairs: Vec<_> = corpus.pairs().collect();
        assert_eq!(
            pairs,
            [
                ("eins", "one"),
                ("", "x"),
                ("zwei", "two"),
                ("drei", "three")
            ]
        );
        assert_eq!(corpus.len(), 4);
    }

    #[test]
    fn unequal_line_counts_name_both_files_and_counts() {
        let folder = Folder::new();
        let first = (folder.file("1.de", "a\nb\n"), folder.file("1.en", "a\nb\n"));
        let second = (
            folder.file("2.de", "a\nb\n"),
            folder.file("2.en", "a\nb\nc\n"),
        );
        let error = ParallelCorpus::read(&[first.0, second.0], &[first.1, second.1]).unwrap_err();
        let message = error.to_string();
        for part in ["2.de\" has 2 lines", "2.en\" has 3;", "align"] {
            assert!(message.contains(part), "{part} is not in: {message}");
        }
    }

    #[test]
    fn equal_totals_do_not_hide_files_that_do_not_match() {
        let folder = Folder::new();
        let src = [folder.file("1.de", "a\nb\n"), folder.file("2.de", "c\n")];
        let tgt = [folder.file("1.en", "a\n"), folder.file("2.en", "b\nc\n")];
        let error = ParallelCorpus::read(&src, &tgt).unwrap_err();
        assert!(matches!(
            error,
            TextError::LineCounts {
                src_lines: 2,
                tgt_lines: 1,
                ..
            }
        ));
    }

    #[test]
    fn the_sides_need_equally_many_files_and_at_least_one() {
        let error = ParallelCorpus::read(&["a".into(), "b".into()], &["c".into()]).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("2 source file(s) but 1 target file(s)"),
            "{error}"
        );
        let error = ParallelCorpus::read(&[], &[]).unwrap_err();
        assert!(matches!(error, TextError::FileCounts { src: 0, tgt: 0 }));
    }

    #[test]
    fn an_empty_corpus_is_an_error() {
        let folder = Folder::new();
        let (src, tgt) = (folder.file("e.de", ""), folder.file("e.en", ""));
        let message = ParallelCorpus::read(&[src], &[tgt])
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("e.de") && message.contains("e.en"),
            "{message}"
        );
    }

    #[test]
    fn binary_missing_and_badly_encoded_files_are_named() {
        let folder = Folder::new();
        let good = folder.file("good", "a\n");
        let read =
            |src: PathBuf| ParallelCorpus::read(&[src], std::slice::from_ref(&good)).unwrap_err();
        assert!(matches!(
            read(folder.file("bin", b"\0")),
            TextError::Binary { line: 1, .. }
        ));
        assert!(matches!(
            read(folder.file("latin1", b"\xe4")),
            TextError::NotUtf8 { line: 1, .. }
        ));
        assert!(matches!(
            read(folder.0.path().join("no")),
            TextError::Open { .. }
        ));
    }
}
