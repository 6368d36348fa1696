//! YAML string tables, such as those of Rails: every string that is a value is a text, everything else stays.
//!
//! `saphyr-parser` reads the file and says where each value is. A value is replaced in its own style where the new text
//! allows that, and in double quotes where not. What cannot be replaced safely is left and listed.

use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::json::unsuited;
use super::plain::{Value, line_end, wrapped};
use super::skipped::Reason;
use super::template::Template;
use super::{Problem, block, start_of};

/// Reads YAML.
pub(crate) fn read(source: String) -> Result<Template, Problem> {
    let mut found = Vec::new();
    let mut skipped = Vec::new();
    for scalar in scalars(&source)? {
        let written = if scalar.tagged {
            Err(Reason::Tagged)
        } else {
            Written::of(&source, &scalar)
        };
        match written {
            _ if !block::is_text(&scalar.value) => {}
            Err(reason) => skipped.push((scalar.start, reason)),
            Ok((range, written)) => match unsuited(&scalar.value) {
                Some(reason) => skipped.push((scalar.start, reason)),
                None => found.push((range, written, Value::new(&scalar.value))),
            },
        }
    }
    let mut template = Template::new(source);
    for (range, written, (value, texts)) in found {
        template.add(range, texts, move |texts, _| {
            written.value(&value.filled(texts))
        });
    }
    for (offset, reason) in skipped {
        template.skip(offset, reason);
    }
    Ok(template.finished())
}

/// A string that is a value.
struct Scalar {
    /// Where it begins.
    start: usize,
    end: usize,
    value: String,
    style: ScalarStyle,
    place: Place,
    /// Whether it has a tag, such as `!ruby/symbol`.
    tagged: bool,
}

/// Where a value is, which decides what it may hold without quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In a block.
    Block,
    /// Between brackets or braces.
    Flow,
}

/// What is open around an event.
struct Level {
    place: Place,
    next: Next,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Key,
    Value,
    Item,
}

fn scalars(source: &str) -> Result<Vec<Scalar>, Problem> {
    let start = start_of(source);
    let text = &source[start..];
    let mut bytes: Vec<usize> = text.char_indices().map(|(byte, _)| start + byte).collect();
    bytes.push(source.len());
    let byte = |index: usize| bytes.get(index).copied().unwrap_or(source.len());
    let mut levels: Vec<Level> = Vec::new();
    let mut found = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| Problem {
            line: Some(error.marker().line()),
            problem: format!("this is not valid YAML: {}; repair the file, or use --format text to translate its lines", error.info()),
        })?;
        let (first, last) = (byte(span.start.index()), byte(span.end.index()));
        let is_value = levels.last().is_none_or(|level| level.next != Next::Key);
        let place = levels.last().map_or(Place::Block, |level| level.place);
        match &event {
            Event::Scalar(value, style, _, tag) if is_value => found.push(Scalar {
                start: first,
                end: last,
                value: value.to_string(),
                style: *style,
                place,
                tagged: tag.is_some(),
            }),
            _ => {}
        }
        match &event {
            Event::Scalar(..) | Event::Alias(_) => step(&mut levels),
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                let flow = place == Place::Flow || source[first..].starts_with(['[', '{']);
                levels.push(Level {
                    place: if flow { Place::Flow } else { Place::Block },
                    next: if matches!(event, Event::MappingStart(..)) {
                        Next::Key
                    } else {
                        Next::Item
                    },
                });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                levels.pop();
                step(&mut levels);
            }
            _ => {}
        }
    }
    Ok(found)
}

/// A key or a value is complete.
fn step(levels: &mut [Level]) {
    if let Some(level) = levels.last_mut() {
        level.next = match level.next {
            Next::Key => Next::Value,
            Next::Value => Next::Key,
            Next::Item => Next::Item,
        };
    }
}

/// How a value is written.
#[derive(Debug)]
enum Written {
    Plain(Place),
    Single,
    Double,
    Literal {
        indent: String,
        ends: &'static str,
    },
    Folded {
        indent: String,
        ends: &'static str,
        width: usize,
    },
}

impl Written {
    /// The bytes of a value and how it is written, if both are certain.
    fn of(source: &str, scalar: &Scalar) -> Result<(Range<usize>, Self), Reason> {
        let range = scalar.start..scalar.end;
        let raw = source.get(range.clone()).ok_or(Reason::NotUnderstood)?;
        let same = |text: &str| text.split_whitespace().eq(scalar.value.split_whitespace());
        match scalar.style {
            ScalarStyle::Plain => {
                let shown = raw.trim_end_matches([' ', '\t', '\n', '\r']);
                let is = same(shown) && (shown.contains('\n') || shown == scalar.value);
                let range = range.start..range.start + shown.len();
                is.then_some((range, Self::Plain(scalar.place)))
                    .ok_or(Reason::NotUnderstood)
            }
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
                let length = quoted_length(raw).ok_or(Reason::NotUnderstood)?;
                let style = if raw.starts_with('"') {
                    Self::Double
                } else {
                    Self::Single
                };
                Ok((range.start..range.start + length, style))
            }
            ScalarStyle::Literal => Block::of(source, scalar, '|')
                .filter(|block| block.unindented(source) == scalar.value.trim_end_matches('\n'))
                .map(|block| {
                    (
                        block.range,
                        Self::Literal {
                            indent: block.indent,
                            ends: block.ends,
                        },
                    )
                })
                .ok_or(Reason::NotUnderstood),
            ScalarStyle::Folded => Block::of(source, scalar, '>')
                .filter(|block| same(&source[block.range.clone()]))
                .filter(|_| {
                    !scalar
                        .value
                        .lines()
                        .any(|line| line.starts_with([' ', '\t']) || line.contains("  "))
                })
                .map(|block| {
                    let Block {
                        range,
                        indent,
                        ends,
                        width,
                    } = block;
                    (
                        range,
                        Self::Folded {
                            indent,
                            ends,
                            width,
                        },
                    )
                })
                .ok_or(Reason::NotUnderstood),
        }
    }

    /// A value as it is written.
    fn value(&self, text: &str) -> String {
        let is_one_line = !text.chars().any(|c| {
            c.is_control() || matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{FEFF}')
        });
        match self {
            Self::Plain(place) if is_one_line && is_plain(text, *place) => text.to_owned(),
            Self::Single if is_one_line => format!("'{}'", text.replace('\'', "''")),
            Self::Plain(_) | Self::Single | Self::Double => double_quoted(text),
            Self::Literal { indent, ends } => {
                let lines = text.trim_end_matches('\n').split('\n');
                let line = |line: &str| {
                    if line.is_empty() {
                        String::new()
                    } else {
                        format!("{indent}{line}")
                    }
                };
                lines.map(line).collect::<Vec<_>>().join(ends)
            }
            Self::Folded {
                indent,
                ends,
                width,
            } => {
                let lines = text.trim_end_matches('\n').split('\n');
                let line = |line: &str| {
                    if line.is_empty() {
                        return String::new();
                    }
                    let lines = wrapped(line, *width, |_| true);
                    format!("{indent}{}", lines.join(&format!("{ends}{indent}")))
                };
                let mut written = String::new();
                let mut before_text = false;
                for (number, line) in lines.map(line).enumerate() {
                    if number > 0 {
                        written.push_str(ends);
                    }
                    // A single line break would be folded into a space.
                    if before_text {
                        written.push_str(ends);
                    }
                    before_text = !line.is_empty();
                    written.push_str(&line);
                }
                written
            }
        }
    }
}

/// How many bytes a string in quotes has, with its quotes.
fn quoted_length(raw: &str) -> Option<usize> {
    let quote = raw.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut chars = raw.char_indices().skip(1).peekable();
    while let Some((place, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let is_escape = if quote == '"' {
            c == '\\'
        } else {
            c == quote && next == Some(quote)
        };
        if is_escape {
            chars.next();
        } else if c == quote {
            return Some(place + 1);
        }
    }
    None
}

/// In double quotes, as JSON has them; line ends of Unicode are escaped, which JSON need not do.
fn double_quoted(text: &str) -> String {
    let mut quoted = serde_json::Value::from(text).to_string();
    for c in [
        '\u{7f}', '\u{85}', '\u{2028}', '\u{2029}', '\u{FEFF}', '\u{FFFE}', '\u{FFFF}',
    ] {
        if quoted.contains(c) {
            quoted = quoted.replace(c, &format!("\\u{:04x}", c as u32));
        }
    }
    quoted
}

/// Whether a text can stand without quotes and is still a string.
fn is_plain(text: &str, place: Place) -> bool {
    let lower = text.to_lowercase();
    let is_other = matches!(
        &*lower,
        "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n"
    );
    let begins = text
        .chars()
        .next()
        .is_some_and(|c| c.is_alphabetic() || "(„«“‚‘¿¡".contains(c));
    let flow = place == Place::Flow && text.contains([',', '[', ']', '{', '}']);
    begins
        && !is_other
        && !flow
        && text == text.trim()
        && !text.ends_with(':')
        && !text.contains(": ")
        && !text.contains(":\t")
        && !text.contains(" #")
        && !text.contains('\t')
        && (place == Place::Block || !text.contains(':'))
}

/// The lines of a block after `|` or `>`.
struct Block {
    range: Range<usize>,
    indent: String,
    ends: &'static str,
    width: usize,
}

impl Block {
    fn of(source: &str, scalar: &Scalar, mark: char) -> Option<Self> {
        let first = source.get(..scalar.start)?.rfind('\n')? + 1;
        let before = source[..first].trim_end();
        let header = &source[before.rfind('\n').map_or(0, |place| place + 1)..first];
        let signs = &header[header.rfind(mark)? + 1..];
        let signs = signs.split('#').next()?.trim();
        if !matches!(signs, "" | "-" | "+") {
            return None;
        }
        let mut indent = None;
        let (mut end, mut place, mut width) = (first, first, 0);
        for line in source.get(first..)?.split_inclusive('\n') {
            let text = line.trim_end_matches(['\n', '\r']);
            let start = place;
            place += line.len();
            if text.trim().is_empty() {
                continue;
            }
            let own = &text[..text.len() - text.trim_start_matches(' ').len()];
            let indent = *indent.get_or_insert(own);
            if !own.starts_with(indent) || indent.is_empty() || scalar.end <= start {
                break;
            }
            width = width.max(text.chars().count() - indent.len());
            end = start + text.len();
        }
        Some(Self {
            range: first..end,
            indent: indent?.to_owned(),
            ends: line_end(header),
            width: width.max(40),
        })
    }

    /// The lines without their indentation.
    fn unindented(&self, source: &str) -> String {
        let lines = source[self.range.clone()].lines();
        let line = |line: &str| {
            line.strip_prefix(&*self.indent)
                .unwrap_or(line.trim_start_matches(' '))
                .to_owned()
        };
        lines.map(line).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markup::Marked;

    const TABLE: &str = "\
# Comment
de: &de
  hello: Hallo Welt  # here
  quoted: \"Ein \\\"Hund\\\"\"
  single: 'Wie geht''s?'
  number: 12
  days: [Sonntag, 'Montag', \"Dienstag\"]
  empty: ''
  flow: {a: Eins, b: 2}
  literal: |
    Erste Zeile
      Zweite Zeile

    Dritte Zeile
  folded: >-
    Ein langer
    Satz.

    Ein zweiter.
  long: Ein Satz
    in zwei Zeilen
  link: https://example.org
  list:
    - Hund
    - name: Katze
other: *de
tagged: !x Wert
";

    fn filled(new: impl Fn(&str) -> String) -> (Template, String) {
        let template = read(TABLE.to_owned()).unwrap();
        let texts: Vec<Marked> = template
            .texts
            .iter()
            .map(|text| Marked::plain(new(&text.text())))
            .collect();
        let filled = template.fill(&template.texts, &texts);
        (template, filled)
    }

    #[test]
    fn values_are_texts_in_every_style() {
        let (template, same) = filled(str::to_owned);
        assert_eq!(same, TABLE);
        let texts: Vec<String> = template.texts.iter().map(Marked::text).collect();
        let expected = [
            "Hallo Welt",
            "Ein \"Hund\"",
            "Wie geht's?",
            "Sonntag",
            "Montag",
            "Dienstag",
            "Eins",
            "Erste Zeile",
            "Zweite Zeile",
            "Dritte Zeile",
            "Ein langer Satz.",
            "Ein zweiter.",
            "Ein Satz in zwei Zeilen",
            "Hund",
            "Katze",
        ];
        assert_eq!(texts, expected);
        assert_eq!(
            template
                .skipped
                .iter()
                .map(|skipped| skipped.reason)
                .collect::<Vec<_>>(),
            [Reason::Identifier, Reason::Tagged]
        );
    }

    #[test]
    fn what_is_written_is_read_again_as_it_was_meant() {
        let changes: [fn(&str) -> String; 5] = [
            |text| format!("X{text}"),
            |text| format!("- {text}: # 'and' \"so\" [on], {{x}}"),
            |_| "true".to_owned(),
            |text| text.to_uppercase(),
            |text| format!("{text}:"),
        ];
        for change in changes {
            let (old, filled) = filled(change);
            let expected: Vec<String> = old.texts.iter().map(|text| change(&text.text())).collect();
            let again =
                read(filled.clone()).unwrap_or_else(|problem| panic!("{problem:?}\n{filled}"));
            let texts: Vec<String> = again.texts.iter().map(Marked::text).collect();
            assert_eq!(texts, expected, "{filled}");
        }
    }

    #[test]
    fn styles_are_kept_where_the_text_allows_it() {
        let (_, filled) = filled(|text| {
            text.replace("Hallo Welt", "Hello: world")
                .replace("Wie geht's?", "It's fine")
        });
        assert!(
            filled.contains("  hello: \"Hello: world\"  # here\n"),
            "{filled}"
        );
        assert!(filled.contains("  single: 'It''s fine'\n"), "{filled}");
    }

    #[test]
    fn damage_is_named_with_its_line() {
        let problem = read("a: b\n  c: d\n".to_owned()).unwrap_err();
        assert_eq!(problem.line, Some(2), "{problem:?}");
    }
}
