//! Misaligned stretches: runs of lines in which the target belongs to a source some lines away, or to none.
//!
//! One line that is missing on one side shifts all that follow, and nothing about a single line looks wrong. So each
//! source is compared with the targets of the lines around it, by a lexicon that is learned from the corpus itself and
//! by lengths (`lexical`), and a test of cumulative sums finds the runs in which another line than the own one fits
//! (`segments`; E. S. Page 1954, "Continuous Inspection Schemes").

mod lexical;
mod segments;

use std::path::Path;

use rayon::prelude::*;

use self::lexical::{Source, Target, Words};
use self::segments::Cells;
use super::pairs::{Chunk, PairReader, text};
use super::sample::Sample;
use crate::error::{Result, TextError};

/// A run of lines whose sides do not belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// The file of the corpus, from 0.
    pub file: usize,
    /// Its first line, from 0.
    pub first: usize,
    /// The line after its last.
    pub end: usize,
    /// What is wrong.
    pub fault: Fault,
}

impl Stretch {
    /// Whether a line is part of it, or so near that it may be.
    pub fn may_hold(&self, file: usize, line: usize) -> bool {
        let near = self.first.saturating_sub(UNCERTAIN)..self.end + UNCERTAIN;
        self.file == file && near.contains(&line)
    }
}

/// What is wrong with a run of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The target of a source stands so many lines later, or earlier if negative.
    Shifted(i64),
    /// No line around has the target.
    Unrelated,
}

/// Where a stretch begins and ends is known to about so many lines.
pub const UNCERTAIN: usize = 8;

/// The farthest line that a source is compared with.
pub const FARTHEST: usize = 8;

/// All distances, the own line in the middle.
const SHIFTS: usize = 2 * FARTHEST + 1;

/// The distance of a line that surely is another sentence, and mostly one of the same text.
const UNRELATED: usize = 61;

/// Finds the stretches of a corpus; `progress` is told the bytes read so far.
pub fn find(
    files: &[(&Path, &Path)],
    sample: &Sample,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Vec<Stretch>> {
    let words = Words::learn(sample.pairs());
    let mut all = Vec::new();
    let mut before = 0;
    for (src, tgt) in files {
        let mut scorer = Scorer::new(&words);
        let mut last = 0;
        PairReader::open(src, tgt)?.each_chunk(|chunk| {
            scorer.add(chunk);
            last = chunk.bytes_read;
            progress(before + last);
            Ok::<_, TextError>(())
        })?;
        before += last;
        all.push(scorer.finish());
    }
    Ok(segments::find(&all))
}

/// Compares the lines of a file, as they are read, with those around them.
struct Scorer<'a> {
    words: &'a Words,
    /// The lines from `first` on.
    src: Vec<Source>,
    tgt: Vec<Target>,
    first: usize,
    /// The next line to compare.
    next: usize,
    cells: Cells,
}

impl<'a> Scorer<'a> {
    fn new(words: &'a Words) -> Self {
        Self {
            words,
            src: Vec::new(),
            tgt: Vec::new(),
            first: 0,
            next: 0,
            cells: Cells::default(),
        }
    }

    fn add(&mut self, chunk: &Chunk) {
        let words = self.words;
        let src = (0..chunk.src.len()).into_par_iter();
        let tgt = (0..chunk.tgt.len()).into_par_iter();
        let (mut src, mut tgt) = rayon::join(
            || {
                src.map(|i| words.source(text(chunk.src.get(i)).unwrap_or_default()))
                    .collect()
            },
            || {
                tgt.map(|i| words.target(text(chunk.tgt.get(i)).unwrap_or_default()))
                    .collect()
            },
        );
        self.src.append(&mut src);
        self.tgt.append(&mut tgt);
        let ready = self.first + self.tgt.len();
        self.compare(ready.saturating_sub(UNRELATED));
        // What no line to come is compared with is forgotten.
        let keep = self.next.saturating_sub(FARTHEST);
        let forget = keep - self.first;
        self.src.drain(..forget.min(self.src.len()));
        self.tgt.drain(..forget.min(self.tgt.len()));
        self.first = keep;
    }

    /// Compares all lines before this one.
    fn compare(&mut self, end: usize) {
        let end = end.min(self.first + self.src.len());
        if end <= self.next {
            return;
        }
        let cell = |src: usize, tgt: Option<usize>| {
            let tgt = tgt.and_then(|tgt| self.tgt.get(tgt.checked_sub(self.first)?));
            tgt.map_or(segments::NO_LINE, |tgt| {
                self.words.compare(&self.src[src - self.first], tgt)
            })
        };
        let rows: Vec<[u8; SHIFTS + 1]> = (self.next..end)
            .into_par_iter()
            .map(|line| {
                let mut row = [segments::NO_LINE; SHIFTS + 1];
                for (shift, place) in row[..SHIFTS].iter_mut().enumerate() {
                    *place = cell(line, (line + shift).checked_sub(FARTHEST));
                }
                row[SHIFTS] = cell(line, Some(line + UNRELATED));
                row
            })
            .collect();
        self.cells.rows.extend(rows);
        self.next = end;
    }

    fn finish(mut self) -> Cells {
        self.compare(usize::MAX);
        self.cells
    }
}

#[cfg(test)]
mod tests;
