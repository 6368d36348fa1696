//! Hard-wrapped text: lines that are one paragraph are joined, and translations are wrapped again.
//!
//! People and editors break lines at a width, and a sentence runs over several of them. Translated line by line it
//! falls apart. So a paragraph (lines without a blank one between them) that was broken at a width is joined to one
//! line; all others, such as poems, lists and files with a sentence in each line, stay as they are.
//!
//! A paragraph was broken at a width if every line but the last is full (the first word of the next line would not have
//! fitted), and a sentence runs on at least once: a line without punctuation at its end, and a lowercase letter behind
//! it. Neighbors: the lines come from [`crate::lines`]; sentences are found in the joined line by [`crate::sentences`].

use std::collections::VecDeque;

/// Which lines are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrapping {
    /// Those of paragraphs that look as if they were broken at a width.
    Detect,
    /// Those of all paragraphs.
    Join,
    /// None.
    Lines,
}

/// A line to translate: one of the text, or several that were joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paragraph {
    /// The text, without what `layout` puts before its lines.
    pub text: String,
    /// How it was laid out, if it was joined of several lines.
    pub layout: Option<Layout>,
}

/// How a paragraph is laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The most characters of a line.
    pub width: usize,
    /// How many lines it had.
    pub lines: usize,
    /// What is before the first line: white space, and `>` as in replies to mail.
    first: String,
    /// What is before the others.
    others: String,
}

impl Layout {
    /// A text broken into lines; a word that is longer than a line has a line to itself.
    pub fn wrap(&self, text: &str) -> String {
        let mut lines = self.first.clone();
        let (mut used, mut empty) = (chars(&self.first), true);
        for word in text.split_whitespace() {
            if !empty && used + 1 + chars(word) > self.width {
                lines.push('\n');
                lines.push_str(&self.others);
                (used, empty) = (chars(&self.others), true);
            }
            if !empty {
                lines.push(' ');
                used += 1;
            }
            lines.push_str(word);
            used += chars(word);
            empty = false;
        }
        lines
    }
}

/// The paragraphs of lines, in bounded memory: paragraphs of more than [`MOST_LINES`] lines are not joined.
#[derive(Debug)]
pub struct Paragraphs<I, E> {
    lines: I,
    wrapping: Wrapping,
    ready: VecDeque<Result<Paragraph, E>>,
    /// Whether this is the rest of a paragraph that is too long.
    too_long: bool,
}

/// Longer paragraphs are none: nobody writes so many lines without a break.
pub const MOST_LINES: usize = 500;

impl<E, I: Iterator<Item = Result<String, E>>> Paragraphs<I, E> {
    /// The paragraphs of these lines.
    pub fn new(lines: I, wrapping: Wrapping) -> Self {
        Self {
            lines,
            wrapping,
            ready: VecDeque::new(),
            too_long: false,
        }
    }

    /// Reads a paragraph, and the blank line or the error that ends it.
    fn fill(&mut self) {
        let mut paragraph = Vec::new();
        let mut end = None;
        while paragraph.len() < MOST_LINES {
            match self.lines.next() {
                Some(Ok(line)) if !line.trim().is_empty() => paragraph.push(line),
                Some(Ok(blank)) => {
                    end = Some(Ok(Paragraph::line(blank)));
                    break;
                }
                Some(Err(error)) => {
                    end = Some(Err(error));
                    break;
                }
                None => break,
            }
        }
        let is_part = self.too_long || paragraph.len() == MOST_LINES;
        self.too_long = paragraph.len() == MOST_LINES;
        let wrapping = if is_part {
            Wrapping::Lines
        } else {
            self.wrapping
        };
        match layout(&paragraph, wrapping) {
            Some(layout) => self.ready.push_back(Ok(joined(&paragraph, layout))),
            None => self
                .ready
                .extend(paragraph.into_iter().map(Paragraph::line).map(Ok)),
        }
        self.ready.extend(end);
    }
}

impl<E, I: Iterator<Item = Result<String, E>>> Iterator for Paragraphs<I, E> {
    type Item = Result<Paragraph, E>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.wrapping == Wrapping::Lines {
            return self.lines.next().map(|line| line.map(Paragraph::line));
        }
        if self.ready.is_empty() {
            self.fill();
        }
        self.ready.pop_front()
    }
}

impl Paragraph {
    fn line(text: String) -> Self {
        Self { text, layout: None }
    }
}

/// How lines are laid out, if they are to be joined.
fn layout(lines: &[String], wrapping: Wrapping) -> Option<Layout> {
    let ([first, second, ..], true) = (lines, wrapping != Wrapping::Lines) else {
        return None;
    };
    let width = lines.iter().map(|line| chars(line.trim_end())).max()?;
    let layout = Layout {
        width,
        lines: lines.len(),
        first: margin(first).to_owned(),
        others: margin(second).to_owned(),
    };
    let same_margin = lines[1..].iter().all(|line| margin(line) == layout.others);
    let broken =
        || WIDTHS.contains(&width) && same_margin && all_full(lines, width) && runs_on(lines);
    (wrapping == Wrapping::Join || broken()).then_some(layout)
}

/// Widths at which people break lines.
const WIDTHS: std::ops::RangeInclusive<usize> = 40..=120;

/// Whether the first word of each line would not have fitted into the line before it.
fn all_full(lines: &[String], width: usize) -> bool {
    lines.windows(2).all(|pair| {
        let next = body(&pair[1]).split_whitespace().next().unwrap_or_default();
        chars(pair[0].trim_end()) + 1 + chars(next) > width
    })
}

/// Whether a sentence runs from one line into the next.
fn runs_on(lines: &[String]) -> bool {
    lines.windows(2).any(|pair| {
        let ends = pair[0]
            .trim_end()
            .ends_with(['.', '!', '?', ':', ';', '…', '"', '”']);
        !ends && body(&pair[1]).starts_with(char::is_lowercase)
    })
}

fn joined(lines: &[String], layout: Layout) -> Paragraph {
    let mut text = String::new();
    for line in lines {
        let line = body(line).trim_end();
        if is_hyphenated(&text, line) {
            text.pop();
        } else if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(line);
    }
    Paragraph {
        text,
        layout: Some(layout),
    }
}

/// Whether a word was broken at the end of a line: `Schiff-` and `fahrt`, but not `Ein-` and `und Ausfahrt`.
fn is_hyphenated(before: &str, after: &str) -> bool {
    let word = before
        .strip_suffix('-')
        .is_some_and(|word| word.ends_with(char::is_lowercase));
    let next = after.split_whitespace().next().unwrap_or_default();
    word && after.starts_with(char::is_lowercase)
        && !["und", "oder", "and", "or", "bzw."].contains(&next)
}

/// What is before the text of a line.
fn margin(line: &str) -> &str {
    &line[..line.len() - body(line).len()]
}

fn body(line: &str) -> &str {
    line.trim_start_matches(|c: char| c.is_whitespace() || c == '>')
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn paragraphs(text: &str, wrapping: Wrapping) -> Vec<Paragraph> {
        let lines = text.split('\n').map(|line| Ok::<_, ()>(line.to_owned()));
        Paragraphs::new(lines, wrapping)
            .map(|one| one.expect("no error"))
            .collect()
    }

    fn texts(text: &str) -> Vec<String> {
        let all = paragraphs(text, Wrapping::Detect).into_iter();
        all.map(|one| one.text).collect()
    }

    const LETTER: &str = "Sehr geehrte Damen und Herren,\n\
        \n\
        hiermit kündige ich meinen Vertrag über die Schiff-\n\
        fahrt zum nächstmöglichen Zeitpunkt, weil ich an der\n\
        See nicht mehr wohne. Bitte bestätigen Sie mir das.\n\
        \n\
        > Mit freundlichen Grüßen und der Bitte um Antwort\n\
        > an die unten stehende Adresse\n\
        Max Muster";

    #[test]
    fn a_paragraph_that_was_broken_at_a_width_is_joined_and_its_lines_come_back() {
        let found = paragraphs(LETTER, Wrapping::Detect);
        let texts: Vec<&str> = found.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(texts[0], "Sehr geehrte Damen und Herren,");
        assert_eq!(
            texts[2],
            "hiermit kündige ich meinen Vertrag über die Schifffahrt zum nächstmöglichen Zeitpunkt, weil ich an der \
             See nicht mehr wohne. Bitte bestätigen Sie mir das."
        );
        let layout = found[2].layout.as_ref().expect("joined");
        assert_eq!((layout.width, layout.lines), (52, 3));
        let again = layout.wrap(texts[2]);
        assert_eq!(again.lines().count(), 4);
        assert!(again.lines().all(|line| chars(line) <= 52), "{again}");
        assert_eq!(
            again.split_whitespace().collect::<Vec<_>>().join(" "),
            texts[2]
        );
    }

    #[test]
    fn margins_come_back() {
        let text = "  > Mit freundlichen Grüßen und der Bitte um Antwort\n> > an die unten stehende Adresse";
        let found = &paragraphs(text, Wrapping::Detect)[0];
        let layout = found.layout.as_ref().expect("joined");
        assert_eq!(layout.wrap(&found.text), text);
    }

    #[test]
    fn poems_lists_and_corpora_stay_as_they_are() {
        for text in [
            "Ein Hund rennt über die Wiese hinter dem alten Haus\nzwei Katzen schlafen\ndrei Vögel singen sehr laut",
            "Über allen Gipfeln\nist Ruh,\nin allen Wipfeln\nspürest du",
            "Ein langer Satz, der in seiner Zeile zu Ende geht.\nNoch einer, der in seiner Zeile zu Ende geht, ja.",
            "kurz\nund klein",
            "\n\na\n",
            "",
        ] {
            assert_eq!(texts(text).join("\n"), text);
        }
        let endless = format!(
            "{}\n{}",
            "wort ".repeat(10).trim(),
            "wort ".repeat(10).trim()
        );
        let endless = vec![endless.as_str(); 400].join("\n");
        assert_eq!(
            texts(&endless).len(),
            800,
            "nobody writes so many lines without a break"
        );
    }

    #[test]
    fn all_paragraphs_are_joined_if_that_is_asked_for_and_an_error_comes_in_its_place() {
        let joined = paragraphs("a\nb\n\nc", Wrapping::Join);
        let texts: Vec<&str> = joined.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(texts, ["a b", "", "c"]);
        let lines = [Ok("a".to_owned()), Err("broken"), Ok("b".to_owned())];
        let mut found = Paragraphs::new(lines.into_iter(), Wrapping::Join);
        assert_eq!(found.next().expect("a").expect("a line").text, "a");
        assert_eq!(found.next(), Some(Err("broken")));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]
        #[test]
        fn no_word_is_lost_whatever_the_text(
            text in prop_oneof!["(\\PC{0,30}\n?){0,6}", "([a-zA-Z.> -]{20,60}\n?){0,6}"],
            wrapping in prop::sample::select(vec![Wrapping::Detect, Wrapping::Join, Wrapping::Lines]),
        ) {
            let shown: Vec<String> = paragraphs(&text, wrapping).iter().map(|one| match &one.layout {
                Some(layout) => layout.wrap(&one.text),
                None => one.text.clone(),
            }).collect();
            let letters = |text: &str| -> String {
                text.chars().filter(|c| !c.is_whitespace() && !['-', '>'].contains(c)).collect()
            };
            prop_assert_eq!(letters(&shown.join("\n")), letters(&text));
        }
    }
}
