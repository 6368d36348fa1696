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
