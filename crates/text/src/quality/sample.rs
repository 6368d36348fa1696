//! Pairs that are spread evenly over a corpus, for what need not see all of it: lexicons, vocabularies, measurements.

use std::path::Path;

use super::pairs::{PairReader, text};
use crate::error::{Result, TextError};
use crate::lines::is_blank;

/// Some of the pairs of a corpus.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    pairs: Vec<(String, String)>,
    /// Every so many pairs one is kept.
    stride: usize,
    offered: usize,
}

/// At most so many pairs are kept.
const MOST: usize = 40_000;

impl Sample {
    /// Reads the files for the sample alone.
    pub fn read(files: &[(&Path, &Path)], progress: &mut (dyn FnMut(u64) + Send)) -> Result<Self> {
        let mut sample = Self::default();
        let mut before = 0;
        for (src, tgt) in files {
            let mut last = 0;
            PairReader::open(src, tgt)?.each_chunk(|chunk| {
                for index in 0..chunk.pairs() {
                    let (src, tgt) = chunk.pair(index);
                    if let (Some(src), Some(tgt)) = (text(src), text(tgt)) {
                        sample.offer(src, tgt);
                    }
                }
                last = chunk.bytes_read;
                progress(before + last);
                Ok::<_, TextError>(())
            })?;
            before += last;
        }
        Ok(sample)
    }

    /// Takes the pair, if it is one of those to be kept.
    pub fn offer(&mut self, src: &str, tgt: &str) {
        let stride = self.stride.max(1);
        if self.offered.is_multiple_of(stride) && !is_blank(src) && !is_blank(tgt) {
            self.pairs.push((src.to_owned(), tgt.to_owned()));
        }
        self.offered += 1;
        if self.pairs.len() > MOST {
            let mut index = 0;
            self.pairs.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride = stride * 2;
        }
    }

    /// The pairs in their order.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// How many pairs of the corpus stand behind each pair here.
    pub fn pairs_behind_each(&self) -> f64 {
        self.offered as f64 / self.pairs.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_evenly() {
        let mut sample = Sample::default();
        for number in 0..MOST * 5 {
            sample.offer(&number.to_string(), "x");
        }
        let kept = sample.pairs().len();
        assert!((MOST / 2..=MOST).contains(&kept), "{kept}");
        let numbers: Vec<usize> = sample
            .pairs()
            .iter()
            .map(|(src, _)| src.parse().unwrap())
            .collect();
        let gaps = numbers.windows(2).map(|two| two[1] - two[0]);
        let gaps: Vec<usize> = gaps.collect();
        assert!(
            gaps.iter()
                .all(|gap| *gap <= 2 * gaps[0] && gaps[0] <= 2 * gap),
            "{:?}",
            gaps.iter().max()
        );
        assert!(*numbers.last().unwrap() > MOST * 5 - 20);
    }
}
