//! A block of a document, cut into what is translated and what stays around it.
//!
//! The translator gets texts without white space at their ends, without tags around the whole of them and without pictures
//! before or after them: what it does not see, it cannot move. Digits and punctuation alone are no text.

use crate::markup::{Marked, Part};

/// What a block consists of, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Block {
    chunks: Vec<Chunk>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Chunk {
    /// Stays as it is.
    Fixed(Vec<Part>),
    /// The next text.
    Text,
}

impl Block {
    /// Cuts parts at points outside all elements that `separates` names; gives the texts, too.
    pub fn new(parts: Vec<Part>, separates: impl Fn(u32) -> bool) -> (Self, Vec<Marked>) {
        let mut block = Self::default();
        let mut texts = Vec::new();
        let mut depth = 0usize;
        let mut chunk = Vec::new();
        for part in parts {
            match &part {
                Part::Open(_) => depth += 1,
                Part::Close(_) => depth = depth.saturating_sub(1),
                Part::Point(number) if depth == 0 && separates(*number) => {
                    block.add(std::mem::take(&mut chunk), &mut texts);
                    block.fix(vec![part]);
                    continue;
                }
                _ => {}
            }
            chunk.push(part);
        }
        block.add(chunk, &mut texts);
        (block, texts)
    }

    /// A text and what stays around it.
    fn add(&mut self, parts: Vec<Part>, texts: &mut Vec<Marked>) {
        let (before, text, after) = trimmed(joined(parts));
        self.fix(before);
        if has_words(&text) {
            self.chunks.push(Chunk::Text);
            texts.push(Marked { parts: text });
        } else {
            self.fix(text);
        }
        self.fix(after);
    }

    fn fix(&mut self, parts: Vec<Part>) {
        match self.chunks.last_mut() {
            _ if parts.is_empty() => {}
            Some(Chunk::Fixed(fixed)) => fixed.extend(parts),
            _ => self.chunks.push(Chunk::Fixed(parts)),
        }
    }

    /// The whole block with these texts in it.
    pub fn filled(&self, texts: &[Marked]) -> Vec<Part> {
        let mut texts = texts.iter();
        let mut parts = Vec::new();
        for chunk in &self.chunks {
            match chunk {
                Chunk::Fixed(fixed) => parts.extend_from_slice(fixed),
                Chunk::Text => {
                    parts.extend(texts.next().into_iter().flat_map(|text| text.parts.clone()))
                }
            }
        }
        joined(parts)
    }
}

/// Whether there is something to translate.
pub(crate) fn has_words(parts: &[Part]) -> bool {
    let word = |part: &Part| matches!(part, Part::Text(text) if is_text(text));
    parts.iter().any(word)
}

/// Whether a string has letters.
pub(crate) fn is_text(text: &str) -> bool {
    text.chars().any(char::is_alphabetic)
}

/// The same parts with neighboring texts as one, and without empty ones.
pub(crate) fn joined(parts: Vec<Part>) -> Vec<Part> {
    let mut new: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        match (new.last_mut(), &part) {
            (_, Part::Text(text)) if text.is_empty() => {}
            (Some(Part::Text(before)), Part::Text(text)) => before.push_str(text),
            _ => new.push(part),
        }
    }
    new
}

/// What can be left out before and after a text, and the text.
fn trimmed(parts: Vec<Part>) -> (Vec<Part>, Vec<Part>, Vec<Part>) {
    let mut parts = std::collections::VecDeque::from(parts);
    let (mut before, mut after) = (Vec::new(), Vec::new());
    loop {
        match parts.front_mut() {
            Some(Part::Text(text)) if text.starts_with(char::is_whitespace) => {
                let rest = text.trim_start().to_owned();
                before.push(Part::Text(text[..text.len() - rest.len()].to_owned()));
                *text = rest;
                if text.is_empty() {
                    parts.pop_front();
                }
                continue;
            }
            Some(Part::Point(_)) => {
                before.extend(parts.pop_front());
                continue;
            }
            _ => {}
        }
        match parts.back_mut() {
            Some(Part::Text(text)) if text.ends_with(char::is_whitespace) => {
                let space = text.split_off(text.trim_end().len());
                after.push(Part::Text(space));
                if text.is_empty() {
                    parts.pop_back();
                }
                continue;
            }
            Some(Part::Point(_)) => {
                after.extend(parts.pop_back());
                continue;
            }
            _ => {}
        }
        match (parts.front(), parts.back()) {
            (Some(Part::Open(first)), Some(Part::Close(last))) if first == last => {
                before.extend(parts.pop_front());
                after.extend(parts.pop_back());
            }
            _ => break,
        }
    }
    after.reverse();
    (before, parts.into(), after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Part {
        Part::Text(text.to_owned())
    }

    #[test]
    fn the_translator_gets_no_more_than_it_needs() {
        let parts = vec![
            Part::Point(1),
            text(" "),
            Part::Open(2),
            text(" Ein "),
            Part::Open(3),
            text("Hund"),
            Part::Close(3),
            Part::Close(2),
            text(" "),
            Part::Point(4),
            text("12:30"),
            Part::Point(5),
        ];
        let (block, texts) = Block::new(parts.clone(), |number| number == 4);
        let expected = vec![text("Ein "), Part::Open(3), text("Hund"), Part::Close(3)];
        assert_eq!(texts, [Marked { parts: expected }]);
        assert_eq!(block.filled(&texts), joined(parts));
        let filled = block.filled(&[Marked::plain("A dog")]);
        let filled = Marked { parts: filled };
        assert_eq!(filled.text(), "  A dog 12:30");
    }

    #[test]
    fn white_space_and_digits_are_no_text() {
        for parts in [
            vec![],
            vec![text(" \n")],
            vec![text("12 % ?")],
            vec![Part::Point(0)],
        ] {
            let (block, texts) = Block::new(parts.clone(), |_| false);
            assert!(texts.is_empty());
            assert_eq!(block.filled(&[]), parts);
        }
    }
}
