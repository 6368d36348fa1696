//! Quality by the length of the source: where a translator that has one vector for a sentence falls behind.

use crate::figure::{Content, Curve, Figure, Line, Panel};

/// Sentences whose sources are about equally long.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Which sentences, from 0.
    pub lines: Vec<usize>,
    /// Words of the shortest and of the longest source.
    pub words: (usize, usize),
    /// The mean number of words.
    pub mean: f64,
}

/// Sorts sentences, given by the number of words of each source, into at most `count` groups of about the same size.
/// Sources of one length stay together.
pub fn groups(words: &[usize], count: usize) -> Vec<Group> {
    let mut order: Vec<usize> = (0..words.len()).collect();
    order.sort_by_key(|line| words[*line]);
    let least = words.len().div_ceil(count.max(1));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for same in order.chunk_by(|a, b| words[*a] == words[*b]) {
        match groups.last_mut() {
            Some(last) if last.len() < least => last.extend(same),
            _ => groups.push(same.to_vec()),
        }
    }
    let group = |lines: Vec<usize>| {
        let sum: usize = lines.iter().map(|line| words[*line]).sum();
        Group {
            words: (words[lines[0]], words[lines[lines.len() - 1]]),
            mean: sum as f64 / lines.len() as f64,
            lines,
        }
    };
    groups.into_iter().map(group).collect()
}

/// A curve for each system: its name, and its score for each group.
pub fn figure(groups: &[Group], systems: Vec<(String, Vec<f64>)>, metric: &str) -> Figure {
    let curve = |(number, (name, scores)): (usize, (String, Vec<f64>))| {
        let points = groups.iter().map(|group| group.mean).zip(scores);
        Curve::new(name, points.collect(), Line::Dotted, number)
    };
    Figure {
        title: format!("{metric} by the length of the source"),
        panels: vec![Panel {
            title: format!("{} groups of sentences", groups.len()),
            x_label: "words of the source".to_owned(),
            y_label: metric.to_owned(),
            content: Content::Curves(systems.into_iter().enumerate().map(curve).collect()),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_about_equal_and_keep_sources_of_one_length_together() {
        let found = groups(&[3, 1, 2, 2, 9, 2, 8, 7], 3);
        let lines: Vec<&[usize]> = found.iter().map(|group| &group.lines[..]).collect();
        assert_eq!(lines, [&[1, 2, 3, 5][..], &[0, 7, 6], &[4]]);
        assert_eq!((found[1].words, found[1].mean), ((3, 8), 6.0));
        assert!(groups(&[], 3).is_empty());
    }
}
