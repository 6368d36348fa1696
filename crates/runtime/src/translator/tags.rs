//! Inline tags in plain text: people paste them, and expect them around the same words afterwards.
//!
//! `raw_text` takes them out of each sentence and puts them back by the alignment, as `marked` does for texts that a
//! reader of a format has made. Nothing else of HTML means anything in plain text.

use std::collections::HashMap;
use std::ops::Range;

use attentive_text::keep;
use attentive_text::markup::{Bare, Marked, Part, units};

/// A sentence without its tags.
#[derive(Debug)]
pub(super) struct Tags {
    bare: Bare,
    /// Where the words and units of the bare text are in the sentence.
    places: Places,
    /// The tags by their numbers: the opening or only one, and the closing one.
    tags: Vec<(String, String)>,
}

impl Tags {
    /// Nothing, if there are none.
    pub fn of(sentence: &str) -> Option<Self> {
        let is_tag = |text: &str| text.starts_with('<') && text.ends_with('>');
        let tags: Vec<_> = keep::spans(sentence)
            .filter(|span| is_tag(&sentence[span.clone()]))
            .collect();
        if tags.is_empty() {
            return None;
        }
        let mut marked = Marked::default();
        let mut new: Vec<(String, String)> = Vec::new();
        let mut open: HashMap<&str, Vec<u32>> = HashMap::new();
        let mut done = 0;
        for span in tags {
            let tag = &sentence[span.clone()];
            marked
                .parts
                .push(Part::Text(sentence[done..span.start].to_owned()));
            done = span.end;
            let end = |c: char| c.is_whitespace() || matches!(c, '/' | '>');
            let name = tag.trim_start_matches(['<', '/']);
            let name = name.split(end).next().unwrap_or_default();
            let waiting = open.entry(name).or_default();
            let number = new.len() as u32;
            if let Some(number) = waiting.pop_if(|_| tag.starts_with("</")) {
                new[number as usize].1 = tag.to_owned();
                marked.parts.push(Part::Close(number));
                continue;
            }
            let is_point = tag.ends_with("/>") || tag.starts_with("<!") || tag.starts_with("</");
            if !is_point {
                waiting.push(number);
            }
            let part = if is_point {
                Part::Point(number)
            } else {
                Part::Open(number)
            };
            marked.parts.push(part);
            new.push((tag.to_owned(), String::new()));
        }
        marked.parts.push(Part::Text(sentence[done..].to_owned()));
        let mut tags = Self {
            bare: Bare::of(&marked),
            places: Places::default(),
            tags: new,
        };
        let (tagged, letters) = tags.write(&marked);
        tags.places = Places::of(tags.bare.text(), &tagged, &letters);
        Some(tags)
    }

    /// The sentence without its tags.
    pub fn text(&self) -> &str {
        self.bare.text()
    }

    /// Puts the tags into a translation; links are then those of texts with tags.
    pub fn restore(
        &self,
        text: &mut String,
        words: &mut Option<Vec<(usize, usize)>>,
        units: &mut Option<Vec<(usize, usize)>>,
    ) {
        let restored = self.bare.restore(text, units.as_deref());
        let (tagged, letters) = self.write(&restored.marked);
        let new = Places::of(text, &tagged, &letters);
        let moved = |links: &mut Option<Vec<(usize, usize)>>, src: &[usize], tgt: &[usize]| {
            for (src_place, tgt_place) in links.iter_mut().flatten() {
                *src_place = src.get(*src_place).copied().unwrap_or(*src_place);
                *tgt_place = tgt.get(*tgt_place).copied().unwrap_or(*tgt_place);
            }
        };
        moved(words, &self.places.words, &new.words);
        moved(units, &self.places.units, &new.units);
        *text = tagged;
    }

    /// A text with its tags, and where each character of the text is in it, not counting white space.
    fn write(&self, marked: &Marked) -> (String, Vec<usize>) {
        let (mut text, mut letters) = (String::new(), Vec::new());
        let none = (String::new(), String::new());
        for part in &marked.parts {
            let tag = |number: &u32| self.tags.get(*number as usize).unwrap_or(&none);
            match part {
                Part::Text(part) | Part::Verbatim(part) => {
                    let solid = part.char_indices().filter(|(_, c)| !c.is_whitespace());
                    letters.extend(solid.map(|(at, _)| text.len() + at));
                    text.push_str(part);
                }
                Part::Open(number) | Part::Point(number) => text.push_str(&tag(number).0),
                Part::Close(number) => text.push_str(&tag(number).1),
            }
        }
        (text, letters)
    }
}

/// For each word and each unit of a text the number that it has among those of the text with tags.
#[derive(Debug, Default)]
struct Places {
    words: Vec<usize>,
    units: Vec<usize>,
}

impl Places {
    /// `letters` says where each character of the text is in the one with tags, not counting white space.
    fn of(text: &str, tagged: &str, letters: &[usize]) -> Self {
        let words = |text: &str| -> Vec<Range<usize>> {
            let words = text.split_whitespace();
            let start = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
            words
                .map(|word| start(word)..start(word) + word.len())
                .collect()
        };
        let places = |own: Vec<Range<usize>>, new: Vec<Range<usize>>| {
            let mut chars = 0;
            let place = |part: Range<usize>| {
                let at = letters.get(chars).copied().unwrap_or_default();
                chars += text[part].chars().filter(|c| !c.is_whitespace()).count();
                new.partition_point(|part| part.end <= at)
            };
            own.into_iter().map(place).collect()
        };
        Self {
            words: places(words(text), words(tagged)),
            units: places(units(text), units(tagged)),
        }
    }
}
