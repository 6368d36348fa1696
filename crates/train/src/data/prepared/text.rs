//! The text of a corpus that is too large for memory, line by line: what it is, and the vocabulary of it.
//!
//! Neighbor: [`super::prepare`] encodes the same lines.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use attentive_model::directory::Tokenizers;
use attentive_text::TextError;
use attentive_text::lines::{LineReader, read_lines};
use attentive_text::parallel::ParallelCorpus;
use rayon::prelude::*;

use super::Sample;
use super::prepare::Progress;
use crate::data::corpus::learn_tokenizers;
use crate::data::fingerprint::{CorpusFingerprint, LinesPrint};
use crate::data::held_out::HeldOut;
use crate::data::mixture::visits_of;
use crate::error::Result;
use crate::recipe::Recipe;

/// Pairs from which a vocabulary is learned, at most: more change little and take long.
const VOCABULARY_PAIRS: usize = 1_000_000;

/// Lines between two looks at whether to stop.
const LINES_AT_ONCE: usize = 4096;

/// The files of a corpus as they are today.
pub(super) struct Files {
    pub(super) fingerprint: CorpusFingerprint,
    /// Lines of each pair of training files.
    pub(super) lines: Vec<usize>,
}

/// Reads every file once; nothing if it was asked to stop.
pub(super) fn read_files(
    recipe: &Recipe,
    stop: &AtomicBool,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Option<Files>> {
    let data = &recipe.data;
    let roles = [
        (&data.held_out, "prepared held-out"),
        (&data.src, "prepared training source"),
        (&data.tgt, "prepared training target"),
        (&data.vocab_src, "prepared vocabulary source"),
        (&data.vocab_tgt, "prepared vocabulary target"),
    ];
    let all: Vec<(&String, PathBuf, &str)> = roles
        .iter()
        .flat_map(|(files, role)| {
            let paths = data.paths(files).into_iter();
            files
                .iter()
                .zip(paths)
                .map(|(file, path)| (file, path, *role))
        })
        .collect();
    let size = |path: &PathBuf| fs::metadata(path).map_or(0, |metadata| metadata.len());
    let total = all.iter().map(|(_, path, _)| size(path)).sum();
    let done = AtomicU64::new(0);
    let read = |path: &Path| -> Result<LinesPrint, TextError> {
        let mut print = LinesPrint::default();
        let (mut reader, mut counted) = (LineReader::open(path)?, 0);
        while let Some(line) = reader.next() {
            print.add(&line?);
            if print.lines().is_multiple_of(LINES_AT_ONCE) {
                let more = reader.bytes_read() - counted;
                counted += more;
                let done = done.fetch_add(more, Ordering::Relaxed) + more;
                progress(Progress::Reading(done, total));
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
        Ok(print)
    };
    let prints: Vec<LinesPrint> = all
        .par_iter()
        .map(|(_, path, _)| read(path))
        .collect::<Result<_, _>>()?;
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let first = data.held_out.len();
    let training = &prints[first..first + 2 * data.src.len()];
    let (src, tgt) = training.split_at(data.src.len());
    let paths = data.paths(&data.src).into_iter().zip(data.paths(&data.tgt));
    let mut lines = Vec::new();
    for ((src, tgt), (src_path, tgt_path)) in src.iter().zip(tgt).zip(paths) {
        if src.lines() != tgt.lines() {
            return Err(TextError::LineCounts {
                src: src_path,
                src_lines: src.lines(),
                tgt: tgt_path,
                tgt_lines: tgt.lines(),
            }
            .into());
        }
        if src.lines() == 0 {
            let files = vec![src_path, tgt_path];
            return Err(TextError::EmptyCorpus { files }.into());
        }
        lines.push(src.lines());
    }
    let mut fingerprint = CorpusFingerprint::default();
    for ((file, _, role), print) in all.iter().zip(prints) {
        fingerprint.add_print(file, role, print);
    }
    Ok(Some(Files { fingerprint, lines }))
}

/// The sentences that must not be learned.
pub(super) fn held_out(recipe: &Recipe) -> Result<HeldOut> {
    let mut held_out = HeldOut::default();
    for path in recipe.data.paths(&recipe.data.held_out) {
        held_out.add(&read_lines(&path)?);
    }
    Ok(held_out)
}

/// Learns the vocabularies from pairs as often as the first epoch visits them, or from a part of these.
pub(super) fn learn(
    recipe: &Recipe,
    files: &Files,
    held_out: &HeldOut,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<(Tokenizers, Sample)> {
    let data = &recipe.data;
    let weight = |file: usize| data.weights.get(file).copied().unwrap_or(1.0);
    let visited = |(file, lines): (usize, &usize)| weight(file) * *lines as f64;
    let visits: f64 = files.lines.iter().enumerate().map(visited).sum();
    let share = (VOCABULARY_PAIRS as f64 / visits).min(1.0);
    let (mut sample, mut line) = (ParallelCorpus::default(), 0);
    for file in 0..data.src.len() {
        for pair in pairs(recipe, file)? {
            let (src, tgt) = pair?;
            if held_out.holds(&src, &tgt) {
                continue;
            }
            for _ in 0..visits_of(line, share * weight(file), recipe.training.seed, 0) {
                sample.src.push(src.clone());
                sample.tgt.push(tgt.clone());
            }
            line += 1;
        }
    }
    let used = Sample {
        pairs: sample.len(),
        of: files.lines.iter().sum(),
    };
    progress(Progress::Vocabulary(used));
    let more = |files: &[String]| -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for path in data.paths(files) {
            lines.extend(read_lines(&path)?);
        }
        Ok(lines)
    };
    let (more_src, more_tgt) = (more(&data.vocab_src)?, more(&data.vocab_tgt)?);
    let src = || sample.src.iter().chain(&more_src).map(String::as_str);
    let tgt = || sample.tgt.iter().chain(&more_tgt).map(String::as_str);
    Ok((learn_tokenizers(recipe, src, tgt)?, used))
}

/// The pairs of lines of a file, of which both sides have as many.
pub(super) fn pairs(
    recipe: &Recipe,
    file: usize,
) -> Result<impl Iterator<Item = Result<(String, String), TextError>>> {
    let open = |files: &[String]| LineReader::open(&recipe.data.paths(&files[file..=file])[0]);
    let (src, tgt) = (open(&recipe.data.src)?, open(&recipe.data.tgt)?);
    Ok(src.zip(tgt).map(|(src, tgt)| Ok((src?, tgt?))))
}
