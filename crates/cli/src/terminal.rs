//! Everything that is said to the person at the terminal, on standard error: results go to
//! [`crate::output`] instead.
//!
//! Colours only where a terminal shows them and `NO_COLOR` does not forbid them. A standard error
//! that was closed is no reason to fail, so what cannot be written is dropped.

use std::fmt;
use std::io::{self, IsTerminal, Write};

/// How much to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// Notes and progress too.
    Normal,
    /// Warnings and errors only.
    Quiet,
}

/// Whether text may be coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
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
    colours: Colours,
    is_terminal: bool,
}

impl Terminal {
    /// The terminal of this process.
    pub fn new(verbosity: Verbosity) -> Self {
        let is_terminal = io::stderr().is_terminal();
        Self {
            verbosity,
            colours: Colours::for_stream(is_terminal),
            is_terminal,
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
        let word = self.colours.paint(Look::Yellow, "warning:");
        self.line(format_args!("{word} {message}"));
    }

    /// Says what went wrong.
    pub fn error(&self, message: impl fmt::Display) {
        let word = self.colours.paint(Look::Red, "error:");
        self.line(format_args!("{word} {message}"));
    }

    /// Whether a bar that moves may be drawn.
    pub fn can_draw(&self) -> bool {
        self.is_terminal && self.verbosity == Verbosity::Normal
    }

    /// Whether what is said here may be coloured.
    pub fn colours(&self) -> Colours {
        self.colours
    }

    fn line(&self, message: impl fmt::Display) {
        let _ = writeln!(io::stderr().lock(), "{message}");
    }
}

impl Colours {
    /// For results on standard output.
    pub fn of_stdout() -> Self {
        Self::for_stream(io::stdout().is_terminal())
    }

    fn for_stream(is_terminal: bool) -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match is_terminal && !set("NO_COLOR") && !dumb {
            true => Colours::On,
            false => Colours::Off,
        }
    }

    /// The text with a look, where looks are shown.
    pub fn paint(self, look: Look, text: impl fmt::Display) -> String {
        let code = match look {
            Look::Dim => "2",
            Look::Red => "1;31",
            Look::Green => "32",
            Look::Yellow => "1;33",
        };
        match self {
            Colours::On => format!("\x1b[{code}m{text}\x1b[0m"),
            Colours::Off => text.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays_plain() {
        assert_eq!(Colours::Off.paint(Look::Red, "x"), "x");
        assert_eq!(Colours::On.paint(Look::Dim, "x"), "\x1b[2mx\x1b[0m");
        assert_eq!(Colours::for_stream(false), Colours::Off);
    }
}
