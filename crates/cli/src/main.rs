//! The one binary: parses the command line, hands over to a command, turns the end into an exit code.
//!
//! - [`arguments`] is the command line, [`commands`] has a file for each command.
//! - [`decoding`] turns options into a search, [`model`] a directory or a name into a translator,
//!   `network` into a network of `attentive-nn`, for other devices than the CPU.
//! - [`output`] writes results, [`picture`] pictures, [`terminal`] talks to the person in front of it, `progress` shows
//!   training at work, [`bar`] other work, [`wording`] writes numbers the way people read them.
//! - `ranks` joins the processes that mpirun started together.
//! - `interrupt` listens for Ctrl-C, [`exit`] says what the exit codes mean, [`allocator`] is for speed.
//!
//! Without the feature `training` there are no commands that train or need a network on Burn, and no other
//! devices: the rest builds in a minute or two.

mod allocator;
mod arguments;
mod bar;
mod commands;
mod decoding;
mod direction;
mod exit;
#[cfg(feature = "training")]
mod interrupt;
mod model;
#[cfg(feature = "training")]
mod network;
mod output;
mod picture;
#[cfg(feature = "training")]
mod progress;
#[cfg(feature = "training")]
mod ranks;
mod terminal;
mod wording;

use std::process::ExitCode;

use clap::Parser;

use arguments::Cli;
use terminal::Terminal;

fn main() -> ExitCode {
    allocator::keep_pages();
    let arguments = commands::score::flags::expand(std::env::args_os());
    let Cli { global, command } = Cli::parse_from(arguments);
    let terminal = Terminal::new(global.verbosity());
    let result = global.in_pool(|| commands::run(command, &terminal));
    exit::code(result.flatten(), &terminal)
}
