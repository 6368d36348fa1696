//! A corpus without what is wrong with it: pairs in their order, each kept, repaired or rejected by the first filter that
//! objects.
//!
//! Filters are the checks of [`Check::ALL`] in that order. `mojibake`, `controls` and `nfc` repair what can be repaired, so
//! that the filters after them see the text as it is written; all others reject. The text streams through; hashes of
//! what was kept are all that stays in memory, and `misaligned` reads the files once more before.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rayon::prelude::*;

use super::alignment::{self, Stretch};
use super::duplicates::{PairHash, Seen};
use super::held_out::HeldOut;
use super::lengths::Limits;
use super::pairs::{Chunk, PairReader, bytes_of, matched, text};
use super::{Calibration, Check, CheckSet, LanguageChoice, PairChecks, Sample, characters};
use crate::error::TextError;

/// How to clean.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The filters.
    pub filters: CheckSet,
    /// The languages, where they are known.
    pub languages: LanguageChoice,
    /// What is too long.
    pub limits: Limits,
    /// Sentences that the filter `held-out` rejects.
    pub held_out: HeldOut,
}

/// What became of the pairs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pairs read.
    pub read: usize,
    /// Pairs kept.
    pub kept: usize,
    /// Pairs that each filter repaired; they may be rejected later.
    pub repaired: BTreeMap<Check, usize>,
    /// Pairs that each filter rejected.
    pub rejected: BTreeMap<Check, usize>,
}

/// Some pairs, cleaned.
#[derive(Debug, Default)]
pub struct Cleaned {
    /// The source lines that were kept, each with its line end.
    pub src: String,
    /// The target lines.
    pub tgt: String,
    /// The others.
    pub rejected: Vec<Rejected>,
}

/// A pair that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The file of the corpus, from 0.
    pub file: usize,
    /// The line, from 1.
    pub line: usize,
    /// Which filter.
    pub filter: Check,
    /// The source as it was; what is not UTF-8 is replaced.
    pub src: String,
    /// The target as it was.
    pub tgt: String,
}

/// Cleans the files one after the other and hands what is left to `sink`, in order. `progress` is told how much is
/// done, from 0 to 1.
///
/// That one side of a file ends before the other is an error, which comes last: a sink should throw away what it has.
pub fn clean<E: From<TextError> + Send>(
    src: &[PathBuf],
    tgt: &[PathBuf],
    options: Options,
    progress: &mut (dyn FnMut(f64) + Send),
    mut sink: impl FnMut(&Cleaned) -> Result<(), E> + Send,
) -> Result<Counts, E> {
    let files = matched(src, tgt)?;
    let bytes = bytes_of(&files).max(1) as f64;
    let readings = if options.filters.has(Check::Misaligned) {
        3.0
    } else {
        1.0
    };
    let mut done = 0.0;
    let mut stretches = Vec::new();
    if options.filters.has(Check::Misaligned) {
        let sample = Sample::read(&files, &mut |read| progress(read as f64 / bytes / readings))?;
        stretches = alignment::find(&files, &sample, &mut |read| {
            progress((1.0 + read as f64 / bytes) / readings);
        })?;
        done = 2.0;
    }
    let calibration = Calibration::read(&files, &options.languages)?;
    let mut cleaner = Cleaner {
        checks: PairChecks {
            calibration,
            limits: options.limits,
        },
        options,
        stretches,
        seen: Seen::default(),
        counts: Counts::default(),
    };
    let mut bytes_before = 0;
    for (file, (src, tgt)) in files.iter().enumerate() {
        let (mut src_lines, mut tgt_lines, mut last) = (0, 0, 0);
        PairReader::open(src, tgt)?.each_chunk(|chunk| {
            src_lines += chunk.src.len();
            tgt_lines += chunk.tgt.len();
            last = chunk.bytes_read;
            sink(&cleaner.add(file, chunk, [src, tgt])?)?;
            progress((done + (bytes_before + last) as f64 / bytes) / readings);
            Ok::<_, E>(())
        })?;
        bytes_before += last;
        if src_lines != tgt_lines {
            return Err(E::from(TextError::LineCounts {
                src: src.to_path_buf(),
                src_lines,
                tgt: tgt.to_path_buf(),
                tgt_lines,
            }));
        }
    }
    Ok(cleaner.counts)
}

struct Cleaner {
    checks: PairChecks,
    options: Options,
    stretches: Vec<Stretch>,
    seen: Seen,
    counts: Counts,
}

/// A pair on its way through the filters.
struct Passed {
    src: String,
    tgt: String,
    repaired: CheckSet,
    rejected: Option<Check>,
    hash: Option<PairHash>,
}

impl Cleaner {
    fn add(
        &mut self,
        file: usize,
        chunk: &Chunk,
        paths: [&std::path::Path; 2],
    ) -> Result<Cleaned, TextError> {
        let passed: Vec<Passed> = (0..chunk.pairs())
            .into_par_iter()
            .map(|index| {
                let line = chunk.first + index;
                self.pass(chunk.pair(index), (file, line), paths)
            })
            .collect::<Result<_, _>>()?;
        let mut cleaned = Cleaned::default();
        for (index, pair) in passed.into_iter().enumerate() {
            self.counts.read += 1;
            for check in pair.repaired.iter() {
                *self.counts.repaired.entry(check).or_default() += 1;
            }
            let filters = self.options.filters;
            let again = |seen: &mut Seen| pair.hash.and_then(|hash| seen.check(&hash, filters));
            let Some(filter) = pair.rejected.or_else(|| again(&mut self.seen)) else {
                self.counts.kept += 1;
                for (all, line) in [(&mut cleaned.src, &pair.src), (&mut cleaned.tgt, &pair.tgt)] {
                    all.push_str(line);
                    all.push('\n');
                }
                continue;
            };
            *self.counts.rejected.entry(filter).or_default() += 1;
            let (src, tgt) = chunk.pair(index);
            let shown = |line: &[u8]| String::from_utf8_lossy(line).into_owned();
            cleaned.rejected.push(Rejected {
                file,
                line: chunk.first + index + 1,
                filter,
                src: shown(src),
                tgt: shown(tgt),
            });
        }
        Ok(cleaned)
    }

    /// All filters but those that need the pairs before.
    fn pass(
        &self,
        (src, tgt): (&[u8], &[u8]),
        (file, line): (usize, usize),
        paths: [&std::path::Path; 2],
    ) -> Result<Passed, TextError> {
        let filters = self.options.filters;
        let mut passed = Passed {
            src: String::new(),
            tgt: String::new(),
            repaired: CheckSet::default(),
            rejected: Some(Check::Encoding),
            hash: None,
        };
        let (Some(src), Some(tgt)) = (text(src), text(tgt)) else {
            if filters.has(Check::Encoding) {
                return Ok(passed);
            }
            let bad = if text(src).is_none() {
                (src, paths[0])
            } else {
                (tgt, paths[1])
            };
            return Err(not_text(bad.0, bad.1, line + 1));
        };
        (passed.src, passed.tgt) = (src.to_owned(), tgt.to_owned());
        let damaged = self.repair(&mut passed);
        let in_stretch = |stretch: &Stretch| stretch.may_hold(file, line);
        let (src, tgt) = (&*passed.src, &*passed.tgt);
        let held_out = &self.options.held_out;
        passed.rejected = if damaged {
            Some(Check::Controls)
        } else {
            // Each of these stands in the order of the checks.
            let alone = self.checks.first(src, tgt, filters);
            let misaligned =
                filters.has(Check::Misaligned) && self.stretches.iter().any(in_stretch);
            let held = filters.has(Check::HeldOut) && (held_out.holds(src) || held_out.holds(tgt));
            [
                alone,
                misaligned.then_some(Check::Misaligned),
                held.then_some(Check::HeldOut),
            ]
            .into_iter()
            .flatten()
            .min()
        };
        passed.hash = passed.rejected.is_none().then(|| PairHash::of(src, tgt));
        Ok(passed)
    }

    /// Repairs both sides; whether one is damaged for good.
    fn repair(&self, pair: &mut Passed) -> bool {
        let filters = self.options.filters;
        let mut damaged = false;
        for side in [&mut pair.src, &mut pair.tgt] {
            if filters.has(Check::Mojibake) && characters::has_mojibake(side) {
                *side = characters::without_mojibake(side).into_owned();
                pair.repaired.add_if(Check::Mojibake, true);
            }
            if filters.has(Check::Controls) && characters::has_controls(side) {
                match characters::without_controls(side) {
                    Some(repaired) => {
                        *side = repaired;
                        pair.repaired.add_if(Check::Controls, true);
                    }
                    None => damaged = true,
                }
            }
            if filters.has(Check::Nfc) && characters::is_not_nfc(side) {
                *side = characters::nfc(side);
                pair.repaired.add_if(Check::Nfc, true);
            }
        }
        damaged
    }
}

fn not_text(bytes: &[u8], path: &std::path::Path, line: usize) -> TextError {
    let path = path.to_path_buf();
    match std::str::from_utf8(bytes) {
        Ok(_) => TextError::Binary { path, line },
        Err(error) => TextError::NotUtf8 {
            path,
            line,
            column: error.valid_up_to() + 1,
        },
    }
}

#[cfg(test)]
mod tests;
