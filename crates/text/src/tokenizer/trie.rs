//! All pieces that begin at a place of the text, shortest first.
//!
//! A byte trie in three flat lists: a node's children stand next to each other, sorted by their byte.

/// Texts and their numbers, found by prefix.
#[derive(Debug, Clone, Default)]
pub(super) struct Trie {
    nodes: Vec<Node>,
    labels: Vec<u8>,
    targets: Vec<u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Node {
    first_child: usize,
    children: usize,
    value: Option<u32>,
}

impl Trie {
    /// A trie of texts that differ from each other.
    pub fn new<'a, T: AsRef<[u8]> + ?Sized + 'a>(
        entries: impl Iterator<Item = (&'a T, u32)>,
    ) -> Self {
        let mut entries: Vec<(&[u8], u32)> = entries
            .map(|(text, number)| (text.as_ref(), number))
            .collect();
        entries.sort_unstable();
        let mut trie = Self::default();
        trie.nodes.push(Node::default());
        // Node, the entries that pass through it, and how many of their bytes lie before it.
        let mut open = vec![(0, 0..entries.len(), 0)];
        while let Some((node, mut range, depth)) = open.pop() {
            if range.start < range.end && entries[range.start].0.len() == depth {
                trie.nodes[node].value = Some(entries[range.start].1);
                range.start += 1;
            }
            trie.nodes[node].first_child = trie.labels.len();
            while range.start < range.end {
                let label = entries[range.start].0[depth];
                let same = entries[range.clone()].partition_point(|(text, _)| text[depth] == label);
                let child = trie.nodes.len();
                trie.nodes.push(Node::default());
                trie.labels.push(label);
                trie.targets.push(child as u32);
                open.push((child, range.start..range.start + same, depth + 1));
                range.start += same;
            }
            trie.nodes[node].children = trie.labels.len() - trie.nodes[node].first_child;
        }
        trie
    }

    /// Length in bytes and number of every entry that `text` begins with, shortest first.
    pub fn prefixes<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = (usize, u32)> + 't {
        let mut node = self.nodes.first();
        let mut length = 0;
        std::iter::from_fn(move || {
            loop {
                node = self.child(node?, *text.get(length)?);
                length += 1;
                if let Some(value) = node?.value {
                    return Some((length, value));
                }
            }
        })
    }

    /// The length of the longest entry that `text` begins with.
    pub fn longest(&self, text: &[u8]) -> Option<usize> {
        self.prefixes(text).last().map(|(length, _)| length)
    }

    fn child(&self, node: &Node, byte: u8) -> Option<&Node> {
        let children = node.first_child..node.first_child + node.children;
        let index = self.labels[children].binary_search(&byte).ok()?;
        self.nodes
            .get(self.targets[node.first_child + index] as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_come_shortest_first() {
        let trie = Trie::new([("a", 1), ("abc", 2), ("b", 3), ("aé", 4)].into_iter());
        let found = |text: &str| trie.prefixes(text.as_bytes()).collect::<Vec<_>>();
        assert_eq!(found("abcd"), [(1, 1), (3, 2)]);
        assert_eq!(found("aé"), [(1, 1), (3, 4)]);
        assert_eq!(found("c"), []);
        assert_eq!(found(""), []);
        assert_eq!(Trie::new::<str>([].into_iter()).longest(b"a"), None);
    }
}
