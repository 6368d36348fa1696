//! ODT: the paragraphs and headings of an OpenDocument text, with its headers, footers, notes, comments and frames.
//!
//! `text:p` and `text:h` are blocks, `text:span` and `text:a` are tags, everything else inside them is a point; notes,
//! comments and frames hold paragraphs of their own. A tab ends a text. Text that was deleted with changes tracked stays.

use super::Problem;
use super::block::{Block, is_text};
use super::inline::{Raw, Tag, Tags};
use super::skipped::Reason;
use super::template::Template;
use super::xml::{Kind, Xml, escape};
use crate::markup::Part;

/// The entries of the archive that hold text.
pub(crate) fn parts(names: &[String]) -> Result<Vec<String>, Problem> {
    let has = |name: &str| names.iter().any(|other| other == name);
    if !has("content.xml") {
        let problem =
            "there is no content.xml in it, so it is no OpenDocument text; check the file";
        return Err(Problem::whole(problem));
    }
    let parts = ["content.xml", "styles.xml"];
    Ok(parts
        .into_iter()
        .filter(|name| has(name))
        .map(str::to_owned)
        .collect())
}

/// Reads an entry with text.
pub(crate) fn read(source: String) -> Result<Template, Problem> {
    let xml = Xml::parse(&source)?;
    let mut found = Vec::new();
    let mut skipped = Vec::new();
    let mut token = 0;
    while token < xml.tokens.len() {
        if xml.tokens[token].kind == Kind::Start {
            match xml.name(token) {
                "text:tracked-changes" => {
                    let end = xml.tokens[token].end;
                    let words = |token: usize| xml.text(token).is_some_and(|text| is_text(&text));
                    if (token..end).any(words) {
                        skipped.push((xml.tokens[token].range.start, Reason::Deleted));
                    }
                    token = end;
                }
                "text:p" | "text:h" => {
                    let mut reader = ParagraphReader::new(&xml);
                    reader.children(token);
                    skipped.append(&mut reader.skipped);
                    let tags = reader.tags;
                    let (block, texts) = Block::new(reader.parts, |number| {
                        tags.is_break(number) && reader.tabs.contains(&number)
                    });
                    if !texts.is_empty() {
                        found.push((xml.inside(token), texts, block, tags));
                    }
                }
                _ => {}
            }
        }
        token += 1;
    }
    let mut template = Template::new(source);
    for (range, texts, block, tags) in found {
        template.add(range, texts, move |texts, filler| {
            tags.write(&block.filled(texts), filler, escape_spaces)
        });
    }
    for (offset, reason) in skipped {
        template.skip(offset, reason);
    }
    Ok(template.finished())
}

struct ParagraphReader<'a> {
    xml: &'a Xml<'a>,
    parts: Vec<Part>,
    tags: Tags,
    /// Numbers of tabs.
    tabs: Vec<u32>,
    skipped: Vec<(usize, Reason)>,
}

impl<'a> ParagraphReader<'a> {
    fn new(xml: &'a Xml<'a>) -> Self {
        Self {
            xml,
            parts: Vec::new(),
            tags: Tags::default(),
            tabs: Vec::new(),
            skipped: Vec::new(),
        }
    }

    fn children(&mut self, element: usize) {
        let xml = self.xml;
        for child in xml.children(element) {
            let kind = xml.tokens[child].kind;
            let raw = Raw::Source(xml.whole(child));
            if matches!(kind, Kind::Text | Kind::Reference | Kind::CData) {
                match xml.text(child) {
                    Some(text) => self.text(&text),
                    None => self.tags.push_point(Tag::Point(raw), &mut self.parts),
                }
                continue;
            }
            match xml.name(child) {
                "text:span" | "text:a" | "text:meta" if kind == Kind::Start => {
                    let (whole, inside) = (xml.whole(child), xml.inside(child));
                    let number = self.tags.add(Tag::Element {
                        open: Raw::Source(whole.start..inside.start),
                        close: Raw::Source(inside.end..whole.end),
                    });
                    self.parts.push(Part::Open(number));
                    self.children(child);
                    self.parts.push(Part::Close(number));
                }
                "text:line-break" => self.tags.push_point(Tag::Break(raw), &mut self.parts),
                "text:tab" => {
                    self.tags.push_point(Tag::Break(raw), &mut self.parts);
                    if let Some(Part::Point(number)) = self.parts.last() {
                        self.tabs.push(*number);
                    }
                }
                name => {
                    let words = |child| xml.text(child).is_some_and(|text| is_text(&text));
                    if name.starts_with("text:") && xml.children(child).any(words) {
                        self.skipped
                            .push((xml.tokens[child].range.start, Reason::Field));
                    }
                    self.tags.push_point(Tag::Point(raw), &mut self.parts);
                }
            }
        }
    }

    /// Text with its white space as a program shows it: one space for any number of them.
    fn text(&mut self, text: &str) {
        let mut shown = String::new();
        let mut spaced = match self.parts.last() {
            Some(Part::Text(before)) => before.ends_with(' '),
            _ => false,
        };
        for c in text.chars() {
            let space = matches!(c, ' ' | '\t' | '\n' | '\r');
            if !space {
                shown.push(c);
            } else if !spaced {
                shown.push(' ');
            }
            spaced = space;
        }
        match self.parts.last_mut() {
            Some(Part::Text(before)) => before.push_str(&shown),
            _ => self.parts.push(Part::Text(shown)),
        }
    }
}

/// Text for which a program shows every space.
fn escape_spaces(text: &str) -> String {
    let mut written = String::new();
    let mut spaced = false;
    for line in text.split_inclusive(['\n', '\t', ' ']) {
        let end = line.chars().next_back();
        let (line, element) = match end {
            Some('\n') => (&line[..line.len() - 1], "<text:line-break/>"),
            Some('\t') => (&line[..line.len() - 1], "<text:tab/>"),
            Some(' ') if line == " " && spaced => ("", "<text:s/>"),
            _ => (line, ""),
        };
        written.push_str(&escape(line));
        written.push_str(element);
        spaced = end == Some(' ');
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_that_a_program_would_not_show_are_elements() {
        assert_eq!(escape_spaces("a b & c"), "a b &amp; c");
        assert_eq!(escape_spaces("a   b"), "a <text:s/><text:s/>b");
        assert_eq!(escape_spaces("a\tb\nc"), "a<text:tab/>b<text:line-break/>c");
    }
}
