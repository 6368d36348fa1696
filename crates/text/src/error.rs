//! The one error type of this crate.
//!
//! Every message says where (file, line), what was expected, what was found, and what to do: the
//! binary prints it as it stands. Lines are counted from 1, as editors do.

use std::io;
use std::path::PathBuf;

use crate::documents::Format;
use crate::tokenizer::TokenizerKind;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, TextError>;

/// What can go wrong between files and tokens.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// A file could not be opened.
    #[error(
        "cannot open {path:?}: {source}; check that the path is right and the file is readable"
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file stopped being readable half way, as a cut-off gzip file does.
    #[error(
        "cannot read {path:?} at line {line}: {source}; the file may be cut off or damaged, fetch or compress it again"
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// The line that was being read.
        line: usize,
        /// What the system or the decompressor said.
        source: io::Error,
    },
    /// A line is not UTF-8.
    #[error(
        "{path:?}, line {line}: byte {column} is not valid UTF-8; convert the file first, for example with `iconv -f LATIN1 -t UTF-8`"
    )]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The first bad byte of the line, counted from 1.
        column: usize,
    },
    /// A line holds a NUL byte, which text never does.
    #[error(
        "{path:?}, line {line}: found a NUL byte, so this is not a UTF-8 text file (binary data, or UTF-16?); give a plain or gzip'd UTF-8 text file"
    )]
    Binary {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
    },
    /// The two sides of a corpus have different numbers of files.
    #[error(
        "{src} source file(s) but {tgt} target file(s); file N of one side pairs with file N of the other, so give as many of each, and at least one"
    )]
    FileCounts {
        /// How many source files.
        src: usize,
        /// How many target files.
        tgt: usize,
    },
    /// Two files that should be parallel have different numbers of lines.
    #[error(
        "{src:?} has {src_lines} lines but {tgt:?} has {tgt_lines}; line N of one must be the translation of line N of the other, so align the files again before use"
    )]
    LineCounts {
        /// The source file.
        src: PathBuf,
        /// Its lines.
        src_lines: usize,
        /// The target file.
        tgt: PathBuf,
        /// Its lines.
        tgt_lines: usize,
    },
    /// A corpus without a single line.
    #[error(
        "the corpus is empty: {} hold no lines; check that these are the right files",
        list(files)
    )]
    EmptyCorpus {
        /// The files that were read.
        files: Vec<PathBuf>,
    },
    /// A tokenizer was to be trained on nothing.
    #[error(
        "no text to train a tokenizer on: every line was empty or blank; check the corpus files"
    )]
    NoText,
    /// A BPE tokenizer was to be trained on more text than its trainer can count.
    #[error(
        "two neighboring letters occur {count} times in the text, more than BPE training can count (2147483647); train the tokenizer on a part of the text"
    )]
    TooMuchText {
        /// How often they occur.
        count: u64,
    },
    /// Every word was rarer than the least frequency.
    #[error(
        "no word occurs {min_frequency} times or more, so the vocabulary would be empty; lower `min_frequency` or give more text"
    )]
    NoFrequentWords {
        /// The least frequency asked for.
        min_frequency: usize,
    },
    /// The vocabulary asked for cannot hold what it must hold.
    #[error(
        "`vocab_size` ({vocab_size}) is too small for a {kind} tokenizer; it needs {least} or more ({why})"
    )]
    VocabularyTooSmall {
        /// The kind of tokenizer.
        kind: TokenizerKind,
        /// The size asked for.
        vocab_size: usize,
        /// The least size that works.
        least: usize,
        /// What fills the least size.
        why: &'static str,
    },
    /// A kind of tokenizer that is read from files of other programs only.
    #[error(
        "a {kind} tokenizer is read from the files of another program and not trained here; train a bpe or unigram one"
    )]
    NotTrained {
        /// The kind of tokenizer.
        kind: TokenizerKind,
    },
    /// Characters that should be lowercased, which a list of characters does not say of itself.
    #[error(
        "a tokenizer of characters does not lowercase: leave `lowercase` out, or take unigram or bpe"
    )]
    LowercaseCharacters,
    /// A name that is not a kind of tokenizer.
    #[error(
        "unknown tokenizer kind {name:?}; expected one of word, tabs, bpe, unigram, wordpiece, characters"
    )]
    UnknownKind {
        /// The name as given.
        name: String,
    },
    /// A tokenizer file that cannot be used.
    #[error(
        "{path:?} is not a tokenizer that can be used here: {problem}; train the tokenizer again or copy the file again"
    )]
    TokenizerFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A SentencePiece file that cannot be used.
    #[error(
        "{path:?} is not a SentencePiece model that can be used: {problem}; expected a complete `.model` file, so copy or download it again"
    )]
    SentencePieceFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The parts of another program's tokenizer do not make one.
    #[error(
        "these files of another program make no tokenizer: {problem}; check that all of them belong to the same model"
    )]
    ImportedTokenizer {
        /// What is wrong with them.
        problem: String,
    },
    /// A vocabulary file of another program that cannot be used.
    #[error(
        "{path:?}{}: {problem}; expected {expected}, so check that it is the vocabulary and copy it again",
        place(*line)
    )]
    VocabularyFile {
        /// The file.
        path: PathBuf,
        /// The line, unless the problem is one of the whole file.
        line: Option<usize>,
        /// What is wrong there.
        problem: String,
        /// What such a file holds.
        expected: &'static str,
    },
    /// A line of a glossary that cannot be read.
    #[error(
        "{path:?}, line {line}: {problem}; a line has a source term, a tab, a target term, and if need be another tab and options (in a .csv file commas instead)"
    )]
    Glossary {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// A document that cannot be read.
    #[error("{path:?}{}: {problem}", place(*line))]
    Document {
        /// The file.
        path: PathBuf,
        /// The format that it was read as.
        format: Format,
        /// The line, unless the problem is one of the whole file.
        line: Option<usize>,
        /// What is wrong there, and what to do.
        problem: String,
    },
    /// A tokenizer that the `tokenizers` library refused to build or write.
    #[error(
        "the subword library refused the trained tokenizer: {problem}; this is a bug in attentive, please report it"
    )]
    Library {
        /// What the library said.
        problem: String,
    },
}

fn list(files: &[PathBuf]) -> String {
    let names: Vec<String> = files.iter().map(|file| format!("{file:?}")).collect();
    names.join(", ")
}

fn place(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!(", line {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_corpus_names_all_its_files() {
        let error = TextError::EmptyCorpus {
            files: vec!["a.de".into(), "a.en".into()],
        };
        assert_eq!(
            error.to_string(),
            r#"the corpus is empty: "a.de", "a.en" hold no lines; check that these are the right files"#
        );
    }
}
