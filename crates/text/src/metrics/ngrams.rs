//! Counting the n-grams that a hypothesis shares with its references, exactly and without allocation
//! per n-gram.
//!
//! The references of one segment become a trie: an n-gram is a node, reached from the node of its first
//! n-1 symbols by its last symbol. A hypothesis walks the trie from each of its positions and stops
//! at the first symbol that leads nowhere, because no longer n-gram can then be in a reference. Symbols
//! are numbers: word numbers for BLEU, code points for chrF.

/// The n-grams of one or more references of one segment.
#[derive(Debug, Clone)]
pub struct NgramTrie {
    max_order: usize,
    /// Open-addressed table of edges; a free slot has the target 0, which is the root.
    edges: Vec<Edge>,
    /// For each node how often the reference that has it most often has it; node 0 is the root.
    counts: Vec<u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Edge {
    from: u32,
    symbol: u32,
    to: u32,
}

impl NgramTrie {
    /// Counts the n-grams of orders 1 to `max_order`; over several references the highest count holds.
    pub fn new<'a>(references: impl Iterator<Item = &'a [u32]>, max_order: usize) -> Self {
        let mut trie = Self {
            max_order,
            edges: vec![Edge::default(); 16],
            counts: vec![0],
        };
        let mut counts_here = Vec::new();
        for (index, symbols) in references.enumerate() {
            counts_here.clear();
            counts_here.resize(trie.counts.len(), 0);
            for start in 0..symbols.len() {
                let mut node = 0;
                for &symbol in symbols[start..].iter().take(max_order) {
                    node = trie.child_or_new(node, symbol);
                    if node as usize == counts_here.len() {
                        counts_here.push(0);
                    }
                    counts_here[node as usize] += 1;
                }
            }
            if index == 0 {
                std::mem::swap(&mut trie.counts, &mut counts_here);
            } else {
                for (count, here) in trie.counts.iter_mut().zip(&counts_here) {
                    *count = (*count).max(*here);
                }
            }
        }
        trie
    }

    /// Adds to `matches[n - 1]` how many n-grams of the hypothesis are in the references, each at most
    /// as often as the references have it.
    pub fn count_matches(
        &self,
        hypothesis: &[u32],
        scratch: &mut MatchScratch,
        matches: &mut [f64],
    ) {
        let seen = &mut scratch.seen;
        seen.clear();
        seen.resize(self.counts.len(), 0);
        for start in 0..hypothesis.len() {
            let mut node = 0;
            let symbols = hypothesis[start..].iter().take(self.max_order);
            for (order, &symbol) in symbols.enumerate() {
                let Some(next) = self.child(node, symbol) else {
                    break;
                };
                node = next;
                let times = &mut seen[node as usize];
                *times += 1;
                if *times <= self.counts[node as usize] {
                    matches[order] += 1.0;
                }
            }
        }
    }

    fn child(&self, from: u32, symbol: u32) -> Option<u32> {
        let mask = self.edges.len() - 1;
        let mut slot = slot_of(from, symbol) & mask;
        loop {
            let edge = self.edges[slot];
            if edge.to == 0 {
                return None;
            }
            if edge.from == from && edge.symbol == symbol {
                return Some(edge.to);
            }
            slot = (slot + 1) & mask;
        }
    }

    fn child_or_new(&mut self, from: u32, symbol: u32) -> u32 {
        if let Some(node) = self.child(from, symbol) {
            return node;
        }
        if self.counts.len() * 2 > self.edges.len() {
            let doubled = vec![Edge::default(); self.edges.len() * 2];
            for edge in std::mem::replace(&mut self.edges, doubled) {
                if edge.to != 0 {
                    self.insert(edge);
                }
            }
        }
        let to = self.counts.len() as u32;
        self.counts.push(0);
        self.insert(Edge { from, symbol, to });
        to
    }

    fn insert(&mut self, edge: Edge) {
        let mask = self.edges.len() - 1;
        let mut slot = slot_of(edge.from, edge.symbol) & mask;
        while self.edges[slot].to != 0 {
            slot = (slot + 1) & mask;
        }
        self.edges[slot] = edge;
    }
}

/// Memory that one thread uses again for every hypothesis.
#[derive(Debug, Default)]
pub struct MatchScratch {
    seen: Vec<u32>,
}

/// How many n-grams of order `n` a sequence of `length` symbols has.
pub fn ngram_total(length: usize, n: usize) -> f64 {
    (length + 1).saturating_sub(n) as f64
}

/// A multiplicative hash; the high bits are the well-mixed ones.
fn slot_of(from: u32, symbol: u32) -> usize {
    let key = (u64::from(from) << 32) | u64::from(symbol);
    let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 32)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(references: &[&[u32]], hypothesis: &[u32]) -> Vec<f64> {
        let trie = NgramTrie::new(references.iter().copied(), 3);
        let mut found = vec![0.0; 3];
        trie.count_matches(hypothesis, &mut MatchScratch::default(), &mut found);
        found
    }

    #[test]
    fn repeated_ngrams_count_at_most_as_often_as_in_the_reference() {
        assert_eq!(matches(&[&[1, 2, 1, 3]], &[1, 1, 1, 2]), [3.0, 1.0, 0.0]);
    }

    #[test]
    fn the_reference_with_the_highest_count_decides() {
        assert_eq!(
            matches(&[&[1, 1], &[1, 1, 1]], &[1, 1, 1, 1]),
            [3.0, 2.0, 1.0]
        );
        assert_eq!(matches(&[&[], &[2]], &[2, 2]), [1.0, 0.0, 0.0]);
    }

    #[test]
    fn short_sequences_have_no_long_ngrams() {
        assert_eq!(ngram_total(2, 3), 0.0);
        assert_eq!(ngram_total(0, 1), 0.0);
        assert_eq!(ngram_total(5, 2), 4.0);
    }
}
