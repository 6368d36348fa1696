//! XML as a list of tokens with their byte ranges, for formats of which only some elements are rewritten.
//!
//! `quick-xml` reads it, with no document type and no entity ever expanded. Elements know where they end; nothing here
//! recurses, and the depth is limited because readers of formats do.

use std::ops::Range;

use quick_xml::Reader;
use quick_xml::escape::{partial_escape, resolve_predefined_entity, unescape};
use quick_xml::events::Event;

use super::{Problem, start_of};

/// Elements deeper than this are no document.
const DEEPEST: usize = 400;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `<p>`
    Start,
    /// `</p>`
    End,
    /// `<br/>`
    Empty,
    /// Text without references.
    Text,
    /// `&amp;` or `&#65;`
    Reference,
    /// `<![CDATA[...]]>`
    CData,
    /// A comment, a processing instruction, a declaration.
    Other,
}

/// A token of XML.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub kind: Kind,
    /// Its bytes.
    pub range: Range<usize>,
    /// The token that ends what this one starts; itself for all others.
    pub end: usize,
}

/// A parsed file.
#[derive(Debug)]
pub(crate) struct Xml<'a> {
    pub source: &'a str,
    pub tokens: Vec<Token>,
}

impl<'a> Xml<'a> {
    /// Reads all of it, or says where it is no XML.
    pub fn parse(source: &'a str) -> Result<Self, Problem> {
        let start = start_of(source);
        let mut reader = Reader::from_str(&source[start..]);
        reader.config_mut().check_end_names = true;
        let mut tokens: Vec<Token> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        let mut position = start;
        let problem = |offset: usize, what: String| {
            let what = format!(
                "this is not well-formed XML: {what}; open it in the program that wrote it and save it again"
            );
            Problem::at(source, offset, what)
        };
        loop {
            let event = reader.read_event().map_err(|error| {
                problem(start + reader.error_position() as usize, error.to_string())
            })?;
            let end = start + reader.buffer_position() as usize;
            let number = tokens.len();
            let kind = match event {
                Event::Eof => break,
                Event::Start(_) => Kind::Start,
                Event::End(_) => Kind::End,
                Event::Empty(_) => Kind::Empty,
                Event::Text(_) => Kind::Text,
                Event::GeneralRef(_) => Kind::Reference,
                Event::CData(_) => Kind::CData,
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {
                    Kind::Other
                }
            };
            if matches!(kind, Kind::Start | Kind::End | Kind::Empty) {
                let tag = &source[position + 1..end];
                let name = tag.strip_prefix('/').unwrap_or(tag);
                let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
                if !is_name || tag.contains('<') {
                    return Err(problem(position, format!("<{tag} is no tag")));
                }
            }
            match kind {
                Kind::Start => open.push(number),
                Kind::End => match open.pop() {
                    Some(start) => tokens[start].end = number,
                    None => return Err(problem(position, "an end without a start".to_owned())),
                },
                _ => {}
            }
            if open.len() > DEEPEST {
                let what = format!("elements are nested deeper than {DEEPEST}");
                return Err(problem(position, what));
            }
            tokens.push(Token {
                kind,
                range: position..end,
                end: number,
            });
            position = end;
        }
        if let Some(&start) = open.last() {
            let at = tokens[start].range.clone();
            let what = format!("{} has no end", &source[at.clone()]);
            return Err(problem(at.start, what));
        }
        Ok(Self { source, tokens })
    }

    /// The name of an element without its prefix; empty for other tokens.
    pub fn local(&self, token: usize) -> &'a str {
        let name = self.name(token);
        name.rsplit(':').next().unwrap_or(name)
    }

    /// The name of an element as it is written; empty for other tokens.
    pub fn name(&self, token: usize) -> &'a str {
        let Token { kind, range, .. } = &self.tokens[token];
        let text = &self.source[range.clone()];
        let text = match kind {
            Kind::Start | Kind::Empty => &text[1..],
            Kind::End => &text[2..],
            _ => return "",
        };
        let end = text.find(|c: char| c.is_ascii_whitespace() || c == '/' || c == '>');
        &text[..end.unwrap_or(text.len())]
    }

    /// Whether a token begins an element (or is an empty one).
    pub fn is_element(&self, token: usize) -> bool {
        matches!(self.tokens[token].kind, Kind::Start | Kind::Empty)
    }

    /// The value of an attribute, by its name without prefix.
    pub fn attribute(&self, token: usize, local: &str) -> Option<String> {
        let range = self.attribute_range(token, local)?;
        let value = &self.source[range];
        Some(unescape(value).map_or_else(|_| value.to_owned(), |value| value.into_owned()))
    }

    /// Where the value of an attribute is, without its quotes.
    pub fn attribute_range(&self, token: usize, local: &str) -> Option<Range<usize>> {
        let Token { range, .. } = &self.tokens[token];
        let tag = &self.source[range.clone()];
        let mut place = 1 + self.name(token).len();
        loop {
            let rest = tag.get(place..)?;
            let equals = rest.find('=')?;
            let name = rest[..equals].trim();
            let name = name.rsplit(':').next().unwrap_or(name);
            let value = &rest[equals + 1..];
            let quote = value.find(['"', '\''])?;
            let mark = value[quote..].chars().next()?;
            let start = quote + 1;
            let end = start + value[start..].find(mark)?;
            let offset = place + equals + 1;
            if name == local {
                return Some(range.start + offset + start..range.start + offset + end);
            }
            place = offset + end + 1;
        }
    }

    /// The child tokens of an element, each with all that is inside it.
    pub fn children(&self, token: usize) -> Children<'_> {
        let Token { kind, end, .. } = self.tokens[token];
        Children {
            tokens: &self.tokens,
            next: token + 1,
            end: if kind == Kind::Start { end } else { 0 },
        }
    }

    /// The child element with this name.
    pub fn child(&self, token: usize, local: &str) -> Option<usize> {
        self.children(token)
            .find(|&child| self.is_element(child) && self.local(child) == local)
    }

    /// The bytes of an element with its tags, or of another token.
    pub fn whole(&self, token: usize) -> Range<usize> {
        let Token { range, end, .. } = &self.tokens[token];
        range.start..self.tokens[*end].range.end
    }

    /// The bytes between the tags of an element.
    pub fn inside(&self, token: usize) -> Range<usize> {
        let Token { range, end, .. } = &self.tokens[token];
        range.end..self.tokens[*end].range.start.max(range.end)
    }

    /// The characters of a text token; nothing for an entity that only a document type could explain.
    pub fn text(&self, token: usize) -> Option<String> {
        let Token { kind, range, .. } = &self.tokens[token];
        let text = &self.source[range.clone()];
        match kind {
            Kind::Text => Some(text.replace("\r\n", "\n")),
            Kind::CData => Some(
                text.strip_prefix("<![CDATA[")?
                    .strip_suffix("]]>")?
                    .to_owned(),
            ),
            Kind::Reference => {
                let name = text.strip_prefix('&')?.strip_suffix(';')?;
                let Some(number) = name.strip_prefix('#') else {
                    return resolve_predefined_entity(name).map(str::to_owned);
                };
                let number = match number.strip_prefix(['x', 'X']) {
                    Some(number) => u32::from_str_radix(number, 16),
                    None => number.parse(),
                };
                char::from_u32(number.ok()?).map(String::from)
            }
            _ => None,
        }
    }
}

/// The children of an element.
pub(crate) struct Children<'a> {
    tokens: &'a [Token],
    next: usize,
    end: usize,
}

impl Iterator for Children<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let token = self.next;
        if token >= self.end {
            return None;
        }
        self.next = self.tokens[token].end + 1;
        Some(token)
    }
}

/// Text as it stands between tags. Characters that XML cannot hold are left out.
pub(crate) fn escape(text: &str) -> String {
    let allowed = |c: &char| match c {
        '\t' | '\n' | '\r' => true,
        '\u{FFFE}' | '\u{FFFF}' => false,
        c => *c >= ' ',
    };
    if text.chars().all(|c| allowed(&c)) {
        return partial_escape(text).into_owned();
    }
    let text: String = text.chars().filter(allowed).collect();
    partial_escape(&*text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_know_their_bytes_and_their_ends() {
        let source = "\u{FEFF}<?xml version='1.0'?><w:p a:x='1' y=\"a&amp;b\"><b>x &lt; y</b><br/><![CDATA[<]]></w:p>";
        let xml = Xml::parse(source).unwrap();
        let p = 1;
        assert_eq!((xml.name(p), xml.local(p)), ("w:p", "p"));
        assert_eq!(xml.attribute(p, "x").as_deref(), Some("1"));
        assert_eq!(xml.attribute(p, "y").as_deref(), Some("a&b"));
        assert_eq!(xml.attribute(p, "z"), None);
        let children: Vec<&str> = xml
            .children(p)
            .map(|child| &source[xml.whole(child)])
            .collect();
        assert_eq!(children, ["<b>x &lt; y</b>", "<br/>", "<![CDATA[<]]>"]);
        let texts: Vec<String> = (0..xml.tokens.len())
            .filter_map(|token| xml.text(token))
            .collect();
        assert_eq!(texts.concat(), "x < y<");
    }

    #[test]
    fn damage_is_named_with_its_line_and_entities_are_not_expanded() {
        for source in ["<a>\n<b></a>", "<a>\n", "</a>", "<a\n", "<a b=<c/>", "<|/>"] {
            let problem = Xml::parse(source).unwrap_err();
            assert!(problem.line.is_some(), "{source}: {problem:?}");
        }
        let deep = "<a>".repeat(DEEPEST + 1) + &"</a>".repeat(DEEPEST + 1);
        assert!(Xml::parse(&deep).unwrap_err().problem.contains("deeper"));
        let source = "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>";
        let xml = Xml::parse(source).unwrap();
        assert!((0..xml.tokens.len()).all(|token| xml.text(token).is_none()));
    }
}
