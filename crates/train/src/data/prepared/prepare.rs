//! `attentive prepare`: text files -> vocabularies and shards, in the memory of a few shards, with all threads.
//!
//! The files are read twice: once for their fingerprints and the vocabulary, which is learned from a sample where the
//! corpus is large, and once to be encoded. A shard holds the pairs of a fixed range of lines and appears complete, so
//! that an interrupted preparation goes on with the shards that are missing. The manifest is written last.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

use attentive_model::directory::{ModelDir, Tokenizers};
use attentive_model::durable;
use attentive_text::parallel::ParallelCorpus;

use super::shard::{self, Header, Key, LONGEST, Shard};
use super::text::{Files, held_out, learn, pairs, read_files};
use super::{
    FORMAT, MANIFEST, Manifest, PREPARATION, Preparation, PreparedError, Sample, Settings,
    ShardEntry, read_json, to_json,
};
use crate::data::corpus::{Report, encode_lines, refuse_missing_files};
use crate::data::fingerprint::CorpusFingerprint;
use crate::data::held_out::HeldOut;
use crate::error::{Result, TrainError};
use crate::recipe::Recipe;

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Bytes of the files that were read, and all of them.
    Reading(u64, u64),
    /// The vocabulary is learned from these pairs.
    Vocabulary(Sample),
    /// Shards that are written, and all of them.
    Encoding(usize, usize),
}

/// How it ended.
#[derive(Debug)]
pub enum Outcome {
    /// Everything is written.
    Done {
        /// What was written last.
        manifest: Box<Manifest>,
        /// Shards that were there already.
        kept: usize,
    },
    /// It was asked to stop, and can go on.
    Interrupted,
}

/// Lines of a shard.
const SHARD_LINES: usize = 1 << 17;

/// The lines of a shard.
struct Chunk {
    path: PathBuf,
    file: usize,
    first_line: usize,
    lines: usize,
}

/// Prepares what the recipe names into its `data.prepared`, or goes on with it. What is there is verified.
pub fn prepare(
    recipe: &Recipe,
    stop: &AtomicBool,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Outcome> {
    if recipe.data.max_length > LONGEST {
        return Err(PreparedError::TooLong(recipe.data.max_length).into());
    }
    refuse_missing_files(recipe, |_| true)?;
    let folder = PathBuf::from(&recipe.data.prepared);
    let _lock = open_folder(&folder)?;
    let Some(files) = read_files(recipe, stop, progress)? else {
        return Ok(Outcome::Interrupted);
    };
    let held_out = held_out(recipe)?;
    let (preparation, tokenizers) = match begun(recipe, &files.fingerprint, &folder)? {
        Some(begun) => begun,
        None => begin(recipe, &files, &held_out, &folder, progress)?,
    };
    let job = Job {
        recipe,
        key: preparation.key(&tokenizers),
        tokenizers,
        held_out,
        files,
    };
    let chunks = job.chunks(&folder);
    let there: Vec<Option<Arc<Shard>>> = chunks.iter().map(|chunk| job.existing(chunk)).collect();
    let kept = there.iter().flatten().count();
    if !job.write_missing(&chunks, &there, stop, progress)? {
        return Ok(Outcome::Interrupted);
    }
    let manifest = Box::new(job.manifest(preparation, &chunks)?);
    write(&folder.join(MANIFEST), &to_json(&manifest))?;
    Ok(Outcome::Done { manifest, kept })
}

/// Makes the folder, takes its lock and removes what an interrupted process left.
fn open_folder(folder: &Path) -> Result<File, PreparedError> {
    fs::create_dir_all(folder).map_err(PreparedError::io("make", folder))?;
    let path = folder.join(".lock");
    let lock = File::options()
        .create(true)
        .write(true)
        .truncate(false)
        .open(&path)
        .map_err(PreparedError::io("write", &path))?;
    if let Err(TryLockError::WouldBlock) = lock.try_lock() {
        return Err(PreparedError::Locked(folder.to_owned()));
    }
    for entry in fs::read_dir(folder).map_err(PreparedError::io("read", folder))? {
        let entry = entry.map_err(PreparedError::io("read", folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(durable::TEMPORARY) {
            let _ = fs::remove_file(entry.path());
        } else if !name.starts_with('.') && !is_ours(&name) {
            return Err(PreparedError::Foreign(entry.path()));
        }
    }
    Ok(lock)
}

/// Whether `prepare` writes files of this name.
fn is_ours(name: &str) -> bool {
    name == MANIFEST
        || name == PREPARATION
        || name.contains("tokenizer.")
        || name.ends_with(SHARD_ENDING)
}

const SHARD_ENDING: &str = ".pairs";

/// What was begun in this folder before; it must have been the same.
fn begun(
    recipe: &Recipe,
    corpus: &CorpusFingerprint,
    folder: &Path,
) -> Result<Option<(Preparation, Tokenizers)>> {
    let Some(begun) = read_json::<Preparation>(&folder.join(PREPARATION))? else {
        return Ok(None);
    };
    begun.refuse_other(recipe, folder)?;
    let differences = begun.corpus.differences(corpus);
    if !differences.is_empty() {
        let folder = folder.to_owned();
        return Err(PreparedError::Differs {
            folder,
            differences,
        }
        .into());
    }
    let tokenizers = Tokenizers::load(folder)?;
    if let Some(given) = tokenizers_of_model(recipe)?
        && super::fingerprints(&given) != super::fingerprints(&tokenizers)
    {
        return Err(PreparedError::OtherVocabulary(folder.to_owned()).into());
    }
    Ok(Some((begun, tokenizers)))
}

/// Learns the vocabularies, or takes those of the model to start from, and writes down what is prepared.
fn begin(
    recipe: &Recipe,
    files: &Files,
    held_out: &HeldOut,
    folder: &Path,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<(Preparation, Tokenizers)> {
    let (tokenizers, vocabulary) = match tokenizers_of_model(recipe)? {
        Some(tokenizers) => (tokenizers, None),
        None => {
            let (tokenizers, sample) = learn(recipe, files, held_out, progress)?;
            (tokenizers, Some(sample))
        }
    };
    tokenizers.save(folder)?;
    let preparation = Preparation {
        format: FORMAT,
        settings: Settings::of(recipe),
        corpus: files.fingerprint.clone(),
        vocabulary,
    };
    write(&folder.join(PREPARATION), &to_json(&preparation))?;
    Ok((preparation, tokenizers))
}

fn tokenizers_of_model(recipe: &Recipe) -> Result<Option<Tokenizers>> {
    if recipe.training.learns_vocabulary() {
        return Ok(None);
    }
    Ok(Some(
        ModelDir::open(&recipe.training.start_from)?.tokenizers,
    ))
}

/// Everything that decides what the shards hold.
struct Job<'a> {
    recipe: &'a Recipe,
    key: Key,
    tokenizers: Tokenizers,
    held_out: HeldOut,
    files: Files,
}

impl Job<'_> {
    /// The shards of the corpus.
    fn chunks(&self, folder: &Path) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        for (file, &lines) in self.files.lines.iter().enumerate() {
            for first_line in (0..lines).step_by(SHARD_LINES) {
                let name = format!("{:05}{SHARD_ENDING}", chunks.len());
                chunks.push(Chunk {
                    path: folder.join(name),
                    file,
                    first_line,
                    lines: SHARD_LINES.min(lines - first_line),
                });
            }
        }
        chunks
    }

    /// The shard of a chunk, if it is there and intact.
    fn existing(&self, chunk: &Chunk) -> Option<Arc<Shard>> {
        let shard = Arc::new(Shard::open(&chunk.path, &self.key).ok()?);
        let header = shard.header();
        let same = header.file == chunk.file as u64
            && header.first_line == chunk.first_line as u64
            && header.report.read == chunk.lines;
        (same && shard.verify().is_ok()).then_some(shard)
    }

    /// Writes the shards that are not there; whether it came to the end.
    fn write_missing(
        &self,
        chunks: &[Chunk],
        there: &[Option<Arc<Shard>>],
        stop: &AtomicBool,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<bool> {
        let mut done = there.iter().flatten().count();
        progress(Progress::Encoding(done, chunks.len()));
        let missing: Vec<&Chunk> = chunks
            .iter()
            .zip(there)
            .filter(|(_, shard)| shard.is_none())
            .map(|(chunk, _)| chunk)
            .collect();
        // The next shard is read while one is encoded.
        let (sender, receiver) = sync_channel(1);
        std::thread::scope(|scope| {
            scope.spawn(|| self.read(&missing, sender));
            for &chunk in &missing {
                if stop.load(Ordering::Relaxed) {
                    drop(receiver);
                    return Ok(false);
                }
                let Ok(text) = receiver.recv() else {
                    break;
                };
                self.write(chunk, text?)?;
                done += 1;
                progress(Progress::Encoding(done, chunks.len()));
            }
            Ok(true)
        })
    }

    /// Reads the lines of these chunks and sends them, until nobody wants more.
    fn read(&self, missing: &[&Chunk], sender: SyncSender<Result<ParallelCorpus>>) {
        for chunks in missing.chunk_by(|one, next| one.file == next.file) {
            let mut lines = match pairs(self.recipe, chunks[0].file) {
                Ok(lines) => lines,
                Err(error) => {
                    let _ = sender.send(Err(error));
                    return;
                }
            };
            let mut at = 0;
            for chunk in chunks {
                let skipped = lines.by_ref().take(chunk.first_line - at).count();
                let text = if skipped == chunk.first_line - at {
                    let pairs = lines.by_ref().take(chunk.lines);
                    pairs.collect::<Result<(Vec<_>, Vec<_>), _>>()
                } else {
                    Ok(Default::default())
                };
                at = chunk.first_line + chunk.lines;
                let text = text.map_err(TrainError::from);
                let text =
                    text.and_then(|(src, tgt)| self.whole(chunk, ParallelCorpus { src, tgt }));
                if sender.send(text).is_err() {
                    return;
                }
            }
        }
    }

    /// Refuses a file that has become shorter.
    fn whole(&self, chunk: &Chunk, text: ParallelCorpus) -> Result<ParallelCorpus> {
        if text.len() == chunk.lines {
            return Ok(text);
        }
        let file = &self.recipe.data.src[chunk.file];
        Err(PreparedError::ChangedMeanwhile(file.clone()).into())
    }

    fn write(&self, chunk: &Chunk, mut text: ParallelCorpus) -> Result<()> {
        let held_out = self.held_out.remove_from(&mut text);
        let (pairs, mut report) =
            encode_lines(&text, self.recipe.data.max_length, &self.tokenizers);
        report.read += held_out;
        report.held_out = held_out;
        let header = Header {
            file: chunk.file as u64,
            first_line: chunk.first_line as u64,
            report,
            ..Header::default()
        };
        let Tokenizers { src, tgt } = &self.tokenizers;
        let vocabulary = src.vocab_size().max(tgt.vocab_size());
        shard::write(&chunk.path, &self.key, header, &pairs, vocabulary)?;
        Ok(())
    }

    fn manifest(&self, preparation: Preparation, chunks: &[Chunk]) -> Result<Manifest> {
        let mut report = Report::default();
        let mut shards = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            let shard = Shard::open(&chunk.path, &self.key)?;
            report.add(&shard.header().report);
            let name = chunk.path.file_name().unwrap_or_default();
            shards.push(ShardEntry {
                name: name.to_string_lossy().into_owned(),
                blake3: shard.checksum(),
            });
        }
        if report.kept() == 0 {
            return Err(TrainError::NothingLeft {
                role: "training",
                report,
                longest: self.recipe.data.max_length,
            });
        }
        Ok(Manifest {
            preparation,
            report,
            shards,
        })
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), PreparedError> {
    durable::write(path, bytes).map_err(PreparedError::io("write", path))
}
