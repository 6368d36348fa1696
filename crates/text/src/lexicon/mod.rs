//! A lexicon: how probable each target token is as a translation of each source token, learned from a parallel
//! corpus alone, with no model at hand.
//!
//! This is IBM Model 1 (Brown et al. 1993, "The Mathematics of Statistical Machine Translation"), learned by a
//! few rounds of expectation and maximization. The `</s>` of a source stands for its empty word, the one that
//! explains what no other token does.
//!
//! The expected counts of a target token need the sentences that hold it and nothing else. So target tokens are
//! spread over the threads, each is counted by one thread in the order of the corpus, and the result is the
//! same whatever the number of threads. Only translations that are at least a little probable are kept, which
//! bounds the memory. Before: `pairs` reads the corpus. After: shortlists, in `attentive-model`, and
//! `words`, which pairs whole words.

mod pairs;
mod words;

use rayon::prelude::*;

pub use pairs::{PairOptions, TokenPairs};
pub use words::{WordOptions, word_pairs};

/// What was learned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lexicon {
    /// For each source token its translations and their probabilities, the most probable first; of equally
    /// probable ones the one with the lower id.
    pub translations: Vec<Vec<(u32, f32)>>,
    /// How often each target token occurs.
    pub tgt_counts: Vec<u64>,
}

impl Lexicon {
    /// The rounds after which shortlists held most of what models produce. More rounds make the lexicon sharper,
    /// and drop words that only occur beside a source token but that models do say.
    pub const ROUNDS: usize = 2;

    /// Learns from the pairs in so many rounds. `progress` is told how much is done, from 0 to 1.
    pub fn learn(pairs: &TokenPairs, rounds: usize, mut progress: impl FnMut(f64)) -> Self {
        let sentences_with = Occurrences::of(pairs);
        let mut columns: Vec<Option<Column>> = vec![None; pairs.tgt_vocab()];
        let mut totals = first_totals(pairs);
        let work = (rounds * sentences_with.places.len()).max(1) as f64;
        let mut done = 0;
        for _ in 0..rounds {
            for (chunk, columns) in columns.chunks_mut(TARGETS_AT_ONCE).enumerate() {
                let first = chunk * TARGETS_AT_ONCE;
                columns.par_iter_mut().enumerate().for_each_init(
                    || Counts::new(pairs.src_vocab()),
                    |counts, (i, column)| {
                        let places = sentences_with.target(first + i);
                        *column = Some(counts.expected(pairs, places, column.as_deref(), &totals));
                    },
                );
                let last = (first + columns.len()).min(pairs.tgt_vocab());
                done += sentences_with.starts[last] - sentences_with.starts[first];
                progress(done as f64 / work);
            }
            totals.fill(0.0);
            for (source, count) in columns.iter().flatten().flatten() {
                totals[*source as usize] += f64::from(*count);
            }
            for (source, count) in columns.iter_mut().flatten().flatten() {
                *count = (f64::from(*count) / totals[*source as usize]) as f32;
            }
        }
        let mut translations = vec![Vec::new(); pairs.src_vocab()];
        for (target, column) in (0..).zip(columns) {
            for (source, probability) in column.into_iter().flatten() {
                translations[source as usize].push((target, probability));
            }
        }
        // Targets rise, and the sort is stable: of equals the lower id stays first.
        translations
            .par_iter_mut()
            .for_each(|list| list.sort_by(|a, b| b.1.total_cmp(&a.1)));
        let tgt_counts = sentences_with.starts.windows(2);
        Self {
            translations,
            tgt_counts: tgt_counts.map(|ends| (ends[1] - ends[0]) as u64).collect(),
        }
    }
}

/// Source tokens that may be translated to one target token, rising, with an expected count or a probability.
type Column = Vec<(u32, f32)>;

/// Translations that are less probable are dropped.
const LEAST: f64 = 1e-5;

/// So many target tokens are counted between two calls of `progress`.
const TARGETS_AT_ONCE: usize = 512;

/// In which pairs a target token occurs; a pair in which it occurs twice is there twice.
struct Occurrences {
    starts: Vec<usize>,
    places: Vec<u32>,
}

impl Occurrences {
    fn of(pairs: &TokenPairs) -> Self {
        let mut starts = vec![0; pairs.tgt_vocab() + 1];
        for (_, tgt) in pairs.iter() {
            tgt.iter()
                .for_each(|&token| starts[token as usize + 1] += 1);
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut places = vec![0; starts[pairs.tgt_vocab()]];
        for (place, (_, tgt)) in (0..).zip(pairs.iter()) {
            for &token in tgt {
                places[next[token as usize]] = place;
                next[token as usize] += 1;
            }
        }
        Self { starts, places }
    }

    fn target(&self, token: usize) -> &[u32] {
        &self.places[self.starts[token]..self.starts[token + 1]]
    }
}

/// For each source token the expected count of all target tokens in the first round, in which every token of
/// a source explains an equal share of every token of its target.
fn first_totals(pairs: &TokenPairs) -> Vec<f64> {
    let mut totals = vec![0.0; pairs.src_vocab()];
    for (src, tgt) in pairs.iter() {
        for &token in src {
            totals[token as usize] += tgt.len() as f64 / src.len() as f64;
        }
    }
    totals
}

/// One number for each source token, used for one target token after the other; zeros in between.
struct Counts {
    probabilities: Vec<f32>,
    expected: Vec<f64>,
    touched: Vec<u32>,
}

impl Counts {
    fn new(src_vocab: usize) -> Self {
        Self {
            probabilities: vec![0.0; src_vocab],
            expected: vec![0.0; src_vocab],
            touched: Vec::new(),
        }
    }

    /// How often each source token is expected to explain a target token that occurs in the pairs `places`,
    /// by the probabilities so far; without any, all are equal.
    fn expected(
        &mut self,
        pairs: &TokenPairs,
        places: &[u32],
        probabilities: Option<&[(u32, f32)]>,
        totals: &[f64],
    ) -> Column {
        for (source, probability) in probabilities.unwrap_or_default() {
            self.probabilities[*source as usize] = *probability;
        }
        let probability = |known: &[f32], source: u32| match probabilities {
            Some(_) => known[source as usize],
            None => 1.0,
        };
        for &place in places {
            let src = pairs.src(place as usize);
            let known = &self.probabilities;
            let sum: f32 = src.iter().map(|&source| probability(known, source)).sum();
            if sum == 0.0 {
                continue; // All of its explanations were dropped.
            }
            for &source in src {
                let share = probability(known, source) / sum;
                let count = &mut self.expected[source as usize];
                if *count == 0.0 && share > 0.0 {
                    self.touched.push(source);
                }
                *count += f64::from(share);
            }
        }
        for (source, _) in probabilities.unwrap_or_default() {
            self.probabilities[*source as usize] = 0.0;
        }
        self.touched.sort_unstable();
        let expected = &mut self.expected;
        let column = self.touched.drain(..).filter_map(|source| {
            let count = std::mem::take(&mut expected[source as usize]);
            (count >= LEAST * totals[source as usize]).then_some((source, count as f32))
        });
        column.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::EOS;

    /// Sources are made of tokens 4 to 13 in changing places and numbers; the translation of token s is
    /// s + 10, and every target has the token 30, which nothing in the source means.
    fn dictionary() -> TokenPairs {
        let mut pairs = TokenPairs::new(20, 40);
        for number in 0u32..200 {
            let length = 2 + number % 5;
            let src: Vec<u32> = (0..length)
                .map(|i| 4 + (number * 7 + i * i * 3 + i) % 10)
                .collect();
            let mut tgt: Vec<u32> = src.iter().rev().map(|token| token + 10).collect();
            tgt.insert(tgt.len() / 2, 30);
            pairs.push(&src, &tgt);
        }
        pairs
    }

    fn learned(pairs: &TokenPairs, threads: usize) -> Lexicon {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let pool = pool.build().expect("threads");
        pool.install(|| Lexicon::learn(pairs, 8, |_| {}))
    }

    #[test]
    fn a_dictionary_is_found() {
        let lexicon = learned(&dictionary(), 2);
        for source in 4..14 {
            let (target, probability) = lexicon.translations[source as usize][0];
            assert_eq!(target, source + 10);
            assert!(probability > 0.9, "{source} -> {target}: {probability}");
        }
        let (target, probability) = lexicon.translations[EOS as usize][0];
        assert!(
            target == 30 && probability > 0.9,
            "the empty word -> {target}"
        );
        assert_eq!(lexicon.tgt_counts[30], 200);
        for list in lexicon.translations.iter().filter(|list| !list.is_empty()) {
            let sum: f32 = list.iter().map(|(_, probability)| probability).sum();
            assert!((sum - 1.0).abs() < 1e-4, "{sum}");
            assert!(list.is_sorted_by(|a, b| a.1 >= b.1));
        }
    }

    #[test]
    fn threads_change_no_bit() {
        let pairs = dictionary();
        let alone = learned(&pairs, 1);
        for threads in [2, 3, 8] {
            assert_eq!(learned(&pairs, threads), alone);
        }
    }

    #[test]
    fn progress_rises_to_one() {
        let mut seen = vec![0.0];
        Lexicon::learn(&dictionary(), 3, |done| seen.push(done));
        assert!(seen.is_sorted() && seen.len() == 4, "{seen:?}");
        assert_eq!(seen.last(), Some(&1.0));
    }

    #[test]
    fn nothing_is_learned_from_nothing() {
        let lexicon = Lexicon::learn(&TokenPairs::new(5, 6), 2, |_| {});
        assert_eq!(lexicon.translations, vec![Vec::new(); 5]);
        assert_eq!(lexicon.tgt_counts, [0; 6]);
    }
}
