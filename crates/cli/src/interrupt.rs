//! Ctrl-C and SIGTERM while training: the first asks it to save and stop, the second ends at once. SIGUSR1, which
//! launchers pass on and schedulers can send before the time is up, asks too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::terminal::{Terminal, Verbosity};

/// Who says that training stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// This process, which trains alone.
    Alone,
    /// This process, for all that train together.
    ForAll,
    /// Another one.
    Nothing,
}

/// Starts to listen; the flag is raised when training should stop.
pub fn stop_flag(says: Says) -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&flag);
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGUSR1]).context("cannot listen for Ctrl-C")?;
    // A thread and not a signal handler, because it says something, also in the middle of a long
    // validation when the trainer has no time to look at the flag.
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if raised.swap(true, Ordering::SeqCst) {
                if signal == SIGUSR1 {
                    continue;
                }
                signal_hook::low_level::exit(128 + signal);
            }
            let terminal = Terminal::new(Verbosity::Normal);
            match says {
                Says::Alone => terminal
                    .note("\nstopping: saving a checkpoint first (once more to stop at once, unsaved)"),
                Says::ForAll => terminal.note(
                    "\nstopping: the ranks save a checkpoint first; if one of them is gone, the same command goes on \
                     from the last one, with as many ranks as there are",
                ),
                Says::Nothing => {}
            }
        }
    });
    Ok(flag)
}
