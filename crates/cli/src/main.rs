//! The one binary: parses the command line, hands over to a command, turns the end into an exit code.
//!
//! - [`arguments`] is the command line, [`commands`] has a file for each command.
//! - [`decoding`] turns options into a search, [`model`] a directory into a translator.
//! - [`output`] writes results, [`terminal`] talks to the person in front of it, [`progress`] shows
//!   training at work, [`wording`] writes numbers the way people read them.
//! - [`interrupt`] listens for Ctrl-C, [`exit`] says what the exit codes mean.

mod arguments;
mod commands;
mod decoding;
mod exit;
mod interrupt;
mod model;
mod output;
mod progress;
mod terminal;
mod wording;

use std::process::ExitCode;

use clap::Parser;

use arguments::Cli;
use terminal::Terminal;

/// Training allocates and frees large tensors all the time; this allocator gives pages back less
/// eagerly than the system's, which saves page faults.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse_from(commands::score::flags::expand(std::env::args_os()));
    let terminal = Terminal::new(cli.global.verbosity());
    let result = cli
        .global
        .start_threads()
        .and_then(|()| commands::run(cli.command, &terminal));
    exit::code(result, &terminal)
}
