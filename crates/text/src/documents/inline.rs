//! What the numbers of inline tags stand for, and parts as they are written again.

use std::ops::Range;

use super::template::Filler;
use crate::markup::Part;

/// Something that is written as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Raw {
    /// These bytes of the source, with places inside them filled.
    Source(Range<usize>),
    /// This.
    Text(String),
}

impl Raw {
    /// What is written.
    pub fn filled(&self, filler: &Filler<'_>) -> String {
        match self {
            Raw::Source(range) => filler.raw(range.clone()),
            Raw::Text(text) => text.clone(),
        }
    }
}

/// What the number of a tag stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tag {
    /// An element.
    Element {
        /// What it begins with.
        open: Raw,
        /// What it ends with.
        close: Raw,
    },
    /// Something without content.
    Point(Raw),
    /// The same, in the place of white space: a line break, a tab. A space stands before it in the text, so that the
    /// words around it are two, and is not written.
    Break(Raw),
}

/// The tags of a block, by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tags {
    tags: Vec<Tag>,
}

impl Tags {
    /// The number of a new tag.
    pub fn add(&mut self, tag: Tag) -> u32 {
        self.tags.push(tag);
        (self.tags.len() - 1) as u32
    }

    /// A new tag without content, and the space that it stands for.
    pub fn push_point(&mut self, tag: Tag, parts: &mut Vec<Part>) {
        let ends =
            |part: &Part| matches!(part, Part::Text(text) if text.ends_with(char::is_whitespace));
        if matches!(tag, Tag::Break(_)) && !parts.last().is_some_and(ends) {
            parts.push(Part::Text(" ".to_owned()));
        }
        let number = self.add(tag);
        parts.push(Part::Point(number));
    }

    /// What a number stands for.
    pub fn get(&self, number: u32) -> Option<&Tag> {
        self.tags.get(number as usize)
    }

    /// The same parts, in which points that are `<x>` and `</x>` of one element are this element.
    pub fn paired(&mut self, mut parts: Vec<Part>, source: &str) -> Vec<Part> {
        let name = |tag: &str| -> String {
            let tag = tag.trim_start_matches(['<', '/']);
            let name = tag.chars().take_while(char::is_ascii_alphanumeric);
            name.map(|c| c.to_ascii_lowercase()).collect()
        };
        let mut open: Vec<Opened> = Vec::new();
        for place in 0..parts.len() {
            let number = match &parts[place] {
                Part::Open(number) => {
                    open.push(Opened::Element(*number));
                    continue;
                }
                Part::Close(number) => {
                    let start = open
                        .iter()
                        .rposition(|open| *open == Opened::Element(*number));
                    open.truncate(start.unwrap_or(open.len()));
                    continue;
                }
                Part::Point(number) => *number,
                Part::Text(_) | Part::Verbatim(_) => continue,
            };
            let Some(Tag::Point(Raw::Source(range))) = self.get(number) else {
                continue;
            };
            let tag = &source[range.clone()];
            if !tag.starts_with('<') || tag.ends_with("/>") {
                continue;
            }
            if !tag.starts_with("</") {
                open.push(Opened::Tag(place, range.clone()));
                continue;
            }
            // What was opened after it and is still open has no end: it stays a point.
            let is_partner = |open: &Opened| match open {
                Opened::Element(_) => true,
                Opened::Tag(_, open) => name(&source[open.clone()]) == name(tag),
            };
            let partner = open.iter().rposition(is_partner);
            if let Some((partner, Opened::Tag(first, start))) =
                partner.map(|partner| (partner, open[partner].clone()))
            {
                let close = Raw::Source(range.clone());
                open.truncate(partner);
                let open = Raw::Source(start);
                let number = self.add(Tag::Element { open, close });
                parts[first] = Part::Open(number);
                parts[place] = Part::Close(number);
            }
        }
        parts
    }

    /// Whether a point stands for white space.
    pub fn is_break(&self, number: u32) -> bool {
        matches!(self.get(number), Some(Tag::Break(_)))
    }

    /// Parts as they are written, with `text` for text.
    pub fn write(
        &self,
        parts: &[Part],
        filler: &Filler<'_>,
        text: impl Fn(&str) -> String,
    ) -> String {
        let mut written = String::new();
        for (place, part) in parts.iter().enumerate() {
            match part {
                Part::Text(own) => {
                    written.push_str(&text(without_breaks(own, parts, place, |number| {
                        self.is_break(number)
                    })))
                }
                Part::Verbatim(own) => written.push_str(own),
                Part::Open(number) => {
                    if let Some(Tag::Element { open, .. }) = self.get(*number) {
                        written.push_str(&open.filled(filler));
                    }
                }
                Part::Close(number) => {
                    if let Some(Tag::Element { close, .. }) = self.get(*number) {
                        written.push_str(&close.filled(filler));
                    }
                }
                Part::Point(number) => {
                    if let Some(Tag::Point(raw) | Tag::Break(raw)) = self.get(*number) {
                        written.push_str(&raw.filled(filler));
                    }
                }
            }
        }
        written
    }
}

/// What is open while tags are paired.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Opened {
    /// An element that was known before, across which nothing is paired.
    Element(u32),
    /// A tag: its place among the parts, and its bytes.
    Tag(usize, Range<usize>),
}

/// The text of a part without the spaces that breaks beside it stand for.
pub(crate) fn without_breaks<'a>(
    text: &'a str,
    parts: &[Part],
    place: usize,
    is_break: impl Fn(u32) -> bool,
) -> &'a str {
    let breaks =
        |part: Option<&Part>| matches!(part, Some(Part::Point(number)) if is_break(*number));
    let mut text = text;
    if breaks(parts.get(place + 1)) {
        text = text.trim_end();
    }
    if place > 0 && breaks(parts.get(place - 1)) {
        text = text.trim_start();
    }
    text
}
