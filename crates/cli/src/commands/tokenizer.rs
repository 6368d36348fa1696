//! `attentive tokenizer train|encode|decode`: the tokenizer alone, as `attentive train` learns it.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use attentive_text::lines::{LineReader, read_lines};
use attentive_text::{Tokenizer, TokenizerKind, TokenizerOptions};
use clap::{Args, Subcommand};

use crate::exit::Ending;
use crate::output::Output;
use crate::terminal::Terminal;
use crate::wording::count;

/// Arguments of `tokenizer`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TokenizerArgs {
    #[command(subcommand)]
    command: TokenizerCommand,
}

#[derive(Debug, Subcommand)]
enum TokenizerCommand {
    /// Learn a vocabulary from text
    Train(TrainArgs),
    /// Text to tokens
    Encode(EncodeArgs),
    /// Token ids to text
    Decode(DecodeArgs),
}

const EXAMPLES: &str = "\
Examples:
  attentive tokenizer train train.de train.en --vocab-size 8000 --out tokenizer.json
  echo \"Ein Hund rennt.\" | attentive tokenizer encode --tokenizer tokenizer.json
  echo \"Ein Hund rennt.\" | attentive tokenizer encode --tokenizer tokenizer.json --ids \\
    | attentive tokenizer decode --tokenizer tokenizer.json
  echo \"Ein Hund rennt.\" | attentive tokenizer encode --tokenizer vocab.spm

A tokenizer is a file that `train` wrote, a tokenizer.json of a model, or a SentencePiece .model or .spm file.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
struct TrainArgs {
    /// Text files, plain or gzip'd; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// unigram, bpe (subwords), wordpiece (BERT), word, characters, or tabs (tokens already separated by tabs)
    #[arg(long, value_name = "KIND", default_value_t = TokenizerOptions::default().kind)]
    kind: TokenizerKind,
    /// Vocabulary size, special tokens included; 0 with word, characters and tabs for no limit
    #[arg(long, value_name = "N", default_value_t = TokenizerOptions::default().vocab_size)]
    vocab_size: usize,
    /// Leave out words, or pairs to merge, that occur less often
    #[arg(long, value_name = "N", default_value_t = TokenizerOptions::default().min_frequency)]
    min_frequency: usize,
    /// Lowercase the text first
    #[arg(long)]
    lowercase: bool,
    /// The file to write
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
struct EncodeArgs {
    /// The tokenizer's file
    #[arg(long, short, value_name = "FILE")]
    tokenizer: PathBuf,
    /// Numbers instead of pieces
    #[arg(long)]
    ids: bool,
    #[command(flatten)]
    streams: StreamArgs,
}

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
struct DecodeArgs {
    /// The tokenizer's file
    #[arg(long, short, value_name = "FILE")]
    tokenizer: PathBuf,
    #[command(flatten)]
    streams: StreamArgs,
}

#[derive(Debug, Args)]
struct StreamArgs {
    /// The lines to read, plain or gzip'd; - is standard input
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    input: PathBuf,
    /// Where to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Trains or uses a tokenizer.
pub fn run(args: TokenizerArgs, terminal: &Terminal) -> anyhow::Result<()> {
    match args.command {
        TokenizerCommand::Train(args) => train(&args, terminal),
        TokenizerCommand::Encode(args) => {
            let tokenizer = Tokenizer::load(&args.tokenizer)?;
            args.streams.each_line(|_, line| {
                Ok(if args.ids {
                    joined(tokenizer.encode(line))
                } else {
                    tokenizer.pieces(line).join(" ")
                })
            })
        }
        TokenizerCommand::Decode(args) => {
            let tokenizer = Tokenizer::load(&args.tokenizer)?;
            args.streams.each_line(|place, line| {
                let ids = ids(line, tokenizer.vocab_size()).with_context(|| place.to_owned())?;
                Ok(tokenizer.decode(&ids))
            })
        }
    }
}

fn train(args: &TrainArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let options = args.options();
    if let Err(error) = options.check() {
        bail!(Ending::Usage(
            error.to_string().replace("`vocab_size`", "--vocab-size")
        ));
    }
    // What cannot be written should be known before the long part.
    let mut output = Output::open(Some(&args.out))?;
    let mut lines = Vec::new();
    for file in &args.files {
        lines.extend(read_lines(file)?);
    }
    terminal.note(format_args!("learning from {} lines", count(lines.len())));
    let tokenizer = Tokenizer::train(&options, &mut lines.iter().map(String::as_str))?;
    output.write_all(&tokenizer.to_bytes()?)?;
    output.finish()?;
    let (kind, size) = (tokenizer.kind(), count(tokenizer.vocab_size()));
    terminal.note(format_args!(
        "wrote {}: {kind}, {size} tokens",
        args.out.display()
    ));
    Ok(())
}

impl TrainArgs {
    fn options(&self) -> TokenizerOptions {
        TokenizerOptions {
            kind: self.kind,
            vocab_size: self.vocab_size,
            min_frequency: self.min_frequency,
            lowercase: self.lowercase,
        }
    }
}

impl StreamArgs {
    /// Writes a line for each line read; the first argument names the line's place.
    fn each_line(
        &self,
        mut answer: impl FnMut(&str, &str) -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        let mut output = Output::open(self.output.as_deref())?;
        let name = if self.input == Path::new("-") {
            "standard input".to_owned()
        } else {
            self.input.display().to_string()
        };
        for (index, line) in LineReader::open(&self.input)?.enumerate() {
            let place = format!("{name}, line {}", index + 1);
            writeln!(output, "{}", answer(&place, &line?)?)?;
        }
        output.finish()
    }
}

fn joined(ids: Vec<u32>) -> String {
    let words: Vec<String> = ids.iter().map(u32::to_string).collect();
    words.join(" ")
}

fn ids(line: &str, vocab: usize) -> anyhow::Result<Vec<u32>> {
    let id = |word: &str| match word.parse::<u32>() {
        Ok(id) if (id as usize) < vocab => Ok(id),
        Ok(id) => bail!(
            "there is no token {id}: the vocabulary ends at {}",
            vocab - 1
        ),
        Err(_) => bail!("{word:?} is not a token id; `tokenizer encode --ids` writes them"),
    };
    line.split_whitespace().map(id).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// They are a recipe's, too, as a test of `attentive-train` says.
    #[test]
    fn without_options_the_usual_ones_count() {
        #[derive(clap::Parser)]
        struct Command {
            #[command(flatten)]
            train: TrainArgs,
        }
        let command = Command::parse_from(["train", "train.de", "--out", "tokenizer.json"]);
        assert_eq!(command.train.options(), TokenizerOptions::default());
    }

    #[test]
    fn ids_are_numbers_of_the_vocabulary() {
        assert_eq!(ids(" 4 7\t5 ", 8).unwrap(), [4, 7, 5]);
        assert!(ids("8", 8).unwrap_err().to_string().contains("ends at 7"));
        assert!(ids("Hund", 8).unwrap_err().to_string().contains("\"Hund\""));
    }
}
