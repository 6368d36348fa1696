//! SRT and WebVTT subtitles: times, numbers and settings stay, and each cue has at most as many lines as before.
//!
//! The lines of a cue are one text, unless each is spoken by another person (they begin with dashes). A sentence that
//! runs over several cues is translated as a whole and divided again by the lengths of the originals. `<i>` and the like
//! are tags, `{\an8}` and time stamps are points.

mod cues;

use std::ops::Range;

use super::block::Block;
use super::inline::{Raw, Tag, Tags};
use super::plain::{line_end, wrapped};
use super::template::{Filler, Template};
use super::{Problem, start_of};
use crate::markup::{Marked, Part};
use cues::{DASHES, cues, runs_on, speakers, tag_at};

/// Lines that are not longer than this need not be broken.
const WIDTH: usize = 42;

/// A sentence does not run over more cues.
const MOST_CUES: usize = 4;

/// Reads SRT.
pub(crate) fn read_srt(source: String) -> Result<Template, Problem> {
    read(source, Kind::Srt)
}

/// Reads WebVTT.
pub(crate) fn read_vtt(source: String) -> Result<Template, Problem> {
    let text = &source[start_of(&source)..];
    let first = text.lines().next().unwrap_or_default();
    if first != "WEBVTT" && !first.starts_with("WEBVTT ") && !first.starts_with("WEBVTT\t") {
        return Err(Problem::at(
            &source,
            0,
            "a WebVTT file begins with WEBVTT; add that line, or use --format srt if these are SRT subtitles",
        ));
    }
    read(source, Kind::Vtt)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Srt,
    Vtt,
}

fn read(source: String, kind: Kind) -> Result<Template, Problem> {
    let cues = cues(&source);
    if cues.is_empty() && source.lines().any(|line| line.contains("-->")) {
        return Err(Problem::whole(
            "no cue has both a time and a text; expected lines such as 00:00:01,000 --> 00:00:04,000 and text below them",
        ));
    }
    if cues.is_empty() && kind == Kind::Srt && !source.trim().is_empty() {
        return Err(Problem::whole(
            "there are no times in it; expected lines such as 00:00:01,000 --> 00:00:04,000",
        ));
    }
    let ends = line_end(source.split_inclusive('\n').next().unwrap_or_default());
    let mut units = Vec::new();
    let mut next = 0;
    while next < cues.len() {
        let speakers = speakers(&source, &cues[next]);
        if speakers.len() > 1 {
            units.extend(speakers.into_iter().map(|lines| vec![lines]));
            next += 1;
            continue;
        }
        let first = next;
        while next + 1 < cues.len()
            && next + 1 - first < MOST_CUES
            && runs_on(&source, &cues[next], &cues[next + 1])
            && cues::speakers(&source, &cues[next + 1]).len() == 1
        {
            next += 1;
        }
        units.push(
            cues[first..=next]
                .iter()
                .map(|cue| cue.lines.clone())
                .collect(),
        );
        next += 1;
    }
    let units: Vec<_> = units
        .into_iter()
        .map(|cues| Unit::new(&source, cues, kind, ends))
        .collect();
    let mut template = Template::new(source);
    for (unit, texts) in units {
        template.add(unit.range.clone(), texts, move |texts, filler| {
            unit.write(texts, filler)
        });
    }
    Ok(template.finished())
}

/// A text with the cues that it is in.
#[derive(Debug)]
struct Unit {
    range: Range<usize>,
    cues: Vec<CueText>,
    block: Block,
    tags: Tags,
    kind: Kind,
    ends: &'static str,
}

/// How much of a text is in a cue.
#[derive(Debug)]
struct CueText {
    lines: usize,
    length: usize,
    /// What is between it and the next.
    gap: Range<usize>,
}

impl Unit {
    fn new(
        source: &str,
        cues: Vec<Vec<Range<usize>>>,
        kind: Kind,
        ends: &'static str,
    ) -> (Self, Vec<Marked>) {
        let starts: Vec<usize> = cues
            .iter()
            .map(|lines| lines.first().map_or(0, |line| line.start))
            .collect();
        let last = |lines: &Vec<Range<usize>>| lines.last().map_or(0, |line| line.end);
        let range = starts.first().copied().unwrap_or(0)..cues.last().map_or(0, last);
        let mut tags = Tags::default();
        let mut parts = Vec::new();
        let mut own = Vec::new();
        for (number, lines) in cues.iter().enumerate() {
            for line in lines {
                if !parts.is_empty() {
                    parts.push(Part::Text(" ".to_owned()));
                }
                line_parts(source, line.clone(), kind, &mut tags, &mut parts);
            }
            own.push(CueText {
                lines: lines.len(),
                length: lines
                    .iter()
                    .map(|line| source[line.clone()].chars().count())
                    .sum(),
                gap: last(lines)..starts.get(number + 1).copied().unwrap_or(last(lines)),
            });
        }
        let parts = tags.paired(parts, source);
        let (block, texts) = Block::new(parts, |_| false);
        let unit = Self {
            range,
            cues: own,
            block,
            tags,
            kind,
            ends,
        };
        (unit, texts)
    }

    fn write(&self, texts: &[Marked], filler: &Filler<'_>) -> String {
        let mut parts = self.block.filled(texts);
        for part in &mut parts {
            if let Part::Text(text) = part {
                *text = text.replace(['\n', '\r', '\t'], " ");
            }
        }
        let text = Marked {
            parts: parts.clone(),
        }
        .text();
        let mut breaks = self.breaks(&text).into_iter().peekable();
        let mut written = String::new();
        let mut open: Vec<u32> = Vec::new();
        let mut place = 0;
        for part in &parts {
            match part {
                Part::Text(text) | Part::Verbatim(text) => {
                    let mut text = &**text;
                    while let Some((at, _)) =
                        breaks.peek().filter(|(at, _)| *at < place + text.len())
                    {
                        let (before, after) = text.split_at(at - place);
                        written.push_str(&self.escaped(before));
                        place = at + 1;
                        text = &after[1..];
                        match breaks.next().map(|(_, kind)| kind) {
                            Some(Break::Cue(number)) => {
                                self.next_cue(number, &open, filler, &mut written)
                            }
                            _ => written.push_str(self.ends),
                        }
                    }
                    written.push_str(&self.escaped(text));
                    place += text.len();
                }
                Part::Open(number) => {
                    open.push(*number);
                    written.push_str(&self.tags.write(
                        std::slice::from_ref(part),
                        filler,
                        str::to_owned,
                    ));
                }
                Part::Close(number) => {
                    open.retain(|other| other != number);
                    written.push_str(&self.tags.write(
                        std::slice::from_ref(part),
                        filler,
                        str::to_owned,
                    ));
                }
                Part::Point(_) => {
                    written.push_str(&self.tags.write(
                        std::slice::from_ref(part),
                        filler,
                        str::to_owned,
                    ));
                }
            }
        }
        // Cues for which no words were left.
        for (_, kind) in breaks {
            if let Break::Cue(number) = kind {
                self.next_cue(number, &[], filler, &mut written);
            }
        }
        written
    }

    /// Ends a cue, with its tags, and begins the next.
    fn next_cue(&self, number: usize, open: &[u32], filler: &Filler<'_>, written: &mut String) {
        let tags = |parts: Vec<Part>| self.tags.write(&parts, filler, str::to_owned);
        written.push_str(&tags(
            open.iter()
                .rev()
                .map(|number| Part::Close(*number))
                .collect(),
        ));
        written.push_str(&filler.source()[self.cues[number].gap.clone()]);
        written.push_str(&tags(
            open.iter().map(|number| Part::Open(*number)).collect(),
        ));
    }

    fn escaped(&self, text: &str) -> String {
        match self.kind {
            Kind::Srt => text.to_owned(),
            Kind::Vtt => text
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;"),
        }
    }

    /// Which spaces of a text become ends of lines and of cues. Those at its very end are for cues without words.
    fn breaks(&self, text: &str) -> Vec<(usize, Break)> {
        let total: usize = self.cues.iter().map(|cue| cue.length).sum();
        let length = text.chars().count();
        let mut breaks = Vec::new();
        let mut start = 0;
        let mut source_done = 0;
        for (number, cue) in self.cues.iter().enumerate() {
            source_done += cue.length;
            let last = number + 1 == self.cues.len();
            let wanted = length * source_done / total.max(1);
            let end = if last {
                text.len()
            } else {
                nearest_space(text, start, wanted)
            };
            let own = &text[start..end];
            let characters = own.chars().count();
            let lines = cue.lines.min(characters.div_ceil(WIDTH)).max(1);
            let mut place = start;
            for line in balanced(own, lines) {
                place += line.len();
                if place < end {
                    breaks.push((place, Break::Line));
                }
                place += 1;
            }
            if !last {
                breaks.push((end, Break::Cue(number)));
                start = (end + 1).min(text.len());
            }
        }
        breaks
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Break {
    Line,
    /// After the cue with this number.
    Cue(usize),
}

/// The space after `start` that is nearest to a number of characters; one behind punctuation is nearer.
fn nearest_space(text: &str, start: usize, wanted: usize) -> usize {
    let mut best = (usize::MAX, text.len());
    for (count, (place, c)) in text.char_indices().enumerate() {
        if c != ' ' || place <= start {
            continue;
        }
        let stops = text[..place].ends_with([',', ';', ':', '.', '!', '?']);
        let distance = 2 * count.abs_diff(wanted);
        let distance = if stops { distance / 2 } else { distance };
        if distance < best.0 {
            best = (distance, place);
        }
    }
    best.1
}

/// A text on so many lines, the longest as short as possible.
fn balanced(text: &str, lines: usize) -> Vec<String> {
    let length = text.chars().count();
    let mut width = length.div_ceil(lines.max(1));
    loop {
        let broken = wrapped(text, width, |_| true);
        if broken.len() <= lines || width >= length {
            return broken;
        }
        width += 1;
    }
}

/// Text and tags of a line; every tag is a point for now.
fn line_parts(
    source: &str,
    line: Range<usize>,
    kind: Kind,
    tags: &mut Tags,
    parts: &mut Vec<Part>,
) {
    let mut place = line.start;
    let mut plain = String::new();
    let shown = source[line.clone()].trim_start();
    if let Some(rest) = shown.strip_prefix(DASHES) {
        place = line.end - rest.trim_start().len();
        parts.push(Part::Point(
            tags.add(Tag::Point(Raw::Source(line.start..place))),
        ));
    }
    while place < line.end {
        let rest = &source[place..line.end];
        if let Some(tag) = tag_at(rest) {
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Point(
                tags.add(Tag::Point(Raw::Source(place..place + tag.len()))),
            ));
            place += tag.len();
            continue;
        }
        let known = ENTITIES
            .iter()
            .find(|(name, _)| kind == Kind::Vtt && rest.starts_with(name));
        match (known, rest.chars().next()) {
            (Some((name, c)), _) => {
                plain.push(*c);
                place += name.len();
            }
            (None, Some(c)) => {
                plain.push(c);
                place += c.len_utf8();
            }
            (None, None) => break,
        }
    }
    parts.push(Part::Text(plain));
}

/// What WebVTT escapes.
const ENTITIES: [(&str, char); 6] = [
    ("&amp;", '&'),
    ("&lt;", '<'),
    ("&gt;", '>'),
    ("&nbsp;", '\u{a0}'),
    ("&lrm;", '\u{200e}'),
    ("&rlm;", '\u{200f}'),
];

#[cfg(test)]
mod tests;
