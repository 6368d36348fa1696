//! What a document holds besides the texts that are translated, so that nothing is left out silently.

use std::fmt;

/// Words that are not among the texts of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The line in the file, or in the part of an archive, from 1.
    pub line: usize,
    /// Why they stay as they are.
    pub reason: Reason,
}

/// Why something stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// A block of code.
    Code,
    /// The metadata at the beginning of a Markdown file.
    FrontMatter,
    /// HTML among Markdown.
    Html,
    /// A message that has a translation already.
    AlreadyTranslated,
    /// A message that is no longer used.
    Obsolete,
    /// Marked as not to be translated.
    NotToTranslate,
    /// An address, a path, a key: one word that is no word.
    Identifier,
    /// A message with plural or select forms inside.
    IcuForms,
    /// Text that was deleted with changes tracked.
    Deleted,
    /// A number, a date or a name that the program computes.
    Field,
    /// A formula.
    Formula,
    /// A value with a tag of its own.
    Tagged,
    /// Written in a way that cannot be replaced safely.
    NotUnderstood,
}

impl Reason {
    /// What is said about `count` of them.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::FrontMatter => "front matter",
            Self::Html => "HTML in Markdown",
            Self::AlreadyTranslated => "translated already",
            Self::Obsolete => "obsolete messages",
            Self::NotToTranslate => "marked as not to be translated",
            Self::Identifier => "addresses, paths and other identifiers",
            Self::IcuForms => "messages with plural or select forms, to be translated by hand",
            Self::Deleted => "deleted text of tracked changes",
            Self::Field => "fields that are computed",
            Self::Formula => "formulas",
            Self::Tagged => "values with a tag",
            Self::NotUnderstood => "written in a way that cannot be replaced safely",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.describe())
    }
}
