//! Markdown: paragraphs, headings, items, cells. Code, front matter, link targets and reference definitions stay.
//!
//! `pulldown-cmark` says where everything is. Emphasis and links are tags, the text of a picture is a text of its own, code
//! in a line is kept. A paragraph over several lines is joined and wrapped again at its width. Text is escaped where
//! it would be markup, and nowhere else.

use std::ops::Range;

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag as Element, TagEnd};

use super::block::{Block, is_text};
use super::inline::{Raw, Tag, Tags};
use super::plain::wrapped;
use super::skipped::Reason;
use super::template::{Filler, Template};
use super::{Problem, start_of};
use crate::markup::{Marked, Page, Part, Syntax};

type Located<'a> = (Event<'a>, Range<usize>);

/// Reads Markdown.
pub(crate) fn read(source: String) -> Result<Template, Problem> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    let start = start_of(&source);
    let events: Vec<Located<'_>> = Parser::new_ext(&source[start..], options)
        .into_offset_iter()
        .map(|(event, range)| (event, range.start + start..range.end + start))
        .collect();
    let mut reader = Reader {
        source: &source,
        found: Vec::new(),
        pages: Vec::new(),
        skipped: Vec::new(),
    };
    reader.blocks(&events);
    let Reader {
        found,
        pages,
        skipped,
        ..
    } = reader;
    let mut template = Template::new(source);
    for (run, texts) in found {
        template.add(run.range.clone(), texts, move |texts, filler| {
            run.write(texts, filler)
        });
    }
    for (range, page) in pages {
        let texts = page.texts().to_vec();
        template.add(range, texts, move |texts, _| page.write(texts));
    }
    for (offset, reason) in skipped {
        template.skip(offset, reason);
    }
    Ok(template.finished())
}

/// Text of a block that can be written.
#[derive(Debug)]
struct Run {
    range: Range<usize>,
    block: Block,
    tags: Tags,
    place: Place,
    /// The width of its lines and what is between them, if it has several.
    lines: Option<(usize, String)>,
}

/// Where text is, which decides what must be escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Block,
    Cell,
    /// The text of a picture.
    Inside,
}

struct Reader<'a> {
    source: &'a str,
    found: Vec<(Run, Vec<Marked>)>,
    /// Blocks of HTML.
    pages: Vec<(Range<usize>, Page)>,
    skipped: Vec<(usize, Reason)>,
}

impl Reader<'_> {
    fn blocks(&mut self, events: &[Located<'_>]) {
        let mut first = 0;
        let mut place = Place::Block;
        let mut skipping: Option<Reason> = None;
        for (number, (event, range)) in events.iter().enumerate() {
            if skipping.is_none() && is_inline(event) {
                continue;
            }
            if skipping.is_none() {
                self.run(&events[first..number], place);
            }
            first = number + 1;
            match event {
                Event::Start(Element::TableCell) => place = Place::Cell,
                Event::End(TagEnd::TableCell) => place = Place::Block,
                Event::Start(Element::CodeBlock(_)) => skipping = Some(Reason::Code),
                Event::Start(Element::HtmlBlock) => skipping = Some(Reason::Html),
                Event::Start(Element::MetadataBlock(_)) => skipping = Some(Reason::FrontMatter),
                Event::End(TagEnd::CodeBlock | TagEnd::HtmlBlock | TagEnd::MetadataBlock(_)) => {
                    skipping = None
                }
                _ => {}
            }
            if let Event::Start(Element::HtmlBlock) = event
                && self.html(range)
            {
                continue;
            }
            let begins = matches!(event, Event::Start(_));
            if let Some(reason) = skipping.filter(|_| begins)
                && is_text(&words(&self.source[range.clone()], reason))
            {
                self.skipped.push((range.start, reason));
            }
        }
        self.run(&events[first..], place);
    }

    /// A block of HTML, unless it is inside a quotation, whose marks would be taken for text.
    fn html(&mut self, range: &Range<usize>) -> bool {
        let html = &self.source[range.clone()];
        if html.lines().any(|line| line.trim_start().starts_with('>')) {
            return false;
        }
        self.pages
            .push((range.clone(), Page::read(html, &Syntax::Html)));
        true
    }

    /// Events of one block, next to each other.
    fn run(&mut self, events: &[Located<'_>], place: Place) {
        let (Some((_, first)), Some((_, last))) = (events.first(), events.last()) else {
            return;
        };
        let range = self.start_of(first.start)..last.end;
        let mut tags = Tags::default();
        let mut parts = Vec::new();
        let mut lines = None;
        self.inline(events, &mut tags, &mut parts, &mut lines);
        let parts = tags.paired(parts, self.source);
        let (block, texts) = Block::new(parts, |_| false);
        let shown = self.source[range.clone()].lines();
        let width = shown.map(|line| line.chars().count()).max().unwrap_or(0);
        if !texts.is_empty() {
            let run = Run {
                range,
                block,
                tags,
                place,
                lines: lines.map(|between| (width.max(40), between)),
            };
            self.found.push((run, texts));
        }
    }

    fn inline(
        &mut self,
        events: &[Located<'_>],
        tags: &mut Tags,
        parts: &mut Vec<Part>,
        lines: &mut Option<String>,
    ) {
        let mut next = 0;
        while next < events.len() {
            let (event, range) = &events[next];
            let after = events
                .get(next + 1)
                .map_or(range.end, |(_, after)| self.start_of(after.start));
            next += 1;
            match event {
                Event::Text(text) => parts.push(Part::Text(text.to_string())),
                Event::Code(code) => {
                    let raw = &self.source[range.clone()];
                    let ticks = raw.len() - raw.trim_start_matches('`').len();
                    let inside = range.start + ticks..range.end - ticks;
                    let number = tags.add(element(range, &inside));
                    parts.push(Part::Open(number));
                    // Code over two lines goes on one, as it is shown.
                    let raw = &self.source[inside];
                    parts.push(Part::Verbatim(if !raw.contains('\n') {
                        raw.to_owned()
                    } else if code.starts_with('`') || code.ends_with('`') {
                        format!(" {code} ")
                    } else {
                        code.to_string()
                    }));
                    parts.push(Part::Close(number));
                }
                Event::SoftBreak => {
                    parts.push(Part::Text(" ".to_owned()));
                    lines.get_or_insert_with(|| {
                        self.source[range.start..after.max(range.end)].to_owned()
                    });
                }
                Event::HardBreak => {
                    let raw = Raw::Source(range.start..after.max(range.end));
                    tags.push_point(Tag::Break(raw), parts);
                }
                Event::InlineHtml(html) if html.to_ascii_lowercase().starts_with("<br") => {
                    tags.push_point(Tag::Break(Raw::Source(range.clone())), parts);
                }
                Event::Start(start) => {
                    let end = self.end_of(events, next - 1);
                    self.element(start, range, &events[next..end], tags, parts, lines);
                    next = end + 1;
                }
                Event::End(_) => {}
                _ => tags.push_point(Tag::Point(Raw::Source(range.clone())), parts),
            }
        }
    }

    /// The event that ends what one starts.
    fn end_of(&self, events: &[Located<'_>], start: usize) -> usize {
        let mut depth = 0usize;
        for (number, (event, _)) in events.iter().enumerate().skip(start) {
            match event {
                Event::Start(_) => depth += 1,
                Event::End(_) => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return number;
            }
        }
        events.len()
    }

    fn element(
        &mut self,
        start: &Element<'_>,
        range: &Range<usize>,
        children: &[Located<'_>],
        tags: &mut Tags,
        parts: &mut Vec<Part>,
        lines: &mut Option<String>,
    ) {
        let (Some((_, first)), Some((_, last))) = (children.first(), children.last()) else {
            return tags.push_point(Tag::Point(Raw::Source(range.clone())), parts);
        };
        let inside = self.start_of(first.start)..last.end;
        let tag = match start {
            Element::Image { link_type, .. } => {
                if matches!(link_type, LinkType::Inline | LinkType::Reference) {
                    self.run(children, Place::Inside);
                }
                return tags.push_point(Tag::Point(Raw::Source(range.clone())), parts);
            }
            Element::Link { link_type, .. } => match link_type {
                LinkType::Autolink | LinkType::Email => {
                    let number = tags.add(element(range, &inside));
                    parts.push(Part::Open(number));
                    parts.push(Part::Verbatim(self.source[inside].to_owned()));
                    return parts.push(Part::Close(number));
                }
                // The text is also the name of the target, which must stay.
                LinkType::Collapsed | LinkType::Shortcut => Tag::Element {
                    open: Raw::Source(range.start..inside.start),
                    close: Raw::Text(format!("][{}]", &self.source[inside])),
                },
                _ => element(range, &inside),
            },
            _ => element(range, &inside),
        };
        let number = tags.add(tag);
        parts.push(Part::Open(number));
        self.inline(children, tags, parts, lines);
        parts.push(Part::Close(number));
    }

    /// Where text begins: with the backslash before it, if that belongs to it.
    fn start_of(&self, start: usize) -> usize {
        let before = &self.source[..start];
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        start - backslashes % 2
    }
}

fn element(whole: &Range<usize>, inside: &Range<usize>) -> Tag {
    Tag::Element {
        open: Raw::Source(whole.start..inside.start),
        close: Raw::Source(inside.end..whole.end),
    }
}

/// Whether an event is part of a run of text.
fn is_inline(event: &Event<'_>) -> bool {
    match event {
        Event::Text(_)
        | Event::Code(_)
        | Event::InlineHtml(_)
        | Event::SoftBreak
        | Event::HardBreak
        | Event::FootnoteReference(_)
        | Event::InlineMath(_)
        | Event::DisplayMath(_) => true,
        Event::Start(start) => matches!(
            start,
            Element::Emphasis
                | Element::Strong
                | Element::Strikethrough
                | Element::Link { .. }
                | Element::Image { .. }
        ),
        Event::End(end) => matches!(
            end,
            TagEnd::Emphasis
                | TagEnd::Strong
                | TagEnd::Strikethrough
                | TagEnd::Link
                | TagEnd::Image
        ),
        Event::Html(_) | Event::Rule | Event::TaskListMarker(_) => false,
    }
}

/// What of a block people read.
fn words(block: &str, reason: Reason) -> String {
    if reason != Reason::Html {
        return block.to_owned();
    }
    let mut depth = 0usize;
    let outside = block.chars().filter(|c| match c {
        '<' => {
            depth += 1;
            false
        }
        '>' => {
            depth = depth.saturating_sub(1);
            false
        }
        _ => depth == 0,
    });
    outside.collect()
}

impl Run {
    fn write(&self, texts: &[Marked], filler: &Filler<'_>) -> String {
        let parts = self.block.filled(texts);
        let mut written = String::new();
        // What stands at the beginning of a line may be markup there and nowhere else.
        let mut first = 0;
        for place in 0..=parts.len() {
            let ends_line = match parts.get(place) {
                Some(Part::Point(number)) => self.tags.is_break(*number),
                Some(_) => false,
                None => true,
            };
            if ends_line {
                let end = (place + 1).min(parts.len());
                let line = self
                    .tags
                    .write(&parts[first..end], filler, |text| escape(text, self.place));
                written.push_str(&match self.place {
                    Place::Block => at_beginning(line.trim_start_matches([' ', '\t']).to_owned()),
                    Place::Cell | Place::Inside => line,
                });
                first = end;
            }
        }
        match &self.lines {
            None => written,
            Some((width, between)) => wrapped(&written, *width, may_begin).join(between),
        }
    }
}

/// Whether a line that begins with this word goes on with its paragraph.
fn may_begin(word: &str) -> bool {
    let mut chars = word.chars();
    let first = chars.next();
    first.is_some_and(|c| {
        c.is_alphabetic()
            || ("([`*_„“\"'".contains(c) && chars.next().is_some_and(char::is_alphabetic))
    })
}

/// Text in which nothing is markup.
fn escape(text: &str, place: Place) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut written = String::new();
    for (number, &c) in chars.iter().enumerate() {
        let before = number.checked_sub(1).map(|before| chars[before]);
        let after = chars.get(number + 1).copied();
        let spaced =
            before.is_none_or(char::is_whitespace) && after.is_none_or(char::is_whitespace);
        let in_word =
            before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric);
        let is_markup = match c {
            '`' | '[' | ']' | '~' => true,
            '*' => !spaced || before.is_none() || after.is_none(),
            '_' => !in_word,
            '\\' => after.is_none_or(|after| after.is_ascii_punctuation()),
            '<' => after.is_none_or(|after| after.is_ascii_alphabetic() || "/!?".contains(after)),
            '!' => after.is_none() && place == Place::Block,
            '|' => place == Place::Cell,
            '#' | '{' => after.is_none() || before.is_none(),
            '&' => chars[number + 1..].iter().take(32).any(|c| *c == ';') || after.is_none(),
            _ => false,
        };
        if matches!(c, '\n' | '\r') {
            written.push(' ');
            continue;
        }
        if is_markup {
            written.push('\\');
        }
        written.push(c);
    }
    written
}

/// A block whose first characters begin no item, heading or quotation.
fn at_beginning(written: String) -> String {
    let digits = written.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &written[digits..];
    if digits > 0 && rest.starts_with(['.', ')']) {
        return format!("{}\\{rest}", &written[..digits]);
    }
    let begins = |start: &str| written.starts_with(start);
    let item = ["- ", "+ ", "* ", "-\t", "+\t", "*\t"]
        .into_iter()
        .any(begins);
    if item
        || written.starts_with(['#', '>', '=', '|', ':'])
        || matches!(&*written, "-" | "+" | "*")
        || begins("--")
    {
        return format!("\\{written}");
    }
    written
}

#[cfg(test)]
mod tests;
