//! `attentive completions SHELL`: what the shell needs to complete commands and options.

use std::io::Write;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::arguments::Cli;
use crate::output::Output;

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  attentive completions bash > ~/.local/share/bash-completion/completions/attentive
  attentive completions zsh > ~/.zfunc/_attentive
  attentive completions fish > ~/.config/fish/completions/attentive.fish";

/// Prints the completions.
pub fn run(args: CompletionsArgs) -> anyhow::Result<()> {
    // Into memory first: the generator would panic on a pipe that was closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "attentive", &mut script);
    let mut output = Output::stdout();
    output.write_all(&script)?;
    output.finish()
}
