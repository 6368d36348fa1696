//! Text with inline markup: what is to be translated, with its tags beside it.
//!
//! ```text
//! document --reader--> [Marked] --translator (crates/runtime)--> [Marked] --writer--> document
//! ```
//!
//! A reader of a format turns each block (a paragraph, a heading, a cell) into one [`Marked`] and remembers what the
//! numbers of its tags stand for: `<b class="x">` and `</b>`, a run's properties in a DOCX file, two asterisks in
//! Markdown. The translator moves the tags to the words that they belong to and knows none of these formats.
//!
//! - [`Bare`] takes the tags out of a text and puts them back into its translation, by links between [`units`];
//!   `placement` decides where.
//! - [`Page`] reads and writes HTML and XML, by `tokens`, `entities` and what `elements` are.

mod bare;
mod block;
mod elements;
mod entities;
mod page;
mod placement;
mod tokens;
mod units;

pub use bare::{Bare, Restored};
pub use elements::{Outline, Syntax, XmlTags};
pub use page::Page;
pub use units::{units, units_of_tokens};

/// A piece of text with inline markup.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Marked {
    /// Text and tags in their order.
    pub parts: Vec<Part>,
}

/// One part of a [`Marked`]. The numbers are the reader's; each element has one of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text to translate, as a person reads it: entities and escapes are decoded.
    Text(String),
    /// Text that stays as it is, such as code or a name in `translate="no"`.
    Verbatim(String),
    /// An element begins; its [`Part::Close`] follows.
    Open(u32),
    /// An element ends.
    Close(u32),
    /// Something without content: a line break, a picture, a comment.
    Point(u32),
}

impl Marked {
    /// Text without tags.
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            parts: vec![Part::Text(text.into())],
        }
    }

    /// What a person reads: the text without its tags.
    pub fn text(&self) -> String {
        let text = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) | Part::Verbatim(text) => Some(&**text),
            Part::Open(_) | Part::Close(_) | Part::Point(_) => None,
        });
        text.collect()
    }
}
