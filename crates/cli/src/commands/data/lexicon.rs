//! `attentive data lexicon`: single words and their translations, found in a parallel corpus.

use std::io::Write;
use std::path::PathBuf;

use attentive_text::PairOptions;
use attentive_text::lexicon::{WordOptions, word_pairs};
use clap::Args;

use crate::arguments::positive;
use crate::bar::{PARTS, WITH_TIME_LEFT, bar};
use crate::output::{Output, TextOutput};
use crate::terminal::Terminal;
use crate::wording::plural;

/// Arguments of `data lexicon`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LexiconArgs {
    /// The source side of a parallel corpus, plain or gzip'd; several files are read in turn
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    src: Vec<PathBuf>,
    /// The target side, as many files
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    tgt: Vec<PathBuf>,
    /// Where to write the source words; gzip'd if the name ends in .gz
    #[arg(long, value_name = "FILE")]
    out_src: PathBuf,
    /// Where to write their translations
    #[arg(long, value_name = "FILE")]
    out_tgt: PathBuf,
    /// Leave out words that occur less often in the source
    #[arg(long, value_name = "N", default_value_t = WordOptions::default().min_count, value_parser = positive())]
    min_count: usize,
    /// The least probability of a translation, times that of the word given the translation
    #[arg(long, value_name = "P", default_value_t = WordOptions::default().min_score)]
    min_score: f32,
    /// The most translations of a word
    #[arg(long, value_name = "N", default_value_t = WordOptions::default().most, value_parser = positive())]
    most: usize,
    /// Learn from at most so many pairs, spread evenly over the corpus
    #[arg(long, value_name = "N", default_value_t = PairOptions::default().most, value_parser = positive())]
    pairs: usize,
}

const EXAMPLES: &str = "\
Examples:
  attentive data lexicon --src train.de.gz --tgt train.en.gz --out-src words.de --out-tgt words.en
  attentive data lexicon --src train.de --tgt train.en --out-src words.de --out-tgt words.en --min-count 100 --most 1

A model that has only seen sentences may not know what to do with a word that stands alone. Give it these pairs as one more
corpus. Words are as they stand in the text, inflected; a word may have several translations, each a pair.";

/// Finds and writes.
pub fn run(args: &LexiconArgs, terminal: &Terminal) -> anyhow::Result<()> {
    // What cannot be written should be known before the long part.
    let [mut out_src, mut out_tgt] = TextOutput::create_pair(&args.out_src, &args.out_tgt)?;
    let usual = WordOptions::default();
    let options = WordOptions {
        min_count: args.min_count,
        min_score: args.min_score,
        most: args.most,
        pairs: PairOptions {
            most: args.pairs,
            ..usual.pairs
        },
    };
    let bar = bar(terminal, Some(PARTS), WITH_TIME_LEFT);
    bar.set_message("learning");
    let found = word_pairs(&args.src, &args.tgt, &options, |done| {
        bar.set_position((done * PARTS as f64) as u64);
    });
    bar.finish_and_clear();
    let found = found?;
    for (src, tgt) in &found {
        writeln!(out_src, "{src}")?;
        writeln!(out_tgt, "{tgt}")?;
    }
    out_src.finish()?;
    out_tgt.finish()?;
    let mut output = Output::stdout();
    let pairs = plural(found.len(), "pair", "pairs");
    writeln!(output, "{pairs} of words")?;
    output.finish()
}
