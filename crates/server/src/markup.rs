//! Text with markup: the one place where HTML and XML become sentences and their translations become markup again.
//!
//! All APIs ask here for the format of a text. What a format needs is the [`Translating`] of many texts at once, so
//! that the sentences of a page are in the shared queue like all others.

use std::sync::Arc;

use crate::app::App;
use crate::models::Direction;
use crate::refusal::{Refusal, invalid};
use crate::translating::{Translated, Translating, Wish};

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Plain text.
    Text,
    /// HTML.
    Html,
    /// XML.
    Xml,
}

impl Format {
    /// The format with the name that LibreTranslate's clients use; plain text if there is none.
    pub fn named(name: Option<&str>) -> Result<Self, Refusal> {
        match name {
            None | Some("text") => Ok(Self::Text),
            Some("html") => Ok(Self::Html),
            Some(other) => Err(invalid(format!("{other} format is not supported"))),
        }
    }
}

/// Translates texts; nothing but the text of each, if both languages are the same.
pub async fn translate(
    app: &Arc<App>,
    direction: &Direction,
    format: Format,
    texts: Vec<String>,
    wish: Wish,
) -> Result<Vec<Translated>, Refusal> {
    let Direction::Model(model) = direction else {
        return Ok(texts.into_iter().map(Translated::unchanged).collect());
    };
    match format {
        Format::Text => {
            Translating::begin(app, model, texts, wish)
                .await?
                .all()
                .await
        }
        Format::Html => Err(invalid("html format is not supported")),
        Format::Xml => Err(invalid("xml format is not supported")),
    }
}
