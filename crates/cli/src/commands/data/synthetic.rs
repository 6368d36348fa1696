//! `attentive data synthetic`: lines of a made-up task, for trying things out without a corpus.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::bail;
use attentive_train::data::synthetic;
use attentive_train::recipe::{Synthetic, SyntheticTask};
use clap::{Args, ValueEnum};

use crate::arguments::positive;
use crate::exit::Ending;
use crate::output::Output;
use crate::terminal::Terminal;
use crate::wording::count;

/// Arguments of `data synthetic`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SyntheticArgs {
    /// What the target side is: the same words, or the words from last to first
    task: Task,
    /// Number of lines
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = positive())]
    lines: usize,
    /// Random seed
    #[arg(long, value_name = "SEED", default_value_t = Synthetic::default().seed)]
    seed: u64,
    /// Write PREFIX.src and PREFIX.tgt
    #[arg(long, value_name = "PREFIX")]
    out: PathBuf,
    /// Number of different words: a, b, ... z, aa, ab, ...
    #[arg(long, value_name = "N", default_value_t = Synthetic::default().symbols)]
    symbols: usize,
    /// Minimum number of words of a line
    #[arg(long, value_name = "N", default_value_t = Synthetic::default().min_length, value_parser = positive())]
    min_length: usize,
    /// Maximum number of words of a line
    #[arg(long, value_name = "N", default_value_t = Synthetic::default().max_length, value_parser = positive())]
    max_length: usize,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Task {
    Copy,
    Reverse,
}

const EXAMPLES: &str = "\
Example:
  attentive data synthetic reverse --lines 20000 --seed 1 --out data/reverse
writes data/reverse.src and data/reverse.tgt.";

/// Makes the data.
pub fn run(args: &SyntheticArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let settings = args.settings()?;
    let (src_path, tgt_path) = (with_end(&args.out, ".src")?, with_end(&args.out, ".tgt")?);
    let mut src = Output::open(Some(&src_path))?;
    let mut tgt = Output::open(Some(&tgt_path))?;
    for (src_line, tgt_line) in synthetic::generate(&settings).train {
        writeln!(src, "{src_line}")?;
        writeln!(tgt, "{tgt_line}")?;
    }
    src.finish()?;
    tgt.finish()?;
    terminal.note(format_args!(
        "wrote {} lines each to {} and {}",
        count(args.lines),
        src_path.display(),
        tgt_path.display()
    ));
    Ok(())
}

impl SyntheticArgs {
    fn settings(&self) -> anyhow::Result<Synthetic> {
        let (min, max) = (self.min_length, self.max_length);
        if min > max {
            let message = format!("--min-length ({min}) must be at most --max-length ({max})");
            bail!(Ending::Usage(message));
        }
        if self.symbols < 2 {
            let message = format!("--symbols ({}) must be at least 2", self.symbols);
            bail!(Ending::Usage(message));
        }
        Ok(Synthetic {
            task: match self.task {
                Task::Copy => SyntheticTask::Copy,
                Task::Reverse => SyntheticTask::Reverse,
            },
            lines: self.lines,
            val_lines: 0,
            symbols: self.symbols,
            min_length: min,
            max_length: max,
            seed: self.seed,
        })
    }
}

/// `data/reverse` -> `data/reverse.src`
fn with_end(prefix: &Path, end: &str) -> anyhow::Result<PathBuf> {
    let is_folder = prefix.is_dir() || prefix.as_os_str().to_string_lossy().ends_with('/');
    let Some(name) = prefix.file_name().filter(|_| !is_folder) else {
        let (folder, example) = (prefix.display(), prefix.join("train"));
        bail!(Ending::Usage(format!(
            "--out {folder} is a folder; give a prefix for the files, such as {}",
            example.display()
        )));
    };
    let mut name = name.to_owned();
    name.push(end);
    Ok(prefix.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use attentive_train::Recipe;
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        synthetic: SyntheticArgs,
    }

    /// Whoever follows the README gives a model of reverse.toml the lines of this command.
    #[test]
    fn the_lines_are_like_those_that_the_reversal_recipe_trains_on() {
        let args = Command::parse_from(["synthetic", "reverse", "--out", "x"]).synthetic;
        let made = args.settings().unwrap();
        let text = include_str!("../../../../../recipes/reverse.toml");
        let recipe = Recipe::from_toml_str("reverse.toml", text, &[]).unwrap();
        let trained = recipe.data.synthetic.unwrap();
        let kind = |task: &Synthetic| (task.symbols, task.min_length, task.max_length);
        assert_eq!(kind(&made), kind(&trained));
        assert_eq!(kind(&made), kind(&Synthetic::default()));
    }
}
