//! The parts of a block and their places in a page's source: text with its entities decoded, tags, points.
//!
//! Before it: [`super::tokens`] and [`super::page`], which collects the parts of a block; after it: the texts of the page.

use std::ops::Range;

use super::Part;
use super::entities::{self, Reference};

/// A part of a block and its place.
pub(super) struct Item {
    pub part: Part,
    pub range: Range<usize>,
    /// A tag without its other half, or around such a tag.
    pub separates: bool,
}

impl Item {
    pub fn new(part: Part, range: Range<usize>) -> Self {
        Self {
            part,
            range,
            separates: false,
        }
    }

    pub fn is_blank(&self) -> bool {
        matches!(&self.part, Part::Text(text) if text.trim_matches(is_space).is_empty())
    }
}

/// Elements around something that separates do so, too: a text has elements as a whole or not at all.
pub(super) fn separate(items: &mut [Item]) {
    let mut open: Vec<(usize, bool)> = Vec::new();
    for place in 0..items.len() {
        match items[place].part {
            _ if items[place].separates => {
                // If an element is broken, those around it are, too.
                let whole = open.iter_mut().rev().take_while(|(_, broken)| !*broken);
                whole.for_each(|(_, broken)| *broken = true);
            }
            Part::Open(_) => open.push((place, false)),
            Part::Close(_) => {
                if let Some((begun, true)) = open.pop() {
                    (items[begun].separates, items[place].separates) = (true, true);
                }
            }
            Part::Text(_) | Part::Verbatim(_) | Part::Point(_) => {}
        }
    }
}

/// Whether these are the two tags of an element.
pub(super) fn holds(first: &Item, last: &Item) -> bool {
    matches!((&first.part, &last.part), (Part::Open(open), Part::Close(close)) if open == close)
}

/// White space that a browser shows as one space.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0C')
}

/// Appends the characters of a source text; references that are not known are verbatim.
pub(super) fn decode(source: &str, start: usize, items: &mut Vec<Item>) {
    let mut text = String::new();
    let (mut at, mut begun) = (0, 0);
    while let Some(c) = source[at..].chars().next() {
        let mut length = c.len_utf8();
        match c {
            '&' => match entities::decode(&source[at..]) {
                Reference::Character(character, reference) => {
                    text.push(character);
                    length = reference;
                }
                Reference::None => text.push('&'),
                Reference::Unknown(reference) => {
                    if at > begun {
                        let part = Part::Text(std::mem::take(&mut text));
                        items.push(Item::new(part, start + begun..start + at));
                    }
                    length = reference;
                    begun = at + length;
                    let part = Part::Verbatim(source[at..begun].to_owned());
                    items.push(Item::new(part, start + at..start + begun));
                }
            },
            c if is_space(c) => {
                if !text.ends_with(' ') {
                    text.push(' ');
                }
            }
            c => text.push(c),
        }
        at += length;
    }
    if at > begun {
        items.push(Item::new(Part::Text(text), start + begun..start + at));
    }
}
