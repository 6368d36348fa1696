//! Ctrl-C and SIGTERM while training or preparing: the first asks it to save and stop, the second ends at once. SIGUSR1,
//! which launchers pass on and schedulers can send before the time is up, asks too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::terminal::{Terminal, Verbosity};

/// Starts to listen; the flag is raised when the work should stop, and the user is told what happens then, unless
/// another process says so.
pub fn stop_flag(then: Option<&'static str>) -> anyhow::Result<Arc<AtomicBool>> {
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
            if let Some(then) = then {
                Terminal::new(Verbosity::Normal).note(format_args!("\nstopping: {then}"));
            }
        }
    });
    Ok(flag)
}
