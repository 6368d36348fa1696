//! The command line as a whole: options that every command has, and argument types that several use.
//!
//! The arguments of a command stand with the command, in [`crate::commands`].

use anyhow::Context;
use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser};

use crate::commands::Command;
use crate::terminal::Verbosity;

/// The Transformer as translation software: prepare text, train, evaluate, translate.
#[derive(Debug, Parser)]
#[command(name = "attentive", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  attentive translate \"Guten Morgen, wie geht es dir?\"
  attentive demo
  attentive train recipes/reverse.toml --out runs/reverse
  attentive translate --model runs/reverse \"a b c d\"

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted (training can be continued)";

/// Options of every command.
#[derive(Debug, Args)]
pub struct GlobalArgs {
    /// Say nothing but results, warnings and errors
    #[arg(short, long, global = true, help_heading = "Global options")]
    quiet: bool,
    /// Threads to work with [default: one for each core; under mpirun, a share of them]
    #[arg(long, global = true, value_name = "N", value_parser = positive(), help_heading = "Global options")]
    threads: Option<usize>,
}

impl GlobalArgs {
    /// How much to say.
    pub fn verbosity(&self) -> Verbosity {
        if self.quiet {
            Verbosity::Quiet
        } else {
            Verbosity::Normal
        }
    }

    /// Runs the work on a thread of the pool that everything computes with.
    ///
    /// From a thread outside, each of the many small operations of a training step would have to be
    /// handed over and waited for: on a busy machine that took forty times as long as the work.
    pub fn in_pool<R: Send>(&self, work: impl FnOnce() -> R + Send) -> anyhow::Result<R> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads.unwrap_or_else(default_threads))
            // As large as the main thread's, which the work would have had otherwise.
            .stack_size(8 << 20);
        pool.build_global()
            .context("cannot start the threads; try fewer with --threads")?;
        Ok(rayon::scope(|_| work()))
    }
}

/// Where to compute.
#[derive(Debug, Args)]
pub struct DeviceArg {
    /// Where to compute: cpu, or a GPU that this program was built for
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = device_name)]
    pub device: String,
}

/// A whole number from 1.
pub fn positive() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

/// What 0 means is one for each core, or RAYON_NUM_THREADS.
fn default_threads() -> usize {
    #[cfg(feature = "training")]
    return crate::ranks::default_threads();
    #[cfg(not(feature = "training"))]
    0
}

#[cfg(feature = "training")]
fn device_name(name: &str) -> Result<String, String> {
    match attentive_nn::device::parse(name) {
        Ok(_) => Ok(name.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(not(feature = "training"))]
fn device_name(name: &str) -> Result<String, String> {
    if name == "cpu" {
        Ok(name.to_owned())
    } else {
        Err("this program was built without training, which leaves the CPU alone".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_an_example() {
        fn check(command: &clap::Command, path: &str) {
            let children: Vec<_> = command.get_subcommands().collect();
            for child in &children {
                check(child, &format!("{path} {}", child.get_name()));
            }
            let help = command.get_after_help().map(ToString::to_string);
            let example = help.is_some_and(|help| help.contains("  attentive "));
            assert!(example, "`{path} --help` has no example");
        }
        check(&Cli::command(), "attentive");
    }
}
