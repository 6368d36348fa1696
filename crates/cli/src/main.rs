//! The one binary: parses the command line, hands over to a command, turns the end into an exit code.
//!
//! - [`arguments`] is the command line, [`commands`] has a file for each command.
//! - [`decoding`] turns options into a search, [`model`] a directory or a name into a translator.
//! - [`output`] writes results, [`picture`] pictures, [`terminal`] talks to the person in front of it, [`progress`] shows
//!   training at work, [`wording`] writes numbers the way people read them.
//! - [`interrupt`] listens for Ctrl-C, [`exit`] says what the exit codes mean.

mod arguments;
mod commands;
mod decoding;
mod direction;
mod exit;
mod interrupt;
mod model;
mod output;
mod picture;
mod progress;
mod terminal;
mod wording;

use std::process::ExitCode;

use clap::Parser;

use arguments::Cli;
use terminal::Terminal;

/// Training allocates and frees the same large tensors all the time. This allocator keeps them, once
/// [`keep_pages`] has told it to: page faults cost an eighth of a training step otherwise.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Lets the allocator keep freed pages instead of giving them back to the system.
fn keep_pages() {
    // `mi_option_purge_delay` of mimalloc 3; the bindings do not name it yet. -1: never.
    const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
    // SAFETY: sets an integer inside the allocator; allowed at any time.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, -1) };
}

fn main() -> ExitCode {
    keep_pages();
    let arguments = commands::score::flags::expand(std::env::args_os());
    let Cli { global, command } = Cli::parse_from(arguments);
    let terminal = Terminal::new(global.verbosity());
    let result = global.in_pool(|| commands::run(command, &terminal));
    exit::code(result.flatten(), &terminal)
}
