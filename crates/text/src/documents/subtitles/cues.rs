//! The cues of subtitles: their times, their lines, who speaks them, and whether a sentence goes on in the next.

use std::ops::Range;

use crate::documents::start_of;

/// A sentence does not run over a longer silence, in milliseconds.
const LONGEST_GAP: u64 = 2_000;

/// The text of a cue.
#[derive(Debug)]
pub(super) struct Cue {
    /// Its lines, without their ends.
    pub lines: Vec<Range<usize>>,
    pub start: u64,
    pub end: u64,
}

/// All cues with text.
pub(super) fn cues(source: &str) -> Vec<Cue> {
    let mut cues: Vec<Cue> = Vec::new();
    let mut in_cue = false;
    let mut place = start_of(source);
    for line in source[place..].split_inclusive('\n') {
        let start = place;
        place += line.len();
        let text = line.trim_end_matches(['\n', '\r']);
        if let Some((start, end)) = times(text) {
            cues.push(Cue {
                lines: Vec::new(),
                start,
                end,
            });
            in_cue = true;
        } else if text.trim().is_empty() {
            in_cue = false;
        } else if in_cue && let Some(cue) = cues.last_mut() {
            cue.lines.push(start..start + text.len());
        }
    }
    cues.retain(|cue| !cue.lines.is_empty());
    cues
}

/// The times of a line such as `00:00:01,000 --> 00:00:04,000 align:start`.
fn times(line: &str) -> Option<(u64, u64)> {
    let (start, rest) = line.split_once("-->")?;
    let end = rest.split_whitespace().next()?;
    Some((time(start.trim())?, time(end)?))
}

fn time(text: &str) -> Option<u64> {
    let (seconds, millis) = text.split_once([',', '.'])?;
    let mut total = 0u64;
    for number in seconds.split(':') {
        total = total.checked_mul(60)?.checked_add(number.parse().ok()?)?;
    }
    total.checked_mul(1000)?.checked_add(millis.parse().ok()?)
}

/// The lines of a cue, speaker by speaker.
pub(super) fn speakers(source: &str, cue: &Cue) -> Vec<Vec<Range<usize>>> {
    let begins = |line: &Range<usize>| {
        let mut text = source[line.clone()].trim_start();
        while let Some(tag) = tag_at(text) {
            text = text[tag.len()..].trim_start();
        }
        text.starts_with(DASHES)
    };
    let mut speakers: Vec<Vec<Range<usize>>> = Vec::new();
    for line in &cue.lines {
        match speakers.last_mut() {
            Some(lines) if !begins(line) => lines.push(line.clone()),
            _ => speakers.push(vec![line.clone()]),
        }
    }
    speakers
}

/// What the lines of speakers begin with.
pub(super) const DASHES: [char; 4] = ['-', '–', '—', '‐'];

/// Whether a sentence goes on in the next cue.
pub(super) fn runs_on(source: &str, cue: &Cue, next: &Cue) -> bool {
    let (Some(last), Some(first)) = (cue.lines.last(), next.lines.first()) else {
        return false;
    };
    let shown = |range: &Range<usize>| {
        let mut shown = String::new();
        let mut text = &source[range.clone()];
        while let Some(c) = text.chars().next() {
            let tag = tag_at(text);
            shown.push_str(if tag.is_some() {
                ""
            } else {
                &text[..c.len_utf8()]
            });
            text = &text[tag.map_or(c.len_utf8(), str::len)..];
        }
        shown.trim().to_owned()
    };
    let (last, first) = (shown(last), shown(first));
    let open = last.ends_with(|c: char| c.is_alphanumeric() || c == ',');
    let goes_on = first.starts_with(char::is_lowercase);
    open && goes_on && next.start.saturating_sub(cue.end) <= LONGEST_GAP
}

/// The tag or code that a text begins with.
pub(super) fn tag_at(text: &str) -> Option<&str> {
    let end = if let Some(inside) = text.strip_prefix('<') {
        let inside = inside.strip_prefix('/').unwrap_or(inside);
        let is_tag = inside.starts_with(|c: char| c.is_ascii_alphanumeric());
        text.find('>').filter(|_| is_tag)?
    } else if text.starts_with("{\\") {
        text.find('}')?
    } else {
        return None;
    };
    (!text[1..end].contains('<')).then_some(&text[..=end])
}
