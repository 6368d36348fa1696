//! DOCX: the paragraphs of a Word document, its headers, footers, notes, comments and text boxes.
//!
//! A paragraph (`w:p`) is a block. Its text is in runs (`w:r`) with properties; runs with equal properties are one text,
//! those with other properties than most of the paragraph are tags, and so are hyperlinks, inserted text and the like.
//! Pictures, bookmarks and references are points. A tab ends a text. Deleted text and computed fields stay.

mod paragraph;

use std::ops::Range;

use super::Problem;
use super::block::Block;
use super::inline::without_breaks;
use super::template::{Filler, Template};
use super::xml::{Kind, Xml, escape};
use crate::markup::Part;
use paragraph::ParagraphReader;

/// The namespaces of the elements of text: as it is written, and the strict one.
const NAMESPACES: [&str; 2] = [
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
];

/// The entries of the archive that hold text: the document first.
pub(crate) fn parts(names: &[String]) -> Result<Vec<String>, Problem> {
    let has = |start: &str| names.iter().any(|name| name.starts_with(start));
    let rank = |name: &str| {
        let name = name.strip_prefix("word/")?.strip_suffix(".xml")?;
        let kinds = [
            "document",
            "header",
            "footer",
            "footnotes",
            "endnotes",
            "comments",
        ];
        let is = |kind: &str| {
            let rest = name.strip_prefix(kind);
            rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()))
        };
        kinds.iter().position(|kind| is(kind))
    };
    let mut found: Vec<(usize, &String)> = names
        .iter()
        .filter_map(|name| Some((rank(name)?, name)))
        .collect();
    found.sort();
    if found.first().is_none_or(|(rank, _)| *rank > 0) {
        let what = if has("xl/") {
            "this is a spreadsheet; save its text in another format"
        } else if has("ppt/") {
            "this is a presentation; save its text in another format"
        } else {
            "there is no word/document.xml in it, so it is no document of Word; check the file"
        };
        return Err(Problem::whole(what));
    }
    Ok(found.into_iter().map(|(_, name)| name.clone()).collect())
}

/// Reads an entry with text.
pub(crate) fn read(source: String) -> Result<Template, Problem> {
    let xml = Xml::parse(&source)?;
    let prefix = prefix(&xml)?;
    let paragraph = format!("{prefix}p");
    let mut found = Vec::new();
    let mut skipped = Vec::new();
    for token in 0..xml.tokens.len() {
        if xml.tokens[token].kind != Kind::Start || xml.name(token) != paragraph {
            continue;
        }
        let mut reader = ParagraphReader::new(&xml, &prefix);
        let children: Vec<usize> = xml.children(token).collect();
        reader.children(&children);
        skipped.append(&mut reader.skipped);
        let properties = xml.child(token, "pPr").map(|child| xml.whole(child).end);
        let inside = xml.inside(token);
        let range = properties.unwrap_or(inside.start)..inside.end;
        let (paragraph, texts) = reader.finished();
        if !texts.is_empty() {
            found.push((range, texts, paragraph));
        }
    }
    let mut template = Template::new(source);
    for (range, texts, paragraph) in found {
        template.add(range, texts, move |texts, filler| {
            paragraph.write(&paragraph.block.filled(texts), filler)
        });
    }
    for (offset, reason) in skipped {
        template.skip(offset, reason);
    }
    Ok(template.finished())
}

/// The prefix of the elements of text, with its colon.
fn prefix(xml: &Xml<'_>) -> Result<String, Problem> {
    let root = (0..xml.tokens.len()).find(|&token| xml.is_element(token));
    let tag = root.map_or("", |root| &xml.source[xml.tokens[root].range.clone()]);
    for namespace in NAMESPACES {
        if let Some(place) = tag.find(namespace) {
            let before = tag[..place].trim_end_matches(['"', '\'']).trim_end();
            let name = before.trim_end_matches('=').trim_end();
            let name = name.rsplit(char::is_whitespace).next().unwrap_or_default();
            return Ok(name
                .strip_prefix("xmlns:")
                .map_or_else(String::new, |prefix| format!("{prefix}:")));
        }
    }
    Err(Problem::whole(
        "it is no WordprocessingML; open the document and save it again as docx",
    ))
}

/// What a number stands for.
#[derive(Debug, Clone)]
enum Tag {
    /// Text with these run properties.
    Run(Option<Range<usize>>),
    /// An element around runs.
    Element {
        open: Range<usize>,
        close: Range<usize>,
    },
    /// Something between runs.
    Point(Range<usize>),
    /// Something in a run with these properties.
    InRun {
        properties: Option<Range<usize>>,
        inside: Range<usize>,
        is: Is,
    },
}

/// What something in a run does to the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    /// Nothing.
    Point,
    /// It ends a line.
    Break,
    /// It ends a text.
    Tab,
}

/// A paragraph that can be written.
#[derive(Debug)]
struct Paragraph {
    prefix: String,
    block: Block,
    tags: Vec<Tag>,
    /// The properties of most of the text.
    usual: Option<Range<usize>>,
}

impl Paragraph {
    fn write(&self, parts: &[Part], filler: &Filler<'_>) -> String {
        let mut written = String::new();
        let mut properties = vec![&self.usual];
        let is_break = |number: u32| {
            let tag = self.tags.get(number as usize);
            matches!(
                tag,
                Some(Tag::InRun {
                    is: Is::Break | Is::Tab,
                    ..
                })
            )
        };
        for (place, part) in parts.iter().enumerate() {
            match part {
                Part::Text(text) | Part::Verbatim(text) => {
                    let text = without_breaks(text, parts, place, is_break);
                    let current = properties.last().copied().unwrap_or(&self.usual);
                    written.push_str(&self.run(current.as_ref(), &self.text(text), filler));
                }
                Part::Open(number) => match self.tags.get(*number as usize) {
                    Some(Tag::Run(own)) => properties.push(own),
                    Some(Tag::Element { open, .. }) => written.push_str(&filler.raw(open.clone())),
                    _ => {}
                },
                Part::Close(number) => match self.tags.get(*number as usize) {
                    Some(Tag::Run(_)) => {
                        properties.pop();
                    }
                    Some(Tag::Element { close, .. }) => {
                        written.push_str(&filler.raw(close.clone()))
                    }
                    _ => {}
                },
                Part::Point(number) => match self.tags.get(*number as usize) {
                    Some(Tag::Point(range)) => written.push_str(&filler.raw(range.clone())),
                    Some(Tag::InRun {
                        properties, inside, ..
                    }) => {
                        let inside = filler.raw(inside.clone());
                        written.push_str(&self.run(properties.as_ref(), &inside, filler));
                    }
                    _ => {}
                },
            }
        }
        written
    }

    /// A run; nothing if nothing is inside it.
    fn run(&self, properties: Option<&Range<usize>>, inside: &str, filler: &Filler<'_>) -> String {
        if inside.is_empty() {
            return String::new();
        }
        let w = &self.prefix;
        let properties = properties.map_or("", |range| &filler.source()[range.clone()]);
        format!("<{w}r>{properties}{inside}</{w}r>")
    }

    fn text(&self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let w = &self.prefix;
        let (start, end) = (format!("<{w}t xml:space=\"preserve\">"), format!("</{w}t>"));
        let text = escape(text).replace("\r\n", "\n");
        let text = text.replace('\n', &format!("{end}<{w}br/>{start}"));
        let text = text.replace('\t', &format!("{end}<{w}tab/>{start}"));
        format!("{start}{text}{end}")
    }
}
