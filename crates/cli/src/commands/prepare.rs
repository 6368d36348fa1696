//! `attentive prepare`: a corpus that is larger than memory becomes tokenized shards, which training streams.

use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::bail;
use attentive_train::Recipe;
use attentive_train::data::prepared::prepare::{Outcome, Progress, prepare};
use clap::Args;
use indicatif::ProgressBar;

use super::train::{explained, setting, this_command};
use crate::bar::{PARTS, WITH_TIME_LEFT, bar};
use crate::exit::Ending;
use crate::interrupt;
use crate::terminal::Terminal;
use crate::wording::{count, quoted};

/// Arguments of `prepare`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PrepareArgs {
    /// Recipe: the TOML file that training gets too; its `data.prepared` names the folder to write
    recipe: PathBuf,
    /// Override a value of the recipe, such as data.prepared=prepared/europarl; can be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    set: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  attentive prepare big.toml                                       (big.toml has data.prepared = \"prepared/big\")
  attentive train big.toml --out runs/big
  attentive prepare recipes/base.toml --set data.dir=data --set data.prepared=prepared/base

Learns the vocabulary (of a large corpus from a sample of a million pairs) and writes the tokens of all pairs to files
that are mapped into memory, with all threads. Training then starts at once and needs as much memory as for a small
corpus. Ctrl-C stops; the same command goes on where it stopped, and checks what is there. Small corpora need none of
this. docs/scaling.md says more.";

/// Prepares.
pub fn run(args: PrepareArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let recipe = Recipe::load(&args.recipe, &args.set).map_err(explained)?;
    let folder = &recipe.data.prepared;
    if folder.is_empty() {
        bail!(Ending::Usage(
            "the recipe names no folder to prepare into: set data.prepared in its [data], or with --set \
             data.prepared=FOLDER here and for `attentive train`"
                .to_owned()
        ));
    }
    let stop = interrupt::stop_flag(Some("the same command goes on from here"))?;
    let bars = Mutex::new(Bars::new(terminal));
    let shown = |progress| {
        if let Ok(mut bars) = bars.lock() {
            bars.show(progress);
        }
    };
    let outcome = prepare(&recipe, &stop, &shown);
    drop(bars);
    let (manifest, kept) = match outcome? {
        Outcome::Done { manifest, kept } => (manifest, kept),
        Outcome::Interrupted => bail!(Ending::Interrupted(format!(
            "stopped; the same command goes on from here:\n  {}",
            this_command()
        ))),
    };
    terminal.note(format_args!("training pairs: {}", manifest.report));
    let shards = manifest.shards.len();
    let verified = if kept > 0 {
        format!(" ({} of them were there, and are intact)", count(kept))
    } else {
        String::new()
    };
    terminal.note(format_args!(
        "{folder} holds {} shards{verified}; train with it:\n  attentive train {} --out RUN_DIR{}",
        count(shards),
        quoted(&args.recipe.display().to_string()),
        args.set
            .iter()
            .map(|setting| format!(" --set {}", quoted(setting)))
            .collect::<String>()
    ));
    Ok(())
}

/// A bar for each stage.
struct Bars<'a> {
    terminal: &'a Terminal,
    bar: ProgressBar,
    stage: &'static str,
}

impl<'a> Bars<'a> {
    fn new(terminal: &'a Terminal) -> Self {
        Self {
            terminal,
            bar: ProgressBar::hidden(),
            stage: "",
        }
    }

    fn show(&mut self, progress: Progress) {
        match progress {
            Progress::Reading(done, total) => self.at("reading", done, total),
            Progress::Vocabulary(sample) => {
                self.begin(
                    "vocabulary",
                    None,
                    "{spinner} learning the vocabulary {elapsed}",
                );
                if sample.pairs < sample.of {
                    let (pairs, of) = (count(sample.pairs), count(sample.of));
                    self.bar.suspend(|| {
                        self.terminal.note(format_args!(
                            "the vocabulary is learned from a sample of {pairs} of {of} pairs"
                        ));
                    });
                }
            }
            Progress::Encoding(done, total) => self.at("encoding", done as u64, total as u64),
        }
    }

    fn at(&mut self, stage: &'static str, done: u64, total: u64) {
        self.begin(stage, Some(PARTS), WITH_TIME_LEFT);
        self.bar.set_message(stage);
        self.bar.set_position(PARTS * done / total.max(1));
    }

    fn begin(&mut self, stage: &'static str, length: Option<u64>, template: &str) {
        if self.stage != stage {
            self.stage = stage;
            self.bar.finish_and_clear();
            self.bar = bar(self.terminal, length, template);
        }
    }
}

impl Drop for Bars<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
