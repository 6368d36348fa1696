//! What must be kept and was not: put back where the alignment says.
//!
//! A model may leave out a mark, or misspell an address that it read as text. [`repair`] makes the translation hold
//! each thing exactly as often as the source. Before it: the search, which has already tried again; after it:
//! [`super::Hidden::restore`].

use std::collections::HashMap;
use std::ops::Range;

use crate::markup::units;

/// What to do with the words that are aligned with something that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instead {
    /// They are a wrong spelling of it: it takes their place.
    Replace,
    /// They are words of their own: it stands beside its neighbors.
    Insert,
}

/// A translation that holds everything that must be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// The text.
    pub text: String,
    /// How many things were missing or there too often.
    pub count: usize,
    /// The links between units, of which the translation may have more or fewer now.
    pub links: Vec<(usize, usize)>,
}

/// How often things are in a text that are in `kept` more or fewer times; 0 if all is well.
pub fn deviation<S: AsRef<str>>(kept: &[S], text: &str) -> usize {
    let mut wanted: HashMap<&str, usize> = HashMap::new();
    for item in kept {
        *wanted.entry(item.as_ref()).or_default() += 1;
    }
    let found = occurrences(&wanted, text);
    let deviation = |(item, count): (&&str, &usize)| {
        let there = found.get(item).map_or(0, Vec::len);
        there.abs_diff(*count)
    };
    wanted.iter().map(deviation).sum()
}

/// Where each item is, longer ones first, so that `%s` is not found in `%sx`.
fn occurrences<'a>(
    items: &HashMap<&'a str, usize>,
    text: &str,
) -> HashMap<&'a str, Vec<Range<usize>>> {
    let mut sorted: Vec<&&str> = items.keys().collect();
    sorted.sort_by_key(|item| (std::cmp::Reverse(item.len()), **item));
    let mut free = vec![true; text.len()];
    let mut all = HashMap::new();
    for item in sorted {
        let found = text.match_indices(*item).map(|(at, _)| at..at + item.len());
        let found: Vec<_> = found
            .filter(|range| free[range.clone()].iter().all(|free| *free))
            .collect();
        found
            .iter()
            .for_each(|range| free[range.clone()].fill(false));
        all.insert(*item, found);
    }
    all
}

/// Makes a translation hold each of the `spans` of its source exactly as often as the source does. `links` are pairs of
/// [`units`] of both.
pub fn repair(
    source: &str,
    spans: &[Range<usize>],
    translation: &str,
    links: &[(usize, usize)],
    instead: Instead,
) -> Repaired {
    let mut wanted: HashMap<&str, usize> = HashMap::new();
    for span in spans {
        *wanted.entry(&source[span.clone()]).or_default() += 1;
    }
    let found = occurrences(&wanted, translation);
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for (item, there) in &found {
        // What is there too often goes, the last first, with the space before it.
        for surplus in there.iter().skip(wanted[item]) {
            let before = translation[..surplus.start].trim_end_matches(' ').len();
            edits.push((before..surplus.end, String::new()));
        }
    }
    let taken: Vec<Range<usize>> = found.into_values().flatten().collect();
    let mut missing = wanted;
    for range in &taken {
        if let Some(count) = missing.get_mut(&translation[range.clone()]) {
            *count = count.saturating_sub(1);
        }
    }
    let (src_units, tgt_units) = (units(source), units(translation));
    let place = Places {
        src_units: &src_units,
        tgt_units: &tgt_units,
        links,
        end: translation.trim_end().len(),
    };
    for span in spans.iter().rev() {
        let item = &source[span.clone()];
        let Some(count) = missing.get_mut(item).filter(|count| **count > 0) else {
            continue;
        };
        *count -= 1;
        let replaced = place.linked(span).filter(|range| {
            let overlaps =
                |other: &Range<usize>| range.start < other.end && other.start < range.end;
            let edited = edits.iter().any(|(other, _)| overlaps(other));
            instead == Instead::Replace && !edited && !taken.iter().any(overlaps)
        });
        match replaced {
            Some(range) => edits.push((range, item.to_owned())),
            None => {
                let mut at = place.beside(span);
                let within = |range: &&Range<usize>| range.start < at && at < range.end;
                let within = taken
                    .iter()
                    .chain(edits.iter().map(|(range, _)| range))
                    .find(within);
                at = within.map_or(at, |range| range.end);
                edits.push((at..at, item.to_owned()));
            }
        }
    }
    let count = edits.len();
    let (text, moved) = edited(translation, edits);
    let links = if count == 0 {
        links.to_vec()
    } else {
        let new_units = units(&text);
        let new_place = |tgt: usize| {
            let at = moved(tgt_units.get(tgt)?.start);
            Some(new_units.partition_point(|unit| unit.end <= at))
        };
        let link = |&(src, tgt): &(usize, usize)| Some((src, new_place(tgt)?));
        links.iter().filter_map(link).collect()
    };
    Repaired { text, count, links }
}

/// Applies edits, none of which overlap; says where each byte is afterwards.
fn edited(
    text: &str,
    mut edits: Vec<(Range<usize>, String)>,
) -> (String, impl Fn(usize) -> usize + use<>) {
    // Stable: what is inserted at one place was added in reverse.
    edits.reverse();
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let mut output = String::with_capacity(text.len());
    let mut shifts: Vec<(usize, usize)> = Vec::new();
    let mut done = 0;
    for (range, new) in &edits {
        output.push_str(&text[done.min(range.start)..range.start]);
        let is_word =
            |c: Option<char>| c.is_some_and(|c| !c.is_whitespace() && !",.;:!?)".contains(c));
        let opens = |c: char| c.is_whitespace() || "([{„“\"'".contains(c);
        if range.is_empty() && output.chars().next_back().is_some_and(|c| !opens(c)) {
            output.push(' ');
        }
        output.push_str(new);
        done = done.max(range.end);
        if range.is_empty() && is_word(text[done..].chars().next()) {
            output.push(' ');
        }
        shifts.push((done, output.len()));
    }
    output.push_str(&text[done..]);
    let moved = move |at: usize| {
        let before = shifts.partition_point(|(end, _)| *end <= at);
        match before.checked_sub(1).map(|last| shifts[last]) {
            Some((old, new)) => at - old + new,
            None => at,
        }
    };
    (output, moved)
}

/// Places in a translation.
struct Places<'a> {
    src_units: &'a [Range<usize>],
    tgt_units: &'a [Range<usize>],
    links: &'a [(usize, usize)],
    /// Where the translation ends, but for white space.
    end: usize,
}

impl Places<'_> {
    /// The numbers of the units in a part of the source.
    fn units(&self, span: &Range<usize>) -> Range<usize> {
        let first = self
            .src_units
            .partition_point(|unit| unit.end <= span.start);
        let end = self.src_units.partition_point(|unit| unit.start < span.end);
        first..end.max(first)
    }

    fn targets(&self, units: Range<usize>) -> impl Iterator<Item = &Range<usize>> {
        let own = self
            .links
            .iter()
            .filter(move |(src, _)| units.contains(src));
        own.filter_map(|(_, tgt)| self.tgt_units.get(*tgt))
    }

    /// The stretch that is aligned with a part of the source: up to four words around the first of them.
    fn linked(&self, span: &Range<usize>) -> Option<Range<usize>> {
        let mut own: Vec<&Range<usize>> = self.targets(self.units(span)).collect();
        own.sort_by_key(|unit| unit.start);
        let mut stretch = (*own.first()?).clone();
        for unit in own {
            // Signs between them are parts of a misspelled address as well.
            if unit.start <= stretch.end + 2 {
                stretch.end = stretch.end.max(unit.end);
            }
        }
        Some(stretch)
    }

    /// Behind the word before it, or before the word behind it.
    fn beside(&self, span: &Range<usize>) -> usize {
        const FAR: usize = 6;
        let units = self.units(span);
        for distance in 1..=FAR {
            if let Some(before) = units.start.checked_sub(distance) {
                let last = self.targets(before..before + 1).map(|unit| unit.end).max();
                if let Some(last) = last {
                    return last;
                }
            }
            let after = units.end + distance - 1;
            let first = self.targets(after..after + 1).map(|unit| unit.start).min();
            if let Some(first) = first {
                return first;
            }
        }
        self.end
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)] // One span is what is meant.
mod tests {
    use super::*;

    fn repaired(
        source: &str,
        items: &[&str],
        translation: &str,
        links: &[(usize, usize)],
        instead: Instead,
    ) -> String {
        let mut spans: Vec<_> = items
            .iter()
            .flat_map(|item| source.match_indices(item))
            .map(|(at, item)| at..at + item.len())
            .collect();
        spans.sort_by_key(|span| span.start);
        let found = repair(source, &spans, translation, links, instead);
        assert_eq!(
            deviation(
                &spans
                    .iter()
                    .map(|span| &source[span.clone()])
                    .collect::<Vec<_>>(),
                &found.text
            ),
            0
        );
        found.text
    }

    #[test]
    fn what_is_missing_is_put_beside_the_words_that_it_stood_beside() {
        let links = [(0, 0), (1, 1), (3, 2)];
        assert_eq!(
            repaired(
                "nimm das %d da",
                &["%d"],
                "take that there",
                &links,
                Instead::Insert
            ),
            "take that %d there"
        );
        assert_eq!(
            repaired(
                "nimm %d %s da",
                &["%d", "%s"],
                "take there",
                &[(0, 0)],
                Instead::Insert
            ),
            "take %d %s there"
        );
        assert_eq!(repaired("%d", &["%d"], "", &[], Instead::Insert), "%d");
        assert_eq!(
            repaired("a %d", &["%d"], "b.", &[], Instead::Insert),
            "b. %d"
        );
    }

    #[test]
    fn a_wrong_spelling_is_replaced() {
        let links = [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)];
        assert_eq!(
            repaired(
                "hallo {name} du",
                &["{name}"],
                "hello {Surname} you",
                &links,
                Instead::Replace
            ),
            "hello {name} you"
        );
    }

    #[test]
    fn what_is_there_too_often_goes() {
        let found = repaired("a %d b", &["%d"], "x %d y %d z", &[], Instead::Insert);
        assert_eq!(found, "x %d y z");
    }

    #[test]
    fn links_follow_their_words() {
        let found = repair("a %d b", &[2..4], "x y", &[(0, 0), (3, 1)], Instead::Insert);
        assert_eq!((&*found.text, found.count), ("x %d y", 1));
        let new = units(&found.text)
            .iter()
            .position(|unit| &found.text[unit.clone()] == "y");
        assert_eq!(found.links, [(0, 0), (3, new.unwrap())]);
    }
}
