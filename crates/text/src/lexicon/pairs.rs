//! The pairs that a [`super::Lexicon`] is learned from, as tokens in little memory.
//!
//! Files of any size are read line by line; of more pairs than asked for, every second, fourth, ... is kept,
//! so that what is kept is spread evenly over the corpus.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::error::{Result, TextError};
use crate::lines::LineReader;
use crate::special::source_ids;
use crate::tokenizer::Tokenizer;

/// What to read of a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairOptions {
    /// At most so many pairs.
    pub most: usize,
    /// Pairs with a side of more tokens are left out: what is so long tells little about single tokens.
    pub longest: usize,
}

impl Default for PairOptions {
    fn default() -> Self {
        Self {
            most: 1_000_000,
            longest: 200,
        }
    }
}

/// Sentence pairs as tokens; each source ends in `</s>`, which stands for the empty word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenPairs {
    src: Sentences,
    tgt: Sentences,
    src_vocab: usize,
    tgt_vocab: usize,
    /// Pairs in the files.
    pub seen: usize,
    /// Pairs that were left out because a side is empty or too long.
    pub left_out: usize,
}

impl TokenPairs {
    /// No pairs yet, of tokens below these numbers.
    pub fn new(src_vocab: usize, tgt_vocab: usize) -> Self {
        Self {
            src_vocab,
            tgt_vocab,
            ..Self::default()
        }
    }

    /// Reads a parallel corpus; file `i` of `src` pairs with file `i` of `tgt`. `progress` is told how many
    /// pairs were read.
    pub fn read(
        src: (&[PathBuf], &Tokenizer),
        tgt: (&[PathBuf], &Tokenizer),
        options: &PairOptions,
        mut progress: impl FnMut(usize),
    ) -> Result<Self> {
        let ((src_files, src), (tgt_files, tgt)) = (src, tgt);
        if src_files.is_empty() || src_files.len() != tgt_files.len() {
            return Err(TextError::FileCounts {
                src: src_files.len(),
                tgt: tgt_files.len(),
            });
        }
        let mut pairs = Self::new(src.vocab_size(), tgt.vocab_size());
        let mut stride = 1;
        for (src_file, tgt_file) in src_files.iter().zip(tgt_files) {
            let mut lines = PairedLines::open(src_file, tgt_file)?;
            loop {
                let mut chunk = Vec::with_capacity(LINES_AT_ONCE);
                while chunk.len() < LINES_AT_ONCE
                    && let Some(pair) = lines.next()?
                {
                    if pairs.seen.is_multiple_of(stride) {
                        chunk.push(pair);
                    }
                    pairs.seen += 1;
                }
                if chunk.is_empty() {
                    break;
                }
                let tokens: Vec<_> = chunk
                    .par_iter()
                    .map(|(a, b)| (src.encode(a), tgt.encode(b)))
                    .collect();
                for (src, tgt) in tokens {
                    let longest = src.len().max(tgt.len());
                    if src.is_empty() || tgt.is_empty() || longest > options.longest {
                        pairs.left_out += 1;
                    } else {
                        pairs.push(&src, &tgt);
                    }
                }
                while pairs.len() > options.most.max(1) {
                    pairs.keep_every_second();
                    stride *= 2;
                }
                progress(pairs.seen);
            }
        }
        if pairs.len() == 0 {
            let files = src_files.iter().chain(tgt_files).cloned().collect();
            return Err(TextError::EmptyCorpus { files });
        }
        Ok(pairs)
    }

    /// Adds a pair; the source without its `</s>`.
    ///
    /// # Panics
    /// If a token is beyond its vocabulary.
    pub fn push(&mut self, src: &[u32], tgt: &[u32]) {
        let below = |tokens: &[u32], vocab| tokens.iter().all(|&token| (token as usize) < vocab);
        assert!(below(src, self.src_vocab) && below(tgt, self.tgt_vocab));
        self.src.push(&source_ids(src));
        self.tgt.push(tgt);
    }

    /// The number of pairs.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.src.ends.len()
    }

    pub(super) fn src(&self, pair: usize) -> &[u32] {
        self.src.get(pair)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u32], &[u32])> {
        (0..self.len()).map(|pair| (self.src.get(pair), self.tgt.get(pair)))
    }

    pub(super) fn src_vocab(&self) -> usize {
        self.src_vocab
    }

    pub(super) fn tgt_vocab(&self) -> usize {
        self.tgt_vocab
    }

    fn keep_every_second(&mut self) {
        self.src.keep_every_second();
        self.tgt.keep_every_second();
    }
}

/// So many pairs are tokenized between two calls of `progress`.
const LINES_AT_ONCE: usize = 8192;

/// Sentences one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sentences {
    tokens: Vec<u32>,
    ends: Vec<usize>,
}

impl Sentences {
    fn push(&mut self, tokens: &[u32]) {
        self.tokens.extend_from_slice(tokens);
        self.ends.push(self.tokens.len());
    }

    fn get(&self, index: usize) -> &[u32] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.tokens[start..self.ends[index]]
    }

    fn keep_every_second(&mut self) {
        let mut kept = Self::default();
        for index in (0..self.ends.len()).step_by(2) {
            kept.push(self.get(index));
        }
        *self = kept;
    }
}

/// Two files, line by line; that one of them ends before the other is an error.
struct PairedLines<'a> {
    src: (LineReader, &'a Path),
    tgt: (LineReader, &'a Path),
    count: usize,
}

impl<'a> PairedLines<'a> {
    fn open(src: &'a Path, tgt: &'a Path) -> Result<Self> {
        Ok(Self {
            src: (LineReader::open(src)?, src),
            tgt: (LineReader::open(tgt)?, tgt),
            count: 0,
        })
    }

    fn next(&mut self) -> Result<Option<(String, String)>> {
        match (
            self.src.0.next().transpose()?,
            self.tgt.0.next().transpose()?,
        ) {
            (Some(src), Some(tgt)) => {
                self.count += 1;
                Ok(Some((src, tgt)))
            }
            (None, None) => Ok(None),
            (src, tgt) => {
                // The rest of the longer file is counted for the message.
                let rest = |line: Option<String>, lines: &mut LineReader| match line {
                    Some(_) => 1 + lines.count(),
                    None => 0,
                };
                Err(TextError::LineCounts {
                    src: self.src.1.to_path_buf(),
                    src_lines: self.count + rest(src, &mut self.src.0),
                    tgt: self.tgt.1.to_path_buf(),
                    tgt_lines: self.count + rest(tgt, &mut self.tgt.0),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::EOS;
    use crate::tokenizer::{TokenizerKind, TokenizerOptions};

    fn words() -> Tokenizer {
        let options = TokenizerOptions {
            kind: TokenizerKind::Word,
            vocab_size: 0,
            min_frequency: 1,
            lowercase: false,
        };
        Tokenizer::train(&options, &mut ["a b c d"].into_iter()).expect("words")
    }

    fn read(src: &str, tgt: &str, options: &PairOptions) -> Result<TokenPairs> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name, text| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            [path]
        };
        let words = words();
        let (src, tgt) = (file("src", src), file("tgt", tgt));
        TokenPairs::read((&src, &words), (&tgt, &words), options, |_| {})
    }

    #[test]
    fn pairs_are_tokens_and_what_is_empty_or_too_long_is_counted() {
        let options = PairOptions {
            longest: 3,
            ..Default::default()
        };
        let pairs = read("a b\n\nc d a b\nd\n", "c\na\nb\na b c\n", &options).expect("pairs");
        let id = |word| words().id(word).expect("a word");
        let found: Vec<_> = pairs.iter().collect();
        let [a, b, c, d] = ["a", "b", "c", "d"].map(id);
        let expected: [(&[u32], &[u32]); 2] = [(&[a, b, EOS], &[c]), (&[d, EOS], &[a, b, c])];
        assert_eq!(found, expected);
        assert_eq!((pairs.seen, pairs.left_out), (4, 2));
    }

    #[test]
    fn of_too_many_pairs_an_even_share_is_kept() {
        let src: String = (0..20_000)
            .map(|i| ["a\n", "b\n", "c\n", "d\n"][i % 4])
            .collect();
        let options = PairOptions {
            most: 3000,
            ..Default::default()
        };
        let pairs = read(&src, &src, &options).expect("pairs");
        assert_eq!((pairs.seen, pairs.len()), (20_000, 2500));
        // Every eighth line is an a.
        assert!(pairs.iter().all(|(src, _)| src == pairs.src(0)));
    }

    #[test]
    fn files_that_do_not_match_are_named() {
        let error = read("a\nb\nc\n", "a\n", &PairOptions::default()).expect_err("unequal");
        assert!(matches!(
            error,
            TextError::LineCounts {
                src_lines: 3,
                tgt_lines: 1,
                ..
            }
        ));
        let error = read("\n", "\n", &PairOptions::default()).expect_err("empty");
        assert!(matches!(error, TextError::EmptyCorpus { .. }));
    }
}
