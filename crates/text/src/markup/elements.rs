//! What an element is for a translator: a text of its own, a part of a text, or nothing to translate.

use std::collections::HashSet;

use super::tokens::{Token, Tokens};

/// How a page is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Syntax {
    /// HTML: the names of its elements say what they are.
    Html,
    /// XML, in which names mean nothing by themselves.
    Xml(XmlTags),
}

/// What the tags of an XML document do (the options of DeepL's API).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct XmlTags {
    /// Elements that are texts of their own.
    pub splitting: Vec<String>,
    /// Elements that never are.
    pub non_splitting: Vec<String>,
    /// Elements whose content stays as it is.
    pub ignored: Vec<String>,
    /// What becomes of all other elements.
    pub outline: Outline,
}

/// How to tell which elements of an XML document are texts of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Outline {
    /// Those that never stand beside text within the same element.
    #[default]
    Detected,
    /// Those that are listed.
    Listed,
}

/// What an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Its content is a text of its own.
    Block,
    /// It is part of the text around it.
    Inline,
    /// A part of the text without content.
    Void,
    /// Its content is part of the text around it and stays as it is.
    Code,
    /// It stays as it is and separates texts.
    Preformatted,
    /// It stays as it is, as a part of the text without words.
    Picture,
    /// Its content is no text and has no tags.
    Raw,
}

/// Elements of HTML that are texts of their own.
const BLOCKS: &str = " address article aside audio blockquote body br button caption center col colgroup datalist dd \
details dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr \
html legend li link main menu meta nav noframes noscript ol optgroup option p param picture section select source summary \
table tbody td template tfoot th thead title tr track ul video ";

/// Elements of HTML without content.
const VOID: &str = " area base br col embed frame hr img input link meta param source track wbr ";

const CODE: &str = " code kbd samp var tt math ";

const PREFORMATTED: &str = " pre listing textarea ";

const PICTURES: &str = " svg canvas object ";

const RAW: &str = " script style iframe noembed xmp plaintext ";

/// Elements of HTML whose closing tag may be left out.
const OPTIONAL_END: &str = " p li dt dd tr td th option optgroup thead tbody tfoot ";

fn is_in(list: &str, name: &str) -> bool {
    !name.is_empty() && list.split(' ').any(|own| own == name)
}

/// The roles of a document's elements.
pub(super) struct Roles<'a> {
    syntax: &'a Syntax,
    /// Elements of an XML document that stand beside text.
    inline: HashSet<&'a str>,
}

impl<'a> Roles<'a> {
    pub fn of(source: &'a str, syntax: &'a Syntax) -> Self {
        let inline = match syntax {
            Syntax::Xml(tags) if tags.outline == Outline::Detected => beside_text(source),
            _ => HashSet::new(),
        };
        Self { syntax, inline }
    }

    /// The name by which an element is known: HTML does not tell capitals from small letters.
    pub fn name(&self, name: &str) -> String {
        match self.syntax {
            Syntax::Html => name.to_ascii_lowercase(),
            Syntax::Xml(_) => name.to_owned(),
        }
    }

    pub fn role(&self, name: &str) -> Role {
        let Syntax::Xml(tags) = self.syntax else {
            return match name {
                name if is_in(BLOCKS, name) => Role::Block,
                name if is_in(VOID, name) => Role::Void,
                name if is_in(CODE, name) => Role::Code,
                name if is_in(PREFORMATTED, name) => Role::Preformatted,
                name if is_in(PICTURES, name) => Role::Picture,
                name if is_in(RAW, name) => Role::Raw,
                _ => Role::Inline,
            };
        };
        let listed = |list: &[String]| list.iter().any(|own| own == name);
        let splits = listed(&tags.splitting)
            || tags.outline == Outline::Detected && !self.inline.contains(name);
        if listed(&tags.ignored) {
            Role::Code
        } else if splits && !listed(&tags.non_splitting) {
            Role::Block
        } else {
            Role::Inline
        }
    }

    pub fn is_void(&self, name: &str) -> bool {
        *self.syntax == Syntax::Html && is_in(VOID, name)
    }

    pub fn is_html(&self) -> bool {
        *self.syntax == Syntax::Html
    }

    /// Whether another element with this name ends one.
    pub fn ends_itself(&self, name: &str) -> bool {
        self.is_html() && is_in(OPTIONAL_END, name)
    }
}

/// The names of elements that stand beside text: what is around them is a text, and they are part of it.
fn beside_text(source: &str) -> HashSet<&str> {
    struct Open<'s> {
        name: &'s str,
        has_text: bool,
        children: HashSet<&'s str>,
    }
    fn end<'s>(element: Open<'s>, inline: &mut HashSet<&'s str>) {
        if element.has_text {
            inline.extend(element.children);
        }
    }
    let new = |name| Open {
        name,
        has_text: false,
        children: HashSet::new(),
    };
    let mut open = vec![new("")];
    let mut inline = HashSet::new();
    for token in Tokens::new(source) {
        let Some(last) = open.last_mut() else { break };
        match token {
            Token::Text(range) => last.has_text |= !source[range].trim().is_empty(),
            Token::Cdata(_) => last.has_text = true,
            Token::Open(tag) => {
                let name = &source[tag.name];
                last.children.insert(name);
                if !tag.is_closed {
                    open.push(new(name));
                }
            }
            Token::Close { name, .. } => {
                // No closing tag has the empty name of what is around everything.
                if last.name == &source[name] {
                    open.pop()
                        .into_iter()
                        .for_each(|element| end(element, &mut inline));
                }
            }
            Token::Other(_) => {}
        }
    }
    open.into_iter()
        .for_each(|element| end(element, &mut inline));
    inline
}
