//! A marked text without its markup, and the way back: tags return around the words that they belonged to.
//!
//! ```text
//! Marked --Bare::of--> text --(models)--> translation, links between units --Bare::restore--> Marked
//! ```
//!
//! What must stay as it is becomes one private character, which [`crate::keep`] carries over like an address. Tags
//! become a tree whose nodes know which [`units`] of the text they hold; `placement` finds where these went. Every
//! tag comes back exactly once and well nested, whatever the translation and the links are.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::placement::{self, Links};
use super::units::units;
use super::{Marked, Part};

/// The text of a [`Marked`], and where its tags stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bare {
    text: String,
    /// What stands for each verbatim part.
    verbatim: HashMap<char, String>,
    /// Node 0 is the whole text; the others follow in the order in which they begin.
    pub(super) nodes: Vec<Node>,
}

/// A text with its tags in their new places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The translation with every part but the text of its source.
    pub marked: Marked,
    /// Tags that hold words, or stand between words, of which the alignment does not say where they are now: they
    /// were put where their neighbors are.
    pub unplaced: Vec<u32>,
}

/// An element, or something without content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub open: Tag,
    /// None for what has no content.
    pub close: Option<Tag>,
    /// The units within it; where it stands, if it has none.
    pub units: Range<usize>,
    pub children: Vec<usize>,
    pub depth: usize,
}

/// A tag and the white space around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tag {
    pub part: Part,
    pub space_before: bool,
    pub space_after: bool,
    /// White space behind it that was left out of the text, as there is some before it.
    dropped: String,
    at: usize,
}

/// The characters that can stand for verbatim parts: private use, as many as there are.
const STAND_INS: [Range<u32>; 2] = [0xF_0000..0xF_FFFE, 0x10_0000..0x10_FFFE];

impl Bare {
    /// Takes the markup out of a text.
    pub fn of(marked: &Marked) -> Self {
        let pairs = pairs(&marked.parts);
        let mut stand_ins = stand_ins(marked);
        let mut bare = Self {
            text: String::new(),
            verbatim: HashMap::new(),
            nodes: vec![Node::new(Tag::new(Part::Text(String::new()), 0), 0)],
        };
        let mut open = vec![0];
        // The node of the last tag, while nothing but tags came after it.
        let mut last: Option<usize> = None;
        for (part, paired) in marked.parts.iter().zip(&pairs) {
            match part {
                Part::Text(text) => {
                    bare.push_text(text, last.take_if(|_| !text.is_empty()));
                }
                Part::Verbatim(text) if text.is_empty() => {}
                Part::Verbatim(text) => match stand_ins.next() {
                    Some(stand_in) => {
                        bare.verbatim.insert(stand_in, text.clone());
                        bare.push_text(&stand_in.to_string(), last.take());
                    }
                    // More than 100,000 in one text: the rest is read like text.
                    None => bare.push_text(text, last.take()),
                },
                Part::Close(_) if *paired => {
                    let node = if open.len() > 1 { open.pop() } else { None };
                    if let Some(node) = node {
                        bare.nodes[node].close = Some(Tag::new(part.clone(), bare.text.len()));
                        last = Some(node);
                    }
                }
                Part::Open(_) | Part::Close(_) | Part::Point(_) => {
                    let number = bare.nodes.len();
                    let tag = Tag::new(part.clone(), bare.text.len());
                    bare.nodes.push(Node::new(tag, open.len()));
                    if let Some(&parent) = open.last() {
                        bare.nodes[parent].children.push(number);
                    }
                    if matches!(part, Part::Open(_)) && *paired {
                        open.push(number);
                    }
                    last = Some(number);
                }
            }
        }
        bare.find_units();
        bare
    }

    /// What is to be translated. Verbatim parts are one private character each.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether there are tags at all: without any, nobody needs to know how words are aligned.
    pub fn has_tags(&self) -> bool {
        self.nodes.len() > 1
    }

    /// The translation with its tags. `links` are pairs of units of the text and units of the translation, each counted from
    /// 0; without them tags keep their relative places.
    pub fn restore(&self, translation: &str, links: Option<&[(usize, usize)]>) -> Restored {
        let tgt_units = units(translation);
        let mut unplaced = Vec::new();
        let mut places = Vec::new();
        if self.has_tags() {
            let links = Links::new(self.units_with_text(), translation, &tgt_units, links);
            places = placement::place(&self.nodes, &links, &mut unplaced);
        }
        let marked = self.write(translation, &tgt_units, &places);
        Restored { marked, unplaced }
    }

    fn units_with_text(&self) -> Vec<&str> {
        let units = units(&self.text).into_iter();
        units.map(|unit| &self.text[unit]).collect()
    }

    /// Appends text. White space on both sides of a tag is one space to the model.
    fn push_text(&mut self, text: &str, last: Option<usize>) {
        let mut text = text;
        if let Some(node) = last
            && self.text.ends_with(char::is_whitespace)
        {
            let rest = text.trim_start();
            let node = &mut self.nodes[node];
            let tag = node.close.as_mut().unwrap_or(&mut node.open);
            tag.dropped.push_str(&text[..text.len() - rest.len()]);
            text = rest;
        }
        self.text.push_str(text);
    }

    /// Which units each node holds, when all text is there.
    fn find_units(&mut self) {
        let units = units(&self.text);
        let text = &self.text;
        let space = |tag: &mut Tag| {
            let (before, after) = text.split_at(tag.at);
            tag.space_before = before.is_empty() || before.ends_with(char::is_whitespace);
            tag.space_after = after.starts_with(char::is_whitespace) || !tag.dropped.is_empty();
        };
        for node in &mut self.nodes {
            space(&mut node.open);
            let first = units.partition_point(|unit| unit.end <= node.open.at);
            node.units = first..first;
            if let Some(close) = &mut node.close {
                space(close);
                let end = units.partition_point(|unit| unit.start < close.at);
                node.units.end = end.max(first);
            }
        }
        self.nodes[0].units = 0..units.len();
    }

    /// Text and tags in one list. `places` says which units of the translation each node holds.
    fn write(&self, translation: &str, units: &[Range<usize>], places: &[Range<usize>]) -> Marked {
        let mut writer = Writer {
            bare: self,
            translation,
            done: 0,
            parts: Vec::new(),
        };
        // Where white space before and after a unit begins and ends.
        let before = |place: usize| place.checked_sub(1).map_or(0, |unit| units[unit].end);
        let after = |place: usize| {
            units
                .get(place)
                .map_or(translation.len(), |unit| unit.start)
        };
        if !places.is_empty() {
            // A stack instead of recursion: untrusted markup can be nested without an end.
            let mut open = vec![(0, self.sorted(0, places))];
            while let Some((node, rest)) = open.last_mut() {
                let Some(child) = rest.next() else {
                    let node = *node;
                    open.pop();
                    if let Some(close) = &self.nodes[node].close {
                        let end = places[node].end;
                        let is_empty = places[node].is_empty();
                        let at = match (is_empty, close.space_before) {
                            (true, _) => writer.done,
                            (false, true) => after(end),
                            (false, false) => before(end),
                        };
                        writer.tag(close, at);
                    }
                    continue;
                };
                let Node { open: tag, .. } = &self.nodes[child];
                let start = places[child].start;
                let early = if places[child].is_empty() {
                    !tag.space_before
                } else {
                    tag.space_after && !tag.space_before
                };
                writer.tag(tag, if early { before(start) } else { after(start) });
                open.push((child, self.sorted(child, places)));
            }
        }
        writer.text_up_to(translation.len());
        Marked {
            parts: writer.parts,
        }
    }

    /// The children of a node in their new order.
    fn sorted(&self, node: usize, places: &[Range<usize>]) -> std::vec::IntoIter<usize> {
        let mut children = self.nodes[node].children.clone();
        children.sort_by_key(|&child| (places[child].start, places[child].end));
        children.into_iter()
    }
}

impl Node {
    fn new(open: Tag, depth: usize) -> Self {
        Self {
            open,
            close: None,
            units: 0..0,
            children: Vec::new(),
            depth,
        }
    }

    pub fn number(&self) -> u32 {
        match self.open.part {
            Part::Open(number) | Part::Close(number) | Part::Point(number) => number,
            Part::Text(_) | Part::Verbatim(_) => 0,
        }
    }
}

impl Tag {
    fn new(part: Part, at: usize) -> Self {
        Self {
            part,
            space_before: false,
            space_after: false,
            dropped: String::new(),
            at,
        }
    }
}

/// For each part whether it is a tag whose other half is there, too, in the right order.
fn pairs(parts: &[Part]) -> Vec<bool> {
    let mut paired = vec![false; parts.len()];
    let mut open: Vec<(u32, usize)> = Vec::new();
    let mut waiting: HashMap<u32, usize> = HashMap::new();
    for (place, part) in parts.iter().enumerate() {
        match part {
            Part::Open(number) => {
                open.push((*number, place));
                *waiting.entry(*number).or_default() += 1;
            }
            Part::Close(number) if waiting.get(number).is_some_and(|&count| count > 0) => {
                while let Some((other, begun)) = open.pop() {
                    *waiting.entry(other).or_default() -= 1;
                    if other == *number {
                        (paired[begun], paired[place]) = (true, true);
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    paired
}

/// Characters that the text does not have.
fn stand_ins(marked: &Marked) -> impl Iterator<Item = char> + use<> {
    let taken: HashSet<char> = marked
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(text.chars()),
            _ => None,
        })
        .flatten()
        .filter(|&c| c as u32 >= STAND_INS[0].start)
        .collect();
    let all = STAND_INS.into_iter().flatten().filter_map(char::from_u32);
    all.filter(move |c| !taken.contains(c))
}

/// Puts the parts of the translation one after the other.
struct Writer<'a> {
    bare: &'a Bare,
    translation: &'a str,
    done: usize,
    parts: Vec<Part>,
}

impl Writer<'_> {
    /// Never behind what is written already: tags that were crossed by rounding stay in their order.
    fn tag(&mut self, tag: &Tag, at: usize) {
        self.text_up_to(at);
        self.parts.push(tag.part.clone());
        let spaced = self.translation[..self.done].ends_with(char::is_whitespace);
        if spaced && !tag.dropped.is_empty() {
            self.push(&tag.dropped);
        }
    }

    fn text_up_to(&mut self, end: usize) {
        if end > self.done {
            let text = &self.translation[self.done..end];
            self.done = end;
            self.push(text);
        }
    }

    fn push(&mut self, text: &str) {
        if self.bare.verbatim.is_empty() {
            return self.push_plain(text);
        }
        let mut plain = String::new();
        for c in text.chars() {
            match self.bare.verbatim.get(&c) {
                Some(verbatim) => {
                    self.push_plain(&std::mem::take(&mut plain));
                    self.parts.push(Part::Verbatim(verbatim.clone()));
                }
                None => plain.push(c),
            }
        }
        self.push_plain(&plain);
    }

    fn push_plain(&mut self, text: &str) {
        match self.parts.last_mut() {
            _ if text.is_empty() => {}
            Some(Part::Text(before)) => before.push_str(text),
            _ => self.parts.push(Part::Text(text.to_owned())),
        }
    }
}
