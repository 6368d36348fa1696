//! `attentive score`: BLEU, chrF and TER of translations, in sacreBLEU's numbers and formats.
//!
//! Files -> references and systems -> one scorer per metric -> a report on standard output. The numbers
//! are made in `attentive_metrics`; this reads, checks and prints.

mod arguments;
pub mod flags;

use std::env;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use attentive_metrics::bleu::{BleuScorer, looks_tokenized};
use attentive_metrics::bleu_options::BleuOptions;
use attentive_metrics::chrf::ChrfScorer;
use attentive_metrics::error::MetricError;
use attentive_metrics::input::{split_columns, split_systems, trimmed};
use attentive_metrics::references::References;
use attentive_metrics::report::{
    self, Column, ReportOptions, score_line, several_systems, single_system,
};
use attentive_metrics::scorer::Scorer;
use attentive_metrics::signature::PROGRAM;
use attentive_metrics::significance::{PairedTest, Seed, paired_test, score_with_confidence};
use attentive_metrics::ter::TerScorer;
use attentive_text::lines::{BYTE_ORDER_MARK, LineReader};

use arguments::MetricName;
pub use arguments::ScoreArgs;

use crate::exit::Ending;
use crate::output::Output;
use crate::terminal::{Colours, Terminal};

/// A system's name and its output.
struct System {
    name: String,
    lines: Vec<String>,
}

/// Scores.
pub fn run(args: ScoreArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let test = args.significance.paired_test();
    let sentence_piece = args.sentence_piece()?;
    let bleu = args.bleu(sentence_piece.clone())?;
    let streams = read_references(&args, terminal)?;
    let systems = read_systems(&args, test, terminal)?;
    check_request(&args, &systems, test)?;
    check_lengths(&args, &streams, &systems)?;
    let report = args.report(env::var("SACREBLEU_FORMAT").ok().as_deref(), colors());
    let wants_bleu = args.metrics.contains(&MetricName::Bleu);
    if wants_bleu && !args.force() && systems.iter().any(|system| looks_tokenized(&system.lines)) {
        terminal.warn(
            "100 lines or more end in a tokenized full stop (` .`); scores are meant for detokenized text. \
             If it is detokenized, --force silences this.",
        );
    }
    let references = References::from_streams(&streams)?;
    let scorers = scorers(&args, &bleu, &references)?;
    let scorers: Vec<&dyn Scorer> = scorers.iter().map(|scorer| &**scorer).collect();
    let text = if args.sentence_level {
        score_sentences(&scorers, &systems[0], &report)?
    } else {
        match systems.as_slice() {
            [system] => score_one(&args, &scorers, system, &report)?,
            systems => score_several(&args, &scorers, systems, test, &report)?,
        }
    };
    let mut output = Output::stdout();
    writeln!(output, "{text}")?;
    output.finish()?;
    terminal.note(format_args!("scored by {PROGRAM}"));
    if let (true, Some(model)) = (wants_bleu, sentence_piece) {
        terminal.note(format_args!(
            "tok:spm is the SentencePiece model of blake3 {}",
            model.fingerprint()
        ));
    }
    Ok(())
}

fn read_references(args: &ScoreArgs, terminal: &Terminal) -> anyhow::Result<Vec<Vec<String>>> {
    if args.num_refs == 1 {
        let paths = args.refs.iter();
        return paths.map(|path| read(path, terminal)).collect();
    }
    let [path] = args.refs.as_slice() else {
        return usage(
            "--num-refs is for one reference file with tab-separated references; give one file only",
        );
    };
    split_columns(&read(path, terminal)?, args.num_refs).with_context(|| format!("in {path:?}"))
}

fn read_systems(
    args: &ScoreArgs,
    test: Option<PairedTest>,
    terminal: &Terminal,
) -> anyhow::Result<Vec<System>> {
    if args.input.is_empty() {
        let texts = split_systems(&read(Path::new("-"), terminal)?).context("in standard input")?;
        let name = |index: usize| match test {
            Some(_) if index == 0 => "Baseline".to_owned(),
            Some(_) => format!("System {index}"),
            None => format!("System {}", index + 1),
        };
        let system = |(index, lines)| System {
            name: name(index),
            lines,
        };
        return Ok(texts.into_iter().enumerate().map(system).collect());
    }
    let mut systems: Vec<System> = Vec::new();
    for path in &args.input {
        let name = path.to_string_lossy().into_owned();
        if let Some(index) = systems.iter().position(|system| system.name == name) {
            if index == 0 && test.is_some() {
                terminal.note(format_args!(
                    "{name} is the baseline already, not read again"
                ));
                continue;
            }
            return usage(&format!(
                "{name} is given twice; every system needs a file of its own"
            ));
        }
        let lines = read(path, terminal)?;
        systems.push(System { name, lines });
    }
    if let (Some(baseline), Some(_)) = (systems.first_mut(), test) {
        baseline.name = format!("Baseline: {}", baseline.name);
    }
    Ok(systems)
}

/// The lines of a file as sacreBLEU takes them, to which a byte-order mark is text.
fn read(path: &Path, terminal: &Terminal) -> anyhow::Result<Vec<String>> {
    let lines = LineReader::open(path)?.keeping_byte_order_mark();
    let lines = trimmed(lines.collect::<Result<_, _>>()?);
    if lines
        .first()
        .is_some_and(|line| line.starts_with(BYTE_ORDER_MARK))
    {
        let name = match path.to_str() {
            Some("-") => "standard input".to_owned(),
            _ => format!("{path:?}"),
        };
        terminal.warn(format_args!(
            "{name} begins with a byte-order mark (U+FEFF), which counts as text, as in sacreBLEU; \
             save it as UTF-8 without one"
        ));
    }
    Ok(lines)
}

/// Refuses combinations of arguments that make no sense.
fn check_request(
    args: &ScoreArgs,
    systems: &[System],
    test: Option<PairedTest>,
) -> anyhow::Result<()> {
    let confidence = args.significance.confidence;
    if args.sentence_level && systems.len() > 1 {
        return usage("--sentence-level scores one system; give one file after -i");
    }
    if args.sentence_level && args.metrics.len() > 1 {
        return usage("--sentence-level computes one metric; give one after -m");
    }
    if args.sentence_level && (confidence || test.is_some()) {
        return usage("--sentence-level has no statistical tests; leave out one of them");
    }
    if test.is_some() && systems.len() < 2 {
        return usage(
            "a paired test compares systems with the first one; give two files or more after -i",
        );
    }
    if confidence && systems.len() > 1 {
        return usage("--confidence is for one system; use --paired-bs or --paired-ar for several");
    }
    Ok(())
}

/// Refuses texts that do not pair line by line, naming the files.
fn check_lengths(
    args: &ScoreArgs,
    streams: &[Vec<String>],
    systems: &[System],
) -> anyhow::Result<()> {
    let name = |index: usize| match args.refs.get(index) {
        Some(path) => format!("{path:?}"),
        None => format!("reference {}", index + 1),
    };
    let expected = streams.first().map_or(0, Vec::len);
    if expected == 0 {
        bail!(MetricError::Empty { what: name(0) });
    }
    let references = streams
        .iter()
        .enumerate()
        .map(|(index, lines)| (name(index), lines.len()));
    let outputs = systems
        .iter()
        .map(|system| (format!("{:?}", system.name), system.lines.len()));
    for (what, found) in references.chain(outputs) {
        if found != expected {
            let pair = format!("{} and {what} do not pair line by line", name(0));
            let error = MetricError::UnequalLines {
                what,
                expected,
                found,
            };
            return Err(error).context(pair);
        }
    }
    Ok(())
}

/// One scorer per metric, in the order BLEU, chrF, TER.
fn scorers(
    args: &ScoreArgs,
    bleu: &BleuOptions,
    references: &References,
) -> anyhow::Result<Vec<Box<dyn Scorer>>> {
    let mut names = args.metrics.clone();
    names.sort();
    names.dedup();
    let mut scorers: Vec<Box<dyn Scorer>> = Vec::with_capacity(names.len());
    for name in names {
        scorers.push(match name {
            MetricName::Bleu => Box::new(BleuScorer::new(bleu.clone(), references)?),
            MetricName::Chrf => Box::new(ChrfScorer::new(args.chrf(), references)?),
            MetricName::Ter => Box::new(TerScorer::new(args.ter(), references)?),
        });
    }
    Ok(scorers)
}

fn score_sentences(
    scorers: &[&dyn Scorer],
    system: &System,
    report: &ReportOptions,
) -> anyhow::Result<String> {
    let mut lines = Vec::with_capacity(system.lines.len());
    for scorer in scorers {
        let signature = scorer.signature();
        for row in scorer.statistics(&system.lines)?.rows() {
            lines.push(score_line(&scorer.score(row), &signature, report));
        }
    }
    Ok(lines.join("\n"))
}

fn score_one(
    args: &ScoreArgs,
    scorers: &[&dyn Scorer],
    system: &System,
    report: &ReportOptions,
) -> anyhow::Result<String> {
    let samples = if args.significance.confidence {
        args.significance.confidence_n
    } else {
        1
    };
    let mut scores = Vec::with_capacity(scorers.len());
    for &scorer in scorers {
        scores.push(score_with_confidence(
            scorer,
            &system.lines,
            samples,
            seed(args)?,
        )?);
    }
    Ok(single_system(&scores, report))
}

fn score_several(
    args: &ScoreArgs,
    scorers: &[&dyn Scorer],
    systems: &[System],
    test: Option<PairedTest>,
    report: &ReportOptions,
) -> anyhow::Result<String> {
    let names: Vec<String> = systems.iter().map(|system| system.name.clone()).collect();
    let outputs: Vec<&[String]> = systems
        .iter()
        .map(|system| system.lines.as_slice())
        .collect();
    let mut columns = Vec::with_capacity(scorers.len());
    if let Some(test) = test {
        for metric in paired_test(scorers, &outputs, test, seed(args)?)? {
            columns.push(Column::of_results(
                &metric.name,
                metric.signature,
                &metric.results,
            ));
        }
    } else {
        for &scorer in scorers {
            let mut scores = Vec::with_capacity(outputs.len());
            for output in &outputs {
                scores.push(scorer.corpus_score(output)?.value);
            }
            columns.push(Column::of_scores(
                &scorer.name(),
                scorer.signature(),
                &scores,
            ));
        }
    }
    Ok(several_systems(&names, &columns, test, report))
}

/// The seed asked for, or that of the environment, or sacreBLEU's usual one.
fn seed(args: &ScoreArgs) -> anyhow::Result<Seed> {
    let given = args
        .significance
        .seed
        .clone()
        .or_else(|| env::var("SACREBLEU_SEED").ok());
    Ok(given.map_or(Ok(Seed::DEFAULT), |seed| seed.parse())?)
}

fn colors() -> report::Colors {
    match Colours::of_stdout() {
        Colours::On => report::Colors::On,
        Colours::Off => report::Colors::Off,
    }
}

fn usage<T>(message: &str) -> anyhow::Result<T> {
    Err(Ending::Usage(message.to_owned()).into())
}
