//! Inline tags in plain text: people paste them, and expect them around the same words afterwards.
//!
//! `raw_text` takes them out of each sentence and puts them back by the alignment, as `marked` does for texts that a
//! reader of a format has made. Nothing else of HTML means anything in plain text.

use std::collections::HashMap;

use attentive_text::keep;
use attentive_text::markup::{Bare, Marked, Part};

/// A sentence without its tags.
#[derive(Debug)]
pub(super) struct Tags {
    bare: Bare,
    /// The number of the word in the sentence that each word of the bare text is in.
    words: Vec<usize>,
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
        let mut new = Vec::new();
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
                new[number as usize] =
                    (std::mem::take(&mut new[number as usize]).0, tag.to_owned());
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
            words: Vec::new(),
            tags: new,
        };
        tags.words = tags.write(&marked).1;
        Some(tags)
    }

    /// The sentence without its tags.
    pub fn text(&self) -> &str {
        self.bare.text()
    }

    /// Puts the tags into a translation; links between words are then those of texts with tags.
    pub fn restore(
        &self,
        text: &mut String,
        words: &mut Option<Vec<(usize, usize)>>,
        units: &mut Option<Vec<(usize, usize)>>,
    ) {
        let restored = self.bare.restore(text, units.as_deref());
        let (tagged, tgt_words) = self.write(&restored.marked);
        *text = tagged;
        for (src, tgt) in words.iter_mut().flatten() {
            *src = self.words.get(*src).copied().unwrap_or(*src);
            *tgt = tgt_words.get(*tgt).copied().unwrap_or(*tgt);
        }
        // Units of the tags themselves are aligned with nothing, and nobody asks for those behind them.
        *units = None;
    }

    /// A text with its tags, and for each of its words without tags the number of the word that it is in.
    fn write(&self, marked: &Marked) -> (String, Vec<usize>) {
        let (mut text, mut words) = (String::new(), Vec::new());
        let (mut within, mut bare_within, mut word) = (false, false, 0);
        let mut push = |part: &str, is_text: bool| {
            for c in part.chars() {
                let is_space = c.is_whitespace();
                word += usize::from(!is_space && !within);
                within = !is_space;
                if is_text {
                    if !is_space && !bare_within {
                        words.push(word.saturating_sub(1));
                    }
                    bare_within = !is_space;
                }
            }
            text.push_str(part);
        };
        let none = (String::new(), String::new());
        for part in &marked.parts {
            let tag = |number: &u32| self.tags.get(*number as usize).unwrap_or(&none);
            match part {
                Part::Text(part) | Part::Verbatim(part) => push(part, true),
                Part::Open(number) | Part::Point(number) => push(&tag(number).0, false),
                Part::Close(number) => push(&tag(number).1, false),
            }
        }
        (text, words)
    }
}
