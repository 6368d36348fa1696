//! The lines to translate: sentences on the command line, a file, or standard input.
//!
//! Lines come in blocks: large enough that lines of similar length find each other, small enough
//! that an endless pipe needs no endless memory. What is typed is answered line by line.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use attentive_text::lines::LineReader;
use attentive_text::{Result, TextError};
use clap::Args;

use crate::terminal::Terminal;

/// Where lines come from.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// Sentences to translate
    #[arg(value_name = "SENTENCE")]
    sentences: Vec<String>,
    /// Translate the lines of a file, plain or gzip'd; - is standard input, and the default
    #[arg(long, short, value_name = "FILE", conflicts_with = "sentences")]
    input: Option<PathBuf>,
    /// Answer each line as soon as it comes, for a pipe that waits for the answer
    #[arg(long)]
    unbuffered: bool,
}

/// Lines, a block at a time.
pub struct Blocks {
    lines: Box<dyn Iterator<Item = Result<String>>>,
    pace: Pace,
}

/// When a block is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// When it is full.
    Full,
    /// After each line.
    Line,
}

const BLOCK_LINES: usize = 1000;
const BLOCK_BYTES: usize = 1 << 22;

impl InputArgs {
    /// Opens the input; someone in front of a silent terminal is told what it waits for.
    pub fn open(&self, terminal: &Terminal) -> Result<Blocks> {
        if !self.sentences.is_empty() {
            return Ok(Blocks::of_sentences(&self.sentences));
        }
        let path = self.input.as_deref().unwrap_or(Path::new("-"));
        let typed = path == Path::new("-") && io::stdin().is_terminal();
        if typed {
            terminal.note("type a sentence and press Enter; Ctrl-D ends (--help shows other ways)");
        }
        let lines: Box<dyn Iterator<Item = Result<String>>> = match typed {
            // Not a reader of files, which looks for gzip before it gives a line.
            true => Box::new(io::stdin().lines().map(|line| line.map_err(unreadable))),
            false => Box::new(LineReader::open(path)?),
        };
        let pace = match typed || self.unbuffered {
            true => Pace::Line,
            false => Pace::Full,
        };
        Ok(Blocks { lines, pace })
    }
}

impl Blocks {
    /// One line for each line of each sentence; an empty sentence is an empty line.
    fn of_sentences(sentences: &[String]) -> Self {
        let lines: Vec<_> = sentences
            .iter()
            .flat_map(|sentence| sentence.split('\n'))
            .map(|line| Ok(line.to_owned()))
            .collect();
        Self {
            lines: Box::new(lines.into_iter()),
            pace: Pace::Full,
        }
    }
}

impl Iterator for Blocks {
    type Item = Result<Vec<String>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut block = Vec::new();
        let mut bytes = 0;
        while block.len() < BLOCK_LINES && bytes < BLOCK_BYTES {
            match self.lines.next() {
                Some(Ok(line)) => {
                    bytes += line.len();
                    block.push(line);
                }
                Some(Err(error)) => return Some(Err(error)),
                None => break,
            }
            if self.pace == Pace::Line {
                break;
            }
        }
        (!block.is_empty()).then_some(Ok(block))
    }
}

fn unreadable(source: io::Error) -> TextError {
    let path = PathBuf::from("standard input");
    TextError::Open { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(lines: usize, length: usize, pace: Pace) -> Vec<usize> {
        let lines = (0..lines).map(move |_| Ok("x".repeat(length)));
        let blocks = Blocks {
            lines: Box::new(lines),
            pace,
        };
        blocks.map(|block| block.unwrap().len()).collect()
    }

    #[test]
    fn blocks_are_limited_in_lines_and_in_bytes() {
        assert_eq!(blocks(2100, 10, Pace::Full), [1000, 1000, 100]);
        assert_eq!(blocks(5, 1 << 21, Pace::Full), [2, 2, 1]);
        assert_eq!(blocks(3, 10, Pace::Line), [1, 1, 1]);
        assert!(blocks(0, 0, Pace::Full).is_empty());
    }

    #[test]
    fn every_line_of_every_sentence_is_a_line() {
        let sentences = ["a b".to_owned(), String::new(), "c\nd".to_owned()];
        let all: Vec<_> = Blocks::of_sentences(&sentences)
            .map(Result::unwrap)
            .collect();
        assert_eq!(all, [["a b", "", "c", "d"]]);
    }
}
