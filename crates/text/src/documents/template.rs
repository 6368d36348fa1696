//! A source text with places in it that hold texts: filling them copies everything between them.
//!
//! Places may lie inside each other: a paragraph has a picture in it, and the picture a caption. Whoever writes the
//! paragraph asks for the picture's bytes, and gets them with the caption filled in.

use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;

use super::skipped::{Reason, Skipped};
use crate::markup::Marked;

/// A text file and where texts are in it.
#[derive(Debug, Default)]
pub(crate) struct Template {
    pub source: String,
    slots: Vec<Slot>,
    pub texts: Vec<Marked>,
    pub skipped: Vec<Skipped>,
}

/// A place for some texts.
struct Slot {
    range: Range<usize>,
    texts: Range<usize>,
    write: Writer,
}

/// What becomes of a slot with these texts.
type Writer = Box<dyn Fn(&[Marked], &Filler<'_>) -> String + Send + Sync>;

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: texts {:?}", self.range, self.texts)
    }
}

impl Template {
    /// A template of a source, without slots.
    pub fn new(source: String) -> Self {
        Self {
            source,
            ..Self::default()
        }
    }

    /// Adds a place with its texts. Places are added in any order; those inside others are known by their ranges.
    pub fn add(
        &mut self,
        range: Range<usize>,
        texts: impl IntoIterator<Item = Marked>,
        write: impl Fn(&[Marked], &Filler<'_>) -> String + Send + Sync + 'static,
    ) {
        let first = self.texts.len();
        self.texts.extend(texts);
        if self.texts.len() > first {
            self.slots.push(Slot {
                range,
                texts: first..self.texts.len(),
                write: Box::new(write),
            });
        }
    }

    /// Notes that something at this byte is not translated.
    pub fn skip(&mut self, offset: usize, reason: Reason) {
        // The line is found out at the end, for all of them at once.
        self.skipped.push(Skipped {
            line: offset,
            reason,
        });
    }

    /// Puts the slots into their order, and gives what was skipped its lines.
    pub fn finished(mut self) -> Self {
        self.slots
            .sort_by_key(|slot| (slot.range.start, Reverse(slot.range.end)));
        self.skipped.sort_by_key(|skipped| skipped.line);
        let (mut line, mut seen) = (1, 0);
        for skipped in &mut self.skipped {
            let new = &self.source.as_bytes()[seen..skipped.line];
            line += new.iter().filter(|&&byte| byte == b'\n').count();
            seen = skipped.line;
            skipped.line = line;
        }
        self
    }

    /// The source with `new` texts in the places of the `old` ones.
    pub fn fill(&self, old: &[Marked], new: &[Marked]) -> String {
        let filler = Filler {
            template: self,
            old,
            new,
        };
        filler.raw(0..self.source.len())
    }
}

/// Fills a template.
pub(crate) struct Filler<'a> {
    template: &'a Template,
    old: &'a [Marked],
    new: &'a [Marked],
}

impl Filler<'_> {
    /// The source in this range, with the places inside it filled.
    pub fn raw(&self, range: Range<usize>) -> String {
        let Template { source, slots, .. } = self.template;
        let mut filled = String::new();
        let mut done = range.start;
        let first = slots.partition_point(|slot| slot.range.start < range.start);
        for slot in &slots[first..] {
            if slot.range.start >= range.end && slot.range.start > range.start {
                break;
            }
            let new = &self.new[slot.texts.clone()];
            let is_inside = slot.range.start >= done && slot.range.end <= range.end;
            if !is_inside || *new == self.old[slot.texts.clone()] {
                continue;
            }
            filled.push_str(&source[done..slot.range.start]);
            filled.push_str(&(slot.write)(new, self));
            done = slot.range.end;
        }
        filled.push_str(&source[done..range.end]);
        filled
    }

    /// The source itself.
    pub fn source(&self) -> &str {
        &self.template.source
    }
}

/// The line of a byte, from 1.
pub(crate) fn line_of(source: &str, offset: usize) -> usize {
    let before = &source.as_bytes()[..offset.min(source.len())];
    1 + before.iter().filter(|&&byte| byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_inside_slots_are_filled_wherever_their_bytes_go() {
        let mut template = Template::new("-[one(two)]-".to_owned());
        template.add(2..10, [Marked::plain("one")], |texts, filler| {
            format!("{}{}", filler.raw(5..10), texts[0].text())
        });
        template.add(6..9, [Marked::plain("two")], |texts, _| texts[0].text());
        let template = template.finished();
        let old = template.texts.clone();
        let fill = |one, two| {
            let new = [Marked::plain(one), Marked::plain(two)];
            template.fill(&old, &new)
        };
        assert_eq!(fill("one", "two"), "-[one(two)]-");
        assert_eq!(fill("one", "zwei"), "-[one(zwei)]-");
        assert_eq!(fill("eins", "two"), "-[(two)eins]-");
        assert_eq!(fill("eins", "zwei"), "-[(zwei)eins]-");
    }
}
