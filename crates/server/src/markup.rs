//! Text with markup: the one place where HTML and XML become sentences and their translations become markup again.
//!
//! All APIs ask here for the format of a text. What a format needs is the [`Translating`] of many texts at once, so
//! that the sentences of a page are in the shared queue like all others.

use std::sync::Arc;

use attentive_runtime::translator::Unmarked;
use attentive_text::markup::{Page, Syntax, XmlTags};

use crate::app::App;
use crate::models::{Direction, Served};
use crate::refusal::{Refusal, invalid};
use crate::translating::{Translated, Translating, Wish};

/// How a text is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// Plain text.
    Text,
    /// HTML.
    Html,
    /// XML, and what its tags do.
    Xml(XmlTags),
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
    let syntax = match format {
        Format::Text => {
            return Translating::begin(app, model, texts, wish)
                .await?
                .all()
                .await;
        }
        Format::Html => Syntax::Html,
        Format::Xml(tags) => Syntax::Xml(tags),
    };
    let read = move || {
        let page = |text: String| Page::read(text, &syntax);
        texts
            .into_iter()
            .map(page)
            .map(MarkedPage::of)
            .collect::<Vec<_>>()
    };
    let pages = tokio::task::spawn_blocking(read).await;
    let pages = pages.map_err(|_panicked| Refusal::Failed)?;
    translate_pages(app, model, pages, wish).await
}

/// A page and its texts without their tags.
struct MarkedPage {
    page: Page,
    texts: Vec<Unmarked>,
}

impl MarkedPage {
    fn of(page: Page) -> Self {
        let texts = Unmarked::all(&page);
        Self { page, texts }
    }

    /// The page with translations of its texts.
    fn translated(&self, found: Vec<Translated>) -> Translated {
        let (mut translations, mut sentences) = (Vec::new(), Vec::new());
        for one in found {
            translations.push(one.translation);
            sentences.extend(one.sentences);
        }
        Translated {
            translation: Unmarked::page(&self.page, &self.texts, &translations),
            sentences,
        }
    }
}

/// The texts of all pages go through the queue together.
async fn translate_pages(
    app: &Arc<App>,
    model: &Arc<Served>,
    pages: Vec<MarkedPage>,
    wish: Wish,
) -> Result<Vec<Translated>, Refusal> {
    let texts = pages.iter().flat_map(|page| &page.texts);
    let texts: Vec<String> = texts.map(|text| text.text().to_owned()).collect();
    let wish = Wish {
        alignments: true,
        markup: true,
        ..wish
    };
    let found = Translating::begin(app, model, texts, wish)
        .await?
        .all()
        .await?;
    let write = move || {
        let mut found = found.into_iter();
        let page =
            |page: &MarkedPage| page.translated(found.by_ref().take(page.texts.len()).collect());
        pages.iter().map(page).collect()
    };
    let written = tokio::task::spawn_blocking(write).await;
    written.map_err(|_panicked| Refusal::Failed)
}
