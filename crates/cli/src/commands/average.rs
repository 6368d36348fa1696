//! `attentive average`: the mean of the weights of several models, as a model directory.

use std::io::Write;
use std::path::PathBuf;

use attentive_model::average::average;
use clap::Args;
use serde_json::json;

use crate::output::Output;
use crate::wording::count;

/// Arguments of `average`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct AverageArgs {
    /// Model directories, or training runs (their best models), of the same sizes and vocabularies
    #[arg(value_name = "MODEL", required = true, num_args = 2..)]
    models: Vec<PathBuf>,
    /// The directory to write; it must not be there yet
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive average runs/first runs/second --out mean
  attentive translate --model mean \"Ein Hund rennt.\"

The mean of models that went on from the same weights (a model and what fine-tuning made of it, for example) often
translates better than each of them, and no slower. Quantized models are taken, too; the mean is f32.";

/// Averages.
pub fn run(args: AverageArgs) -> anyhow::Result<()> {
    let numbers = average(&args.models, &args.out)?;
    let mut output = Output::stdout();
    if args.json {
        let record = json!({ "out": args.out, "models": args.models, "parameters": numbers });
        writeln!(output, "{record}")?;
    } else {
        writeln!(output, "model     {}", args.out.display())?;
        writeln!(
            output,
            "mean of   {} models, {} parameters",
            args.models.len(),
            count(numbers)
        )?;
    }
    output.finish()
}
