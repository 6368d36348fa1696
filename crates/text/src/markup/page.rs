//! An HTML page or an XML document as texts with markup, and the way back.
//!
//! ```text
//! source --tokens--> blocks --Page::texts--> [Marked] --(translator)--> [Marked] --Page::write--> page
//! ```
//!
//! The content of each block element is one text (`elements` says which are blocks). A tag whose other half is in
//! another block separates texts as well, so that the tags of a text are always well nested. What is around the
//! texts is never touched, and a text that comes back as it was is written byte by byte as it was. Code, and what
//! says `translate="no"`, is verbatim; comments and scripts are points. White space within a text becomes one space.

use std::collections::HashMap;
use std::ops::Range;

use super::block::{Item, decode, holds, is_space, separate};
use super::elements::{Role, Roles, Syntax};
use super::entities;
use super::tokens::{OpenTag, Token, Tokens};
use super::{Marked, Part};

/// A page.
#[derive(Debug, Clone)]
pub struct Page {
    source: String,
    texts: Vec<Marked>,
    /// Where the text with the same number stands, from first to last.
    spots: Vec<Spot>,
    /// The places of tags, by their numbers: of the opening or only one, and of the closing one.
    tags: Vec<(Range<usize>, Range<usize>)>,
    /// Texts within tags, in the order of their places.
    attributes: Vec<Spot>,
}

/// The place of a text.
#[derive(Debug, Clone)]
struct Spot {
    range: Range<usize>,
    text: usize,
    /// What it is quoted with, if it is the value of an attribute.
    quote: Option<char>,
}

impl Page {
    /// Reads a page or a part of one. Whatever it is, nothing is an error, and nothing of it is lost.
    pub fn read(source: impl Into<String>, syntax: &Syntax) -> Self {
        let source = source.into();
        let mut reader = Reader {
            roles: Roles::of(&source, syntax),
            source: &source,
            items: Vec::new(),
            inline: Vec::new(),
            inline_names: HashMap::new(),
            open: HashMap::new(),
            texts: Vec::new(),
            spots: Vec::new(),
            tags: Vec::new(),
            attributes: Vec::new(),
        };
        reader.read();
        let Reader {
            texts,
            spots,
            tags,
            attributes,
            ..
        } = reader;
        Self {
            source,
            texts,
            spots,
            tags,
            attributes,
        }
    }

    /// What is to be translated. Verbatim parts are source text, entities included.
    pub fn texts(&self) -> &[Marked] {
        &self.texts
    }

    /// The page with other texts in the places of its own. One that is missing stays as it was.
    pub fn write(&self, texts: &[Marked]) -> String {
        let mut output = String::with_capacity(self.source.len());
        let mut done = 0;
        for spot in &self.spots {
            self.copy(done..spot.range.start, texts, &mut output);
            done = spot.range.end;
            match self.changed(spot.text, texts) {
                Some(text) => self.write_text(text, texts, &mut output),
                None => self.copy(spot.range.clone(), texts, &mut output),
            }
        }
        self.copy(done..self.source.len(), texts, &mut output);
        output
    }

    fn changed<'t>(&self, number: usize, texts: &'t [Marked]) -> Option<&'t Marked> {
        texts
            .get(number)
            .filter(|text| **text != self.texts[number])
    }

    fn write_text(&self, text: &Marked, texts: &[Marked], output: &mut String) {
        for part in &text.parts {
            match part {
                Part::Text(text) => entities::encode(text, None, output),
                Part::Verbatim(source) => output.push_str(source),
                Part::Open(number) | Part::Point(number) => {
                    let tag = self.tags.get(*number as usize);
                    tag.into_iter()
                        .for_each(|(open, _)| self.copy(open.clone(), texts, output));
                }
                Part::Close(number) => {
                    let tag = self.tags.get(*number as usize);
                    tag.into_iter()
                        .for_each(|(_, close)| output.push_str(&self.source[close.clone()]));
                }
            }
        }
    }

    /// A part of the source, with the texts of the tags in it.
    fn copy(&self, range: Range<usize>, texts: &[Marked], output: &mut String) {
        let first = self
            .attributes
            .partition_point(|spot| spot.range.start < range.start);
        let mut done = range.start;
        for spot in &self.attributes[first..] {
            if spot.range.end > range.end {
                break;
            }
            if let Some(text) = self.changed(spot.text, texts) {
                output.push_str(&self.source[done..spot.range.start]);
                entities::encode(&text.text(), spot.quote, output);
                done = spot.range.end;
            }
        }
        output.push_str(&self.source[done..range.end]);
    }
}

/// Reads a page.
struct Reader<'a> {
    source: &'a str,
    roles: Roles<'a>,
    /// The block so far.
    items: Vec<Item>,
    /// Inline elements of the block that are open, and how many there are of each name.
    inline: Vec<(String, usize)>,
    inline_names: HashMap<String, usize>,
    /// How many elements of each name are open.
    open: HashMap<String, usize>,
    texts: Vec<Marked>,
    spots: Vec<Spot>,
    tags: Vec<(Range<usize>, Range<usize>)>,
    attributes: Vec<Spot>,
}

impl Reader<'_> {
    fn read(&mut self) {
        let mut tokens = Tokens::new(self.source);
        while let Some(token) = tokens.next() {
            match token {
                Token::Text(range) => self.text(range),
                Token::Cdata(range) => {
                    let part = Part::Verbatim(self.source[range.clone()].to_owned());
                    self.items.push(Item::new(part, range));
                }
                Token::Other(range) => self.point(range),
                Token::Close { range, name } => {
                    let name = self.roles.name(&self.source[name]);
                    if let Some(count) = self.open.get_mut(&name) {
                        *count = count.saturating_sub(1);
                    }
                    match self.roles.role(&name) {
                        Role::Block | Role::Preformatted => self.end_block(),
                        _ => self.close(&name, range),
                    }
                }
                Token::Open(tag) => self.open(tag, &mut tokens),
            }
        }
        self.end_block();
    }

    fn open(&mut self, tag: OpenTag, tokens: &mut Tokens) {
        let name = self.roles.name(&self.source[tag.name.clone()]);
        let role = self.roles.role(&name);
        let is_void = tag.is_closed && !self.roles.is_html() || self.roles.is_void(&name);
        let is_kept = self.roles.is_html() && self.is_kept(&tag) && !is_void;
        if matches!(role, Role::Block | Role::Preformatted) {
            self.end_block();
        }
        let start = tag.range.start;
        match role {
            Role::Raw => {
                tokens.skip_raw_text(&name);
                if tokens.offset() < self.source.len() {
                    tokens.next();
                }
                self.point(start..tokens.offset());
            }
            Role::Preformatted if !is_void => self.skip(&name, tokens),
            Role::Picture => {
                self.skip(&name, tokens);
                self.point(start..tokens.offset());
            }
            Role::Code | Role::Inline if !is_void && (is_kept || role == Role::Code) => {
                self.skip(&name, tokens);
                let range = start..tokens.offset();
                let part = Part::Verbatim(self.source[range.clone()].to_owned());
                self.items.push(Item::new(part, range));
            }
            Role::Block | Role::Preformatted => {
                self.attributes_of(&name, &tag);
                if is_kept {
                    self.skip(&name, tokens);
                } else if !is_void {
                    *self.open.entry(name).or_default() += 1;
                }
            }
            Role::Void | Role::Code | Role::Inline if is_void => {
                self.attributes_of(&name, &tag);
                self.point(tag.range);
            }
            Role::Void | Role::Code | Role::Inline => {
                self.attributes_of(&name, &tag);
                let number = self.tags.len();
                self.tags.push((tag.range.clone(), 0..0));
                self.items
                    .push(Item::new(Part::Open(number as u32), tag.range));
                *self.open.entry(name.clone()).or_default() += 1;
                *self.inline_names.entry(name.clone()).or_default() += 1;
                self.inline.push((name, self.items.len() - 1));
            }
        }
    }

    /// Skips the rest of an element: to its closing tag, to one that closes an element around it, or to another
    /// element with the same name if that ends it.
    fn skip(&mut self, name: &str, tokens: &mut Tokens) {
        let mut inside: HashMap<String, usize> = HashMap::new();
        loop {
            let position = tokens.offset();
            let Some(token) = tokens.next() else { return };
            match token {
                Token::Open(tag) => {
                    let own = self.roles.name(&self.source[tag.name]);
                    let is_nested = || inside.values().any(|&count| count > 0);
                    if own == name && self.roles.ends_itself(name) && !is_nested() {
                        return tokens.back_to(position);
                    }
                    if self.roles.role(&own) == Role::Raw {
                        tokens.skip_raw_text(&own);
                    }
                    if !tag.is_closed && !self.roles.is_void(&own) {
                        *inside.entry(own).or_default() += 1;
                    }
                }
                Token::Close { name: own, .. } => {
                    let own = self.roles.name(&self.source[own]);
                    match inside.get_mut(&own).filter(|count| **count > 0) {
                        Some(count) => *count -= 1,
                        None if own == name => return,
                        None if self.open.get(&own).is_some_and(|&count| count > 0) => {
                            return tokens.back_to(position);
                        }
                        None => {}
                    }
                }
                Token::Text(_) | Token::Other(_) | Token::Cdata(_) => {}
            }
        }
    }

    /// Whether a tag says that its content is not to be translated.
    fn is_kept(&self, tag: &OpenTag) -> bool {
        tag.attributes.iter().any(|attribute| {
            let (name, value) = (
                &self.source[attribute.name.clone()],
                &self.source[attribute.value.clone()],
            );
            let is = |own: &str| name.eq_ignore_ascii_case(own);
            is("translate") && value.eq_ignore_ascii_case("no")
                || is("class")
                    && value
                        .split_ascii_whitespace()
                        .any(|class| class == "notranslate")
        })
    }

    /// The attributes that people read are texts.
    fn attributes_of(&mut self, name: &str, tag: &OpenTag) {
        if !self.roles.is_html() {
            return;
        }
        let value = |own: &str| {
            let mut attributes = tag.attributes.iter();
            let found = attributes
                .find(|attribute| self.source[attribute.name.clone()].eq_ignore_ascii_case(own));
            found.map(|attribute| self.source[attribute.value.clone()].to_ascii_lowercase())
        };
        let (kind, meta) = (
            value("type").unwrap_or_default(),
            value("name").unwrap_or_default(),
        );
        for attribute in tag
            .attributes
            .iter()
            .filter(|attribute| attribute.is_quoted)
        {
            let is_read = match &*self.source[attribute.name.clone()].to_ascii_lowercase() {
                "alt" | "title" | "placeholder" | "aria-label" => true,
                "value" => name == "input" && matches!(&*kind, "submit" | "button" | "reset"),
                "content" => name == "meta" && meta == "description",
                _ => false,
            };
            let mut text = Vec::new();
            decode(
                &self.source[attribute.value.clone()],
                attribute.value.start,
                &mut text,
            );
            let [
                Item {
                    part: Part::Text(text),
                    ..
                },
            ] = &text[..]
            else {
                continue;
            };
            let begins_or_ends = text.starts_with(' ') || text.ends_with(' ');
            if is_read && text.chars().any(char::is_alphabetic) && !begins_or_ends {
                let quote = self.source[..attribute.value.start].chars().next_back();
                self.attributes.push(Spot {
                    range: attribute.value.clone(),
                    text: self.texts.len(),
                    quote,
                });
                self.texts.push(Marked::plain(text.clone()));
            }
        }
    }

    fn text(&mut self, range: Range<usize>) {
        decode(&self.source[range.clone()], range.start, &mut self.items);
    }

    fn point(&mut self, range: Range<usize>) {
        let number = self.tags.len() as u32;
        self.tags.push((range.clone(), 0..0));
        self.items.push(Item::new(Part::Point(number), range));
    }

    /// The closing tag of an inline element.
    fn close(&mut self, name: &str, range: Range<usize>) {
        let mut item = Item::new(Part::Close(0), range.clone());
        item.separates = true;
        if self.inline_names.get(name).is_some_and(|&count| count > 0) {
            while let Some((own, place)) = self.inline.pop() {
                if let Some(count) = self.inline_names.get_mut(&own) {
                    *count -= 1;
                }
                if own != name {
                    // It was never closed.
                    self.items[place].separates = true;
                    continue;
                }
                if let Part::Open(number) = self.items[place].part {
                    self.tags[number as usize].1 = range;
                    item = Item::new(Part::Close(number), item.range);
                }
                break;
            }
        }
        self.items.push(item);
    }

    /// Makes texts of the block.
    fn end_block(&mut self) {
        for (_, place) in self.inline.drain(..) {
            self.items[place].separates = true;
        }
        self.inline_names.clear();
        let mut items = std::mem::take(&mut self.items);
        separate(&mut items);
        for run in items.split(|item| item.separates) {
            self.add_text(run);
        }
    }

    /// A text without what is around its words: white space, points, and elements that hold all of it.
    fn add_text(&mut self, mut run: &[Item]) {
        loop {
            run = match run {
                [first, rest @ ..] if first.is_blank() || matches!(first.part, Part::Point(_)) => {
                    rest
                }
                [rest @ .., last] if last.is_blank() || matches!(last.part, Part::Point(_)) => rest,
                [first, rest @ .., last] if holds(first, last) => rest,
                [first, second, rest @ ..] if holds(first, second) => rest,
                [rest @ .., before, last] if holds(before, last) => rest,
                run => break self.add_trimmed(run),
            };
        }
    }

    fn add_trimmed(&mut self, run: &[Item]) {
        let has_words = run.iter().any(
            |item| matches!(&item.part, Part::Text(text) if text.chars().any(char::is_alphabetic)),
        );
        let ([first, ..], [.., last], true) = (run, run, has_words) else {
            return;
        };
        let mut range = first.range.start..last.range.end;
        let mut parts: Vec<Part> = Vec::new();
        for item in run {
            match (parts.last_mut(), &item.part) {
                (Some(Part::Text(before)), Part::Text(text)) => before.push_str(text),
                _ => parts.push(item.part.clone()),
            }
        }
        // White space at either end stays where it is.
        if let Some(Part::Text(text)) = parts.first_mut() {
            let own = &self.source[first.range.clone()];
            range.start += own.len() - own.trim_start_matches(is_space).len();
            if own.starts_with(is_space) {
                text.remove(0);
            }
        }
        if let Some(Part::Text(text)) = parts.last_mut() {
            let own = &self.source[last.range.clone()];
            range.end -= own.len() - own.trim_end_matches(is_space).len();
            if own.ends_with(is_space) {
                text.pop();
            }
        }
        self.spots.push(Spot {
            range,
            text: self.texts.len(),
            quote: None,
        });
        self.texts.push(Marked { parts });
    }
}
