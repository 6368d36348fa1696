//! Documents: the text in a file of some format, and the same file with another text in it.
//!
//! ```text
//! file --read--> Document: texts() --translator (crates/runtime)--> [Marked] --write--> file
//! ```
//!
//! Every reader finds the byte ranges that hold text (`template`); writing replaces these ranges and copies
//! everything else, so that what is not text stays as it is to the last byte, and so does a text that came back
//! unchanged. HTML and XML are read by [`crate::markup`], all others here, one file per format: `plain`, `markdown`, `subtitles`, `po`, `json`, `yaml`, `xliff`,
//! `docx` and `odt` (both in a zip `container`).

mod block;
mod container;
mod docx;
mod format;
mod inline;
mod json;
mod markdown;
mod odt;
mod plain;
mod po;
mod skipped;
mod subtitles;
mod template;
mod xliff;
mod xml;
mod yaml;

use std::path::Path;

pub use format::Format;
pub use skipped::{Reason, Skipped};

use crate::error::{Result, TextError};
use crate::lines::BYTE_ORDER_MARK;
use crate::markup::{Marked, Page, Syntax, XmlTags};
use container::Container;
use template::Template;

/// A file and the texts in it.
#[derive(Debug)]
pub struct Document {
    format: Format,
    body: Body,
    texts: Vec<Marked>,
    skipped: Vec<Skipped>,
}

#[derive(Debug)]
enum Body {
    /// A file that is text itself.
    Text(Template),
    /// HTML or XML.
    Page(Page),
    /// A zip archive of several.
    Archive(Container),
}

/// What a reader found wrong: the line, if there is one, and what and how to repair it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    line: Option<usize>,
    problem: String,
}

impl Problem {
    /// A problem at a byte of a source.
    fn at(source: &str, offset: usize, problem: impl Into<String>) -> Self {
        Self {
            line: Some(template::line_of(source, offset)),
            problem: problem.into(),
        }
    }

    /// A problem of the whole file.
    fn whole(problem: impl Into<String>) -> Self {
        Self {
            line: None,
            problem: problem.into(),
        }
    }
}

impl Document {
    /// Reads a file of this format; `name` stands for it in errors.
    pub fn read(name: &Path, bytes: Vec<u8>, format: Format) -> Result<Self> {
        let named = |problem: Problem| TextError::Document {
            path: name.to_path_buf(),
            format,
            line: problem.line,
            problem: problem.problem,
        };
        if format.is_archive() {
            let container = Container::read(bytes, format).map_err(named)?;
            let parts = || container.parts.iter().map(|part| &part.template);
            return Ok(Self {
                format,
                texts: parts().flat_map(|part| part.texts.clone()).collect(),
                skipped: parts().flat_map(|part| part.skipped.clone()).collect(),
                body: Body::Archive(container),
            });
        }
        let source = text_of(name, bytes)?;
        let page = match format {
            Format::Html => Some(Page::read(&*source, &Syntax::Html)),
            Format::Xml => {
                xml::Xml::parse(&source).map_err(named)?;
                Some(Page::read(&*source, &Syntax::Xml(XmlTags::default())))
            }
            _ => None,
        };
        if let Some(page) = page {
            return Ok(Self {
                format,
                texts: page.texts().to_vec(),
                skipped: Vec::new(),
                body: Body::Page(page),
            });
        }
        let mut template = match format {
            Format::Text => plain::read(source),
            Format::Markdown => markdown::read(source),
            Format::Srt => subtitles::read_srt(source),
            Format::Vtt => subtitles::read_vtt(source),
            Format::Po => po::read(source),
            Format::Json => json::read(source),
            Format::Yaml => yaml::read(source),
            Format::Xliff => xliff::read(source),
            Format::Html | Format::Xml | Format::Docx | Format::Odt => unreachable!("read above"),
        }
        .map_err(named)?;
        Ok(Self {
            format,
            texts: std::mem::take(&mut template.texts),
            skipped: std::mem::take(&mut template.skipped),
            body: Body::Text(template),
        })
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The texts to translate, in the order of the document.
    pub fn texts(&self) -> &[Marked] {
        &self.texts
    }

    /// What holds words and is not among the texts, and why.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// The document with these texts in the places of its own, which they must be as many as. `language` is the one that it
    /// is now in, for formats that name it. A text that is the same as before leaves its place untouched.
    ///
    /// # Panics
    ///
    /// If the number of texts is another.
    pub fn write(&self, texts: &[Marked], language: Option<&str>) -> Result<Vec<u8>> {
        assert_eq!(texts.len(), self.texts.len(), "each text has its own");
        match &self.body {
            Body::Text(template) => {
                let filled = template.fill(&self.texts, texts);
                Ok(match language {
                    Some(language) if self.format == Format::Xliff && texts != self.texts => {
                        xliff::with_language(filled, language)
                    }
                    _ => filled,
                }
                .into_bytes())
            }
            Body::Page(page) => Ok(page.write(texts).into_bytes()),
            Body::Archive(container) => container.write(texts),
        }
    }
}

/// The text of a file: UTF-8 without NUL bytes. A byte order mark stays in it.
fn text_of(path: &Path, bytes: Vec<u8>) -> Result<String> {
    let path = path.to_path_buf();
    if let Some(place) = bytes.iter().position(|&byte| byte == 0) {
        let line = 1 + bytes[..place].iter().filter(|&&byte| byte == b'\n').count();
        return Err(TextError::Binary { path, line });
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line_start = good.iter().rposition(|&byte| byte == b'\n');
        TextError::NotUtf8 {
            path,
            line: 1 + good.iter().filter(|&&byte| byte == b'\n').count(),
            column: good.len() - line_start.map_or(0, |place| place + 1) + 1,
        }
    })
}

/// Where the text begins: after the byte order mark, if there is one.
fn start_of(source: &str) -> usize {
    if source.starts_with(BYTE_ORDER_MARK) {
        BYTE_ORDER_MARK.len_utf8()
    } else {
        0
    }
}
