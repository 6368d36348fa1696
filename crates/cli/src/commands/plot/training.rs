//! How training went, or goes: drawn from the history that a run writes.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use attentive_pictures::PictureError;
use attentive_pictures::history::History;
use attentive_pictures::plots::training::{Across, figure};
use clap::{Args, ValueEnum};

use super::PlotOutput;
use crate::exit::Ending;
use crate::picture::DrawingFormat;
use crate::terminal::Terminal;

/// Arguments of `plot training`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TrainingArgs {
    /// Training runs
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// What runs along the lower axis
    #[arg(long, value_enum, default_value = "steps")]
    across: AcrossName,
    /// Draw again whenever there is more to see, until Ctrl-C
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    output: PlotOutput,
}

const EXAMPLES: &str = "\
Examples:
  attentive plot training runs/de-en --watch
  attentive plot training runs/a runs/b --across minutes --out compared.svg";

/// What runs along the lower axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AcrossName {
    Steps,
    Minutes,
}

/// How often a watched run is looked at.
const PAUSE: Duration = Duration::from_millis(500);

/// Draws, once or again and again.
pub fn run(args: TrainingArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let across = match args.across {
        AcrossName::Steps => Across::Steps,
        AcrossName::Minutes => Across::Minutes,
    };
    if args.watch {
        return watch(&args, across, terminal);
    }
    let histories: Result<Vec<History>, PictureError> =
        args.runs.iter().map(|run| History::read(run)).collect();
    args.output.write(&figure(&histories?, across), terminal)
}

fn watch(args: &TrainingArgs, across: Across, terminal: &Terminal) -> anyhow::Result<()> {
    let picture = &args.output.picture;
    if picture.out.is_some()
        || args
            .output
            .format
            .is_some_and(|format| format != DrawingFormat::Terminal)
    {
        bail!(Ending::Usage(
            "--watch draws in the terminal: it goes with neither --out nor another --format"
                .to_owned()
        ));
    }
    // The cursor goes home and what is below it is cleared: less flicker than an empty screen.
    let begin = if io::stdout().is_terminal() {
        "\x1b[H\x1b[J"
    } else {
        ""
    };
    let mut seen: Option<Vec<History>> = None;
    let mut waiting = false;
    loop {
        let mut histories = Vec::new();
        for run in &args.runs {
            match History::read(run) {
                Ok(history) => histories.push(history),
                // A run that has just begun has nothing to show yet.
                Err(PictureError::EmptyHistory { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if histories.is_empty() && !waiting {
            terminal.note("waiting for the first line of the history");
            waiting = true;
        }
        if !histories.is_empty() && seen.as_ref() != Some(&histories) {
            let text = figure(&histories, across).text(picture.screen());
            let mut stdout = io::stdout().lock();
            write!(stdout, "{begin}{text}")?;
            stdout.flush()?;
            seen = Some(histories);
        }
        std::thread::sleep(PAUSE);
    }
}
