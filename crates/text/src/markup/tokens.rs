//! HTML and XML as tokens with their places in the source.
//!
//! Why a tokenizer of our own: everything that is not translated must come back byte by byte, so a token must say
//! where it stands. html5ever's tokenizer gives decoded tokens without places, quick-xml refuses what is not
//! well-formed, and lol_html rewrites while it reads and brings a CSS engine along. Of the HTML standard this follows
//! what decides where a token ends: tags, attributes, comments and raw text. Nothing is an error. What begins and
//! never ends, a tag or a comment, goes to the end of the source, as in a browser; so every byte is read once.
//!
//! [`super::page`] makes texts of the tokens.

use std::ops::Range;

/// What a source is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// Text, entities included.
    Text(Range<usize>),
    Open(OpenTag),
    Close {
        range: Range<usize>,
        name: Range<usize>,
    },
    /// A comment, a declaration, a processing instruction.
    Other(Range<usize>),
    Cdata(Range<usize>),
}

/// `<a href="x">` or `<br/>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenTag {
    pub range: Range<usize>,
    pub name: Range<usize>,
    pub attributes: Vec<Attribute>,
    pub is_closed: bool,
}

/// `href="x"`; the value is without its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attribute {
    pub name: Range<usize>,
    pub value: Range<usize>,
    pub is_quoted: bool,
}

/// Reads tokens, one after the other.
#[derive(Debug, Clone)]
pub(super) struct Tokens<'a> {
    source: &'a str,
    at: usize,
    /// Whether a `?>` may still come: if it does not, it is searched for only once.
    instructions_end: bool,
    /// Whether a document type may still come.
    before_doctype: bool,
}

impl<'a> Tokens<'a> {
    pub fn new(source: &'a str) -> Self {
        Self {
            source,
            at: 0,
            instructions_end: true,
            before_doctype: true,
        }
    }

    /// Skips the content of an element in which there are no tags, such as `<script>`: up to its closing tag, or to
    /// the end.
    pub fn skip_raw_text(&mut self, name: &str) {
        let mut at = self.at;
        while let Some(found) = self.source[at..].find("</") {
            at += found + 2;
            let rest = &self.source.as_bytes()[at..];
            let is_name = rest.len() >= name.len()
                && rest[..name.len()].eq_ignore_ascii_case(name.as_bytes());
            let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>');
            if is_name && rest.get(name.len()).is_some_and(ends) {
                self.at = at - 2;
                return;
            }
        }
        self.at = self.source.len();
    }

    /// Where the next token begins.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Goes back to a token.
    pub fn back_to(&mut self, position: usize) {
        self.at = position;
    }

    fn text(&mut self) -> Token {
        let start = self.at;
        let mut at = start;
        loop {
            // The first character is no tag, or there would have been one.
            let next = self.source[at..].char_indices().nth(1);
            let Some((step, _)) = next else {
                self.at = self.source.len();
                break;
            };
            at += step;
            match self.source[at..].find('<') {
                None => {
                    self.at = self.source.len();
                    break;
                }
                Some(found) => at += found,
            }
            if is_markup(&self.source[at..]) {
                self.at = at;
                break;
            }
        }
        Token::Text(start..self.at)
    }

    fn markup(&mut self) -> Token {
        let start = self.at;
        let rest = &self.source[start..];
        let after = |from: usize, end: &str| Some(from + rest[from..].find(end)? + end.len());
        let other = if rest.starts_with("<!--") {
            Some(comment(rest))
        } else if rest.starts_with("<![CDATA[") {
            Some(after(9, "]]>"))
        } else if rest.starts_with("<!") {
            // A document type may hold declarations in brackets.
            let close = after(2, ">");
            let has_subset = close.is_some_and(|end| rest[..end].contains('['));
            let may_hold = std::mem::take(&mut self.before_doctype) && has_subset;
            let subset = may_hold.then(|| after(2, "]>")).flatten();
            Some(subset.or(close))
        } else if rest.starts_with("<?") {
            let end = self.instructions_end.then(|| after(2, "?>")).flatten();
            self.instructions_end = end.is_some();
            Some(end.or_else(|| after(2, ">")))
        } else if rest.starts_with("</") && !begins_name(&rest[2..]) {
            Some(after(2, ">"))
        } else {
            None
        };
        if let Some(length) = other {
            self.at = length.map_or(self.source.len(), |length| start + length);
            let range = start..self.at;
            return if rest.starts_with("<![CDATA[") {
                Token::Cdata(range)
            } else {
                Token::Other(range)
            };
        }
        let closing = rest.starts_with("</");
        let name_start = start + if closing { 2 } else { 1 };
        let Some(tag) = self.tag(start, name_start) else {
            self.at = self.source.len();
            return Token::Other(start..self.at);
        };
        self.at = tag.range.end;
        if closing {
            let OpenTag { range, name, .. } = tag;
            Token::Close { range, name }
        } else {
            Token::Open(tag)
        }
    }

    /// The tag that begins here, if it ends.
    fn tag(&self, start: usize, name_start: usize) -> Option<OpenTag> {
        let bytes = self.source.as_bytes();
        let until = |from: usize, stop: fn(u8) -> bool| {
            let rest = bytes[from..].iter();
            from + rest.take_while(|&&byte| !stop(byte)).count()
        };
        let name = name_start..until(name_start, |byte| {
            byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>')
        });
        let mut at = name.end;
        let mut attributes = Vec::new();
        loop {
            at = until(at, |byte| !byte.is_ascii_whitespace() && byte != b'/');
            if *bytes.get(at)? == b'>' {
                return Some(OpenTag {
                    range: start..at + 1,
                    name,
                    attributes,
                    is_closed: bytes[at - 1] == b'/',
                });
            }
            // A name may begin with `=`.
            let end = until(at + 1, |byte| {
                byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>' | b'=')
            });
            let name = at..end;
            at = until(end, |byte| !byte.is_ascii_whitespace());
            let (mut value, mut is_quoted) = (at..at, false);
            if bytes.get(at) == Some(&b'=') {
                at = until(at + 1, |byte| !byte.is_ascii_whitespace());
                value = match bytes.get(at)? {
                    quote @ (b'"' | b'\'') => {
                        is_quoted = true;
                        let length = self.source[at + 1..].find(*quote as char)?;
                        at + 1..at + 1 + length
                    }
                    _ => at..until(at, |byte| byte.is_ascii_whitespace() || byte == b'>'),
                };
                at = value.end + usize::from(is_quoted);
            }
            attributes.push(Attribute {
                name,
                value,
                is_quoted,
            });
        }
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let rest = &self.source[self.at..];
        if rest.is_empty() {
            None
        } else if is_markup(rest) {
            Some(self.markup())
        } else {
            Some(self.text())
        }
    }
}

/// Whether a text begins with markup, and not with text such as `< 3`.
fn is_markup(rest: &str) -> bool {
    rest.strip_prefix('<')
        .is_some_and(|rest| rest.starts_with(['/', '!', '?']) || begins_name(rest))
}

fn begins_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == ':')
}

/// How long the comment is that a text begins with, if it ends.
fn comment(rest: &str) -> Option<usize> {
    let content = &rest[4..];
    for abrupt in [">", "->"] {
        if content.starts_with(abrupt) {
            return Some(4 + abrupt.len());
        }
    }
    let end = content.match_indices("--").find_map(|(at, _)| {
        let after = &content[at + 2..];
        // `--->` is matched at its first two dashes.
        let end = ["->", ">", "!>"]
            .iter()
            .find(|end| after.starts_with(**end));
        end.map(|end| at + 2 + end.len())
    });
    end.map(|end| 4 + end)
}
