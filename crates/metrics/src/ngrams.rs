//! Counting the n-grams that a hypothesis shares with its references, exactly and without allocation
//! per n-gram.
//!
//! The references of one segment become a trie: an n-gram is a node, reached from the node of its first
//! n-1 symbols by its last symbol. A hypothesis walks the trie from each of its positions and stops
//! at the first symbol that leads nowhere, because no longer n-gram can then be in a reference. Symbols
//! are numbers: word numbers for BLEU, code points for chrF.

/// The n-grams of one or more references of one segment.
#[derive(Debug, Clone, Default)]
pub struct NgramTrie {
    max_order: usize,
    /// Open-addressed table of edges, a power of two long; a free slot has the target 0, the root.
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
    pub fn new(references: &[&[u32]], max_order: usize) -> Self {
        let mut trie = Self::default();
        trie.fill(references, max_order);
        trie
    }

    /// Counts the n-grams of other references, in the memory of this trie.
    pub fn fill(&mut self, references: &[&[u32]], max_order: usize) {
        let symbols: usize = references.iter().map(|reference| reference.len()).sum();
        // At most two thirds full: there are never more nodes than n-grams.
        let slots = (symbols * max_order * 3 / 2).next_power_of_two().max(2);
        self.max_order = max_order;
        self.edges.clear();
        self.edges.resize(slots, Edge::default());
        self.counts.clear();
        self.counts.push(0);
        let Some((first, others)) = references.split_first() else {
            return;
        };
        self.walk(first, |trie, node| trie.counts[node] += 1);
        let mut here = Vec::new();
        for other in others {
            here.clear();
            self.walk(other, |trie, node| {
                here.resize(trie.counts.len(), 0_u32);
                here[node] += 1;
                trie.counts[node] = trie.counts[node].max(here[node]);
            });
        }
    }

    /// Calls `visit` with the node of every n-gram, making those that are missing.
    fn walk(&mut self, symbols: &[u32], mut visit: impl FnMut(&mut Self, usize)) {
        for start in 0..symbols.len() {
            let mut node = 0;
            for &symbol in symbols[start..].iter().take(self.max_order) {
                node = self.child_or_new(node, symbol);
                visit(self, node as usize);
            }
        }
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
        let mask = self.edges.len() - 1;
        let mut slot = slot_of(from, symbol) & mask;
        loop {
            let edge = self.edges[slot];
            if edge.to == 0 {
                break;
            }
            if edge.from == from && edge.symbol == symbol {
                return edge.to;
            }
            slot = (slot + 1) & mask;
        }
        let to = self.counts.len() as u32;
        self.counts.push(0);
        self.edges[slot] = Edge { from, symbol, to };
        to
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
        let trie = NgramTrie::new(references, 3);
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
