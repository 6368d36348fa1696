//! Everything that is said to the person at the terminal, on standard error: results go to
//! [`crate::output`] instead.
//!
//! Colors only where a terminal shows them and `NO_COLOR` does not forbid them. A standard error
//! that was closed is no reason to fail, so what cannot be written is dropped.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

/// How much to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// Notes and progress too.
    Normal,
    /// Warnings and errors only.
    Quiet,
}

/// Whether text may be colored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colors {
    /// A terminal shows them.
    On,
    /// A file or a pipe gets plain text.
    Off,
}

/// How a piece of text looks.
#[derive(Debug, Clone, Copy)]
pub enum Look {
    /// Of less importance.
    Dim,
    /// Wrong.
    Red,
    /// Right.
    Green,
    /// To be looked at.
    Yellow,
}

/// Standard error and what may be done with it.
#[derive(Debug)]
pub struct Terminal {
    verbosity: Verbosity,
    colors: Colors,
    is_terminal: bool,
}

impl Terminal {
    /// The terminal of this process.
    pub fn new(verbosity: Verbosity) -> Self {
        let stderr = io::stderr();
        Self {
            verbosity,
            colors: Colors::for_stream(&stderr),
            is_terminal: stderr.is_terminal(),
        }
    }

    /// Says something that is good to know.
    pub fn note(&self, message: impl fmt::Display) {
        if self.verbosity == Verbosity::Normal {
            self.line(message);
        }
    }

    /// Says something that the user should look at.
    pub fn warn(&self, message: impl fmt::Display) {
        let word = self.colors.paint(Look::Yellow, "warning:");
        self.line(format_args!("{word} {message}"));
    }

    /// Says what went wrong.
    pub fn error(&self, message: impl fmt::Display) {
        let word = self.colors.paint(Look::Red, "error:");
        self.line(format_args!("{word} {message}"));
    }

    /// How much is said.
    pub fn verbosity(&self) -> Verbosity {
        self.verbosity
    }

    /// Whether a bar that moves may be drawn.
    pub fn can_draw(&self) -> bool {
        self.is_terminal && self.verbosity == Verbosity::Normal
    }

    /// Whether what is said here may be colored.
    #[cfg(feature = "training")]
    pub fn colors(&self) -> Colors {
        self.colors
    }

    fn line(&self, message: impl fmt::Display) {
        let _ = writeln!(io::stderr().lock(), "{message}");
    }
}

impl Colors {
    /// For results on standard output.
    pub fn of_stdout() -> Self {
        Self::for_stream(&io::stdout())
    }

    /// As `anstream` decides: terminals that have colors, unless `NO_COLOR` or the like says otherwise.
    fn for_stream(stream: &impl RawStream) -> Self {
        if AutoStream::choice(stream) == ColorChoice::Never {
            Colors::Off
        } else {
            Colors::On
        }
    }

    /// The text with a look, where looks are shown.
    pub fn paint(self, look: Look, text: impl fmt::Display) -> String {
        let style = match look {
            Look::Dim => Style::new().dimmed(),
            Look::Red => AnsiColor::Red.on_default().bold(),
            Look::Green => AnsiColor::Green.on_default(),
            Look::Yellow => AnsiColor::Yellow.on_default().bold(),
        };
        match self {
            Colors::On => format!("{style}{text}{style:#}"),
            Colors::Off => text.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays_plain() {
        assert_eq!(Colors::Off.paint(Look::Red, "x"), "x");
        assert_eq!(Colors::On.paint(Look::Dim, "x"), "\x1b[2mx\x1b[0m");
    }
}
