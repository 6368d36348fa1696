//! How German or English a word is: the table of log-odds, and what is made of it.
//!
//! `learn` (a test) writes `table.txt` from Tatoeba's training text; [`super::detector`] adds up what
//! [`german`] says of each word.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The edge of a word in the table, so that `_sch` is a beginning and `ung_` an end.
pub(super) const EDGE: char = '_';

/// The lengths of the parts that a word is cut into, its edges included.
const PARTS: [usize; 3] = [2, 3, 4];

/// The log-odds that a word is German and not English: positive is German.
///
/// A word of the table counts as it is. Of any other the parts are asked; they overlap, so they are
/// averaged and not added up.
pub(super) fn german(word: &str) -> f64 {
    let whole = format!("{EDGE}{word}{EDGE}");
    if let Some(odds) = TABLE.get(whole.as_str()) {
        return *odds;
    }
    let odds: Vec<f64> = parts(&whole)
        .filter_map(|part| TABLE.get(part).copied())
        .collect();
    odds.iter().sum::<f64>() / odds.len().max(1) as f64
}

/// All parts of a word with its edges: beginnings, middles, ends.
pub(super) fn parts(whole: &str) -> impl Iterator<Item = &str> {
    let lengths = PARTS.into_iter();
    lengths.flat_map(move |length| parts_of_length(whole, length))
}

/// The parts of so many letters. A short word is no part of itself: it has its own entry.
pub(super) fn parts_of_length(whole: &str, length: usize) -> impl Iterator<Item = &str> {
    let ends = whole.char_indices().map(|(at, c)| at + c.len_utf8());
    let starts = whole.char_indices().map(|(at, _)| at);
    let all = whole.chars().nth(length).is_none();
    let parts = starts.zip(ends.skip(length - 1));
    parts
        .filter(move |_| !all)
        .map(|(start, end)| &whole[start..end])
}

/// The text of the table: after the header, lines of a number and of what has these log-odds.
pub(super) const TEXT: &str = include_str!("table.txt");

static TABLE: LazyLock<HashMap<&'static str, f64>> = LazyLock::new(|| {
    let mut table = HashMap::new();
    for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split(' ');
        // The table is ours, and a test reads it: a line without a number would be a mistake.
        let odds = fields.next().and_then(|odds| odds.parse::<f64>().ok());
        debug_assert!(odds.is_some(), "no number: {line}");
        for entry in fields {
            let old = table.insert(entry, odds.unwrap_or_default() / STEPS);
            debug_assert!(old.is_none(), "{entry} stands twice");
        }
    }
    table
});

/// Log-odds are rounded to halves, and written as whole numbers.
pub(super) const STEPS: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_stands_once() {
        let lines = TEXT.lines().filter(|line| !line.starts_with('#'));
        let entries = || lines.clone().flat_map(|line| line.split(' ').skip(1));
        let mut seen = std::collections::HashSet::new();
        let twice: Vec<&str> = entries().filter(|entry| !seen.insert(*entry)).collect();
        assert!(twice.is_empty(), "{twice:?}");
        assert_eq!(TABLE.len(), entries().count());
    }

    #[test]
    fn a_short_word_is_not_a_part_of_itself() {
        assert_eq!(
            parts("_an_").collect::<Vec<_>>(),
            ["_a", "an", "n_", "_an", "an_"]
        );
        assert!(parts("_a_").eq(["_a", "a_"]));
    }
}
