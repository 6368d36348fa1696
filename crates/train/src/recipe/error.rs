//! What can be wrong with a recipe, told so that one look at the message suffices to mend it.

use std::fmt;
use std::path::PathBuf;

/// Why there is no recipe.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// The file could not be read at all.
    #[error("cannot read the recipe {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file was read; this is everything that is wrong with it.
    #[error("{}", list(name, problems))]
    Invalid {
        /// The file, or what stands in for one.
        name: String,
        /// One entry per problem, in the order of the file.
        problems: Vec<Problem>,
    },
}

/// One thing that is wrong with a recipe.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Where it stands.
    pub place: Place,
    /// What is wrong and what to do; keys stand in backticks.
    pub message: String,
}

/// Where a problem stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// In this line of the file, counted from 1.
    Line(usize),
    /// In this `key=value` of the command line.
    Override(String),
    /// Nowhere: something is missing.
    Recipe,
}

impl Problem {
    /// The sections of the keys that the message names, those it suggests included.
    pub(super) fn sections(&self) -> Vec<String> {
        let keys = keys_in(&self.message);
        keys.iter().map(|key| section_of(key)).collect()
    }
}

impl Place {
    /// Sorts problems: the file from top to bottom, then the command line, then what is missing.
    pub(super) fn order(&self) -> (usize, usize) {
        match self {
            Place::Line(line) => (0, *line),
            Place::Override(_) => (1, 0),
            Place::Recipe => (2, 0),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match &self.place {
            Place::Line(line) => write!(f, "line {line}: {}", self.message),
            Place::Override(text) => write!(f, "--set {text}: {}", self.message),
            Place::Recipe => f.write_str(&self.message),
        }
    }
}

/// The words between backticks of a message.
pub(super) fn keys_in(message: &str) -> Vec<String> {
    message
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// The part of a dotted key before the first dot.
pub(super) fn section_of(key: &str) -> String {
    key.split('.').next().unwrap_or(key).to_owned()
}

fn list(name: &str, problems: &[Problem]) -> String {
    let mut text = match problems {
        [one] => return format!("{name}: {one}"),
        many => format!("{name}: {} problems", many.len()),
    };
    for problem in problems {
        text.push_str(&format!("\n  {problem}"));
    }
    text
}
