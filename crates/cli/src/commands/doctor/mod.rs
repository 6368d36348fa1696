//! `attentive doctor`: checks a corpus, and the recipe that is to be trained on it, before training.
//!
//! `attentive_text::quality` looks at the corpus; `recipe` asks what the run will need; `print` says all this to people or
//! programs.

mod print;
#[cfg(feature = "training")]
mod recipe;

use std::path::{Path, PathBuf};

use anyhow::bail;
use attentive_text::lines::read_lines;
use attentive_text::quality::LanguageChoice;
use attentive_text::quality::findings::{self, Finding, Severity};
use attentive_text::quality::inspect::{self, Inspection, TestSet, inspect};
use clap::Args;

use crate::bar::{PARTS, WITH_TIME_LEFT, bar};
use crate::exit::Ending;
use crate::terminal::Terminal;
use crate::wording::plural;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DoctorArgs {
    /// Recipe whose corpus and run to check
    #[cfg(feature = "training")]
    #[arg(required_unless_present_any = ["src", "tgt"], conflicts_with_all = ["src", "tgt", "held_out"])]
    recipe: Option<PathBuf>,
    /// Override a value of the recipe, such as data.dir=FOLDER; can be repeated
    #[cfg(feature = "training")]
    #[arg(long, value_name = "KEY=VALUE", requires = "recipe", value_parser = super::train::setting)]
    set: Vec<String>,
    /// The source side of a corpus without a recipe, plain or gzip'd; several files are read in turn
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "tgt")]
    src: Vec<PathBuf>,
    /// The target side, as many files
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "src")]
    tgt: Vec<PathBuf>,
    /// Test sets that should not be in the corpus: the sides of each, as SRC TGT SRC TGT ...
    #[arg(long, value_name = "FILE", num_args = 1..)]
    held_out: Vec<PathBuf>,
    /// Code of the source language [default: recognized]
    #[arg(long, value_name = "LANG")]
    src_lang: Option<String>,
    /// Code of the target language [default: recognized]
    #[arg(long, value_name = "LANG")]
    tgt_lang: Option<String>,
    /// Look at the corpus alone, and do not train for a moment to see what the run will need
    #[cfg(feature = "training")]
    #[arg(long, requires = "recipe")]
    corpus_only: bool,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive doctor recipes/multi30k.toml --set data.dir=data/multi30k
  attentive doctor --src train.de.gz --tgt train.en.gz --held-out test.de test.en
  attentive doctor --src train.de --tgt train.en --json

Exit code 0 if nothing makes training wrong, 1 if something does. `attentive data clean` removes most of what is found.";

/// What is to be checked.
pub(crate) struct Corpus {
    src: Vec<PathBuf>,
    tgt: Vec<PathBuf>,
    /// The files of the test sets.
    held_out: Vec<PathBuf>,
    test_sets: Vec<TestSet>,
}

/// Everything that is known in the end.
pub(crate) struct Diagnosis {
    /// Of the corpus; a synthetic task has none.
    inspection: Option<Inspection>,
    findings: Vec<Finding>,
    /// The command that cleans the corpus, if there is something to clean.
    clean: Option<String>,
    /// Lines about the run: a word and what it needs.
    needs: Vec<(&'static str, String)>,
    /// The same as numbers.
    needs_json: serde_json::Value,
}

/// Checks.
pub fn run(args: DoctorArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let diagnosis = diagnose(&args, terminal)?;
    if args.json {
        print::json(&diagnosis)?;
    } else {
        print::text(&diagnosis)?;
    }
    let errors = diagnosis
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error);
    match errors.count() {
        0 => Ok(()),
        errors => bail!(
            "{} would make training wrong",
            plural(errors, "finding", "findings")
        ),
    }
}

#[cfg(feature = "training")]
fn diagnose(args: &DoctorArgs, terminal: &Terminal) -> anyhow::Result<Diagnosis> {
    match &args.recipe {
        Some(path) => recipe::diagnose(args, path, terminal),
        None => diagnose_files(args, terminal),
    }
}

#[cfg(not(feature = "training"))]
fn diagnose(args: &DoctorArgs, terminal: &Terminal) -> anyhow::Result<Diagnosis> {
    if args.src.is_empty() {
        bail!(Ending::Usage(
            "give the corpus with --src and --tgt".to_owned()
        ));
    }
    diagnose_files(args, terminal)
}

fn diagnose_files(args: &DoctorArgs, terminal: &Terminal) -> anyhow::Result<Diagnosis> {
    if !args.held_out.len().is_multiple_of(2) {
        let message = "--held-out takes both sides of each test set: SRC TGT SRC TGT ...";
        bail!(Ending::Usage(message.to_owned()));
    }
    let test_sets = args
        .held_out
        .chunks(2)
        .map(|files| test_set(&files[0], &files[1]));
    let corpus = Corpus {
        src: args.src.clone(),
        tgt: args.tgt.clone(),
        held_out: args.held_out.clone(),
        test_sets: test_sets.collect::<anyhow::Result<_>>()?,
    };
    let inspection = look(args, &corpus, terminal)?;
    let findings = findings::findings(&inspection);
    Ok(Diagnosis {
        clean: print::clean_command(&corpus, &findings),
        inspection: Some(inspection),
        findings,
        needs: Vec::new(),
        needs_json: serde_json::Value::Null,
    })
}

fn test_set(src: &Path, tgt: &Path) -> anyhow::Result<TestSet> {
    Ok(TestSet {
        name: src.display().to_string(),
        src: read_lines(src)?,
        tgt: read_lines(tgt)?,
    })
}

/// Looks at the corpus, with a bar.
fn look(args: &DoctorArgs, corpus: &Corpus, terminal: &Terminal) -> anyhow::Result<Inspection> {
    let options = inspect::Options {
        languages: LanguageChoice {
            src: args.src_lang.clone(),
            tgt: args.tgt_lang.clone(),
        },
        test_sets: corpus.test_sets.clone(),
        ..Default::default()
    };
    let bar = bar(terminal, Some(PARTS), WITH_TIME_LEFT);
    bar.set_message("checking the corpus");
    let progress = bar.clone();
    let inspection = inspect(&corpus.src, &corpus.tgt, &options, &mut |done| {
        progress.set_position((done * PARTS as f64) as u64);
    });
    bar.finish_and_clear();
    Ok(inspection?)
}
