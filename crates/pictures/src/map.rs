//! An attention map: the weights of one attention head, or something computed from several.
//!
//! Rows are queries, columns are keys. Neighbors: [`crate::record`] holds the maps of a whole model,
//! [`crate::rollout`] multiplies them.

use crate::error::{PictureError, Result};

/// Weights of every query over every key, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Map {
    rows: usize,
    cols: usize,
    weights: Vec<f32>,
}

impl Map {
    /// A map of `rows` queries and `cols` keys.
    pub fn new(rows: usize, cols: usize, weights: Vec<f32>) -> Result<Self> {
        if weights.len() != rows * cols || weights.is_empty() {
            return Err(PictureError::Shape {
                what: "the weights of a map".to_owned(),
                expected: format!("{rows} x {cols} numbers, at least one"),
                found: format!("{}", weights.len()),
            });
        }
        Ok(Self {
            rows,
            cols,
            weights,
        })
    }

    /// The number of queries.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of keys.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// All weights, row by row.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// One query's weights.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.weights[row * self.cols..][..self.cols]
    }

    /// The mean of maps of one shape; nothing without any.
    pub fn mean(maps: &[Map]) -> Option<Map> {
        let mut mean = maps.first()?.clone();
        for map in &maps[1..] {
            for (sum, weight) in mean.weights.iter_mut().zip(&map.weights) {
                *sum += weight;
            }
        }
        let count = maps.len() as f32;
        mean.weights.iter_mut().for_each(|sum| *sum /= count);
        Some(mean)
    }

    /// Merges subwords into words: the weights of a word's keys are added, those of a word's queries are
    /// averaged. Rows still sum to 1.
    ///
    /// `queries[i]` and `keys[j]` are the words of row `i` and column `j`, counted from 0 without gaps.
    pub fn merged(&self, queries: &[usize], keys: &[usize]) -> Map {
        let count = |words: &[usize]| words.iter().max().map_or(0, |last| last + 1);
        let (rows, cols) = (count(queries), count(keys));
        let mut weights = vec![0.0; rows * cols];
        for (row, query) in queries.iter().enumerate() {
            let pieces = queries.iter().filter(|other| *other == query).count() as f32;
            for (weight, key) in self.row(row).iter().zip(keys) {
                weights[query * cols + key] += weight / pieces;
            }
        }
        Map {
            rows,
            cols,
            weights,
        }
    }

    /// The matrix product.
    pub(crate) fn times(&self, other: &Map) -> Map {
        assert_eq!(self.cols, other.rows, "shapes were checked with the record");
        let mut weights = vec![0.0; self.rows * other.cols];
        for (row, sums) in weights.chunks_mut(other.cols).enumerate() {
            for (weight, through) in self.row(row).iter().zip(0..) {
                for (sum, further) in sums.iter_mut().zip(other.row(through)) {
                    *sum += weight * further;
                }
            }
        }
        Map {
            rows: self.rows,
            cols: other.cols,
            weights,
        }
    }

    /// Half of this and half of the other.
    pub(crate) fn halfway(&self, other: &Map) -> Map {
        Map::mean(&[self.clone(), other.clone()]).expect("two maps")
    }

    /// Every query attends to itself alone.
    pub(crate) fn identity(size: usize) -> Map {
        let mut map = Map::zeros(size, size);
        (0..size).for_each(|i| map.weights[i * size + i] = 1.0);
        map
    }

    /// All weights zero.
    pub(crate) fn zeros(rows: usize, cols: usize) -> Map {
        Map {
            rows,
            cols,
            weights: vec![0.0; rows * cols],
        }
    }

    /// The same, with rows that sum to 1; a row of zeros stays one.
    pub(crate) fn normalized(mut self) -> Map {
        for row in self.weights.chunks_mut(self.cols) {
            let sum: f32 = row.iter().sum();
            if sum > 0.0 {
                row.iter_mut().for_each(|weight| *weight /= sum);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_keys_of_a_word_are_added_and_its_queries_averaged() {
        let map = Map::new(3, 3, vec![0.5, 0.3, 0.2, 0.1, 0.2, 0.7, 0.0, 1.0, 0.0]).unwrap();
        // The first two queries are one word, so are the last two keys.
        let merged = map.merged(&[0, 0, 1], &[0, 1, 1]);
        assert_eq!((merged.rows(), merged.cols()), (2, 2));
        for (found, expected) in merged.weights().iter().zip([0.3, 0.7, 0.0, 1.0]) {
            assert!((found - expected).abs() < 1e-6, "{merged:?}");
        }
    }

    #[test]
    fn a_map_without_all_its_weights_is_refused() {
        let message = Map::new(2, 3, vec![0.0; 5]).unwrap_err().to_string();
        assert!(
            message.contains("2 x 3") && message.contains("found 5"),
            "{message}"
        );
        assert!(Map::new(0, 0, vec![]).is_err());
    }

    proptest! {
        #[test]
        fn words_keep_rows_that_sum_to_one(
            size in 1usize..12,
            seed in proptest::collection::vec(0.01f32..1.0, 144),
            cuts in proptest::collection::vec(any::<bool>(), 12),
        ) {
            let map = Map::new(size, size, seed[..size * size].to_vec()).unwrap().normalized();
            let mut word = 0;
            let words: Vec<usize> = (0..size)
                .map(|i| { if i > 0 && cuts[i] { word += 1; } word })
                .collect();
            let merged = map.merged(&words, &words);
            for row in 0..merged.rows() {
                let sum: f32 = merged.row(row).iter().sum();
                prop_assert!((sum - 1.0).abs() < 1e-4, "row {row} sums to {sum}");
            }
        }
    }
}
