//! `attentive data clean`: a parallel corpus without what a model should not learn.
//!
//! The filters are `attentive_text::quality`'s, as `attentive doctor` counts them. Both outputs appear when they are
//! complete, or not at all.

use std::io::Write;
use std::path::{Path, PathBuf};

use attentive_text::lines::LineReader;
use attentive_text::quality::clean::{self, Cleaned, Counts};
use attentive_text::quality::held_out::HeldOut;
use attentive_text::quality::lengths::Limits;
use attentive_text::quality::{Check, CheckSet, LanguageChoice};
use clap::Args;
use serde_json::{Map, Value, json};

use crate::arguments::positive;
use crate::bar::{PARTS, WITH_TIME_LEFT, bar};
use crate::exit::Ending;
use crate::output::{FileOutput, Output, TextOutput};
use crate::terminal::Terminal;
use crate::wording::count;

/// Arguments of `data clean`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CleanArgs {
    /// The source side, plain or gzip'd; several files are read in turn, and written as one
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    src: Vec<PathBuf>,
    /// The target side, as many files
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    tgt: Vec<PathBuf>,
    /// Where to write the source side; gzip'd if the name ends in .gz
    #[arg(long, value_name = "FILE", required_unless_present = "dry_run")]
    out_src: Option<PathBuf>,
    /// Where to write the target side
    #[arg(long, value_name = "FILE", required_unless_present = "dry_run")]
    out_tgt: Option<PathBuf>,
    /// The filters to use, separated by commas [default: those marked with a star below]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    filters: Vec<Check>,
    /// Most words of a side (too-long)
    #[arg(long, value_name = "N", default_value_t = Limits::default().most_words, value_parser = positive())]
    max_words: usize,
    /// How many times longer than usual a side may be, compared to the other (ratio)
    #[arg(long, value_name = "X", default_value_t = Limits::default().max_ratio, value_parser = ratio)]
    max_ratio: f64,
    /// Test sets, each side a file: pairs with one of their sentences are rejected (held-out)
    #[arg(long, value_name = "FILE", num_args = 1..)]
    held_out: Vec<PathBuf>,
    /// Code of the source language [default: recognized]
    #[arg(long, value_name = "LANG")]
    src_lang: Option<String>,
    /// Code of the target language [default: recognized]
    #[arg(long, value_name = "LANG")]
    tgt_lang: Option<String>,
    /// Count, and write no corpus
    #[arg(long)]
    dry_run: bool,
    /// Write what was rejected: the counts if the name ends in .json, otherwise filter, file, line, source and target of
    /// each rejected pair, separated by tabs
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  attentive data clean --src raw.de.gz --tgt raw.en.gz --out-src train.de.gz --out-tgt train.en.gz
  attentive data clean --src raw.de --tgt raw.en --dry-run --report rejected.tsv
  attentive data clean --src raw.de --tgt raw.en --out-src train.de --out-tgt train.en \\
    --filters encoding,empty,duplicates --held-out test.de test.en

Filters, in the order in which they are applied; a pair is counted with the first that rejects it:
  encoding *           a side is not UTF-8, or has a NUL byte
  mojibake *           repairs UTF-8 that was read as another encoding, such as \u{c3}\u{bc} for \u{fc}
  controls *           removes control and invisible characters; rejects replacement characters
  nfc *                repairs letters and accents that are separate characters
  empty *              a side is blank
  misaligned *         part of a stretch in which the sides are shifted or unrelated
  too-long *           a side has more than --max-words words
  ratio *              a side is too long for the other (--max-ratio)
  equal *              both sides are the same sentence
  swapped *            each side is in the language of the other
  language *           a side is in another language
  markup               a side has tags or entities
  placeholders *       a placeholder or address stands on one side alone
  numbers              the sides have different digits
  held-out *           a side is a sentence of --held-out
  duplicates *         the pair was there before
  near-duplicates      the same but for case and punctuation
  many-translations    a side already has ten different other sides

What is kept stays in order. Lengths and languages are compared to what is usual in the first 2000 pairs of each file.";

fn ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ratio) if ratio > 1.0 && ratio.is_finite() => Ok(ratio),
        _ => Err("expected a number above 1, such as 3".to_owned()),
    }
}

/// Cleans.
pub fn run(args: &CleanArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let options = args.options()?;
    // What cannot be written should be known before the long part.
    let mut outputs = if args.dry_run { None } else { args.outputs()? };
    let mut report = args.report.as_deref().map(Report::open).transpose()?;
    let bar = bar(terminal, Some(PARTS), WITH_TIME_LEFT);
    bar.set_message("cleaning");
    let progress = bar.clone();
    let counts = clean::clean(
        &args.src,
        &args.tgt,
        options,
        &mut |done| progress.set_position((done * PARTS as f64) as u64),
        |cleaned| {
            if let Some([src, tgt]) = &mut outputs {
                // Compressing takes longer than everything else.
                let (src, tgt) = rayon::join(
                    || src.write_all(cleaned.src.as_bytes()),
                    || tgt.write_all(cleaned.tgt.as_bytes()),
                );
                src.and(tgt)?;
            }
            match &mut report {
                Some(Report::Pairs(file)) => args.write_rejected(file, cleaned),
                _ => Ok(()),
            }
        },
    );
    bar.finish_and_clear();
    let counts = counts?;
    for output in outputs.into_iter().flatten() {
        output.finish()?;
    }
    match report {
        Some(Report::Counts(mut file)) => {
            writeln!(file, "{:#}", as_json(&counts))?;
            file.finish()?;
        }
        Some(Report::Pairs(file)) => file.finish()?,
        None => {}
    }
    print(&counts)
}

impl CleanArgs {
    fn options(&self) -> anyhow::Result<clean::Options> {
        let usual = || Check::ALL.into_iter().filter(|check| check.is_usual());
        let filters: CheckSet = if self.filters.is_empty() {
            usual().collect()
        } else {
            self.filters.iter().copied().collect()
        };
        if self.filters.contains(&Check::HeldOut) && self.held_out.is_empty() {
            let message = "the filter held-out needs --held-out FILE";
            return Err(Ending::Usage(message.to_owned()).into());
        }
        let mut held_out = HeldOut::default();
        for file in &self.held_out {
            for line in LineReader::open(file)? {
                held_out.add(&line?);
            }
        }
        Ok(clean::Options {
            filters,
            languages: LanguageChoice {
                src: self.src_lang.clone(),
                tgt: self.tgt_lang.clone(),
            },
            limits: Limits {
                most_words: self.max_words,
                max_ratio: self.max_ratio,
            },
            held_out,
        })
    }

    fn outputs(&self) -> anyhow::Result<Option<[TextOutput; 2]>> {
        match (&self.out_src, &self.out_tgt) {
            (Some(src), Some(tgt)) => TextOutput::create_pair(src, tgt).map(Some),
            _ => Ok(None),
        }
    }

    fn write_rejected(&self, file: &mut TextOutput, cleaned: &Cleaned) -> anyhow::Result<()> {
        for pair in &cleaned.rejected {
            let name = self.src.get(pair.file).map(|path| path.display());
            let name = name.map(|name| name.to_string()).unwrap_or_default();
            let [src, tgt] = [&pair.src, &pair.tgt].map(|side| side.replace(['\t', '\r'], " "));
            writeln!(file, "{}\t{name}\t{}\t{src}\t{tgt}", pair.filter, pair.line)?;
        }
        Ok(())
    }
}

/// What is written about what was rejected.
enum Report {
    Counts(FileOutput),
    Pairs(TextOutput),
}

impl Report {
    fn open(path: &Path) -> anyhow::Result<Self> {
        if path.extension().is_some_and(|end| end == "json") {
            FileOutput::create(path).map(Self::Counts)
        } else {
            TextOutput::create(path).map(Self::Pairs)
        }
    }
}

fn as_json(counts: &Counts) -> Value {
    let map = |counts: &std::collections::BTreeMap<Check, usize>| -> Map<String, Value> {
        counts
            .iter()
            .map(|(check, pairs)| (check.name().to_owned(), json!(pairs)))
            .collect()
    };
    json!({
        "read": counts.read,
        "kept": counts.kept,
        "repaired": map(&counts.repaired),
        "rejected": map(&counts.rejected),
    })
}

fn print(counts: &Counts) -> anyhow::Result<()> {
    let mut output = Output::stdout();
    let share = |pairs: usize| 100.0 * pairs as f64 / counts.read.max(1) as f64;
    writeln!(output, "{:<18} {:>12} pairs", "read", count(counts.read))?;
    for (word, counts) in [
        ("repaired", &counts.repaired),
        ("rejected", &counts.rejected),
    ] {
        for (check, pairs) in counts {
            writeln!(
                output,
                "{:<18} {:>12} {word}, {:.2}%",
                check.name(),
                count(*pairs),
                share(*pairs)
            )?;
        }
    }
    writeln!(
        output,
        "{:<18} {:>12} pairs, {:.2}%",
        "kept",
        count(counts.kept),
        share(counts.kept)
    )?;
    output.finish()
}
