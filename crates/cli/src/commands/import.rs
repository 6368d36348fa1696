//! `attentive import`: a model of another program to a model directory.

use std::io::Write;
use std::path::PathBuf;

use attentive_convert::{ImportOptions, Imported, WeightKind, import};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::output::Output;
use crate::terminal::Terminal;

/// Arguments of `import`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ImportArgs {
    /// A folder or file of Hugging Face (Marian, BART, mBART, M2M100), Marian, Bergamot, CTranslate2, Argos or fairseq
    #[arg(value_name = "SOURCE")]
    source: PathBuf,
    /// The directory to write; it must not be there yet
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// Numbers of the weights: as-is keeps int8 where the original is int8, and makes f32 of others
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Weights::AsIs)]
    weights: Weights,
    /// A TOML file that says which tensors of a PyTorch state dict are which, for other programs' models
    #[arg(long, value_name = "FILE")]
    mapping: Option<PathBuf>,
    /// The source language, for a model of many languages
    #[arg(long, value_name = "LANGUAGE")]
    from: Option<String>,
    /// The target language, for a model of many languages
    #[arg(long, value_name = "LANGUAGE")]
    to: Option<String>,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Numbers of the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Weights {
    /// As the original has them: int8 stays int8, everything else becomes f32
    AsIs,
    /// 32-bit floating point
    F32,
    /// 8-bit integers
    Int8,
}

const EXAMPLES: &str = "\
Examples:
  attentive import opus-mt-fr-en --out fr-en            a folder of Hugging Face
  attentive import firefox/enpt --out en-pt             a Bergamot model with its shortlist
  attentive import runs/model.npz --out my-marian       Marian, its vocabulary beside it
  attentive import translate-en_de.argosmodel --out en-de
  attentive import opus-mt-en-ROMANCE --to fr --out en-fr
  attentive import m2m100_418M --from en --to de --out m2m-en-de
  attentive import checkpoint.pt --mapping names.toml --out other
  attentive translate --model fr-en \"Bonjour tout le monde.\"

The format is found out from the files, and nothing in them is ever executed. The new directory says how the original
is searched, so that it gives the translations of the original program; options of `translate` change that.
`attentive translate --model SOURCE` imports into the cache by itself.";

/// Imports.
pub fn run(args: ImportArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let options = ImportOptions {
        weights: match args.weights {
            Weights::AsIs => WeightKind::AsIs,
            Weights::F32 => WeightKind::F32,
            Weights::Int8 => WeightKind::Int8,
        },
        mapping: args.mapping,
        source_language: args.from,
        target_language: args.to,
    };
    let Imported {
        source_format,
        languages,
        targets,
        warnings,
    } = import(&args.source, &args.out, &options)?;
    for warning in &warnings {
        terminal.warn(warning);
    }
    let mut output = Output::stdout();
    if args.json {
        let record = json!({
            "out": args.out,
            "format": source_format,
            "languages": languages.map(|(from, to)| [from, to]),
            "targets": targets,
            "warnings": warnings,
        });
        writeln!(output, "{record}")?;
    } else {
        writeln!(output, "model     {}", args.out.display())?;
        writeln!(output, "format    {source_format}")?;
        if let Some((from, to)) = languages {
            writeln!(output, "languages {from} -> {to}")?;
        }
        if !targets.is_empty() {
            let targets = targets.join(", ");
            writeln!(output, "targets   {targets} (translate --to chooses)")?;
        }
    }
    output.finish()
}
