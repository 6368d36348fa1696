//! How much a word speaks for each of many languages: the table of words and of their parts.
//!
//! `learn_profiles` (a test) writes `profiles.txt`; [`super::detector`] adds up what [`Points`] say of each
//! word. The table is searched as it stands in the program: it is sorted, so nothing has to be built before the
//! first text, and nothing is held in memory.

use super::table::{EDGE, parts_of_length};

/// The table: after the header, sorted lines of a word or part, then codes of languages, each with its points.
pub(super) const TEXT: &str = include_str!("profiles.txt");

/// What one step of the table is worth: a logarithm of a probability, in halves.
pub(super) const STEP: f64 = 0.5;

/// The lengths of the parts of a word, its edges included.
pub(super) const LENGTHS: [usize; 2] = [2, 3];

/// How much the parts of a word count: of one that is in the table, and of any other. Found by trying.
const PARTS_OF_KNOWN: f64 = 0.3;
const PARTS_OF_OTHERS: f64 = 1.0;

/// Calls `add` with each language that a word speaks for, and with how much: the logarithm of how much more
/// probable the word is there than in a language that lacks it.
pub(super) fn points(word: &str, mut add: impl FnMut(&'static str, f64)) {
    let whole = format!("{EDGE}{word}{EDGE}");
    let known = find(&whole);
    let weight = match known {
        Some(entries) => {
            read(entries, &mut add);
            PARTS_OF_KNOWN
        }
        None => PARTS_OF_OTHERS,
    };
    let parts = LENGTHS.into_iter();
    let parts = parts.flat_map(|length| parts_of_length(&whole, length));
    let found: Vec<&str> = parts.filter_map(find).collect();
    // Parts overlap, so many of them say less than their sum.
    let weight = weight / (found.len() as f64).sqrt();
    for entries in found {
        read(entries, |code, points| add(code, weight * points));
    }
}

/// The entries of a word or part: `de9 nl4`.
fn find(key: &str) -> Option<&'static str> {
    let (mut start, mut end) = (0, TEXT.len());
    while start < end {
        let middle = start + (end - start) / 2;
        let bytes = TEXT.as_bytes();
        let line_break = |at: &usize| bytes[*at] == b'\n';
        let line = (start..middle)
            .rev()
            .find(line_break)
            .map_or(start, |at| at + 1);
        let line_end = (middle..end).find(line_break).unwrap_or(end);
        let (found, entries) = TEXT[line..line_end].split_once(' ')?;
        match found.cmp(key) {
            std::cmp::Ordering::Equal => return Some(entries),
            std::cmp::Ordering::Less => start = line_end + 1,
            std::cmp::Ordering::Greater => end = line,
        }
    }
    None
}

/// Entries are a code of two letters and a digit of base 36.
fn read(entries: &'static str, mut add: impl FnMut(&'static str, f64)) {
    for entry in entries.split(' ') {
        let (code, digit) = entry.split_at(entry.len() - 1);
        let steps = digit.chars().next().and_then(|digit| digit.to_digit(36));
        add(code, f64::from(steps.unwrap_or_default()) * STEP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(word: &str) -> Vec<&'static str> {
        let mut sums = std::collections::BTreeMap::<_, f64>::new();
        points(word, |code, points| {
            *sums.entry(code).or_default() += points
        });
        let mut codes: Vec<_> = sums.into_iter().collect();
        codes.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        codes.into_iter().map(|(code, _)| code).collect()
    }

    #[test]
    fn frequent_words_speak_for_their_languages() {
        for (word, code) in [
            ("und", "de"),
            ("the", "en"),
            ("nous", "fr"),
            ("był", "pl"),
            ("что", "ru"),
            ("için", "tr"),
        ] {
            assert_eq!(best(word)[0], code, "{word}: {:?}", best(word));
        }
        assert_eq!(best("漢字"), [""; 0]);
    }

    #[test]
    fn the_table_is_sorted_and_every_line_is_found() {
        let keys: Vec<&str> = TEXT
            .lines()
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert!(keys.is_sorted() && keys.len() > 10_000);
        for (line, key) in TEXT
            .lines()
            .zip(keys)
            .filter(|(line, _)| !line.starts_with('#'))
        {
            assert_eq!(find(key), line.split_once(' ').map(|(_, entries)| entries));
            for entry in line.split(' ').skip(1) {
                assert!(entry.len() == 3 && entry.is_ascii(), "{line}");
            }
        }
        assert!(
            ["", "_", "zzzz", "\u{10FFFF}", "_a_ "]
                .iter()
                .all(|key| find(key).is_none())
        );
    }
}
