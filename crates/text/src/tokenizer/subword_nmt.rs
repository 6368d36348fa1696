//! BPE as the program subword-nmt applies it (Sennrich et al., 2016), with the vocabulary of a fairseq model.
//!
//! Words are what spaces separate. A word begins as its characters, the last of which is marked by `</w>`, and
//! the merges of a codes file are applied in their order, each at all places at once. A token that does
//! not end its word ends in `@@`; tokens that the vocabulary lacks are `<unk>`. Its neighbor [`super::imported`] is
//! the file.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::vocabulary::Vocabulary;
use super::word_ids::{Reached, WordCounter};
use crate::special::{BOS, EOS, PAD};

/// What a token that does not end its word ends in.
const SEPARATOR: &str = "@@";
/// What marks the last character of a word.
const END_OF_WORD: &str = "</w>";

/// Codes and a vocabulary.
#[derive(Debug)]
pub(super) struct SubwordNmt {
    codes: String,
    version: Version,
    /// Numbers of all symbols that can be merged.
    symbols: HashMap<String, u32>,
    /// The merge of two symbols.
    merges: HashMap<(u32, u32), Merge>,
    vocabulary: Vocabulary,
}

/// How the end of a word is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// By a symbol of its own.
    V0_1,
    /// As a part of the last character.
    V0_2,
}

#[derive(Debug, Clone, Copy)]
struct Merge {
    /// Its line: earlier merges come first.
    rank: u32,
    symbol: u32,
}

/// A part of a word that is one symbol so far; neighbors are indices of parts.
#[derive(Debug, Clone, Copy)]
struct Part {
    symbol: Option<u32>,
    end: usize,
    left: Option<usize>,
    right: Option<usize>,
}

/// A merge that can be made: its rank and the index of the left part, and both symbols, which may have changed since.
type Candidate = Reverse<(u32, usize, u32, u32)>;

impl SubwordNmt {
    /// Reads a codes file's text; says what is wrong with it or with the vocabulary.
    pub(super) fn new(codes: &str, tokens: Vec<String>) -> Result<Self, String> {
        let vocabulary = Vocabulary::new(tokens)?;
        let mut model = Self {
            codes: codes.to_owned(),
            version: Version::V0_1,
            symbols: HashMap::new(),
            merges: HashMap::new(),
            vocabulary,
        };
        let mut lines = (1..).zip(codes.trim_end_matches('\n').split('\n'));
        if let Some(version) = codes.strip_prefix("#version:") {
            let version = version.lines().next().unwrap_or_default().trim();
            model.version = match version {
                "0.1" => Version::V0_1,
                "0.2" => Version::V0_2,
                _ => {
                    return Err(format!(
                        "its codes have version {version:?}, expected 0.1 or 0.2"
                    ));
                }
            };
            lines.next();
        }
        for (line, merge) in lines {
            model.read_merge(line, merge.trim_matches(['\r', ' ']))?;
        }
        Ok(model)
    }

    fn read_merge(&mut self, line: u32, merge: &str) -> Result<(), String> {
        let (left, right) = merge
            .split_once(' ')
            .filter(|(left, right)| !left.is_empty() && !right.is_empty() && !right.contains(' '))
            .ok_or_else(|| {
                format!("line {line} of its codes is {merge:?}, expected two symbols with a space between them")
            })?;
        let symbol = self.symbol(&format!("{left}{right}"));
        let pair = (self.symbol(left), self.symbol(right));
        // Of the same merge twice, the first counts.
        self.merges
            .entry(pair)
            .or_insert(Merge { rank: line, symbol });
        Ok(())
    }

    fn symbol(&mut self, text: &str) -> u32 {
        let next = self.symbols.len() as u32;
        *self.symbols.entry(text.to_owned()).or_insert(next)
    }

    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        self.encode_with_dropout(text, &mut || false)
    }

    /// BPE-dropout (Provilkov et al., 2020): `dropped` is asked about every merge at every place.
    pub(super) fn encode_with_dropout(
        &self,
        text: &str,
        dropped: &mut dyn FnMut() -> bool,
    ) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 2);
        self.each_token(text, dropped, |token| {
            ids.push(self.vocabulary.id_in_text(token))
        });
        ids
    }

    /// The tokens of a text, also those that the vocabulary lacks.
    pub(super) fn pieces(&self, text: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        self.each_token(text, &mut || false, |token| pieces.push(token.to_owned()));
        pieces
    }

    pub(super) fn decode(&self, ids: &[u32]) -> String {
        let mut text: String = ids.iter().flat_map(|id| self.shown(*id)).collect();
        text.truncate(text.trim_end().len());
        text
    }

    pub(super) fn reached(&self, ids: &[u32]) -> Vec<Reached> {
        let mut counter = WordCounter::default();
        let reached = |id: &u32| {
            counter.push(self.shown(*id).iter().flat_map(|part| part.chars()));
            counter.reached()
        };
        ids.iter().map(reached).collect()
    }

    pub(super) fn codes(&self) -> &str {
        &self.codes
    }

    pub(super) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// What an id adds to a text: a token, and a space if it ends a word.
    fn shown(&self, id: u32) -> [&str; 2] {
        if [BOS, EOS, PAD].contains(&id) {
            return ["", ""];
        }
        let token = self.vocabulary.shown(id);
        match token.strip_suffix(SEPARATOR) {
            Some(start) => [start, ""],
            None => [token, " "],
        }
    }

    fn each_token(
        &self,
        text: &str,
        dropped: &mut dyn FnMut() -> bool,
        mut found: impl FnMut(&str),
    ) {
        let mut token = String::new();
        for word in text.trim_matches(['\r', '\n', ' ']).split(' ') {
            let mut start = 0;
            for end in self.segment(word, dropped) {
                token.clear();
                token.push_str(&word[start..end]);
                if end < word.len() {
                    token.push_str(SEPARATOR);
                }
                // fairseq separates tokens by white space, whatever the word was made of.
                let parts = token.split(is_space);
                parts.filter(|part| !part.is_empty()).for_each(&mut found);
                start = end;
            }
        }
    }

    /// Where the symbols of a word end, once all merges are made.
    fn segment(&self, word: &str, dropped: &mut dyn FnMut() -> bool) -> Vec<usize> {
        let mut parts = self.characters(word);
        let mut agenda: BinaryHeap<Candidate> = BinaryHeap::new();
        for left in 0..parts.len() {
            agenda.extend(self.candidate(&parts, left, dropped));
        }
        let mut changed = Vec::new();
        while let Some(&Reverse((rank, ..))) = agenda.peek() {
            // All places of one merge come before the merges that they make possible.
            while let Some(&Reverse((_, at, left, right))) =
                agenda.peek().filter(|candidate| candidate.0.0 == rank)
            {
                agenda.pop();
                let next = parts[at].right;
                let still = |part: Option<usize>, symbol| {
                    part.is_some_and(|part| parts[part].symbol == Some(symbol))
                };
                if let Some(next) = next
                    && still(Some(at), left)
                    && still(Some(next), right)
                {
                    parts[at].symbol = self.merges.get(&(left, right)).map(|merge| merge.symbol);
                    parts[at].end = parts[next].end;
                    parts[at].right = parts[next].right;
                    parts[next].symbol = None;
                    if let Some(after) = parts[at].right {
                        parts[after].left = Some(at);
                    }
                    changed.push(at);
                }
            }
            for at in changed.drain(..) {
                let before = parts[at].left;
                let candidates = before.into_iter().chain([at]);
                for left in candidates {
                    agenda.extend(self.candidate(&parts, left, dropped));
                }
            }
        }
        let mut ends = Vec::new();
        let mut next = (!parts.is_empty()).then_some(0);
        while let Some(part) = next {
            // A mark of the word's end that was never merged is no token.
            if ends.last() != Some(&parts[part].end) {
                ends.push(parts[part].end);
            }
            next = parts[part].right;
        }
        ends
    }

    /// The symbols that a word begins with.
    fn characters(&self, word: &str) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::with_capacity(word.len() + 1);
        let mut push = |text: &str, end| {
            let index = parts.len();
            parts.push(Part {
                symbol: self.symbols.get(text).copied(),
                end,
                left: index.checked_sub(1),
                right: Some(index + 1),
            });
        };
        for (start, char) in word.char_indices() {
            let end = start + char.len_utf8();
            if end == word.len() && self.version == Version::V0_2 {
                push(&format!("{char}{END_OF_WORD}"), end);
            } else {
                push(&word[start..end], end);
            }
        }
        // A word of one character is a token, whatever its merges.
        if self.version == Version::V0_1 && word.chars().nth(1).is_some() {
            push(END_OF_WORD, word.len());
        }
        if let Some(last) = parts.last_mut() {
            last.right = None;
        }
        parts
    }

    /// The merge of a part and its right neighbor, unless there is none or it is dropped.
    fn candidate(
        &self,
        parts: &[Part],
        left: usize,
        dropped: &mut dyn FnMut() -> bool,
    ) -> Option<Candidate> {
        let pair = (parts[left].symbol?, parts[parts[left].right?].symbol?);
        let rank = self.merges.get(&pair)?.rank;
        (!dropped()).then_some(Reverse((rank, left, pair.0, pair.1)))
    }
}

/// White space as Python sees it, which counts four separators of files and records, too.
fn is_space(char: char) -> bool {
    char.is_whitespace() || ('\x1c'..='\x1f').contains(&char)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::SPECIALS;

    /// The expected cuts are those of subword-nmt 0.3.8.
    #[test]
    fn a_merge_is_made_at_all_places_before_an_earlier_one_that_it_makes_possible() {
        for (codes, text, expected) in [
            (
                "#version: 0.2\nab a\na b\n",
                "ababx abab",
                "ab@@ ab@@ x aba@@ b",
            ),
            ("#version: 0.2\nx x\n", "xxxxx", "xx@@ xx@@ x"),
            ("x x\nx </w>\n", "xxxxx xx x", "xx@@ xx@@ x xx x"),
        ] {
            let tokens = SPECIALS.map(str::to_owned).into();
            let model = SubwordNmt::new(codes, tokens).unwrap();
            assert_eq!(model.pieces(text).join(" "), expected, "{codes:?}");
        }
    }
}
