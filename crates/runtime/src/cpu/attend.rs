//! Scaled dot-product attention (§3.2.1) over pages of keys and values.
//!
//! A page holds [`LANES`] positions: for each key-value head their keys, then their values, a row for each
//! position. The encoder's own positions, the source as the decoder sees it and the decoder's past all
//! lie in such pages, so there is one attention. (Keys as a panel, one position per lane, would save
//! the sums over lanes; but a new position would touch a cache line for each of its numbers.)
//! Neighbors: [`super::pages`] holds the decoder's.

use super::product::{F32Product, Out, Then, f32_product};
use super::rowwise::softmax;
use super::simd::{LANES, Simd, Work};
use attentive_model::config::TransformerConfig;

/// Sizes of an attention layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heads {
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
}

impl Heads {
    pub fn new(config: &TransformerConfig) -> Self {
        Self {
            heads: config.heads,
            kv_heads: config.kv_heads,
            head_dim: config.head_dim(),
        }
    }

    /// Width of a position's keys, and of its values.
    pub fn kv_width(self) -> usize {
        self.kv_heads * self.head_dim
    }

    /// Width of a row in a page; the numbers behind `head_dim` are zero.
    fn row_width(self) -> usize {
        self.head_dim.next_multiple_of(LANES)
    }

    /// Numbers of one head in a page.
    fn head_page(self) -> usize {
        2 * LANES * self.row_width()
    }

    /// A page is made of blocks: the keys or values of one head. The size of a block and of a row in it.
    pub fn block(self) -> (usize, usize) {
        (LANES * self.row_width(), self.row_width())
    }

    /// Numbers of one layer in a page.
    pub fn page(self) -> usize {
        self.kv_heads * self.head_page()
    }

    /// Writes the keys and values of one position into its page.
    pub fn write(self, page: &mut [f32], position: usize, keys: &[f32], values: &[f32]) {
        let width = self.row_width();
        let heads = page.chunks_exact_mut(self.head_page());
        let keys = keys.chunks_exact(self.head_dim);
        for ((page, keys), values) in heads.zip(keys).zip(values.chunks_exact(self.head_dim)) {
            let place = position % LANES * width;
            page[place..][..self.head_dim].copy_from_slice(keys);
            page[LANES * width + place..][..self.head_dim].copy_from_slice(values);
        }
    }
}

/// Attention of `rows` queries over the same positions.
pub(crate) struct Attend<'a> {
    pub heads: Heads,
    pub queries: *const f32,
    pub query_stride: usize,
    pub rows: usize,
    /// The memory that all pages lie in, where each one begins, and this layer's part within them.
    pub memory: &'a [f32],
    pub pages: &'a [usize],
    pub layer: usize,
    /// Positions to look at.
    pub len: usize,
    pub out: *mut f32,
    pub out_stride: usize,
    /// Room for `rows` times `len` rounded up to a whole vector, and better for every head's.
    pub scores: &'a mut [f32],
    /// Where the weights go if they are wanted, and which of its queries the first row is.
    pub weights: Option<(&'a mut LayerWeights, usize)>,
}

/// The attention weights of one layer for one sentence, `[heads, queries, keys]`; 0 where a query does not look.
#[derive(Debug)]
pub(crate) struct LayerWeights {
    values: Vec<f32>,
    queries: usize,
    keys: usize,
}

impl LayerWeights {
    pub fn zeros(heads: usize, queries: usize, keys: usize) -> Self {
        let values = vec![0.0; heads * queries * keys];
        Self {
            values,
            queries,
            keys,
        }
    }

    /// Stores the softmax of one head's scores, rows of `width` of which the first `len` count.
    fn store(&mut self, head: usize, first: usize, scores: &[f32], width: usize, len: usize) {
        let rows = self.values[(head * self.queries + first) * self.keys..].chunks_mut(self.keys);
        for (row, scores) in rows.zip(scores.chunks_exact(width)) {
            row[..len].copy_from_slice(&scores[..len]);
        }
    }

    /// `queries * keys` weights of each head.
    pub fn into_heads(self) -> Vec<Vec<f32>> {
        let heads = self.values.chunks_exact(self.queries * self.keys);
        heads.map(<[f32]>::to_vec).collect()
    }

    /// The mean over the heads, `[queries, keys]`.
    pub fn mean(&self) -> Vec<f32> {
        let heads = self.values.chunks_exact(self.queries * self.keys);
        let share = 1.0 / heads.len() as f32;
        let mut mean = vec![0.0; self.queries * self.keys];
        for head in heads {
            for (sum, weight) in mean.iter_mut().zip(head) {
                *sum += share * weight;
            }
        }
        mean
    }
}

impl Work for Attend<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(mut self) {
        let Heads {
            heads,
            kv_heads,
            head_dim,
        } = self.heads;
        let width = self.len.next_multiple_of(LANES);
        let blocks = width / LANES;
        assert!(self.scores.len() >= self.rows * width && self.pages.len() >= blocks);
        let factor = 1.0 / (head_dim as f32).sqrt();
        let values = LANES * self.heads.row_width();
        // Of few queries the scores of several heads fit, and one head's steps need not wait for each other.
        let size = self.rows * width;
        let together = (self.scores.len().min(FEW_SCORES) / size.max(1)).clamp(1, heads);
        for first in (0..heads).step_by(together) {
            let some = first..heads.min(first + together);
            unsafe {
                for head in some.clone() {
                    let in_page = head / (heads / kv_heads) * self.heads.head_page();
                    for block in 0..blocks {
                        // The decoder's pages lie far away, and each head in its own piece of them.
                        if self.rows <= FETCH_ROWS {
                            self.fetch::<S>(block, in_page + values);
                            if head + heads / kv_heads < heads {
                                self.fetch::<S>(block, in_page + self.heads.head_page());
                            }
                        }
                        let keys = self.page(block, in_page);
                        let scores = self.scores.as_mut_ptr().add((head - first) * size);
                        for row in 0..self.rows {
                            let query = self.queries.add(row * self.query_stride + head * head_dim);
                            let scores = scores.add(row * width + block * LANES);
                            let count = (self.len - block * LANES).min(LANES);
                            dots::<S>(query, head_dim, keys, self.heads.row_width(), count, scores);
                        }
                    }
                }
                let rows = self.scores.chunks_exact_mut(width);
                for row in rows.take(some.len() * self.rows) {
                    softmax::<S>(row.as_mut_ptr(), self.len, factor);
                }
                for head in some.clone() {
                    let in_page = head / (heads / kv_heads) * self.heads.head_page();
                    for block in 0..blocks {
                        f32_product::<S>(&F32Product {
                            a: self.scores[(head - first) * size + block * LANES..].as_ptr(),
                            a_stride: width,
                            rows: self.rows,
                            k: (self.len - block * LANES).min(LANES),
                            b: self.page(block, in_page + values),
                            b_stride: self.heads.row_width(),
                            panel_stride: LANES,
                            bias: std::ptr::null(),
                            out: Out {
                                to: self.out.add(head * head_dim),
                                stride: self.out_stride,
                                n: head_dim,
                                then: if block == 0 { Then::Store } else { Then::Add },
                            },
                        });
                    }
                }
            }
            if let Some((weights, query)) = &mut self.weights {
                for head in some {
                    let scores = &self.scores[(head - first) * size..][..size];
                    weights.store(head, *query, scores, width, self.len);
                }
            }
        }
    }
}

/// Scores that stay in the first cache beside keys and values.
const FEW_SCORES: usize = 2048;

/// Rows up to which attention waits for memory more than it computes.
const FETCH_ROWS: usize = 8;

/// Products of a query with the first `count` keys of a page (rounded up to four).
#[inline(always)]
unsafe fn dots<S: Simd>(
    query: *const f32,
    head_dim: usize,
    keys: *const f32,
    width: usize,
    count: usize,
    out: *mut f32,
) {
    unsafe {
        // With the width of usual heads the query stays in registers.
        match (width / LANES, head_dim.is_multiple_of(LANES)) {
            (4, true) => return dots_of::<S, 4>(query, keys, count, out),
            (2, true) => return dots_of::<S, 2>(query, keys, count, out),
            _ => {}
        }
        let whole = head_dim / LANES * LANES;
        for first in (0..count).step_by(4) {
            let keys = keys.add(first * width);
            let mut sums = [S::splat(0.0); 4];
            for i in (0..whole).step_by(LANES) {
                let query = S::load(query.add(i));
                for (key, sum) in sums.iter_mut().enumerate() {
                    *sum = S::fma(query, S::load(keys.add(key * width + i)), *sum);
                }
            }
            if whole < head_dim {
                let query = S::load_some(query.add(whole), head_dim - whole, 0.0);
                for (key, sum) in sums.iter_mut().enumerate() {
                    *sum = S::fma(query, S::load(keys.add(key * width + whole)), *sum);
                }
            }
            S::sum4(sums, out.add(first));
        }
    }
}

/// The same for heads of `V` whole vectors.
#[inline(always)]
unsafe fn dots_of<S: Simd, const V: usize>(
    query: *const f32,
    keys: *const f32,
    count: usize,
    out: *mut f32,
) {
    unsafe {
        let mut vectors = [S::splat(0.0); V];
        for (v, vector) in vectors.iter_mut().enumerate() {
            *vector = S::load(query.add(v * LANES));
        }
        for first in (0..count).step_by(4) {
            let keys = keys.add(first * V * LANES);
            let mut sums = [S::splat(0.0); 4];
            for (v, vector) in vectors.iter().enumerate() {
                for (key, sum) in sums.iter_mut().enumerate() {
                    *sum = S::fma(*vector, S::load(keys.add((key * V + v) * LANES)), *sum);
                }
            }
            S::sum4(sums, out.add(first));
        }
    }
}

impl Attend<'_> {
    /// Part of a page; whole heads are checked to be inside.
    #[inline(always)]
    fn page(&self, block: usize, at: usize) -> *const f32 {
        self.memory[self.pages[block] + self.layer..][..self.heads.page()][at..].as_ptr()
    }

    /// Asks for the keys or values that begin there, ahead of their use.
    #[inline(always)]
    unsafe fn fetch<S: Simd>(&self, block: usize, at: usize) {
        let from = self.page(block, at);
        let rows = (self.len - block * LANES).min(LANES);
        for i in (0..rows * self.heads.row_width()).step_by(LANES) {
            unsafe { S::fetch(from.add(i).cast()) };
        }
    }
}
