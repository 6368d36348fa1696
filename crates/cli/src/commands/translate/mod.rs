//! `attentive translate`: lines in, exactly as many answers out, in the same order.
//!
//! [`input`] gives the lines block by block, the library's translator answers, [`answers`] writes.

mod answers;
mod input;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::arguments::{DeviceArg, positive};
use crate::decoding::notices::Notices;
use crate::decoding::{DecodingArgs, SamplingArgs};
use crate::model::LoadedModel;
use crate::output::Output;
use crate::terminal::Terminal;
use answers::Form;
use input::InputArgs;

/// Arguments of `translate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TranslateArgs {
    /// A model directory, or a training run (its best model)
    #[arg(long, short, value_name = "DIR")]
    model: PathBuf,
    #[command(flatten)]
    input: InputArgs,
    /// Where to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The N best translations of each line, as LINE ||| text ||| score
    #[arg(long, value_name = "N", value_parser = positive())]
    n_best: Option<usize>,
    /// The score before each translation, and a tab between them
    #[arg(long)]
    scores: bool,
    /// One JSON object for each line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceArg,
    #[command(flatten)]
    decoding: DecodingArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
}

const EXAMPLES: &str = "\
Examples:
  attentive translate --model runs/multi30k-small \"Ein Hund rennt.\" \"Zwei Katzen schlafen.\"
  attentive translate --model runs/multi30k-small -i test.de -o test.en --beam 8
  zcat big.de.gz | attentive translate --model runs/multi30k-small > big.en
  attentive translate --model runs/multi30k-small --sample --temperature 0.8 --n-best 3 \"Hallo!\"

Every line gives one line (with --n-best up to N lines), in the same order; an empty line stays
empty. Lines are counted from 1. Scores are log-probabilities divided by length^alpha: nearer to 0
is better.";

/// Translates.
pub fn run(args: TranslateArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let model = LoadedModel::open(&args.model, &args.device.device)?;
    let mut options = args.decoding.options(args.n_best.unwrap_or(1));
    args.sampling.apply(&mut options.search);
    let translator = model.translator(options)?;
    let blocks = args.input.open(terminal)?;
    let mut output = Output::open(args.output.as_deref())?;
    let form = args.form();
    let counter = counter(&output, terminal);

    let mut notices = Notices::default();
    let mut line = 0;
    for block in blocks {
        let block = block?;
        for (source, translation) in block.iter().zip(translator.translate(&block)) {
            line += 1;
            counter.suspend(|| notices.add(line, &translation, terminal));
            form.write(&mut output, line, source, &translation)?;
        }
        // Whoever reads a pipe should get what is done.
        output.flush()?;
        counter.inc(block.len() as u64);
    }
    counter.finish_and_clear();
    output.finish()?;
    notices.tell(terminal);
    Ok(())
}

impl TranslateArgs {
    fn form(&self) -> Form {
        match (self.json, self.n_best, self.scores) {
            (true, _, _) => Form::Json,
            (false, Some(_), _) => Form::NBest,
            (false, None, true) => Form::Scored,
            (false, None, false) => Form::Plain,
        }
    }
}

/// Counts the lines on the terminal while nothing else appears there.
fn counter(output: &Output, terminal: &Terminal) -> ProgressBar {
    if !terminal.can_draw() || matches!(output, Output::Stdout(_)) {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::no_length();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {human_pos} lines, {per_sec}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
