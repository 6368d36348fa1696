//! How a command ends: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
//!
//! [`crate::commands`] return errors; this prints them, once, with what caused them.

use std::io;
use std::process::ExitCode;

use attentive_catalog::CatalogError;

use crate::terminal::Terminal;

/// Ends of a command that are not plain failures.
#[derive(Debug, thiserror::Error)]
pub enum Ending {
    /// The arguments make no sense, which only showed after they were parsed.
    #[error("{0}")]
    Usage(String),
    /// The user stopped training; the message says how to go on.
    #[cfg(feature = "training")]
    #[error("{0}")]
    Interrupted(String),
}

const FAILED: u8 = 1;
const USAGE: u8 = 2;
#[cfg(feature = "training")]
const INTERRUPTED: u8 = 130;

/// Prints what went wrong, if anything did, and gives the exit code for it.
pub fn code(result: anyhow::Result<()>, terminal: &Terminal) -> ExitCode {
    let Err(error) = result else {
        return ExitCode::SUCCESS;
    };
    // Whoever read our output (`head`, for example) has seen enough: nothing went wrong.
    if is_broken_pipe(&error) {
        return ExitCode::SUCCESS;
    }
    // A language that a model does not write is a wrong argument.
    if let Some(wrong @ CatalogError::Target { .. }) = error.downcast_ref() {
        terminal.error(wrong);
        return ExitCode::from(USAGE);
    }
    match error.downcast_ref::<Ending>() {
        #[cfg(feature = "training")]
        Some(Ending::Interrupted(message)) => {
            terminal.note(message);
            ExitCode::from(INTERRUPTED)
        }
        Some(Ending::Usage(message)) => {
            terminal.error(message);
            ExitCode::from(USAGE)
        }
        None => {
            terminal.error(message(&error));
            ExitCode::from(FAILED)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// The error and its causes, except those that the text before them quotes already.
pub fn message(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str("\n  because: ");
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn causes_are_told_once() {
        let cause = io::Error::other("the disk is on fire");
        let error = Err::<(), _>(cause)
            .context("cannot write x: the disk is on fire")
            .context("training failed")
            .unwrap_err();
        let expected = "training failed\n  because: cannot write x: the disk is on fire";
        assert_eq!(message(&error), expected);
    }

    #[test]
    fn a_reader_that_left_is_no_failure() {
        let error = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(is_broken_pipe(&error.context("cannot write")));
        assert!(!is_broken_pipe(&anyhow::anyhow!("something else")));
    }
}
