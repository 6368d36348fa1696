//! `attentive shortlist`: from a model's tokenizers and a parallel corpus to a file of candidates, which
//! `translate --shortlist` uses.

use std::io::Write;
use std::path::PathBuf;

use attentive_model::Shortlist;
use attentive_text::{Lexicon, PairOptions, TokenPairs};
use clap::Args;
use serde_json::json;

use crate::arguments::positive;
use crate::bar::{PARTS, bar};
use crate::model::Choice;
use crate::output::Output;
use crate::terminal::Terminal;
use crate::wording::{count, plural};

/// Arguments of `shortlist`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ShortlistArgs {
    /// A model directory, a training run (its best model), or a built-in model (de-en, en-de)
    #[arg(long, short, value_name = "MODEL")]
    model: PathBuf,
    /// The source side of a parallel corpus, plain or gzip'd; several files are read in turn
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    src: Vec<PathBuf>,
    /// The target side, as many files
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    tgt: Vec<PathBuf>,
    /// The file to write
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Target tokens for each source token
    #[arg(long, value_name = "N", default_value_t = Shortlist::BEST, value_parser = positive())]
    best: usize,
    /// The most frequent target tokens, which are candidates in every sentence
    #[arg(long, value_name = "N", default_value_t = Shortlist::FREQUENT)]
    frequent: usize,
    /// Rounds of learning
    #[arg(long, value_name = "N", default_value_t = Lexicon::ROUNDS, value_parser = positive())]
    rounds: usize,
    /// Learn from at most so many pairs, spread evenly over the corpus
    #[arg(long, value_name = "N", default_value_t = PairOptions::default().most, value_parser = positive())]
    pairs: usize,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive shortlist --model runs/multi30k --src train.de --tgt train.en --out multi30k.shortlist
  attentive translate --model runs/multi30k --shortlist multi30k.shortlist \"Ein Hund rennt.\"

With a shortlist, the words of a translation are chosen among those that the corpus knows as translations of the
sentence's words, and among the most frequent ones: faster, and nearly always the same words.
A corpus of the kind of text that is to be translated is best; the one that the model was trained on will do.";

/// Learns and writes.
pub fn run(args: ShortlistArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let tokenizers = Choice::of(&args.model)?.open()?.tokenizers;
    // What cannot be written should be known before the long part.
    let mut output = Output::open(Some(&args.out))?;
    let options = PairOptions {
        most: args.pairs,
        ..Default::default()
    };
    let spinner = bar(terminal, None, "{spinner} {msg}");
    let pairs = TokenPairs::read(
        (&args.src, &tokenizers.src),
        (&args.tgt, &tokenizers.tgt),
        &options,
        |pairs| spinner.set_message(format!("reading: {} pairs", count(pairs))),
    );
    spinner.finish_and_clear();
    let pairs = pairs?;
    if pairs.left_out > 0 {
        terminal.warn(format_args!(
            "{} left out: a side is empty or has more than {} tokens",
            plural(pairs.left_out, "pair is", "pairs are"),
            options.longest
        ));
    }
    terminal.note(format_args!(
        "learning from {} of {} pairs",
        count(pairs.len()),
        count(pairs.seen)
    ));

    let bar = bar(terminal, Some(PARTS), "{bar:30} {percent}%, {eta} left");
    let lexicon = Lexicon::learn(&pairs, args.rounds, |done| {
        bar.set_position((done * PARTS as f64) as u64);
    });
    bar.finish_and_clear();
    let shortlist = Shortlist::new(&tokenizers, &lexicon, args.best, args.frequent);
    output.write_all(&shortlist.to_bytes())?;
    output.finish()?;
    report(&args, &pairs, &shortlist)
}

fn report(args: &ShortlistArgs, pairs: &TokenPairs, shortlist: &Shortlist) -> anyhow::Result<()> {
    let sources = shortlist.src_vocab();
    let lists: usize = (0..sources as u32)
        .map(|source| shortlist.list(source).len())
        .sum();
    let mean = lists as f64 / sources.max(1) as f64;
    let mut output = Output::stdout();
    if args.json {
        let record = json!({
            "out": args.out,
            "pairs": pairs.len(),
            "seen": pairs.seen,
            "left_out": pairs.left_out,
            "always": shortlist.always().len(),
            "mean_list": mean,
        });
        writeln!(output, "{record}")?;
    } else {
        writeln!(output, "shortlist   {}", args.out.display())?;
        writeln!(
            output,
            "learned     from {}",
            plural(pairs.len(), "pair", "pairs")
        )?;
        writeln!(
            output,
            "lists       {mean:.1} target tokens for a source token, on average"
        )?;
        writeln!(
            output,
            "always      {} target tokens",
            count(shortlist.always().len())
        )?;
    }
    output.finish()
}
