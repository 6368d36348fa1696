//! Any number of lines in bounded memory: a window of lines at a time.
//!
//! [`super::Translator`] and [`super::Chain`] translate the windows.

use super::source::Line;
use super::translation::Translation;

/// Reads windows of at most `window` lines, translates each with `translate`, and gives every line with its
/// translation to `answer`, in the order of the lines. The first error, of the lines or of `answer`, ends it; lines
/// before it are answered.
pub(super) fn translate<L: Line, E>(
    window: usize,
    lines: impl IntoIterator<Item = Result<L, E>>,
    translate: impl Fn(&[L]) -> Vec<Translation>,
    mut answer: impl FnMut(L, Translation) -> Result<(), E>,
) -> Result<(), E> {
    let mut lines = lines.into_iter();
    let mut read = Vec::new();
    loop {
        let ended = fill(window, &mut read, &mut lines);
        let translations = translate(&read);
        for (line, translation) in read.drain(..).zip(translations) {
            answer(line, translation)?;
        }
        if let Some(ended) = ended {
            return ended;
        }
    }
}

/// Reads a window of lines; returns how the lines ended, if they did.
fn fill<L: Line, E>(
    window: usize,
    read: &mut Vec<L>,
    lines: &mut impl Iterator<Item = Result<L, E>>,
) -> Option<Result<(), E>> {
    let mut bytes = 0;
    while read.len() < window && bytes < WINDOW_BYTES {
        match lines.next() {
            Some(Ok(line)) => {
                bytes += line.text().len();
                read.push(line);
            }
            Some(Err(error)) => return Some(Err(error)),
            None => return Some(Ok(())),
        }
    }
    None
}

/// A window ends early when its lines are this long together.
const WINDOW_BYTES: usize = 1 << 22;
