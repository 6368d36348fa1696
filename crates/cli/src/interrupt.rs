//! Ctrl-C and SIGTERM while training or preparing: the first asks it to save and stop, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::terminal::{Terminal, Verbosity};

/// Starts to listen; the flag is raised when the work should stop, and the user is told what happens then.
pub fn stop_flag(then: &'static str) -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&flag);
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot listen for Ctrl-C")?;
    // A thread and not a signal handler, because it says something, also in the middle of a long
    // validation when the trainer has no time to look at the flag.
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if raised.swap(true, Ordering::SeqCst) {
                signal_hook::low_level::exit(128 + signal);
            }
            Terminal::new(Verbosity::Normal).note(format_args!("\nstopping: {then}"));
        }
    });
    Ok(flag)
}
