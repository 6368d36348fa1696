//! A paragraph of Word as it is read: runs, fields and what is around them become parts with tags.

use std::collections::HashMap;
use std::ops::Range;

use super::{Is, Paragraph, Tag};
use crate::documents::block::{Block, is_text};
use crate::documents::skipped::Reason;
use crate::documents::xml::{Kind, Xml};
use crate::markup::{Marked, Part};

/// Text or a tag, before runs are joined.
enum Item {
    Text {
        text: String,
        properties: Option<Range<usize>>,
        /// What of the properties makes a difference to the eye.
        look: String,
    },
    Part(Part),
}

/// Reads the children of a paragraph.
pub(super) struct ParagraphReader<'a> {
    xml: &'a Xml<'a>,
    prefix: &'a str,
    items: Vec<Item>,
    tags: Vec<Tag>,
    /// What is not translated, and where.
    pub skipped: Vec<(usize, Reason)>,
}

impl<'a> ParagraphReader<'a> {
    pub fn new(xml: &'a Xml<'a>, prefix: &'a str) -> Self {
        Self {
            xml,
            prefix,
            items: Vec::new(),
            tags: Vec::new(),
            skipped: Vec::new(),
        }
    }

    /// The name of an element of text; empty for all others.
    fn own(&self, token: usize) -> &'a str {
        let name = self.xml.name(token);
        let own = name.strip_prefix(self.prefix);
        own.filter(|name| !name.contains(':')).unwrap_or_default()
    }

    /// Adds tokens that stand beside each other.
    pub fn children(&mut self, children: &[usize]) {
        let mut next = 0;
        while next < children.len() {
            let child = children[next];
            next += 1;
            if !self.xml.is_element(child) {
                continue;
            }
            match self.own(child) {
                "pPr" | "proofErr" => {}
                "r" if self.field_char(child) == Some("begin") => {
                    next += self.field(&children[next - 1..]) - 1;
                }
                "r" => self.run(child),
                "hyperlink" | "ins" | "moveTo" | "smartTag" | "customXml" | "dir" | "bdo" => {
                    self.element(child, child);
                }
                "sdt" => match self.xml.child(child, "sdtContent") {
                    Some(content) => self.element(child, content),
                    None => self.point(self.xml.whole(child)),
                },
                "fldSimple" => {
                    let code = self.xml.attribute(child, "instr").unwrap_or_default();
                    if is_link(&code) {
                        self.element(child, child);
                    } else {
                        self.skip(child, Reason::Field);
                        self.point(self.xml.whole(child));
                    }
                }
                "del" | "moveFrom" => {
                    self.skip(child, Reason::Deleted);
                    self.point(self.xml.whole(child));
                }
                name => {
                    if name.is_empty() && self.xml.local(child).starts_with("oMath") {
                        self.skip(child, Reason::Formula);
                    }
                    self.point(self.xml.whole(child));
                }
            }
        }
    }

    /// An element around runs, which are children of `inner`.
    fn element(&mut self, outer: usize, inner: usize) {
        let xml = self.xml;
        if xml.tokens[inner].kind != Kind::Start {
            return self.point(xml.whole(outer));
        }
        let (whole, inside) = (xml.whole(outer), xml.inside(inner));
        let number = self.add(Tag::Element {
            open: whole.start..inside.start,
            close: inside.end..whole.end,
        });
        self.items.push(Item::Part(Part::Open(number)));
        let children: Vec<usize> = xml.children(inner).collect();
        self.children(&children);
        self.items.push(Item::Part(Part::Close(number)));
    }

    /// The kind of the first mark of a field in a run.
    fn field_char(&self, run: usize) -> Option<&'static str> {
        let mut marks = self
            .xml
            .children(run)
            .filter(|&child| self.own(child) == "fldChar");
        let kind = self.xml.attribute(marks.next()?, "fldCharType")?;
        ["begin", "separate", "end"]
            .into_iter()
            .find(|known| *known == kind)
    }

    /// A field that begins in the first of these runs; how many of them it takes. A link is an element around its
    /// text. What other fields show is computed.
    fn field(&mut self, runs: &[usize]) -> usize {
        let xml = self.xml;
        let (mut depth, mut separate, mut end) = (0usize, None, None);
        let mut code = String::new();
        for (place, &run) in runs.iter().enumerate() {
            let marks = xml
                .children(run)
                .filter(|&child| self.own(child) == "fldChar");
            for mark in marks {
                match xml.attribute(mark, "fldCharType").as_deref() {
                    Some("begin") => depth += 1,
                    Some("separate") if depth == 1 => separate = separate.or(Some(place)),
                    Some("end") => {
                        depth = depth.saturating_sub(1);
                        if depth == 0 {
                            end = end.or(Some(place));
                        }
                    }
                    _ => {}
                }
            }
            if separate.is_none()
                && let Some(instruction) = xml.child(run, "instrText")
            {
                code.push_str(&self.characters(instruction));
            }
            if end.is_some() {
                break;
            }
        }
        let range =
            |first: usize, last: usize| xml.whole(runs[first]).start..xml.whole(runs[last]).end;
        match (separate, end) {
            (Some(separate), Some(end)) if is_link(&code) && 0 < separate && separate < end => {
                let number = self.add(Tag::Element {
                    open: range(0, separate),
                    close: range(end, end),
                });
                self.items.push(Item::Part(Part::Open(number)));
                self.children(&runs[separate + 1..end]);
                self.items.push(Item::Part(Part::Close(number)));
                end + 1
            }
            (_, Some(end)) => {
                self.skip(runs[0], Reason::Field);
                self.point(range(0, end));
                end + 1
            }
            // It ends in a later paragraph, as tables of contents do; what is between is text.
            (separate, None) => {
                let last = separate.unwrap_or(0);
                self.point(range(0, last));
                last + 1
            }
        }
    }

    fn run(&mut self, run: usize) {
        let xml = self.xml;
        let properties = xml.child(run, "rPr");
        let look = properties.map_or_else(String::new, |properties| self.look(properties));
        let properties = properties.map(|properties| xml.whole(properties));
        for child in xml.children(run) {
            if !xml.is_element(child) {
                continue;
            }
            let text = match self.own(child) {
                "rPr" | "lastRenderedPageBreak" | "softHyphen" => continue,
                "t" => self.characters(child),
                "noBreakHyphen" => "\u{2011}".to_owned(),
                name => {
                    let is = match name {
                        "tab" | "ptab" => Is::Tab,
                        "br" => match xml.attribute(child, "type").as_deref() {
                            Some("page" | "column") => Is::Tab,
                            _ => Is::Break,
                        },
                        "cr" => Is::Break,
                        _ => Is::Point,
                    };
                    if name == "delText" {
                        self.skip(child, Reason::Deleted);
                    }
                    if is != Is::Point && !self.ends_with_space() {
                        self.items.push(Item::Text {
                            text: " ".to_owned(),
                            properties: properties.clone(),
                            look: look.clone(),
                        });
                    }
                    let number = self.add(Tag::InRun {
                        properties: properties.clone(),
                        inside: xml.whole(child),
                        is,
                    });
                    self.items.push(Item::Part(Part::Point(number)));
                    continue;
                }
            };
            self.items.push(Item::Text {
                text,
                properties: properties.clone(),
                look: look.clone(),
            });
        }
    }

    fn ends_with_space(&self) -> bool {
        match self.items.last() {
            Some(Item::Text { text, .. }) => text.ends_with(char::is_whitespace),
            _ => false,
        }
    }

    /// Run properties without those that nobody sees.
    fn look(&self, properties: usize) -> String {
        let xml = self.xml;
        let seen = xml.children(properties).filter(|&child| {
            xml.is_element(child) && !matches!(self.own(child), "lang" | "noProof" | "rPrChange")
        });
        seen.map(|child| &xml.source[xml.whole(child)]).collect()
    }

    /// The characters in an element.
    fn characters(&self, token: usize) -> String {
        let xml = self.xml;
        let text: String = xml
            .children(token)
            .filter_map(|child| xml.text(child))
            .collect();
        if xml.attribute(token, "space").as_deref() == Some("preserve") {
            text
        } else {
            text.trim_matches([' ', '\t', '\n', '\r']).to_owned()
        }
    }

    fn add(&mut self, tag: Tag) -> u32 {
        self.tags.push(tag);
        (self.tags.len() - 1) as u32
    }

    fn point(&mut self, range: Range<usize>) {
        let number = self.add(Tag::Point(range));
        self.items.push(Item::Part(Part::Point(number)));
    }

    /// Notes what is not translated, if it has words.
    fn skip(&mut self, token: usize, reason: Reason) {
        let xml = self.xml;
        let tokens = token..=xml.tokens[token].end;
        let words = |token: usize| {
            xml.tokens[token].kind == Kind::Text
                && is_text(&xml.source[xml.tokens[token].range.clone()])
        };
        if reason == Reason::Field || tokens.into_iter().any(words) {
            self.skipped.push((xml.tokens[token].range.start, reason));
        }
    }

    /// Joins the runs.
    pub fn finished(mut self) -> (Paragraph, Vec<Marked>) {
        let looks = looks(&self.items);
        let usual = usual(&self.items, &looks);
        let usual_look = usual.as_ref().map_or("", |(look, _)| look.as_str());
        let mut parts = Vec::new();
        let mut open: Option<(u32, String)> = None;
        for (item, look) in std::mem::take(&mut self.items).into_iter().zip(looks) {
            let look = look.filter(|look| look != usual_look);
            if open.as_ref().map(|(_, look)| look) != look.as_ref() {
                if let Some((number, _)) = open.take() {
                    parts.push(Part::Close(number));
                }
                if let (Some(look), Item::Text { properties, .. }) = (look, &item) {
                    let number = self.add(Tag::Run(properties.clone()));
                    parts.push(Part::Open(number));
                    open = Some((number, look));
                }
            }
            parts.push(match item {
                Item::Text { text, .. } => Part::Text(text),
                Item::Part(part) => part,
            });
        }
        if let Some((number, _)) = open {
            parts.push(Part::Close(number));
        }
        let tags = self.tags;
        let (block, texts) = Block::new(parts, |number| {
            matches!(
                tags.get(number as usize),
                Some(Tag::InRun { is: Is::Tab, .. })
            )
        });
        let paragraph = Paragraph {
            prefix: self.prefix.to_owned(),
            block,
            tags,
            usual: usual.and_then(|(_, properties)| properties),
        };
        (paragraph, texts)
    }
}

/// The look of each text; white space between texts of the same look has it, too.
fn looks(items: &[Item]) -> Vec<Option<String>> {
    let look = |item: &Item| match item {
        Item::Text { look, .. } => Some(look.clone()),
        Item::Part(_) => None,
    };
    let mut looks: Vec<Option<String>> = items.iter().map(look).collect();
    for place in 1..items.len().saturating_sub(1) {
        if let Item::Text { text, .. } = &items[place]
            && text.trim().is_empty()
            && looks[place - 1].is_some()
            && looks[place - 1] == looks[place + 1]
        {
            looks[place] = looks[place - 1].clone();
        }
    }
    looks
}

/// The look of most characters, and the properties that give it.
fn usual(items: &[Item], looks: &[Option<String>]) -> Option<(String, Option<Range<usize>>)> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let texts = || {
        items
            .iter()
            .zip(looks)
            .filter_map(|(item, look)| match (item, look) {
                (
                    Item::Text {
                        text, properties, ..
                    },
                    Some(look),
                ) => Some((text, properties, look)),
                _ => None,
            })
    };
    for (text, _, look) in texts() {
        *counts.entry(look).or_default() += text.trim().len();
    }
    let most = counts.values().max()?;
    // The first of several.
    let (_, properties, look) =
        texts().find(|(_, _, look)| counts.get(look.as_str()) == Some(most))?;
    Some((look.clone(), properties.clone()))
}

/// Whether the code of a field is that of a link.
fn is_link(code: &str) -> bool {
    code.trim_start().starts_with("HYPERLINK")
}
