//! One look at a whole corpus: every check over every pair, counted, with examples. Nothing is kept of the text but a
//! [`Sample`]; 32 bytes a pair are, for duplicates and alignment.
//!
//! The files are read twice: once for all checks, and once for [`super::alignment`], which needs a lexicon first.
//! After: [`super::findings`] says how bad it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::alignment::{self, Stretch};
use super::duplicates::{PairHash, Table};
use super::held_out::HeldOut;
use super::lengths::Limits;
use super::pairs::{Chunk, PairReader, bytes_of, matched, text};
use super::{Calibration, Check, CheckSet, LanguageChoice, PairChecks, Sample};
use crate::error::{Result, TextError};

/// How to look.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The languages, where they are known.
    pub languages: LanguageChoice,
    /// What is too long.
    pub limits: Limits,
    /// Test and validation sets, which the corpus should not hold.
    pub test_sets: Vec<TestSet>,
}

/// Sentences that should not be in the corpus.
#[derive(Debug, Clone, Default)]
pub struct TestSet {
    /// What to call it.
    pub name: String,
    /// Its sentences; `src[i]` goes with `tgt[i]` if both sides are there.
    pub src: Vec<String>,
    /// Its translations, or nothing.
    pub tgt: Vec<String>,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// The files.
    pub files: Vec<FilePair>,
    /// All pairs.
    pub pairs: usize,
    /// What is usual in the corpus.
    pub calibration: Calibration,
    /// What each check found.
    pub found: BTreeMap<Check, Found>,
    /// Stretches that are misaligned.
    pub stretches: Vec<Stretch>,
    /// How much of each test set is there.
    pub overlaps: Vec<Overlap>,
    /// Some pairs of the corpus.
    pub sample: Sample,
}

/// Two files of the corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePair {
    /// The source side.
    pub src: PathBuf,
    /// The target side.
    pub tgt: PathBuf,
    /// Lines of the source side.
    pub src_lines: usize,
    /// Lines of the target side.
    pub tgt_lines: usize,
}

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// In so many pairs.
    pub pairs: usize,
    /// The first ones.
    pub examples: Vec<Example>,
}

/// A pair that shows what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The file of the corpus, from 0.
    pub file: usize,
    /// The line, from 1.
    pub line: usize,
    /// What to know about it, or nothing.
    pub note: String,
    /// Its source; may be nothing.
    pub src: String,
    /// Its target.
    pub tgt: String,
}

/// How much of a test set stands in the corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// The set's name.
    pub name: String,
    /// Its sentences.
    pub sentences: usize,
    /// Sentences of which both sides stand in the corpus; of a set with one side, that side.
    pub whole: usize,
    /// Sentences of which one side alone does.
    pub one_side: usize,
}

/// Examples of each kind.
const EXAMPLES: usize = 3;

/// The part of the time that the first reading takes, about.
const FIRST_READING: f64 = 0.75;

/// Looks at the corpus; `progress` is told how much is done, from 0 to 1.
pub fn inspect(
    src: &[PathBuf],
    tgt: &[PathBuf],
    options: &Options,
    progress: &mut (dyn FnMut(f64) + Send),
) -> Result<Inspection> {
    let files = matched(src, tgt)?;
    let bytes = bytes_of(&files).max(1) as f64;
    let mut reading = Reading::new(&files, options)?;
    for (src, tgt) in &files {
        reading.begin(src, tgt);
        let before = reading.bytes;
        PairReader::open(src, tgt)?.each_chunk(|chunk| {
            reading.add(chunk);
            reading.bytes = before + chunk.bytes_read;
            progress(FIRST_READING * reading.bytes as f64 / bytes);
            Ok::<_, TextError>(())
        })?;
        reading.offset += reading.files.last().map_or(0, FilePair::pairs);
    }
    if reading.offset == 0 {
        let files = src.iter().chain(tgt).cloned().collect();
        return Err(TextError::EmptyCorpus { files });
    }
    let sample = std::mem::take(&mut reading.sample);
    let stretches = alignment::find(&files, &sample, &mut |done| {
        progress(FIRST_READING + (1.0 - FIRST_READING) * done as f64 / bytes);
    })?;
    Ok(reading.finish(sample, stretches, options))
}

impl FilePair {
    /// Lines that both sides have.
    pub fn pairs(&self) -> usize {
        self.src_lines.min(self.tgt_lines)
    }
}

/// The first reading, as far as it is.
struct Reading {
    checks: PairChecks,
    asked: CheckSet,
    files: Vec<FilePair>,
    /// Pairs of the files before this one.
    offset: usize,
    bytes: u64,
    found: BTreeMap<Check, Found>,
    table: Table,
    /// The sides of each test set.
    sets: Vec<[HeldOut; 2]>,
    sample: Sample,
}

/// What is known of a pair when it has been looked at.
struct Looked {
    found: CheckSet,
    hash: Option<PairHash>,
}

impl Reading {
    fn new(files: &[(&Path, &Path)], options: &Options) -> Result<Self> {
        let held = |lines: &[String]| {
            let mut held_out = HeldOut::default();
            lines.iter().for_each(|line| held_out.add(line));
            held_out
        };
        let sets = options.test_sets.iter();
        Ok(Self {
            checks: PairChecks {
                calibration: Calibration::read(files, &options.languages)?,
                limits: options.limits,
            },
            asked: Check::ALL.into_iter().collect(),
            files: Vec::new(),
            offset: 0,
            bytes: 0,
            found: BTreeMap::new(),
            table: Table::default(),
            sets: sets.map(|set| [held(&set.src), held(&set.tgt)]).collect(),
            sample: Sample::default(),
        })
    }

    fn begin(&mut self, src: &Path, tgt: &Path) {
        self.files.push(FilePair {
            src: src.to_path_buf(),
            tgt: tgt.to_path_buf(),
            src_lines: 0,
            tgt_lines: 0,
        });
    }

    fn add(&mut self, chunk: &Chunk) {
        let pairs = 0..chunk.pairs();
        let looked: Vec<Looked> = pairs
            .into_par_iter()
            .map(|index| self.look(chunk.pair(index)))
            .collect();
        let file = self.files.len() - 1;
        for (index, mut looked) in looked.into_iter().enumerate() {
            let (src, tgt) = chunk.pair(index);
            let line = chunk.first + index;
            if let (Some(hash), Some(src), Some(tgt)) = (looked.hash, text(src), text(tgt)) {
                self.table.push((self.offset + line) as u32, &hash);
                looked.found.add_if(Check::HeldOut, self.meet(&hash));
                self.sample.offer(src, tgt);
            }
            for check in looked.found.iter() {
                let found = self.found.entry(check).or_default();
                found.pairs += 1;
                if found.examples.len() < EXAMPLES {
                    let shown = |line: &[u8]| String::from_utf8_lossy(line).into_owned();
                    found.examples.push(Example {
                        file,
                        line: line + 1,
                        note: String::new(),
                        src: shown(src),
                        tgt: shown(tgt),
                    });
                }
            }
        }
        if let Some(file) = self.files.last_mut() {
            file.src_lines += chunk.src.len();
            file.tgt_lines += chunk.tgt.len();
        }
    }

    fn look(&self, (src, tgt): (&[u8], &[u8])) -> Looked {
        match (text(src), text(tgt)) {
            (Some(src), Some(tgt)) => {
                let found = self.checks.all(src, tgt, self.asked);
                // Empty pairs are not trained on, so they are no duplicates.
                let hash = (!found.has(Check::Empty)).then(|| PairHash::of(src, tgt));
                Looked { found, hash }
            }
            _ => Looked {
                found: [Check::Encoding].into_iter().collect(),
                hash: None,
            },
        }
    }

    /// Whether the pair is one of a test set.
    fn meet(&mut self, pair: &PairHash) -> bool {
        let mut whole = false;
        for [src, tgt] in &mut self.sets {
            let holds =
                |side: &HeldOut, key: Option<u64>| key.is_some_and(|key| side.holds_key(key));
            let one_sided = tgt.is_empty();
            let (in_src, in_tgt) = if one_sided {
                (holds(src, pair.src_key) || holds(src, pair.tgt_key), true)
            } else {
                (holds(src, pair.src_key), holds(tgt, pair.tgt_key))
            };
            whole |= in_src && in_tgt;
            for key in [pair.src_key, pair.tgt_key].into_iter().flatten() {
                src.meet(key);
                tgt.meet(key);
            }
        }
        whole
    }

    fn finish(mut self, sample: Sample, stretches: Vec<Stretch>, options: &Options) -> Inspection {
        let repetitions = std::mem::take(&mut self.table).repetitions(EXAMPLES);
        let place = |number: u32| {
            let mut number = number as usize;
            for (index, file) in self.files.iter().enumerate() {
                if number < file.pairs() {
                    return (index, number + 1);
                }
                number -= file.pairs();
            }
            (0, 0)
        };
        let example = |number: u32, note: String| {
            let (file, line) = place(number);
            Example {
                file,
                line,
                note,
                src: String::new(),
                tgt: String::new(),
            }
        };
        let again = |examples: &[(u32, u32)]| -> Vec<Example> {
            let note = |first: u32| {
                let (file, line) = place(first);
                if self.files.len() == 1 {
                    format!("as line {line}")
                } else {
                    format!("as line {line} of {}", self.files[file].src.display())
                }
            };
            examples
                .iter()
                .map(|(number, first)| example(*number, note(*first)))
                .collect()
        };
        let many = repetitions
            .many_examples
            .iter()
            .map(|(first, others)| example(*first, format!("{others} different other sides")));
        let mut found = self.found.clone();
        for (check, pairs, examples) in [
            (
                Check::Duplicates,
                repetitions.duplicates,
                again(&repetitions.duplicate_examples),
            ),
            (
                Check::NearDuplicates,
                repetitions.near_duplicates,
                again(&repetitions.near_examples),
            ),
            (
                Check::ManyTranslations,
                repetitions.many_translations,
                many.collect(),
            ),
            (
                Check::Misaligned,
                stretches
                    .iter()
                    .map(|stretch| stretch.end - stretch.first)
                    .sum(),
                Vec::new(),
            ),
        ] {
            if pairs > 0 {
                found.insert(check, Found { pairs, examples });
            }
        }
        let overlaps = options
            .test_sets
            .iter()
            .zip(&self.sets)
            .map(|(set, [src, tgt])| overlap(set, src, tgt));
        Inspection {
            pairs: self.offset,
            calibration: self.checks.calibration.clone(),
            found,
            stretches,
            overlaps: overlaps.collect(),
            sample,
            files: self.files,
        }
    }
}

fn overlap(set: &TestSet, src: &HeldOut, tgt: &HeldOut) -> Overlap {
    let (mut whole, mut one_side) = (0, 0);
    for (index, line) in set.src.iter().enumerate() {
        let met = src.was_met(line);
        let other = set.tgt.get(index).map_or(met, |line| tgt.was_met(line));
        whole += usize::from(met && other);
        one_side += usize::from(met != other);
    }
    Overlap {
        name: set.name.clone(),
        sentences: set.src.len(),
        whole,
        one_side,
    }
}
