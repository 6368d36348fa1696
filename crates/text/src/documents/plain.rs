//! Plain text, as a file and as a string inside another format: lines, and sentences that run over several lines.
//!
//! Text that a program wrapped at some width is joined before it is translated and wrapped again afterwards. Lines are
//! taken for wrapped only if every one of them is as full as it can be: the first word of the next would not have fit.
//! All other line breaks stay where they are.

use std::ops::Range;

use super::block::is_text;
use super::template::Template;
use super::{Problem, start_of};
use crate::markup::{Marked, Page, Syntax};

/// Reads plain text.
pub(crate) fn read(source: String) -> Result<Template, Problem> {
    let start = start_of(&source);
    let (plain, texts) = Plain::new(&source[start..]);
    let whole = start..source.len();
    let mut template = Template::new(source);
    template.add(whole, texts, move |texts, _| plain.filled(texts));
    Ok(template.finished())
}

/// A string, cut into texts and what is between them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Plain {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// Stays as it is.
    Fixed(String),
    /// The next text, on one line.
    Line,
    /// The next text, on lines of this width, with this before all lines but the first.
    Wrapped { width: usize, before: String },
}

/// Narrower text was hardly wrapped by a program.
const LEAST_WIDTH: usize = 40;

impl Plain {
    /// Cuts a string; gives the texts, too.
    pub fn new(text: &str) -> (Self, Vec<Marked>) {
        let mut plain = Self::default();
        let mut texts = Vec::new();
        let lines = lines(text);
        let mut next = 0;
        while next < lines.len() {
            let is_blank = |line: &Range<usize>| text[line.clone()].trim().is_empty();
            let rest = &lines[next..];
            let blank = rest.iter().position(is_blank).unwrap_or(rest.len());
            if blank == 0 {
                plain.fix(&text[rest[0].clone()]);
                next += 1;
                continue;
            }
            plain.paragraph(text, &rest[..blank], &mut texts);
            next += blank;
        }
        (plain, texts)
    }

    /// Lines without a blank one among them.
    fn paragraph(&mut self, text: &str, lines: &[Range<usize>], texts: &mut Vec<Marked>) {
        let shown: Vec<&str> = lines
            .iter()
            .map(|line| text[line.clone()].trim_end())
            .collect();
        let width = shown.iter().map(|line| line.chars().count()).max();
        let width = width.unwrap_or(0);
        let full = shown
            .windows(2)
            .all(|pair| is_full(pair[0], pair[1], width));
        let is_wrapped = full && width >= LEAST_WIDTH;
        let mut first = 0;
        while first < lines.len() {
            let mut last = first;
            while is_wrapped && last + 1 < lines.len() && runs_on(shown[last], shown[last + 1]) {
                last += 1;
            }
            let whole = &text[lines[first].start..lines[last].end];
            let words = whole.trim();
            let start = whole.len() - whole.trim_start().len();
            if is_text(words) {
                self.fix(&whole[..start]);
                texts.push(Marked::plain(if first == last {
                    words.to_owned()
                } else {
                    words.split_whitespace().collect::<Vec<_>>().join(" ")
                }));
                self.pieces.push(if first == last {
                    Piece::Line
                } else {
                    let second = shown[first + 1];
                    let indent = &second[..second.len() - second.trim_start().len()];
                    let end = line_end(&text[lines[first].clone()]);
                    Piece::Wrapped {
                        width: width - indent.chars().count(),
                        before: format!("{end}{indent}"),
                    }
                });
                self.fix(&whole[start + words.len()..]);
            } else {
                self.fix(whole);
            }
            first = last + 1;
        }
    }

    fn fix(&mut self, text: &str) {
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Fixed(fixed)) => fixed.push_str(text),
            _ => self.pieces.push(Piece::Fixed(text.to_owned())),
        }
    }

    /// The string with these texts in it.
    pub fn filled(&self, texts: &[Marked]) -> String {
        // A line break in a translation would be one too many.
        let mut texts = texts.iter().map(|text| text.text().replace('\n', " "));
        let mut filled = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Fixed(fixed) => filled.push_str(fixed),
                Piece::Line => filled.push_str(&texts.next().unwrap_or_default()),
                Piece::Wrapped { width, before } => {
                    let text = texts.next().unwrap_or_default();
                    let lines = wrapped(&text, *width, |_| true);
                    filled.push_str(&lines.join(before));
                }
            }
        }
        filled
    }
}

/// A string of a table: plain text, or HTML.
#[derive(Debug)]
pub(crate) enum Value {
    Plain(Plain),
    Html(Page),
}

impl Value {
    /// Cuts a string; gives the texts, too. It is HTML if an element ends in it.
    pub fn new(text: &str) -> (Self, Vec<Marked>) {
        let ends = |(place, _)| {
            let name = &text[place + 2..];
            let end = name.find(|c: char| !c.is_ascii_alphanumeric());
            end.is_some_and(|end| end > 0 && name[end..].starts_with('>'))
        };
        if text.match_indices("</").any(ends) {
            let page = Page::read(text, &Syntax::Html);
            let texts = page.texts().to_vec();
            return (Self::Html(page), texts);
        }
        let (plain, texts) = Plain::new(text);
        (Self::Plain(plain), texts)
    }

    /// The string with these texts in it.
    pub fn filled(&self, texts: &[Marked]) -> String {
        match self {
            Self::Plain(plain) => plain.filled(texts),
            Self::Html(page) => page.write(texts),
        }
    }
}

/// The ranges of lines with their ends.
fn lines(text: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    let line = |line: &str| {
        start += line.len();
        start - line.len()..start
    };
    text.split_inclusive('\n').map(line).collect()
}

/// How a line ends.
pub(crate) fn line_end(line: &str) -> &'static str {
    if line.ends_with("\r\n") { "\r\n" } else { "\n" }
}

/// Whether the first word of the next line would not have fit into this one.
fn is_full(line: &str, next: &str, width: usize) -> bool {
    let word = next.split_whitespace().next().unwrap_or_default();
    line.chars().count() + 1 + word.chars().count() > width
}

/// Whether a sentence may go on in the next line of wrapped text.
fn runs_on(line: &str, next: &str) -> bool {
    let ends = line.ends_with(['.', '!', '?', ':', '…']);
    !ends && !starts_item(next.trim_start())
}

/// Whether a line looks like the beginning of an item, a quotation or a heading.
fn starts_item(line: &str) -> bool {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(['-', '*', '+', '•', '>', '#', '|', '='])
        || (digits.len() < line.len() && digits.starts_with(['.', ')']))
}

/// Words on lines of at most this width, broken only before words that `may_begin` a line.
pub(crate) fn wrapped(text: &str, width: usize, may_begin: impl Fn(&str) -> bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut length = 0;
    for word in text.split(' ') {
        let own = word.chars().count();
        match lines.last_mut() {
            Some(line) if length + 1 + own <= width || word.is_empty() || !may_begin(word) => {
                line.push(' ');
                line.push_str(word);
                length += 1 + own;
            }
            _ => {
                lines.push(word.to_owned());
                length = own;
            }
        }
    }
    lines
}

/// Whether a string is one word that no person would say: an address, a path, a key.
pub(crate) fn is_identifier(text: &str) -> bool {
    let text = text.trim();
    if text.contains(char::is_whitespace) {
        return false;
    }
    let dotted = || {
        let mut names = text.split('.');
        let name = |name: &str| {
            name.len() > 1 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        };
        text.contains('.') && names.all(name)
    };
    text.contains("://")
        || text.contains(['_', '@', '\\'])
        || text.starts_with(['/', '#', '.', '$'])
        || text.matches('/').count() > 1
        || dotted()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        let (plain, texts) = Plain::new(text);
        assert_eq!(plain.filled(&texts), text);
        texts.iter().map(Marked::text).collect()
    }

    #[test]
    fn every_line_is_a_text_and_keeps_what_is_around_it() {
        assert_eq!(
            texts("  Ein Hund.\r\n\r\n 12\n\tZwei Katzen. \n"),
            ["Ein Hund.", "Zwei Katzen."]
        );
        assert!(texts("").is_empty());
        assert!(texts("\n\n 1.2 \n").is_empty());
    }

    #[test]
    fn wrapped_lines_are_joined_and_wrapped_again() {
        let letter = "Sehr geehrte Damen und Herren,\n\n  wir haben am Montag versucht, Sie in Ihrem\n  Büro \
                      zu erreichen. Leider war dort niemand\n  am Telefon.\n";
        let (plain, texts) = Plain::new(letter);
        assert_eq!(texts.len(), 2);
        let joined = "wir haben am Montag versucht, Sie in Ihrem Büro zu erreichen. Leider war dort niemand am Telefon.";
        assert_eq!(texts[1].text(), joined);
        let new = [
            Marked::plain("Dear all,"),
            Marked::plain("word ".repeat(16).trim_end()),
        ];
        let line = "word ".repeat(8);
        let line = line.trim_end();
        let expected = format!("Dear all,\n\n  {line}\n  {line}\n");
        assert_eq!(plain.filled(&new), expected);
    }

    #[test]
    fn lines_that_are_not_full_are_not_joined() {
        let poem = "Wer reitet so spät durch Nacht und Wind? Wer ist es nur\nEs ist\nder Vater mit seinem Kind\n";
        assert_eq!(texts(poem).len(), 3);
        let list = "- ein langer Punkt, der fast die ganze Zeile braucht\n- ein zweiter Punkt, der genauso lang ist wie er\n";
        assert_eq!(texts(list).len(), 2);
    }

    #[test]
    fn a_string_in_which_an_element_ends_is_html() {
        let (value, texts) = Value::new("Ein <b>Hund</b> &amp; so");
        assert_eq!(texts[0].text(), "Ein Hund & so");
        assert_eq!(value.filled(&[Marked::plain("A & B")]), "A &amp; B");
        let (value, texts) = Value::new("usage: x <file> & </> </");
        assert_eq!(texts[0].text(), "usage: x <file> & </> </");
        assert_eq!(value.filled(&[Marked::plain("A & B")]), "A & B");
    }

    #[test]
    fn identifiers_are_no_text() {
        for text in [
            "https://example.org",
            "user_name",
            "/etc/hosts",
            "app.user.name",
            "a@example.org",
            "#fff",
        ] {
            assert!(is_identifier(text), "{text}");
        }
        for text in [
            "Hallo",
            "z.B.",
            "Ja/Nein",
            "Ein Hund",
            "well-known",
            "Ende.",
        ] {
            assert!(!is_identifier(text), "{text}");
        }
    }
}
