//! `attentive quantize`: a model directory to a smaller one, with weights of 8 bits.

use std::io::Write;
use std::path::PathBuf;

use attentive_runtime::cpu::{QuantizeReport, quantize};
use clap::Args;
use serde_json::json;

use crate::output::Output;
use crate::wording::bytes;

/// Arguments of `quantize`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct QuantizeArgs {
    /// A model directory, or a training run (its best model)
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The directory to write; it must not be there yet
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive quantize runs/multi30k --out multi30k-int8
  attentive translate --model multi30k-int8 \"Ein Hund rennt.\"

The new directory is a quarter of the size and translates faster, nearly always with the same words.
It is for translating on the CPU; training, evaluating and other devices need the original.";

/// Quantizes.
pub fn run(args: QuantizeArgs) -> anyhow::Result<()> {
    let QuantizeReport {
        bytes_before,
        bytes_after,
        quantized,
        kept,
    } = quantize(&args.model, &args.out)?;
    let mut output = Output::stdout();
    if args.json {
        let record = json!({
            "out": args.out,
            "bytes_before": bytes_before,
            "bytes_after": bytes_after,
            "quantized": quantized,
            "kept": kept,
        });
        writeln!(output, "{record}")?;
    } else {
        writeln!(output, "model     {}", args.out.display())?;
        writeln!(
            output,
            "weights   {} -> {} ({:.1} times smaller)",
            bytes(bytes_before),
            bytes(bytes_after),
            bytes_before as f64 / bytes_after.max(1) as f64
        )?;
        writeln!(output, "int8      {quantized} matrices")?;
        writeln!(output, "f32       {kept} vectors and tables")?;
    }
    output.finish()
}
