//! A bar for work whose length is known, or a spinner; hidden where it cannot be drawn.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::terminal::Terminal;

/// A bar is divided into so many parts.
pub const PARTS: u64 = 1000;

/// How much is done and how long the rest takes.
pub const WITH_TIME_LEFT: &str = "{msg} {bar:30} {percent}%, {eta} left";

/// A bar of this length and look; without a length, a spinner.
pub fn bar(terminal: &Terminal, length: Option<u64>, template: &str) -> ProgressBar {
    if !terminal.can_draw() {
        return ProgressBar::hidden();
    }
    let bar = length.map_or_else(ProgressBar::no_length, ProgressBar::new);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
