//! Where elements belong in a translation: the stretch of units that their words are aligned with.
//!
//! A stretch is the one with the most linked units and the fewest others. Elements stay within their parents and
//! out of their siblings. What has no content stands beside the words that it stood beside. [`super::bare`] takes
//! tags out of a text and writes them where this file says.

use std::collections::HashMap;
use std::ops::Range;

use super::bare::Node;

/// Which units of the translation each unit of the source is aligned with.
pub(super) struct Links<'a> {
    src: Vec<&'a str>,
    tgt: Vec<&'a str>,
    /// The targets of source unit `i` are `targets[starts[i]..starts[i + 1]]`, in rising order.
    starts: Vec<usize>,
    targets: Vec<usize>,
    /// Which units of the translation are aligned with anything.
    is_linked: Vec<bool>,
    /// Whether links are known.
    known: bool,
}

/// A unit within a stretch that is aligned with something else costs so much of one that is aligned with it.
const STRANGER: f64 = 0.6;

/// So much does a unit cost that is aligned with nothing.
const UNLINKED: f64 = 0.3;

/// Elements deeper than this lie where their parents lie: so deep a nesting means nothing, and must cost nothing.
const DEEPEST: usize = 200;

/// So many units are searched for a neighbor that has a link.
const NEIGHBORS: usize = 8;

impl<'a> Links<'a> {
    pub fn new(
        src: Vec<&'a str>,
        translation: &'a str,
        tgt_units: &[Range<usize>],
        links: Option<&[(usize, usize)]>,
    ) -> Self {
        let tgt: Vec<&str> = tgt_units
            .iter()
            .map(|unit| &translation[unit.clone()])
            .collect();
        let mut pairs: Vec<(usize, usize)> = match links {
            Some(links) => links.to_vec(),
            None => diagonal(src.len(), tgt.len()).collect(),
        };
        let anchors = anchors(&src, &tgt);
        let linked: HashMap<usize, usize> = anchors.iter().map(|&(s, t)| (t, s)).collect();
        pairs.retain(|(s, t)| *s < src.len() && *t < tgt.len() && !linked.contains_key(t));
        pairs.extend(anchors);
        pairs.sort_unstable();
        pairs.dedup();
        let first = |unit| pairs.partition_point(|(s, _)| *s < unit);
        let starts = (0..=src.len()).map(first).collect();
        let targets: Vec<usize> = pairs.iter().map(|(_, t)| *t).collect();
        let mut is_linked = vec![false; tgt.len()];
        targets.iter().for_each(|&target| is_linked[target] = true);
        let known = links.is_some();
        Self {
            src,
            tgt,
            starts,
            targets,
            is_linked,
            known,
        }
    }

    /// What these source units are aligned with; in rising order for a single one.
    fn of(&self, units: Range<usize>) -> &[usize] {
        &self.targets[self.starts[units.start]..self.starts[units.end]]
    }

    fn of_one(&self, unit: usize) -> &[usize] {
        self.of(unit..unit + 1)
    }
}

/// Links that keep relative places.
fn diagonal(src: usize, tgt: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..tgt)
        .filter(move |_| src > 0)
        .map(move |t| ((2 * t + 1) * src / (2 * tgt), t))
}

/// Units that are the same on both sides for certain: what stands for something verbatim, and numbers, if they occur
/// once in each.
fn anchors(src: &[&str], tgt: &[&str]) -> Vec<(usize, usize)> {
    fn once<'u>(units: &[&'u str]) -> HashMap<&'u str, Option<usize>> {
        let mut places = HashMap::new();
        for (place, unit) in units.iter().enumerate() {
            if unit.chars().any(|c| c.is_numeric() || c as u32 >= 0xF_0000) {
                let entry = places.entry(*unit).or_insert(Some(place));
                *entry = entry.filter(|&first| first == place);
            }
        }
        places
    }
    let (src, tgt) = (once(src), once(tgt));
    let pair = |(unit, place): (&&str, &Option<usize>)| Some(((*place)?, (*tgt.get(*unit)?)?));
    src.iter().filter_map(pair).collect()
}

/// For each node the units of the translation that it holds; an empty range is a place between two of them. Numbers
/// of tags whose place had to be guessed are added to `unplaced`.
pub(super) fn place(nodes: &[Node], links: &Links, unplaced: &mut Vec<u32>) -> Vec<Range<usize>> {
    let mut placer = Placer {
        nodes,
        links,
        places: vec![0..0; nodes.len()],
        owner: vec![None; links.tgt.len()],
        unplaced,
    };
    placer.places[0] = 0..links.tgt.len();
    // Parents come before their children.
    for node in 0..nodes.len() {
        placer.place_children(node);
    }
    placer.places
}

struct Placer<'a, 'l> {
    nodes: &'a [Node],
    links: &'a Links<'l>,
    places: Vec<Range<usize>>,
    /// Which child of the present parent a unit of the translation is aligned with.
    owner: Vec<Option<usize>>,
    unplaced: &'a mut Vec<u32>,
}

impl Placer<'_, '_> {
    fn place_children(&mut self, parent: usize) {
        let (nodes, links) = (self.nodes, self.links);
        let Node {
            children, depth, ..
        } = &nodes[parent];
        let room = self.places[parent].clone();
        if *depth > DEEPEST {
            let mut left = room;
            for &child in children {
                self.places[child] = left.clone();
                left.start = left.end;
            }
            return;
        }
        let elements = children
            .iter()
            .filter(|&&child| !nodes[child].units.is_empty());
        for &child in elements.clone() {
            for &target in links.of(nodes[child].units.clone()) {
                if room.contains(&target) {
                    self.owner[target].get_or_insert(child);
                }
            }
        }
        let mut taken: Vec<Range<usize>> = Vec::new();
        let mut lost = Vec::new();
        for &child in elements.clone() {
            match self.stretch(parent, child) {
                Some(stretch) => {
                    taken.push(stretch.clone());
                    self.places[child] = stretch;
                }
                None => lost.push(child),
            }
        }
        for &child in elements {
            for &target in links.of(nodes[child].units.clone()) {
                self.owner[target] = None;
            }
        }
        for stretch in &taken {
            self.owner[stretch.clone()].fill(None);
        }
        taken.sort_unstable_by_key(|range| (range.start, range.end));
        for &child in children {
            let is_lost = lost.binary_search(&child).is_ok();
            if nodes[child].units.is_empty() || is_lost {
                let place = self.beside(parent, child, is_lost);
                let place = outside(&taken, place);
                self.places[child] = place..place;
            }
        }
    }

    /// The units of the translation that an element holds, if any are aligned with it.
    fn stretch(&mut self, parent: usize, child: usize) -> Option<Range<usize>> {
        let (node, room) = (&self.nodes[child], self.places[parent].clone());
        if node.units == self.nodes[parent].units && !room.is_empty() {
            if !self.links.known {
                self.unplaced.push(node.number());
            }
            return Some(room);
        }
        let own = |target: &&usize| self.owner[**target] == Some(child) && room.contains(target);
        let mut own = self.links.of(node.units.clone()).iter().filter(own);
        let first = own.next()?;
        let (least, most) = own.fold((*first, *first), |(least, most), &target| {
            (least.min(target), most.max(target))
        });
        let best = self.best_stretch(child, least..most + 1);
        let stretch = self.with_punctuation(&node.units, best, &room, child);
        if !self.links.known {
            self.unplaced.push(node.number());
        }
        Some(stretch)
    }

    /// The stretch with the largest sum: 1 for what is the element's, less for strangers, never what is another's.
    fn best_stretch(&self, child: usize, window: Range<usize>) -> Range<usize> {
        let (mut best, mut best_sum) = (window.start..window.start + 1, 0.0);
        let (mut start, mut sum) = (window.start, 0.0);
        for unit in window {
            match self.owner[unit] {
                Some(owner) if owner == child => sum += 1.0,
                Some(_) => (start, sum) = (unit + 1, 0.0),
                None if self.links.is_linked[unit] => sum -= STRANGER,
                None => sum -= UNLINKED,
            }
            if sum <= 0.0 {
                (start, sum) = (unit + 1, 0.0);
            } else if sum > best_sum {
                (best, best_sum) = (start..unit + 1, sum);
            }
        }
        best
    }

    /// Punctuation at the edges is within the element if it is there in the source, and not if it is not.
    fn with_punctuation(
        &mut self,
        src: &Range<usize>,
        mut stretch: Range<usize>,
        room: &Range<usize>,
        child: usize,
    ) -> Range<usize> {
        let Links {
            src: src_units,
            tgt,
            ..
        } = self.links;
        let (first, last) = (src_units[src.start], src_units[src.end - 1]);
        let whole = stretch.clone();
        if !is_punctuation(last) {
            while stretch.len() > 1 && is_punctuation(tgt[stretch.end - 1]) {
                stretch.end -= 1;
            }
        } else if stretch.end < room.end
            && self.owner[stretch.end].is_none_or(|owner| owner == child)
            && alike(last, tgt[stretch.end])
        {
            self.owner[stretch.end] = Some(child);
            stretch.end += 1;
        }
        if !is_punctuation(first) {
            while stretch.len() > 1 && is_punctuation(tgt[stretch.start]) {
                stretch.start += 1;
            }
        } else if stretch.start > room.start
            && self.owner[stretch.start - 1].is_none_or(|owner| owner == child)
            && alike(first, tgt[stretch.start - 1])
        {
            stretch.start -= 1;
            self.owner[stretch.start] = Some(child);
        }
        let only_punctuation = stretch.clone().all(|unit| is_punctuation(tgt[unit]));
        if only_punctuation { whole } else { stretch }
    }

    /// The place of something without content: beside the neighbor that it was attached to.
    fn beside(&mut self, parent: usize, child: usize, is_lost: bool) -> usize {
        let (node, room) = (&self.nodes[child], self.places[parent].clone());
        let around = self.nodes[parent].units.clone();
        let at = node.units.start;
        if is_lost {
            self.unplaced.push(node.number());
        } else if at <= around.start {
            return room.start;
        } else if at >= around.end {
            return room.end;
        }
        let inside = |target: &usize| room.contains(target);
        let next = (at..around.end)
            .take(NEIGHBORS)
            .find_map(|unit| self.links.of_one(unit).iter().copied().find(inside));
        let before = (around.start..at).rev().take(NEIGHBORS).find_map(|unit| {
            let place = self.links.of_one(unit).iter().rev().copied().find(inside);
            place.map(|place| place + 1)
        });
        let attached = !node.open.space_before;
        let place = if attached {
            before.or(next)
        } else {
            next.or(before)
        };
        if place.is_none() && !is_lost {
            self.unplaced.push(node.number());
        }
        place.unwrap_or_else(|| {
            let part = (at - around.start) * room.len() / around.len().max(1);
            room.start + part
        })
    }
}

/// The nearest place that is not within one of some stretches, which are sorted and do not overlap.
fn outside(taken: &[Range<usize>], place: usize) -> usize {
    let before = taken.partition_point(|range| range.start < place);
    match before.checked_sub(1).map(|last| &taken[last]) {
        Some(range) if place < range.end => {
            if place - range.start < range.end - place {
                range.start
            } else {
                range.end
            }
        }
        _ => place,
    }
}

fn is_punctuation(unit: &str) -> bool {
    !unit
        .chars()
        .any(|c| c.is_alphanumeric() || c as u32 >= 0xF_0000)
}

/// Whether one can be the other's translation: the same sign, or both are quotation marks.
fn alike(a: &str, b: &str) -> bool {
    const QUOTES: [&str; 12] = ["\"", "“", "”", "„", "‟", "«", "»", "‹", "›", "'", "‘", "’"];
    let full_stop = |unit| matches!(unit, "." | "。" | "।");
    a == b || (QUOTES.contains(&a) && QUOTES.contains(&b)) || (full_stop(a) && full_stop(b))
}
