//! `attentive translate`: lines in, exactly as many answers out, in the same order.
//!
//! [`input`] gives the lines, the library's translator answers window by window, [`answers`] writes,
//! and [`progress`] shows how far it is.

mod answers;
mod input;
mod progress;

use std::io::Write;
use std::path::PathBuf;

use attentive_runtime::search::SearchModel;
use attentive_runtime::translator::{Translator, TranslatorOptions};
use clap::Args;

use crate::arguments::{DeviceArg, positive};
use crate::decoding::notices::Notices;
use crate::decoding::{ComputeKind, DecodingArgs, SamplingArgs};
use crate::exit::Ending;
use crate::model::{LoadedModel, cpu_translator};
use crate::output::Output;
use crate::terminal::Terminal;
use answers::Form;
use input::{Input, InputArgs, Pace};
use progress::Progress;

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
    #[arg(long, visible_alias = "n-best", value_name = "N", value_parser = positive())]
    alternatives: Option<usize>,
    /// The score before each translation, and a tab between them
    #[arg(long)]
    scores: bool,
    /// After each translation which word comes from which, as ||| 0-0 1-2 (source-target, from 0)
    #[arg(long)]
    alignments: bool,
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
  zcat big.de.gz | attentive translate --model small-int8 > big.en
  attentive translate --model small-int8 --prefix \"A dog\" --alignments \"Ein Hund rennt.\"
  attentive translate --model runs/multi30k-small --sample --temperature 0.8 --alternatives 3 \"Hallo!\"

Every line gives one line (with --alternatives up to N lines), in the same order; an empty line
stays empty. Files of any size are translated in constant memory. Lines are counted from 1, words
from 0. Scores are log-probabilities divided by length^alpha: nearer to 0 is better.";

/// Translates.
pub fn run(args: TranslateArgs, terminal: &Terminal) -> anyhow::Result<()> {
    without_huge_pages();
    let input = args.input.open(terminal)?;
    let options = args.options(&input);
    let device = args.device.device.as_str();
    if device == "cpu" {
        let translator = cpu_translator(&args.model, args.decoding.compute, options)?;
        return answer(&args, &translator, input, terminal);
    }
    if args.alignments || args.decoding.compute != ComputeKind::Auto {
        let problem = "--alignments and --compute are for the CPU: leave out --device".to_owned();
        return Err(Ending::Usage(problem).into());
    }
    let model = LoadedModel::open(&args.model, device)?;
    answer(&args, &model.translator(options)?, input, terminal)
}

/// Translating needs little memory in many pieces, and huge pages round each up to two megabytes:
/// they make the process half as large again and nothing faster.
fn without_huge_pages() {
    #[cfg(target_os = "linux")]
    // SAFETY: only tells the kernel how to back memory that is used from now on.
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
}

fn answer<M: SearchModel + Send + Sync>(
    args: &TranslateArgs,
    translator: &Translator<M>,
    input: Input,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    let mut output = Output::open(args.output.as_deref())?;
    let form = args.form();
    let mut progress = Progress::new(&output, input.bytes, terminal);
    let mut notices = Notices::default();
    let window = translator.options().window;
    let mut line = 0;
    translator.translate_stream(input, |source, translation| {
        line += 1;
        if let Some(warning) = notices.add(line, &translation) {
            progress.suspend(|| terminal.warn(warning));
        }
        form.write(&mut output, line, &source.text, &translation)?;
        // Whoever reads a pipe should get what is done.
        if line % window == 0 {
            output.flush()?;
        }
        progress.add(&source.text);
        anyhow::Ok(())
    })?;
    progress.finish();
    output.finish()?;
    notices.tell(terminal);
    Ok(())
}

impl TranslateArgs {
    fn options(&self, input: &Input) -> TranslatorOptions {
        let mut options = self.decoding.options(self.alternatives.unwrap_or(1));
        self.sampling.apply(&mut options.search);
        options.alignments = self.alignments;
        if input.pace == Pace::Line {
            options.window = 1;
        }
        options
    }

    fn form(&self) -> Form {
        match (self.json, self.alternatives, self.scores) {
            (true, _, _) => Form::Json,
            (false, Some(_), _) => Form::NBest,
            (false, None, true) => Form::Scored,
            (false, None, false) => Form::Plain,
        }
    }
}
