//! Resampled statistics: sums over segments drawn with replacement, and over segments swapped between two
//! systems.
//!
//! Both only add rows of `Statistics` up, thousands of times, so they are written for speed; what is
//! summed, in which order and precision, is sacreBLEU's.

use rayon::prelude::*;

use crate::numpy::Generator;
use crate::statistics::Statistics;

/// Samples drawn before they are summed; bounds the memory for the indices.
const BLOCK: usize = 256;
/// Trials worked on at once: their sums and those of a group's subsets stay in the nearest cache.
const TRIALS: usize = 64;
/// Columns summed at once, which fit vector registers.
const LANES: usize = 4;
/// Rows whose subsets are summed in advance.
const GROUP: usize = 6;

/// For each sample the sums of each table over the same segments, drawn with replacement.
///
/// `score` turns the sums of one sample of one table, given by its index, into a value. The result has one
/// list of values per table.
pub(crate) fn bootstrap<T: Send + Copy>(
    tables: &[&Statistics],
    samples: usize,
    generator: &mut Generator,
    score: impl Fn(usize, &[f64]) -> T + Sync,
) -> Vec<Vec<T>> {
    let Some(first) = tables.first() else {
        return Vec::new();
    };
    let segments = first.segments();
    let padded: Vec<PaddedRows> = tables.iter().map(|table| PaddedRows::new(table)).collect();
    let mut results = vec![Vec::with_capacity(samples); tables.len()];
    let mut indices = Vec::new();
    for begin in (0..samples).step_by(BLOCK) {
        let count = BLOCK.min(samples - begin);
        indices.clear();
        indices.extend((0..count * segments).map(|_| generator.below(segments as u32)));
        let scored: Vec<Vec<T>> = indices
            .par_chunks_exact(segments)
            .map(|drawn| {
                let table = |(index, rows): (usize, &PaddedRows)| score(index, &rows.sum(drawn));
                padded.iter().enumerate().map(table).collect()
            })
            .collect();
        for sample in scored {
            for (list, value) in results.iter_mut().zip(sample) {
                list.push(value);
            }
        }
    }
    results
}

/// Which segments of two systems are swapped, in each trial.
pub(crate) struct Swaps {
    segments: usize,
    trials: usize,
    /// One bit per trial and segment, in order, the lowest bit of a word first.
    words: Vec<u32>,
}

impl Swaps {
    /// Tosses a coin for every segment of every trial.
    pub(crate) fn draw(segments: usize, trials: usize, generator: &mut Generator) -> Self {
        let mut words: Vec<u32> = (0..(segments * trials).div_ceil(32))
            .map(|_| generator.next_u32())
            .collect();
        // Reading a group of bits may look one word further.
        words.push(0);
        Self {
            segments,
            trials,
            words,
        }
    }

    /// For each trial the sums of the two pseudo-systems that swapping makes of two systems.
    ///
    /// Whole numbers sum exactly in any order. Fractions, which only TER over several references has, do not:
    /// trials that tie with the real difference then fall to either side by rounding. sacreBLEU leaves
    /// that to the machine's BLAS library, so there such p-values differ between machines too.
    pub(crate) fn score<T: Send>(
        &self,
        baseline: &Statistics,
        system: &Statistics,
        score: impl Fn(&[f64], &[f64]) -> T + Sync,
    ) -> Vec<T> {
        let width = baseline.width();
        let stride = width.next_multiple_of(LANES);
        let subsets = subset_sums(baseline, system, stride);
        let (base, other) = (baseline.totals(), system.totals());
        let mut start = other.clone();
        start.resize(stride, 0.0);
        let block = |begin: usize| {
            let count = TRIALS.min(self.trials - begin);
            // Taking the baseline's row instead of the system's adds their difference.
            let mut firsts = start.repeat(count);
            for (group, sums) in subsets.chunks_exact(stride << GROUP).enumerate() {
                for (index, first) in firsts.chunks_exact_mut(stride).enumerate() {
                    let chosen = self.bits(begin + index, group * GROUP) as usize * stride;
                    add(first, &sums[chosen..chosen + stride]);
                }
            }
            let pair = |first: &[f64]| {
                let rest = |i: usize| base[i] + other[i] - first[i];
                score(first, &(0..width).map(rest).collect::<Vec<f64>>())
            };
            firsts
                .chunks_exact(stride)
                .map(|first| pair(&first[..width]))
                .collect()
        };
        let blocks: Vec<Vec<T>> = (0..self.trials.div_ceil(TRIALS))
            .into_par_iter()
            .map(|index| block(index * TRIALS))
            .collect();
        blocks.into_iter().flatten().collect()
    }

    /// The bits of a group of segments from `segment` on.
    fn bits(&self, trial: usize, segment: usize) -> u32 {
        let position = trial * self.segments + segment;
        let (word, shift) = (position / 32, position % 32);
        let pair = u64::from(self.words[word]) | (u64::from(self.words[word + 1]) << 32);
        let count = GROUP.min(self.segments - segment);
        (pair >> shift) as u32 & ((1 << count) - 1)
    }
}

/// For each group of segments the sum of baseline minus system over each of its subsets, each `stride` long.
fn subset_sums(baseline: &Statistics, system: &Statistics, stride: usize) -> Vec<f64> {
    let mut sums = Vec::new();
    let mut difference = vec![0.0; stride];
    for begin in (0..baseline.segments()).step_by(GROUP) {
        let offset = sums.len();
        sums.resize(offset + (stride << GROUP), 0.0);
        let group = &mut sums[offset..];
        for bit in 0..GROUP.min(baseline.segments() - begin) {
            let rows = baseline
                .row(begin + bit)
                .iter()
                .zip(system.row(begin + bit));
            for (cell, (base, other)) in difference.iter_mut().zip(rows) {
                *cell = base - other;
            }
            // Every subset of the segments before, with this one added.
            let (without, with) = group.split_at_mut(stride << bit);
            with[..without.len()].copy_from_slice(without);
            for to in with[..without.len()].chunks_exact_mut(stride) {
                add(to, &difference);
            }
        }
    }
    sums
}

/// Adds whole vectors; both slices are a multiple of [`LANES`] long.
fn add(totals: &mut [f64], values: &[f64]) {
    let (totals, _) = totals.as_chunks_mut::<LANES>();
    let (values, _) = values.as_chunks::<LANES>();
    for (total, value) in totals.iter_mut().zip(values) {
        *total = std::array::from_fn(|lane| total[lane] + value[lane]);
    }
}

/// Statistics as 32-bit floats, each row padded to whole vectors.
struct PaddedRows {
    width: usize,
    stride: usize,
    cells: Vec<f32>,
}

impl PaddedRows {
    fn new(statistics: &Statistics) -> Self {
        let width = statistics.width();
        let stride = width.next_multiple_of(LANES);
        let mut cells = vec![0.0; stride * statistics.segments()];
        for (padded, row) in cells.chunks_exact_mut(stride).zip(statistics.rows()) {
            for (cell, value) in padded.iter_mut().zip(row) {
                *cell = *value as f32;
            }
        }
        Self {
            width,
            stride,
            cells,
        }
    }

    /// The sum of the drawn rows, in 32 bits and in the order drawn, as numpy sums an array's rows.
    fn sum(&self, drawn: &[u32]) -> Vec<f64> {
        let mut totals = Vec::with_capacity(self.stride);
        for column in (0..self.stride).step_by(LANES) {
            let mut lanes = [0.0_f32; LANES];
            for &index in drawn {
                let begin = index as usize * self.stride + column;
                for (lane, cell) in lanes.iter_mut().zip(&self.cells[begin..begin + LANES]) {
                    *lane += cell;
                }
            }
            totals.extend(lanes.map(f64::from));
        }
        totals.truncate(self.width);
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[[f64; 2]]) -> Statistics {
        Statistics::new(2, rows.concat())
    }

    #[test]
    fn swapping_keeps_the_sum_of_both_systems() {
        let rows: Vec<[f64; 2]> = (0..19).map(|i| [f64::from(i), 1.0]).collect();
        let other: Vec<[f64; 2]> = (0..19).map(|i| [f64::from(i * i), 2.0]).collect();
        let (baseline, system) = (table(&rows), table(&other));
        let swaps = Swaps::draw(19, 50, &mut Generator::new(1));
        let trials = swaps.score(&baseline, &system, |a, b| (a.to_vec(), b.to_vec()));
        for (trial, (first, second)) in trials.iter().enumerate() {
            let mut expected = [0.0; 2];
            for segment in 0..19 {
                let from_baseline = swaps.bits(trial, segment) & 1 == 1;
                let row = if from_baseline { &baseline } else { &system }.row(segment);
                expected[0] += row[0];
                expected[1] += row[1];
            }
            assert_eq!(first[..], expected);
            assert_eq!(first[0] + second[0], 171.0 + 2109.0);
        }
    }

    #[test]
    fn all_tables_are_summed_over_the_same_segments() {
        let rows: Vec<[f64; 2]> = (0..9).map(|i| [f64::from(i), 1.0]).collect();
        let statistics = table(&rows);
        let mut generator = Generator::new(3);
        let both = bootstrap(
            &[&statistics, &statistics],
            300,
            &mut generator,
            |_, sums| sums[0],
        );
        assert_eq!(both[0], both[1]);
        assert_eq!(both[0].len(), 300);
        let mut again = Generator::new(3);
        let first: u32 = (0..9).map(|_| again.below(9)).sum();
        assert_eq!(both[0][0], f64::from(first));
    }
}
