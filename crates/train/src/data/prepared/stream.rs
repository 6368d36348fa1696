//! An epoch of a prepared corpus: every pair exactly once (or as often as its file's weight says), shuffled, in
//! batches of similar length, at the same memory for a million pairs and for a hundred million.
//!
//! The blocks of all shards are put into a random order and cut into windows. The pairs of a window, some hundred
//! thousand from all over the corpus, are shuffled, sorted by length and cut into batches as a corpus in memory is
//! ([`crate::data::batches`]), and the batches are shuffled. One window is mapped at a time. Everything is a function of
//! seed and epoch, so a continued run opens the window that it stopped in; the processes of a run share one plan, and
//! each reads the pairs of its own batches.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use super::shard::{BLOCK_PAIRS, MappedShard};
use super::{Prepared, PreparedError};
use crate::data::batches::{Batch, Budget, Columns, count_batches, padding_share_of, plan_of};
use crate::data::corpus::Pair;
use crate::data::mixture::visits_of;
use crate::data::random::SplitMix64;
use crate::error::Result;
use crate::task::Plan;

/// Blocks of a window, at most: 131,072 pairs, in which lengths find their like.
const WINDOW_BLOCKS: usize = 256;

/// What an epoch depends on, beside the corpus.
#[derive(Debug, Clone)]
pub struct EpochOptions {
    /// How much goes into a batch.
    pub budget: Budget,
    /// `data.weights`; empty for once each.
    pub weights: Vec<f64>,
    /// `training.seed`.
    pub seed: u64,
    /// From 0.
    pub epoch: u64,
}

/// The batches of an epoch.
#[derive(Debug)]
pub struct StreamedEpoch {
    prepared: Arc<Prepared>,
    options: EpochOptions,
    /// All blocks in the order of the epoch.
    blocks: Vec<u32>,
    /// Blocks of a window.
    window_blocks: usize,
    /// Batches up to the end of each window.
    ends: Vec<usize>,
    /// The one that is being trained on.
    current: Mutex<Option<Window>>,
}

/// Some blocks of the corpus.
#[derive(Debug)]
struct Window {
    number: usize,
    /// By shard.
    maps: BTreeMap<usize, MappedShard>,
    /// Those that are verified, sorted.
    blocks: Vec<u32>,
    /// The pairs of each batch.
    plan: Vec<Vec<usize>>,
    padding: f64,
}

/// The pairs of a window, as often as they are visited.
#[derive(Debug, Default)]
struct WindowPairs {
    /// The shards that they are in.
    maps: BTreeMap<usize, MappedShard>,
    /// Which pair of the corpus each is.
    numbers: Vec<usize>,
    columns: Vec<Columns>,
}

/// Tell the random numbers of the order of blocks and of windows from each other.
const BLOCKS: u64 = 0x626C_6F63_6B73;
const WINDOW: u64 = 0x7769_6E64_6F77;

impl StreamedEpoch {
    /// Plans the epoch: its windows, and how many batches each has.
    pub fn new(prepared: Arc<Prepared>, options: EpochOptions) -> Result<Self, PreparedError> {
        let mut blocks: Vec<u32> = (0..prepared.blocks() as u32).collect();
        SplitMix64::new(&[options.seed, options.epoch, BLOCKS]).shuffle(&mut blocks);
        // As many in each, so that the last is not too small to find pairs of similar length.
        let windows = blocks.len().div_ceil(WINDOW_BLOCKS).max(1);
        let window_blocks = blocks.len().div_ceil(windows).max(1);
        let mut epoch = Self {
            prepared,
            options,
            blocks,
            window_blocks,
            ends: Vec::new(),
            current: Mutex::new(None),
        };
        let counts = (0..windows)
            .into_par_iter()
            .map(|number| epoch.count(number))
            .collect::<Result<Vec<usize>, _>>()?;
        epoch.ends = counts
            .iter()
            .scan(0, |end, count| {
                *end += count;
                Some(*end)
            })
            .collect();
        Ok(epoch)
    }

    /// Share of the positions fed to the model that is padding, in the first window.
    pub fn padding(&self) -> Result<f64, PreparedError> {
        self.with_window(0, |window| window.padding)
    }

    /// The batch of these pairs.
    pub fn collect(&self, pairs: &[usize]) -> Result<Batch, PreparedError> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let found = pairs
            .iter()
            .map(|&pair| self.pair(pair, current.as_ref()))
            .collect::<Result<Vec<Pair>, _>>()?;
        let mut batch = Batch::collect(&found, &(0..found.len()).collect::<Vec<_>>());
        batch.pairs = pairs.to_vec();
        Ok(batch)
    }

    /// A pair by its number, from the window or, if it is not in there, from its shard.
    fn pair(&self, pair: usize, window: Option<&Window>) -> Result<Pair, PreparedError> {
        let (shard, block, index) = self.prepared.place(pair);
        let global = self.prepared.first_block(shard) + block;
        if let Some(window) = window
            && window.blocks.binary_search(&(global as u32)).is_ok()
            && let Some(map) = window.maps.get(&shard)
        {
            return Ok(map.pair(block, index));
        }
        let map = self.prepared.shard(shard).map()?;
        map.verify(block)?;
        Ok(map.pair(block, index))
    }

    /// How many batches a window has: lengths are read, and no tokens.
    fn count(&self, number: usize) -> Result<usize, PreparedError> {
        let pairs = self.pairs_of(number)?;
        Ok(count_batches(
            pairs.columns.into_iter(),
            self.options.budget,
        ))
    }

    fn pairs_of(&self, number: usize) -> Result<WindowPairs, PreparedError> {
        let prepared = &self.prepared;
        let mut found = WindowPairs::default();
        for &block in self.window(number) {
            let (shard, block) = prepared.shard_of_block(block as usize);
            let map = match found.maps.entry(shard) {
                Entry::Occupied(mapped) => mapped.into_mut(),
                Entry::Vacant(free) => free.insert(prepared.shard(shard).map()?),
            };
            let first = prepared.first_pair(shard) + block * BLOCK_PAIRS;
            let file = prepared.shard(shard).header().file as usize;
            for (pair, columns) in (first..).zip(map.columns(block)) {
                for _ in 0..self.visits(file, pair) {
                    found.numbers.push(pair);
                    found.columns.push(columns);
                }
            }
        }
        Ok(found)
    }

    /// How often the epoch visits a pair of a file.
    fn visits(&self, file: usize, pair: usize) -> u64 {
        let EpochOptions { seed, epoch, .. } = self.options;
        let weight = self.options.weights.get(file);
        weight.map_or(1, |&weight| visits_of(pair, weight, seed, epoch))
    }

    fn window(&self, number: usize) -> &[u32] {
        let blocks = self.blocks.chunks(self.window_blocks).nth(number);
        blocks.unwrap_or_default()
    }

    /// Reads the lengths of a window, verifies its blocks and plans its batches.
    fn open(&self, number: usize) -> Result<Window, PreparedError> {
        let WindowPairs {
            maps,
            numbers,
            columns,
        } = self.pairs_of(number)?;
        let mut blocks = self.window(number).to_vec();
        blocks.sort_unstable();
        blocks.par_iter().try_for_each(|&block| {
            let (shard, block) = self.prepared.shard_of_block(block as usize);
            maps[&shard].verify(block)
        })?;
        let EpochOptions {
            budget,
            seed,
            epoch,
            ..
        } = self.options;
        let mut random = SplitMix64::new(&[seed, epoch, WINDOW, number as u64]);
        let mut plan = plan_of(&columns, budget, &mut random);
        let padding = padding_share_of(&columns, &plan);
        for pair in plan.iter_mut().flatten() {
            *pair = numbers[*pair];
        }
        Ok(Window {
            number,
            maps,
            blocks,
            plan,
            padding,
        })
    }

    /// Looks at a window, which is opened if another one was; the pages of that are given back before.
    fn with_window<R>(
        &self,
        number: usize,
        look: impl FnOnce(&Window) -> R,
    ) -> Result<R, PreparedError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = current.take().filter(|window| window.number == number);
        let window = match opened {
            Some(window) => window,
            None => self.open(number)?,
        };
        Ok(look(current.insert(window)))
    }
}

impl Plan for Arc<StreamedEpoch> {
    fn batches(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn batch(&self, index: usize) -> Result<Vec<usize>> {
        let window = self.ends.partition_point(|&end| end <= index);
        let first = window.checked_sub(1).map_or(0, |before| self.ends[before]);
        Ok(self.with_window(window, |window| window.plan[index - first].clone())?)
    }
}
