//! How far a long translation is: lines, lines per second, and the time left where that is known.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::Output;
use crate::terminal::Terminal;
use crate::wording::count;

/// A bar on the terminal, or nothing.
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
    lines: usize,
    /// What is counted.
    unit: &'static str,
}

impl Progress {
    /// A bar for `bytes` of text, a counter if nobody knows how much there is, and nothing where the
    /// translations themselves appear.
    pub fn new(
        output: &Output,
        bytes: Option<u64>,
        unit: &'static str,
        terminal: &Terminal,
    ) -> Self {
        let shown_there = matches!(output, Output::Stdout(_)) && io::stdout().is_terminal();
        let (bar, template) = match (terminal.can_draw() && !shown_there, bytes) {
            (false, _) => (ProgressBar::hidden(), ""),
            (true, None) => (ProgressBar::no_length(), "{spinner} {msg}"),
            (true, Some(bytes)) => (
                ProgressBar::new(bytes),
                "{bar:30} {percent}%  {msg}, {eta} left",
            ),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self {
            bar,
            began: Instant::now(),
            lines: 0,
            unit,
        }
    }

    /// One more line is done.
    pub fn add(&mut self, line: &str) {
        self.lines += 1;
        if self.bar.is_hidden() {
            return;
        }
        self.bar.inc(line.len() as u64 + 1);
        let per_second = self.lines as f64 / self.began.elapsed().as_secs_f64().max(1e-3);
        let lines = count(self.lines);
        self.bar
            .set_message(format!("{lines} {}, {per_second:.0} per second", self.unit));
    }

    /// Says something while the bar is away.
    pub fn suspend<R>(&self, say: impl FnOnce() -> R) -> R {
        self.bar.suspend(say)
    }

    /// Takes the bar away.
    pub fn finish(self) {}
}

/// Also when something went wrong, so that the message does not stand beside a bar.
impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
