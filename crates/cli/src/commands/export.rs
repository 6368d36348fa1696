//! `attentive export`: a model directory to a model of another program.

use std::io::Write;
use std::path::PathBuf;

use attentive_convert::export::{ExportFormat, export};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::model::Choice;
use crate::output::Output;
use crate::terminal::Terminal;

/// Arguments of `export`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ExportArgs {
    /// A model directory, a training run (its best model), or a built-in model
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The program to write it for
    #[arg(long, short, value_enum)]
    format: Format,
    /// The directory to write; it must not be there yet
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// The values of `--format`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// A folder for `transformers`: AutoModelForSeq2SeqLM and AutoTokenizer load it
    #[value(name = "huggingface")]
    HuggingFace,
    /// Encoder, decoder and decoder with past as three graphs, with the inputs that optimum and onnxruntime expect
    Onnx,
    /// A folder for ctranslate2.Translator
    #[value(name = "ctranslate2")]
    Ctranslate2,
    /// model.npz and vocabularies for marian-decoder
    Marian,
}

const EXAMPLES: &str = "\
Examples:
  attentive export runs/multi30k --format huggingface --out multi30k-hf
  attentive export multi30k-int8 --format onnx --out multi30k-onnx
  attentive export de-en --format ctranslate2 --out de-en-ct2

A quantized model keeps its 8 bits in CTranslate2 and ONNX and becomes f32 elsewhere. What a format cannot
express is refused with its name.";

/// Exports.
pub fn run(args: ExportArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let model = Choice::of(&args.model)?.open()?;
    let format = match args.format {
        Format::HuggingFace => ExportFormat::HuggingFace,
        Format::Onnx => ExportFormat::Onnx,
        Format::Ctranslate2 => ExportFormat::Ctranslate2,
        Format::Marian => ExportFormat::Marian,
    };
    let warnings = export(&model, format, &args.out)?;
    for warning in &warnings {
        terminal.warn(warning);
    }
    let mut output = Output::stdout();
    if args.json {
        let record = json!({"out": args.out, "format": format.name(), "warnings": warnings});
        writeln!(output, "{record}")?;
    } else {
        writeln!(output, "{} model in {}", format.name(), args.out.display())?;
    }
    output.finish()
}
