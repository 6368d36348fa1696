//! `attentive plot lengths`: BLEU by the length of the source, for several systems in one picture.

use std::path::PathBuf;

use anyhow::bail;
use attentive_metrics::bleu::corpus_bleu;
use attentive_pictures::plots::lengths;
use attentive_text::lines::read_lines;
use clap::Args;

use super::PlotOutput;
use crate::arguments::positive;
use crate::terminal::Terminal;

/// Arguments of `plot lengths`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  attentive plot lengths --src test.de --ref test.en GRU=gru.hyp attention=bahdanau.hyp --out lengths.svg"
)]
pub struct LengthsArgs {
    /// Translations, one a line, as `attentive evaluate --output` writes them, with the name of the system
    #[arg(required = true, value_name = "NAME=FILE", value_parser = named_file)]
    systems: Vec<(String, PathBuf)>,
    /// The source side of the test set, plain or gzip'd
    #[arg(long, value_name = "FILE")]
    src: PathBuf,
    /// The reference translations
    #[arg(long = "ref", value_name = "FILE")]
    reference: PathBuf,
    /// Groups of sentences
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = positive())]
    groups: usize,
    #[command(flatten)]
    output: PlotOutput,
}

/// Draws.
pub fn run(args: LengthsArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let sources = read_lines(&args.src)?;
    let references = read_lines(&args.reference)?;
    let words: Vec<usize> = sources
        .iter()
        .map(|line| line.split_whitespace().count())
        .collect();
    let groups = lengths::groups(&words, args.groups);
    let mut systems = Vec::new();
    for (name, path) in &args.systems {
        let outputs = read_lines(path)?;
        for (what, lines) in [(path, &outputs), (&args.reference, &references)] {
            if lines.len() != sources.len() {
                let (found, expected) = (lines.len(), sources.len());
                bail!(
                    "{} has {found} lines, and the source {expected}",
                    what.display()
                );
            }
        }
        let score = |group: &lengths::Group| {
            let of = |lines: &[String]| -> Vec<String> {
                group
                    .lines
                    .iter()
                    .map(|line| lines[*line].clone())
                    .collect()
            };
            corpus_bleu(&of(&outputs), &of(&references)).score
        };
        let scores: Vec<f64> = groups.iter().map(score).collect();
        let shown: Vec<String> = groups
            .iter()
            .zip(&scores)
            .map(|(group, score)| format!("{}-{} words {score:.1}", group.words.0, group.words.1))
            .collect();
        terminal.note(format_args!("{name}: {}", shown.join(", ")));
        systems.push((name.clone(), scores));
    }
    args.output
        .write(&lengths::figure(&groups, systems, "BLEU"), terminal)
}

fn named_file(given: &str) -> Result<(String, PathBuf), String> {
    match given.split_once('=') {
        Some((name, path)) if !name.is_empty() => Ok((name.to_owned(), path.into())),
        _ => Err("expected the name of a system, = and a file: attention=bahdanau.hyp".to_owned()),
    }
}
