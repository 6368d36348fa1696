//! `attentive data`: training data, cleaned (`clean`), found in other data (`lexicon`) or made up (`synthetic`).

mod clean;
mod lexicon;
#[cfg(feature = "training")]
mod synthetic;

use clap::{Args, Subcommand};

use crate::terminal::Terminal;

/// Arguments of `data`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DataArgs {
    #[command(subcommand)]
    command: DataCommand,
}

#[derive(Debug, Subcommand)]
enum DataCommand {
    /// Leave out of a parallel corpus what a model should not learn, and repair what can be repaired
    Clean(clean::CleanArgs),
    /// Find the frequent words of a parallel corpus and their translations, as pairs to train on
    Lexicon(lexicon::LexiconArgs),
    /// Generate a synthetic corpus: random words to copy or to reverse
    #[cfg(feature = "training")]
    Synthetic(synthetic::SyntheticArgs),
}

const EXAMPLES: &str = "\
Examples:
  attentive data clean --src raw.de.gz --tgt raw.en.gz --out-src train.de.gz --out-tgt train.en.gz
  attentive data lexicon --src train.de.gz --tgt train.en.gz --out-src words.de --out-tgt words.en
  attentive data synthetic reverse --lines 20000 --seed 1 --out data/reverse";

/// Makes or cleans the data.
pub fn run(args: DataArgs, terminal: &Terminal) -> anyhow::Result<()> {
    match args.command {
        DataCommand::Clean(args) => clean::run(&args, terminal),
        DataCommand::Lexicon(args) => lexicon::run(&args, terminal),
        #[cfg(feature = "training")]
        DataCommand::Synthetic(args) => synthetic::run(&args, terminal),
    }
}
