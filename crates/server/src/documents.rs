//! Files to translate: which there are, the text in them, and their translations.
//!
//! Both APIs with files come here. Reading and writing a document takes a while, so it happens on threads of its own; its
//! texts are in the shared queue like all others.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use attentive_runtime::translator::Unmarked;
use attentive_text::documents::{Document, Format};
use attentive_text::markup::Marked;

use crate::app::App;
use crate::http::body::File;
use crate::markup;
use crate::models::{Direction, Served};
use crate::refusal::{Refusal, invalid};
use crate::translating::{Translating, Wish};

/// Endings of the files that can be translated.
pub fn extensions() -> Vec<String> {
    let endings = Format::all().flat_map(Format::endings);
    endings.map(|ending| format!(".{ending}")).collect()
}

/// A file that was understood.
#[derive(Debug)]
pub struct Upload {
    name: PathBuf,
    body: Body,
}

#[derive(Debug)]
enum Body {
    /// Lines, which are translated as everywhere.
    Text(String),
    Document(Arc<Document>),
}

impl Upload {
    /// Reads a file. One without a name is taken for what it holds.
    pub async fn read(file: File) -> Result<Self, Refusal> {
        if file.bytes.is_empty() {
            return Err(invalid("Invalid request: empty file"));
        }
        let unsupported = || invalid("Invalid request: file format not supported");
        let name = file.name.as_deref().map(Path::new);
        let by_name = name.filter(|name| name.extension().is_some());
        let format = match by_name {
            Some(name) => Format::of_name(name).ok_or_else(unsupported)?,
            None => Format::of_content(&file.bytes).unwrap_or(Format::Text),
        };
        let name = name.map_or_else(
            || PathBuf::from(format!("file.{}", format.endings()[0])),
            Path::to_owned,
        );
        if format == Format::Text {
            let text = std::str::from_utf8(&file.bytes)
                .ok()
                .filter(|text| !text.contains('\0'));
            let text = text.ok_or_else(unsupported)?;
            let text = text.strip_prefix('\u{FEFF}').unwrap_or(text).to_owned();
            let body = Body::Text(text);
            return Ok(Self { name, body });
        }
        let read = move || {
            let document = Document::read(&name, file.bytes.into(), format);
            document.map(|document| Self {
                name,
                body: Body::Document(Arc::new(document)),
            })
        };
        let read = tokio::task::spawn_blocking(read).await;
        let read = read.map_err(|_panicked| Refusal::Failed)?;
        read.map_err(|error| invalid(format!("Invalid request: {error}")))
    }

    /// What is to be translated, as one text.
    pub fn text(&self) -> String {
        match &self.body {
            Body::Text(text) => text.clone(),
            Body::Document(document) => {
                let texts: Vec<String> = document.texts().iter().map(Marked::text).collect();
                texts.join("\n")
            }
        }
    }

    /// `letter_en.txt` for `letter.txt`.
    pub fn translated_name(&self, target: &str) -> String {
        let stem = self.name.file_stem().and_then(|stem| stem.to_str());
        let ending = self.name.extension().and_then(|ending| ending.to_str());
        format!(
            "{}_{target}.{}",
            stem.unwrap_or("file"),
            ending.unwrap_or("txt")
        )
    }

    /// The file in another language.
    pub async fn translate(
        self,
        app: &Arc<App>,
        direction: &Direction,
        target: &str,
        wish: Wish,
    ) -> Result<Vec<u8>, Refusal> {
        let document = match self.body {
            Body::Text(text) => {
                let format = markup::Format::Text;
                let found = markup::translate(app, direction, format, vec![text], wish).await?;
                let text = found.into_iter().next().map(|one| one.translation.text);
                return Ok(text.unwrap_or_default().into_bytes());
            }
            Body::Document(document) => document,
        };
        let texts = match direction {
            Direction::Model(model) => {
                Some(translated(app, model, Arc::clone(&document), wish).await?)
            }
            _ => None,
        };
        let target = target.to_owned();
        let write = move || {
            let texts = texts.as_deref().unwrap_or(document.texts());
            document.write(texts, Some(&target))
        };
        let written = tokio::task::spawn_blocking(write).await;
        let written = written.map_err(|_panicked| Refusal::Failed)?;
        written.map_err(|error| invalid(format!("Invalid request: {error}")))
    }
}

/// The texts of a document, which go through the queue together.
async fn translated(
    app: &Arc<App>,
    model: &Arc<Served>,
    document: Arc<Document>,
    wish: Wish,
) -> Result<Vec<Marked>, Refusal> {
    let bare: Vec<Unmarked> = document.texts().iter().map(Unmarked::of).collect();
    let texts = bare.iter().map(|text| text.text().to_owned()).collect();
    let wish = Wish {
        alignments: true,
        markup: true,
        ..wish
    };
    let found = Translating::begin(app, model, texts, wish)
        .await?
        .all()
        .await?;
    let texts = bare.iter().zip(found);
    Ok(texts
        .map(|(text, found)| text.restore(found.translation).marked)
        .collect())
}
