//! A recipe's part of the diagnosis: its corpus, its vocabulary, and what its run will need on this machine.
//!
//! The trial comes first, while this process is small, so that the memory it takes can be told.

use std::path::Path;

use anyhow::bail;
use attentive_model::config::Family;
use attentive_text::lines::LineReader;
use attentive_text::quality::coverage::{Coverage, MANY};
use attentive_text::quality::findings::{self, Finding, Severity};
use attentive_train::Recipe;
use attentive_train::data::corpus::refuse_missing_files;
use attentive_train::events::{Event, Observer};
use attentive_train::needs::{Needs, Trial, trial};
use attentive_train::recipe::Data;
use indicatif::ProgressBar;
use serde_json::json;

use super::{Corpus, Diagnosis, DoctorArgs, look, print, test_set};
use crate::bar::bar;
use crate::terminal::Terminal;
use crate::wording::{bytes, count, duration};

/// Checks the recipe and what it names.
pub fn diagnose(args: &DoctorArgs, path: &Path, terminal: &Terminal) -> anyhow::Result<Diagnosis> {
    let recipe = Recipe::load(path, &args.set).map_err(crate::commands::train::explained)?;
    let pairs = [Family::Transformer, Family::Recurrent];
    if !pairs.contains(&recipe.model.family()) {
        bail!(
            "{}: `doctor` checks sentence pairs, and this recipe's family is `{}`, which has none; `attentive train` \
             checks the recipe itself before it begins",
            path.display(),
            recipe.model.family().name()
        );
    }
    let trial = if args.corpus_only {
        None
    } else {
        if recipe.data.synthetic.is_none() {
            refuse_missing_files(&recipe, |_| true)?;
        }
        Some(measure(&recipe, terminal)?)
    };
    if let Some(synthetic) = &recipe.data.synthetic {
        let pairs: Vec<(String, String)> =
            attentive_train::data::synthetic::generate(synthetic).train;
        return Ok(of_run(&recipe, trial.as_ref(), &[synthetic.lines], &pairs));
    }
    refuse_missing_files(&recipe, |_| true)?;
    let corpus = corpus(&recipe.data)?;
    let inspection = look(args, &corpus, terminal)?;
    let files: Vec<usize> = inspection.files.iter().map(|file| file.pairs()).collect();
    let mut diagnosis = of_run(&recipe, trial.as_ref(), &files, inspection.sample.pairs());
    if let Some(trial) = &trial {
        diagnosis.findings.extend(vocabulary(
            &recipe,
            trial,
            &corpus,
            inspection.sample.pairs(),
        ));
    }
    diagnosis.findings.extend(findings::findings(&inspection));
    findings::sort(&mut diagnosis.findings);
    diagnosis.clean = print::clean_command(&corpus, &diagnosis.findings);
    diagnosis.inspection = Some(inspection);
    Ok(diagnosis)
}

fn corpus(data: &Data) -> anyhow::Result<Corpus> {
    let mut corpus = Corpus {
        src: data.paths(&data.src),
        tgt: data.paths(&data.tgt),
        held_out: Vec::new(),
        test_sets: Vec::new(),
    };
    let held_out = data.paths(&data.held_out);
    for (src, tgt) in data
        .paths(&data.val_src)
        .into_iter()
        .zip(data.paths(&data.val_tgt))
    {
        // Training leaves these out itself.
        if held_out.contains(&src) && held_out.contains(&tgt) {
            continue;
        }
        corpus.test_sets.push(test_set(&src, &tgt)?);
        corpus.held_out.extend([src, tgt]);
    }
    Ok(corpus)
}

/// Trains for a moment.
fn measure(recipe: &Recipe, terminal: &Terminal) -> anyhow::Result<Trial> {
    let scratch = tempfile::tempdir()?;
    let pairs = beginnings(&recipe.data)?;
    let spinner = bar(terminal, None, "{spinner} {msg} {elapsed}");
    spinner.set_message("training for a moment");
    let device = attentive_nn::device::parse("cpu")?;
    let measured = trial(recipe, device, &pairs, scratch.path(), &mut Shown(&spinner));
    spinner.finish_and_clear();
    Ok(measured?)
}

struct Shown<'a>(&'a ProgressBar);

impl Observer for Shown<'_> {
    fn event(&mut self, event: &Event) {
        if let Event::Preparing(what) = event {
            self.0.set_message(format!("training for a moment: {what}"));
        }
    }
}

/// Pairs of the trial: some of the beginning of each file, what is not text left out.
fn beginnings(data: &Data) -> anyhow::Result<Vec<(String, String)>> {
    const MOST: usize = 40_000;
    let (src, tgt) = (data.paths(&data.src), data.paths(&data.tgt));
    let most = MOST / src.len().max(1);
    let mut pairs = Vec::new();
    for (src, tgt) in src.iter().zip(&tgt) {
        let (mut src, mut tgt) = (LineReader::open(src)?, LineReader::open(tgt)?);
        for _ in 0..most {
            let (Some(src), Some(tgt)) = (src.next_bytes()?, tgt.next_bytes()?) else {
                break;
            };
            let text = |line: &[u8]| String::from_utf8_lossy(line).replace('\0', " ");
            pairs.push((text(src), text(tgt)));
        }
    }
    Ok(pairs)
}

/// What the run needs, and whether this machine has it.
fn of_run(
    recipe: &Recipe,
    trial: Option<&Trial>,
    files: &[usize],
    sample: &[(String, String)],
) -> Diagnosis {
    let mut diagnosis = Diagnosis {
        inspection: None,
        findings: Vec::new(),
        clean: None,
        needs: Vec::new(),
        needs_json: serde_json::Value::Null,
    };
    let Some(trial) = trial else {
        return diagnosis;
    };
    let needs = Needs::estimate(recipe, trial, files, sample);
    diagnosis.needs = vec![
        ("model", format!("{} parameters", count(trial.parameters))),
        (
            "time",
            format!(
                "about {} on this machine: {} steps of {:.2} s ({:.1} epochs), without validation",
                duration(needs.seconds),
                count(needs.steps as usize),
                needs.seconds / needs.steps.max(1.0),
                needs.epochs
            ),
        ),
    ];
    if let Some(memory) = needs.memory_bytes {
        diagnosis
            .needs
            .push(("memory", format!("about {}", bytes(memory))));
    }
    let (disk, each) = (bytes(needs.disk_bytes), bytes(trial.checkpoint_bytes));
    diagnosis.needs.push((
        "disk",
        format!(
            "at most {disk}: {} checkpoints of {each}",
            needs.checkpoints
        ),
    ));
    diagnosis.needs_json = json!({
        "parameters": trial.parameters,
        "seconds": needs.seconds,
        "steps": needs.steps,
        "epochs": needs.epochs,
        "seconds_per_batch": trial.seconds_per_batch,
        "memory_bytes": needs.memory_bytes,
        "disk_bytes": needs.disk_bytes,
        "checkpoint_bytes": trial.checkpoint_bytes,
    });
    let finding = |name, title, advice: &str| Finding {
        severity: Severity::Error,
        name,
        title,
        pairs: 0,
        examples: Vec::new(),
        advice: advice.to_owned(),
        filter: None,
    };
    if let (Some(needed), Some(there)) = (needs.memory_bytes, available_memory())
        && needed > there
    {
        diagnosis.findings.push(finding(
            "memory",
            format!("the run needs about {} of memory, and {} are free", bytes(needed), bytes(there)),
            "lower `training.batch_tokens` and raise `training.accumulate` as much, or take a smaller `model.preset`",
        ));
    }
    if let Some(there) = free_disk()
        && needs.disk_bytes > there
    {
        diagnosis.findings.push(finding(
            "disk",
            format!(
                "the run needs up to {disk} of disk, and {} are free in this folder",
                bytes(there)
            ),
            "free some space, choose another disk for --out, or lower `checkpoints.keep_last`",
        ));
    }
    diagnosis
}

/// What the vocabulary makes of the text.
fn vocabulary(
    recipe: &Recipe,
    trial: &Trial,
    corpus: &Corpus,
    sample: &[(String, String)],
) -> Vec<Finding> {
    let longest = recipe.data.max_length;
    let long = sample.iter().filter(|(src, tgt)| {
        let tokens = |side: &str, of: &attentive_text::Tokenizer| {
            side.len() > longest && of.encode(side).len() + 2 > longest
        };
        tokens(src, &trial.tokenizers.src) || tokens(tgt, &trial.tokenizers.tgt)
    });
    let mut found = Vec::new();
    let finding = |severity, name, title, advice: String| Finding {
        severity,
        name,
        title,
        pairs: 0,
        examples: Vec::new(),
        advice,
        filter: None,
    };
    let long_share = long.count() as f64 / sample.len().max(1) as f64;
    if long_share > 0.0 {
        let severity = if long_share >= 0.01 {
            Severity::Warning
        } else {
            Severity::Hint
        };
        found.push(finding(
            severity,
            "max-length",
            format!(
                "{:.2}% of the pairs have more than `data.max_length` ({longest}) tokens on a side",
                100.0 * long_share
            ),
            "training leaves them out; raise `data.max_length`, or split them into sentences"
                .to_owned(),
        ));
    }
    // What is validated on tells most; without it, the training text.
    let unseen = |side: fn(&attentive_text::quality::inspect::TestSet) -> &[String],
                  trained: fn(&(String, String)) -> &str| {
        let lines: Vec<&str> = corpus
            .test_sets
            .iter()
            .flat_map(side)
            .map(String::as_str)
            .collect();
        if lines.is_empty() {
            sample.iter().take(5000).map(trained).collect()
        } else {
            lines
        }
    };
    let sides = [
        (
            "source",
            &trial.tokenizers.src,
            unseen(|set| &set.src, |pair| &pair.0),
        ),
        (
            "target",
            &trial.tokenizers.tgt,
            unseen(|set| &set.tgt, |pair| &pair.1),
        ),
    ];
    for (side, tokenizer, lines) in sides {
        let coverage = Coverage::of(tokenizer, lines);
        let (unknown, pieces) = (coverage.unknown_share(), coverage.pieces_share());
        if unknown >= 0.005 {
            let severity = if unknown >= 0.05 {
                Severity::Warning
            } else {
                Severity::Hint
            };
            found.push(finding(
                severity,
                "unknown-tokens",
                format!("{:.1}% of the {side} tokens are not in the vocabulary", 100.0 * unknown),
                "use subwords (`tokenizer.kind` = \"unigram\"), which know every word, or a larger `tokenizer.vocab_size`".to_owned(),
            ));
        }
        if pieces >= 0.02 {
            let severity = if pieces >= 0.1 {
                Severity::Warning
            } else {
                Severity::Hint
            };
            found.push(finding(
                severity,
                "word-pieces",
                format!(
                    "{:.1}% of the {side} words fall into more than {MANY} tokens, {:.2} tokens a word on average",
                    100.0 * pieces,
                    coverage.tokens_per_word()
                ),
                format!("raise `tokenizer.vocab_size` ({})", recipe.tokenizer.vocab_size),
            ));
        }
    }
    found
}

/// Bytes that programs may still take, where Linux tells it.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Free bytes of the disk that this folder is on.
#[cfg(unix)]
#[allow(clippy::unnecessary_cast)] // Other systems have other types.
fn free_disk() -> Option<u64> {
    // SAFETY: `statvfs` is plain numbers, which the system fills in; the path is a C string.
    unsafe {
        let mut disk: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(c".".as_ptr(), &mut disk) == 0)
            .then(|| disk.f_bavail as u64 * disk.f_frsize as u64)
    }
}

#[cfg(not(unix))]
fn free_disk() -> Option<u64> {
    None
}
