//! What a run will need: time, memory, disk; by a trial of its first steps on this machine.
//!
//! Formulas for time and memory are wrong on the next machine. So the real training loop runs for a moment in a
//! temporary folder, on some pairs of the real corpus, and what it took is multiplied: seconds of a batch by the batches
//! of the run, the size of its checkpoint by how many are kept. Validation takes time that no trial of a moment shows;
//! it is left out, and said so. Neighbors: [`crate::trainer`] is the loop, `attentive doctor` asks.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use attentive_model::directory::Tokenizers;
use burn::tensor::Device;

use crate::data::batches::{Budget, plan};
use crate::data::corpus::Pair;
use crate::error::StorageError;
use crate::events::{Event, Observer};
use crate::optim::schedule::Schedule;
use crate::recipe::Recipe;
use crate::run::directory::CHECKPOINTS;
use crate::{Result, Session};

/// What the first steps took.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The vocabularies that were learned from the pairs, or those of `training.start_from`.
    pub tokenizers: Tokenizers,
    /// Trainable numbers.
    pub parameters: usize,
    /// Seconds of a batch, forward and backward, and its part of an optimizer step.
    pub seconds_per_batch: f64,
    /// Batches that this was measured over.
    pub batches: usize,
    /// Size of a checkpoint.
    pub checkpoint_bytes: u64,
    /// By how much this process grew at most, where the system says so.
    pub memory_bytes: Option<u64>,
}

/// What a whole run needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Needs {
    /// Sentence pairs of an epoch, as `data.weights` has it.
    pub pairs: f64,
    /// Optimizer steps.
    pub steps: f64,
    /// Epochs that these are.
    pub epochs: f64,
    /// Seconds of training, without validation.
    pub seconds: f64,
    /// Bytes of memory, where they could be measured.
    pub memory_bytes: Option<u64>,
    /// Bytes on the disk.
    pub disk_bytes: u64,
    /// Checkpoints on the disk at the same time, at most.
    pub checkpoints: usize,
}

/// The first steps are slower, and not measured.
const WARM_UP: u64 = 2;

/// Steps are measured for so long, and at least so many.
const MEASURED: Duration = Duration::from_millis(1500);
const FEWEST_STEPS: u64 = 3;

/// Lines of the trial's corpus, at least.
const FEWEST_LINES: usize = 20_000;

/// Trains for a moment on these pairs, in a new folder in `scratch`; `observer` hears what happens.
pub fn trial(
    recipe: &Recipe,
    device: Device,
    pairs: &[(String, String)],
    scratch: &Path,
    observer: &mut dyn Observer,
) -> Result<Trial> {
    let write = |name: &str, lines: &mut dyn Iterator<Item = &str>| {
        let text: String = lines.flat_map(|line| [line, "\n"]).collect();
        let path = scratch.join(name);
        fs::write(&path, text).map_err(StorageError::io("write", &path))
    };
    // An epoch ends with a checkpoint, so a small corpus is repeated until its epoch is long enough.
    let lines = pairs.len().max(FEWEST_LINES);
    let pairs = || pairs.iter().cycle().take(lines);
    write("trial.src", &mut pairs().map(|(src, _)| &**src))?;
    write("trial.tgt", &mut pairs().map(|(_, tgt)| &**tgt))?;
    let recipe = of_trial(recipe, scratch);
    let stop = AtomicBool::new(false);
    let out = scratch.join("run");
    let mut watch = Watch {
        stop: &stop,
        observer,
        parameters: 0,
        began: None,
        last: None,
    };
    let before = memory::reset_peak();
    let session = Session {
        recipe: &recipe,
        out: &out,
        device,
        stop: &stop,
    };
    crate::train(session, &mut watch)?;
    let memory_bytes = memory::peak()
        .zip(before)
        .map(|(peak, before)| peak.saturating_sub(before));
    let (parameters, measured) = (watch.parameters, watch.measured());
    let checkpoint = newest(&out.join(CHECKPOINTS))?;
    Ok(Trial {
        tokenizers: Tokenizers::load(&checkpoint)?,
        parameters,
        seconds_per_batch: measured.0 / recipe.training.accumulate as f64,
        batches: measured.1 as usize * recipe.training.accumulate,
        checkpoint_bytes: folder_bytes(&checkpoint),
        memory_bytes,
    })
}

/// The same run on other files, without validation and without checkpoints but the last.
fn of_trial(recipe: &Recipe, scratch: &Path) -> Recipe {
    let mut trial = recipe.clone();
    let data = &mut trial.data;
    data.prepared.clear();
    if data.synthetic.is_none() {
        data.dir = scratch.display().to_string();
        data.src = vec!["trial.src".into()];
        data.tgt = vec!["trial.tgt".into()];
    } else if let Some(synthetic) = &mut data.synthetic {
        synthetic.val_lines = 0;
    }
    for list in [
        &mut data.held_out,
        &mut data.val_src,
        &mut data.val_tgt,
        &mut data.vocab_src,
        &mut data.vocab_tgt,
    ] {
        list.clear();
    }
    data.weights.clear();
    trial.training.epochs = 1_000_000;
    (trial.training.max_steps, trial.training.max_minutes) = (0, 0.0);
    // R-Drop costs from the epoch on in which it begins, so the trial has it from the first.
    trial.training.r_drop_after = 0;
    trial.validation.every_steps = 0;
    trial.checkpoints.every_steps = 0;
    trial.checkpoints.every_minutes = 0.0;
    trial.checkpoints.average_last = 0;
    trial
}

/// Measures steps, and stops the trial.
struct Watch<'a> {
    stop: &'a AtomicBool,
    observer: &'a mut dyn Observer,
    parameters: usize,
    began: Option<(u64, Instant)>,
    last: Option<(u64, Instant)>,
}

impl Watch<'_> {
    /// Seconds of a step, and steps.
    fn measured(&self) -> (f64, u64) {
        match (self.began, self.last) {
            (Some((first, began)), Some((last, now))) if last > first => {
                let steps = last - first;
                ((now - began).as_secs_f64() / steps as f64, steps)
            }
            _ => (0.0, 0),
        }
    }
}

impl Observer for Watch<'_> {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Started(started) => self.parameters = started.parameters,
            Event::Step(report) => {
                let now = Instant::now();
                if report.step == WARM_UP {
                    self.began = Some((report.step, now));
                }
                self.last = Some((report.step, now));
                if let Some((first, began)) = self.began
                    && report.step >= first + FEWEST_STEPS
                    && now - began >= MEASURED
                {
                    self.stop.store(true, Ordering::Relaxed);
                }
            }
            Event::Preparing(_) => self.observer.event(event),
            _ => {}
        }
    }
}

impl Needs {
    /// Of the recipe's run over files with these numbers of pairs, judged by `sample`, which is spread evenly over them.
    pub fn estimate(
        recipe: &Recipe,
        trial: &Trial,
        files: &[usize],
        sample: &[(String, String)],
    ) -> Self {
        let training = &recipe.training;
        let weight = |file: usize| recipe.data.weights.get(file).copied().unwrap_or(1.0);
        let pairs: f64 = files
            .iter()
            .enumerate()
            .map(|(file, pairs)| weight(file) * *pairs as f64)
            .sum();
        let encode = |(src, tgt): &(String, String)| Pair {
            src: attentive_text::special::source_ids(trial.tokenizers.src.encode(src)),
            tgt: attentive_text::special::target_ids(&trial.tokenizers.tgt.encode(tgt)),
        };
        let fits = |pair: &Pair| pair.src.len().max(pair.tgt.len()) <= recipe.data.max_length;
        let encoded: Vec<Pair> = sample.iter().map(encode).filter(fits).collect();
        let batches = plan(&encoded, Budget::of(training), training.seed, 0).len();
        let kept = encoded.len() as f64 / sample.len().max(1) as f64;
        let per_epoch = pairs * kept * batches as f64 / encoded.len().max(1) as f64;
        let per_epoch = (per_epoch / training.accumulate as f64).max(1.0);
        let schedule = Schedule::new(&recipe.schedule, recipe.model.config.width())
            .accumulating(training.accumulate);
        let limit = (training.max_steps > 0).then_some(training.max_steps);
        let limit = limit.into_iter().chain(schedule.last_step()).min();
        let mut steps = per_epoch * training.epochs as f64;
        steps = limit.map_or(steps, |limit| steps.min(limit as f64));
        let per_step = trial.seconds_per_batch * training.accumulate as f64;
        let mut seconds = steps * per_step;
        if training.max_minutes > 0.0 && training.max_minutes * 60.0 < seconds {
            steps *= training.max_minutes * 60.0 / seconds;
            seconds = training.max_minutes * 60.0;
        }
        let checkpoints = kept_checkpoints(recipe);
        let text = corpus_bytes(&encoded, sample) * files.iter().sum::<usize>() as f64;
        Self {
            pairs,
            steps,
            epochs: steps / per_epoch,
            seconds,
            memory_bytes: trial.memory_bytes.map(|bytes| bytes + text as u64),
            disk_bytes: trial.checkpoint_bytes * checkpoints as u64,
            checkpoints,
        }
    }
}

/// The newest, those to be averaged, the best one, the average, and the one that is being written.
fn kept_checkpoints(recipe: &Recipe) -> usize {
    let keep = &recipe.checkpoints;
    let average = usize::from(keep.average_last > 0);
    keep.keep_last.max(1).max(keep.average_last) + 2 + average
}

/// Bytes that a pair of the corpus takes, as text and as numbers.
fn corpus_bytes(encoded: &[Pair], sample: &[(String, String)]) -> f64 {
    let list = size_of::<Vec<u32>>();
    let numbers: usize = encoded
        .iter()
        .map(|pair| 4 * (pair.src.len() + pair.tgt.len()) + 2 * list)
        .sum();
    let text: usize = sample
        .iter()
        .map(|(src, tgt)| src.len() + tgt.len() + 2 * list)
        .sum();
    // Numbers are there twice for a moment: as they are encoded, and framed.
    2.0 * numbers as f64 / encoded.len().max(1) as f64 + text as f64 / sample.len().max(1) as f64
}

fn newest(folder: &Path) -> Result<std::path::PathBuf> {
    let entries = fs::read_dir(folder).map_err(StorageError::io("read", folder))?;
    let newest = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .max();
    let none = || std::io::Error::from(std::io::ErrorKind::NotFound);
    Ok(newest
        .ok_or_else(none)
        .map_err(StorageError::io("read", folder))?)
}

fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .map(|file| file.len())
        .sum()
}

/// The memory of this process, where Linux tells it.
mod memory {
    use std::fs;

    /// Forgets the peak so far; gives what is in use now.
    pub(super) fn reset_peak() -> Option<u64> {
        fs::write("/proc/self/clear_refs", "5").ok()?;
        line("VmRSS:")
    }

    /// The most that was in use since.
    pub(super) fn peak() -> Option<u64> {
        line("VmHWM:")
    }

    fn line(name: &str) -> Option<u64> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes * 1024)
    }
}

#[cfg(test)]
mod tests;
