//! XLIFF 1.2 and 2.x: `<source>` is translated into `<target>`, with a state that says so.
//!
//! Units that have a target are left, unless it is empty, a copy of the source or marked as not translated. A new target has the
//! state `needs-review-translation` (1.2) or `translated` (2.x). Inline elements are tags: `g`, `pc` and `mrk` around text, all
//! others as points. Segments are texts of their own.

use std::ops::Range;

use super::Problem;
use super::block::{Block, is_text};
use super::inline::{Raw, Tag, Tags};
use super::skipped::Reason;
use super::template::{Filler, Template};
use super::xml::{Kind, Xml, escape};
use crate::markup::{Marked, Part};

/// Reads XLIFF.
pub(crate) fn read(source: String) -> Result<Template, Problem> {
    let xml = Xml::parse(&source)?;
    let version = version(&xml)?;
    let mut found = Vec::new();
    let mut skipped = Vec::new();
    let mut token = 0;
    while token < xml.tokens.len() {
        if xml.tokens[token].kind == Kind::Start {
            let is_unit = match version {
                Version::One => xml.local(token) == "trans-unit",
                Version::Two => xml.local(token) == "segment",
            };
            let kept = matches!(xml.local(token), "trans-unit" | "unit" | "group" | "file")
                && xml.attribute(token, "translate").as_deref() == Some("no");
            if kept {
                skipped.push((xml.tokens[token].range.start, Reason::NotToTranslate));
                token = xml.tokens[token].end;
            } else if is_unit {
                match Unit::new(&xml, token, version) {
                    Ok((unit, texts)) => found.push((unit, texts)),
                    Err(Some(reason)) => skipped.push((xml.tokens[token].range.start, reason)),
                    Err(None) => {}
                }
                token = xml.tokens[token].end;
            }
        }
        token += 1;
    }
    let mut template = Template::new(source);
    for (unit, texts) in found {
        template.add(unit.range.clone(), texts, move |texts, filler| {
            unit.write(texts, filler)
        });
    }
    for (offset, reason) in skipped {
        template.skip(offset, reason);
    }
    Ok(template.finished())
}

/// The file with the language of its targets, where it named none.
pub(crate) fn with_language(file: String, language: &str) -> String {
    let Ok((xml, version)) =
        Xml::parse(&file).and_then(|xml| version(&xml).map(|version| (xml, version)))
    else {
        return file;
    };
    let (element, attribute) = match version {
        Version::One => ("file", "target-language"),
        Version::Two => ("xliff", "trgLang"),
    };
    let mut written = String::new();
    let mut done = 0;
    for token in 0..xml.tokens.len() {
        let range = xml.tokens[token].range.clone();
        let is_it = xml.is_element(token) && xml.local(token) == element;
        if is_it && xml.attribute_range(token, attribute).is_none() {
            written.push_str(&file[done..range.start]);
            written.push_str(&with_attribute(&file[range.clone()], attribute, language));
            done = range.end;
        }
    }
    written.push_str(&file[done..]);
    written
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// 1.0 to 1.2.
    One,
    /// 2.0 and later.
    Two,
}

fn version(xml: &Xml<'_>) -> Result<Version, Problem> {
    let root = (0..xml.tokens.len()).find(|&token| xml.is_element(token));
    let Some(root) = root.filter(|&root| xml.local(root) == "xliff") else {
        return Err(Problem::whole(
            "the first element is not <xliff>; name the format of the file with --format",
        ));
    };
    match xml.attribute(root, "version").as_deref() {
        Some(version) if version.starts_with("1.") => Ok(Version::One),
        Some(version) if version.starts_with("2.") => Ok(Version::Two),
        other => {
            let problem = format!(
                "XLIFF 1.x and 2.x are known, but the version is {:?}",
                other.unwrap_or("missing")
            );
            Err(Problem::at(
                xml.source,
                xml.tokens[root].range.start,
                problem,
            ))
        }
    }
}

/// A unit that is translated.
#[derive(Debug)]
struct Unit {
    version: Version,
    /// From the start of the unit to the end of its target.
    range: Range<usize>,
    /// The start tag of the unit.
    tag: Range<usize>,
    /// The tag that the target begins with, if there is one, and all of the target.
    target: Option<(Range<usize>, Range<usize>)>,
    /// The end of the source.
    source_end: usize,
    /// Its name with the prefix of the source.
    name: String,
    /// The white space before the source.
    before: Range<usize>,
    block: Block,
    tags: Tags,
}

impl Unit {
    /// A unit with its texts, or why it is not translated.
    fn new(
        xml: &Xml<'_>,
        unit: usize,
        version: Version,
    ) -> Result<(Self, Vec<Marked>), Option<Reason>> {
        let source = xml.child(unit, "source").ok_or(None)?;
        let target = xml.child(unit, "target");
        if !is_text(&characters(xml, source)) {
            return Err(None);
        }
        if target.is_some_and(|target| is_done(xml, unit, source, target, version)) {
            return Err(Some(Reason::AlreadyTranslated));
        }
        let segments = xml.child(unit, "seg-source");
        let content = segments.unwrap_or(source);
        let mut reader = Reader {
            xml,
            spaces: spaces(xml, unit, source),
            parts: Vec::new(),
            tags: Tags::default(),
            separators: Vec::new(),
        };
        reader.children(content);
        let Reader {
            parts,
            tags,
            separators,
            ..
        } = reader;
        let (block, texts) = Block::new(parts, |number| separators.contains(&number));
        if texts.is_empty() {
            return Err(None);
        }
        let tag = xml.tokens[unit].range.clone();
        let source_end = xml.whole(content).end.max(xml.whole(source).end);
        let target = target.map(|target| (xml.tokens[target].range.clone(), xml.whole(target)));
        if target
            .as_ref()
            .is_some_and(|(_, whole)| whole.start < source_end)
        {
            return Err(Some(Reason::NotUnderstood));
        }
        let start = xml.tokens[source].range.start;
        let space = xml.source[..start].len() - xml.source[..start].trim_end().len();
        let unit = Self {
            version,
            range: tag.start..target.as_ref().map_or(source_end, |(_, whole)| whole.end),
            tag,
            target,
            source_end,
            name: xml.name(source).replace("source", "target"),
            before: start - space..start,
            block,
            tags,
        };
        Ok((unit, texts))
    }

    fn write(&self, texts: &[Marked], filler: &Filler<'_>) -> String {
        let source = filler.source();
        let content = self.tags.write(&self.block.filled(texts), filler, escape);
        let tag = &source[self.tag.clone()];
        let tag = match self.version {
            Version::One => tag.to_owned(),
            Version::Two => with_attribute(tag, "state", "translated"),
        };
        let name = &self.name;
        let (between, start) = match &self.target {
            Some((start, _)) => {
                let own = source[start.clone()]
                    .trim_end_matches('>')
                    .trim_end_matches('/')
                    .trim_end();
                (&source[self.tag.end..start.start], format!("{own}>"))
            }
            None => (&source[self.tag.end..self.source_end], format!("<{name}>")),
        };
        let before = if self.target.is_some() {
            ""
        } else {
            &source[self.before.clone()]
        };
        let start = match self.version {
            Version::One => {
                let start = with_attribute(&start, "state", "needs-review-translation");
                with_attribute(&start, "state-qualifier", "leveraged-mt")
            }
            Version::Two => start,
        };
        format!("{tag}{between}{before}{start}{content}</{name}>")
    }
}

/// Whether a target needs no translation.
fn is_done(xml: &Xml<'_>, unit: usize, source: usize, target: usize, version: Version) -> bool {
    let (old, new) = (characters(xml, source), characters(xml, target));
    let state = match version {
        Version::One => xml.attribute(target, "state"),
        Version::Two => xml.attribute(unit, "state"),
    };
    let approved = xml.attribute(unit, "approved").as_deref() == Some("yes");
    if new.trim().is_empty() {
        return false;
    }
    match state.as_deref() {
        _ if approved => true,
        Some("new" | "needs-translation" | "needs-l10n" | "needs-adaptation") => false,
        None | Some("initial") => !old.split_whitespace().eq(new.split_whitespace()),
        Some(_) => true,
    }
}

/// All characters in an element.
fn characters(xml: &Xml<'_>, element: usize) -> String {
    (element..xml.tokens[element].end)
        .filter_map(|token| xml.text(token))
        .collect()
}

/// Whether line breaks and spaces mean something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spaces {
    Collapse,
    Preserve,
}

fn spaces(xml: &Xml<'_>, unit: usize, source: usize) -> Spaces {
    let says = [source, unit]
        .into_iter()
        .find_map(|element| xml.attribute(element, "space"));
    if says.as_deref() == Some("preserve") {
        Spaces::Preserve
    } else {
        Spaces::Collapse
    }
}

struct Reader<'a> {
    xml: &'a Xml<'a>,
    spaces: Spaces,
    parts: Vec<Part>,
    tags: Tags,
    /// Numbers of points at which a text ends.
    separators: Vec<u32>,
}

impl Reader<'_> {
    fn children(&mut self, element: usize) {
        let xml = self.xml;
        for child in xml.children(element) {
            let raw = Raw::Source(xml.whole(child));
            let kind = xml.tokens[child].kind;
            if let Some(text) = xml.text(child) {
                self.text(&text);
                continue;
            }
            let (whole, inside) = (xml.whole(child), xml.inside(child));
            let (open, close) = (
                Raw::Source(whole.start..inside.start),
                Raw::Source(inside.end..whole.end),
            );
            let is_segment = xml.attribute(child, "mtype").as_deref() == Some("seg");
            let is_kept = xml.attribute(child, "mtype").as_deref() == Some("protected")
                || xml.attribute(child, "translate").as_deref() == Some("no");
            match xml.local(child) {
                "mrk" if kind == Kind::Start && is_segment => {
                    for (raw, inner) in [(open, true), (close, false)] {
                        self.tags.push_point(Tag::Point(raw), &mut self.parts);
                        if let Some(Part::Point(number)) = self.parts.last() {
                            self.separators.push(*number);
                        }
                        if inner {
                            self.children(child);
                        }
                    }
                }
                "g" | "pc" | "mrk" if kind == Kind::Start && !is_kept => {
                    let number = self.tags.add(Tag::Element { open, close });
                    self.parts.push(Part::Open(number));
                    self.children(child);
                    self.parts.push(Part::Close(number));
                }
                _ => self.tags.push_point(Tag::Point(raw), &mut self.parts),
            }
        }
    }

    fn text(&mut self, text: &str) {
        if self.spaces == Spaces::Collapse {
            let starts = text.starts_with(char::is_whitespace);
            let ends = text.ends_with(char::is_whitespace) && !text.trim().is_empty();
            let words: Vec<&str> = text.split_whitespace().collect();
            let space = |is: bool| if is { " " } else { "" };
            let text = format!("{}{}{}", space(starts), words.join(" "), space(ends));
            return self.parts.push(Part::Text(text));
        }
        let mut rest = text;
        while let Some(place) = rest.find('\n') {
            self.parts.push(Part::Text(rest[..place].to_owned()));
            let after = rest[place..].trim_start();
            let space = &rest[place..rest.len() - after.len()];
            self.tags
                .push_point(Tag::Break(Raw::Text(space.to_owned())), &mut self.parts);
            if let Some(Part::Point(number)) = self.parts.last() {
                self.separators.push(*number);
            }
            rest = after;
        }
        self.parts.push(Part::Text(rest.to_owned()));
    }
}

/// A tag with this value of an attribute.
fn with_attribute(tag: &str, name: &str, value: &str) -> String {
    let spaced = format!(" {name}=");
    if let Some(place) = tag.find(&spaced) {
        let start = place + spaced.len();
        let quote = tag[start..].chars().next().unwrap_or('"');
        if let Some(end) = tag[start + 1..].find(quote) {
            return format!("{}{quote}{value}{}", &tag[..start], &tag[start + 1 + end..]);
        }
    }
    let end = tag
        .trim_end_matches('>')
        .trim_end_matches('/')
        .trim_end()
        .len();
    format!("{} {name}=\"{value}\"{}", &tag[..end], &tag[end..])
}

#[cfg(test)]
mod tests;
