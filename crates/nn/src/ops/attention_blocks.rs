//! Attention over long sequences on the CPU, in memory that grows with their length and not with its square.
//!
//! Queries and keys meet block by block (FlashAttention, Dao et al. 2022). Forward, a block of queries goes over
//! all keys with a running maximum and a running sum of its softmax; kept are the output and, for each query,
//! the logarithm of its sum. Backward, the weights of a block are computed again from these. Scores lie
//! transposed, `[keys, queries]`: one query per lane, so that maxima and sums need no step across lanes, and
//! no product needs its factors in another order. Hidden blocks are skipped.
//! Neighbors: [`mod@super::attention`] calls this, [`super::attention_kernel`] multiplies,
//! [`super::attention_softmax`] makes weights of scores.

use std::ops::Range;

use rayon::prelude::*;

use super::{
    attention::{Call, Sizes},
    attention_kernel::{Left, Product, multiply},
    attention_softmax::{soften, soften_backward},
    matrix::Output,
    simd::{LANES, simd, sum2},
};

/// Queries of a block; whole vectors.
pub(super) const QUERIES: usize = 128;
/// Keys of a block. The scores of a block and its queries, keys and values lie in the second-level cache.
const KEYS: usize = 128;
/// The most segments that keys are split into backward, so that few heads keep many cores busy.
const SEGMENTS: usize = 8;

/// The output `[batch, query_len, heads * head_dim]`, and the logarithm of every query's sum, for each head
/// whole blocks.
pub(super) fn forward(call: &Call) -> (Vec<f32>, Vec<f32>) {
    let sizes = call.sizes;
    let blocks = sizes.query_len.div_ceil(QUERIES);
    let mut output = vec![0.0; call.query.len()];
    let mut log_sums = vec![0.0; call.batch() * sizes.heads * blocks * QUERIES];
    let place = Output(output.as_mut_ptr());
    log_sums.par_chunks_mut(QUERIES).enumerate().for_each_init(
        || Room::new(sizes),
        |room, (index, log_sums)| {
            let at = Place::new(sizes, index / blocks, index % blocks);
            forward_block(call, at, room, log_sums, place);
        },
    );
    (output, log_sums)
}

/// The gradients of keys and values for that of the output; that of the queries takes the place of the output, which is
/// needed only at the beginning.
///
/// A task is a segment of the keys of one head, and in each round it meets another segment of the queries. So no
/// two tasks of a round write to the same place, and every sum has one order.
pub(super) fn backward(
    call: &Call,
    output: &mut [f32],
    log_sums: &[f32],
    gradient: &[f32],
) -> [Vec<f32>; 2] {
    let sizes = call.sizes;
    let query_blocks = sizes.query_len.div_ceil(QUERIES);
    let key_blocks = sizes.key_len.div_ceil(KEYS);
    let segments = (query_blocks.min(key_blocks) / 2).clamp(1, SEGMENTS);
    let share = sizes.heads / sizes.kv_heads;
    let mut along = vec![0.0; log_sums.len()];
    let finished = &*output;
    let chunks = along.par_chunks_mut(QUERIES).enumerate();
    chunks.for_each(|(index, along)| {
        let at = Place::new(sizes, index / query_blocks, index % query_blocks);
        sum_along(sizes, at, finished, gradient, along);
    });
    output.fill(0.0);
    let [mut d_key, mut d_value] = [call.key, call.value].map(|input| vec![0.0; input.len()]);
    let places = [output, &mut d_key, &mut d_value].map(|values| Output(values.as_mut_ptr()));
    for round in 0..segments {
        let tasks = (0..call.batch() * sizes.kv_heads * segments).into_par_iter();
        tasks.for_each_init(
            || (Room::new(sizes), GradientRoom::new(sizes)),
            |(room, more), task| {
                let (kv_head, keys) = (task / segments, task % segments);
                let queries = segment(query_blocks, segments, (keys + round) % segments);
                let keys = segment(key_blocks, segments, keys);
                for head in kv_head * share..(kv_head + 1) * share {
                    for block in queries.clone() {
                        let at = Place::new(sizes, head, block);
                        let rows = (head * query_blocks + block) * QUERIES;
                        let sums = [&log_sums[rows..][..QUERIES], &along[rows..][..QUERIES]];
                        backward_block(call, at, keys.clone(), room, more, sums, gradient, places);
                    }
                }
            },
        );
    }
    [d_key, d_value]
}

/// Which blocks belong to a segment.
fn segment(blocks: usize, segments: usize, index: usize) -> Range<usize> {
    blocks * index / segments..blocks * (index + 1) / segments
}

/// Where a block of queries of one head lies.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The sentence.
    row: usize,
    /// The block's first query.
    first: usize,
    /// How many queries there are.
    count: usize,
    /// Where the numbers of the first query begin, and those of the head's first key.
    query: usize,
    key: usize,
    /// The index of the weight of the first query and the first key.
    weight: u32,
}

impl Place {
    /// Block `block` of head `head`, which counts through all sentences.
    fn new(sizes: Sizes, head: usize, block: usize) -> Self {
        let (row, head_of_row) = (head / sizes.heads, head % sizes.heads);
        let first = block * QUERIES;
        let kv_head = head_of_row / (sizes.heads / sizes.kv_heads);
        Self {
            row,
            first,
            count: QUERIES.min(sizes.query_len - first),
            query: (row * sizes.query_len + first) * sizes.width() + head_of_row * sizes.head_dim,
            key: row * sizes.key_size() + kv_head * sizes.head_dim,
            weight: ((head * sizes.query_len + first) as u32).wrapping_mul(sizes.key_len as u32),
        }
    }

    /// Whether the queries may see any of these keys.
    fn sees(&self, call: &Call, keys: &Range<usize>) -> bool {
        if call.causal && keys.start >= self.first + self.count {
            return false;
        }
        let padded = call.padded_of(self.row);
        !padded.is_some_and(|padded| padded[keys.clone()].iter().all(|padded| *padded))
    }

    /// The indices of the weights of 16 queries and the first of these keys.
    #[inline(always)]
    pub(super) fn weights(&self, call: &Call, lane: usize, keys: &Range<usize>) -> [u32; LANES] {
        let first = self.weight.wrapping_add(keys.start as u32);
        let step = call.sizes.key_len as u32;
        let mut indices = [0; LANES];
        for (i, index) in indices.iter_mut().enumerate() {
            *index = first.wrapping_add(((lane + i) as u32).wrapping_mul(step));
        }
        indices
    }
}

/// What a block of queries and a block of keys need. Rows are padded to whole vectors with zeros.
struct Room {
    /// The queries, scaled, `[head_dim, QUERIES]`.
    turned: Vec<f32>,
    /// `[KEYS, padded]`
    keys: Vec<f32>,
    values: Vec<f32>,
    /// `[KEYS, QUERIES]`: scores, then weights after dropout.
    scores: Vec<f32>,
    /// `[QUERIES, padded]`: the output, or the gradient of the queries.
    sums: Vec<f32>,
    padded: usize,
}

impl Room {
    fn new(sizes: Sizes) -> Self {
        let padded = sizes.head_dim.next_multiple_of(LANES);
        Self {
            turned: vec![0.0; sizes.head_dim * QUERIES],
            keys: vec![0.0; KEYS * padded],
            values: vec![0.0; KEYS * padded],
            scores: vec![0.0; KEYS * QUERIES],
            sums: vec![0.0; QUERIES * padded],
            padded,
        }
    }

    /// Copies keys and values: in a row of all heads they would crowd into a few lines of the cache.
    #[inline(always)]
    fn load(&mut self, call: &Call, at: Place, keys: &Range<usize>) {
        let (width, step) = (call.sizes.head_dim, call.sizes.kv_width());
        let from = at.key + keys.start * step;
        copy_rows(
            &call.key[from..],
            step,
            keys.len(),
            width,
            &mut self.keys,
            self.padded,
        );
        copy_rows(
            &call.value[from..],
            step,
            keys.len(),
            width,
            &mut self.values,
            self.padded,
        );
    }

    /// The products of keys and queries, minus infinity where a key is hidden.
    #[inline(always)]
    fn score(&mut self, call: &Call, at: Place, keys: &Range<usize>) {
        multiply(Product {
            left: Left {
                values: &self.keys,
                row: self.padded,
                depth: 1,
            },
            right: &self.turned,
            right_step: QUERIES,
            output: &mut self.scores,
            output_step: QUERIES,
            rows: keys.len(),
            columns: at.count,
            depth: call.sizes.head_dim,
            add: false,
        });
        if let Some(bias) = call.bias_of(at.row) {
            for (bias, scores) in bias[keys.clone()]
                .iter()
                .zip(self.scores.chunks_exact_mut(QUERIES))
            {
                scores[..at.count]
                    .iter_mut()
                    .for_each(|score| *score += bias);
            }
        }
        let padded = call.padded_of(at.row);
        if padded.is_none() && !(call.causal && keys.end > at.first + 1) {
            return;
        }
        for (key, scores) in keys.clone().zip(self.scores.chunks_exact_mut(QUERIES)) {
            let hidden = if padded.is_some_and(|padded| padded[key]) {
                at.count
            } else if call.causal {
                key.saturating_sub(at.first).min(at.count)
            } else {
                0
            };
            scores[..hidden].fill(f32::NEG_INFINITY);
        }
    }
}

/// What the backward pass needs besides.
struct GradientRoom {
    /// The gradient of the output, `[head_dim, QUERIES]`.
    turned: Vec<f32>,
    /// The queries, scaled, and the gradient of the output, `[QUERIES, padded]`.
    queries: Vec<f32>,
    gradients: Vec<f32>,
    /// `[KEYS, QUERIES]`
    d_scores: Vec<f32>,
    /// What the block adds to the gradient of keys or values, `[KEYS, padded]`.
    part: Vec<f32>,
}

impl GradientRoom {
    fn new(sizes: Sizes) -> Self {
        let padded = sizes.head_dim.next_multiple_of(LANES);
        Self {
            turned: vec![0.0; sizes.head_dim * QUERIES],
            queries: vec![0.0; QUERIES * padded],
            gradients: vec![0.0; QUERIES * padded],
            d_scores: vec![0.0; KEYS * QUERIES],
            part: vec![0.0; KEYS * padded],
        }
    }
}

simd! {
    /// One block of queries over all keys.
    fn forward_block(call: &Call, at: Place, room: &mut Room, log_sums: &mut [f32], output: Output) {
        let Sizes { key_len, head_dim, .. } = call.sizes;
        let (width, padded) = (call.sizes.width(), room.padded);
        // The lowest number and not minus infinity, which cannot be subtracted from itself.
        let (mut largest, mut sums) = ([f32::MIN; QUERIES], [0.0; QUERIES]);
        turn(&call.query[at.query..], width, at.count, call.sizes.scale(), &mut room.turned);
        room.sums.fill(0.0);
        for first in (0..key_len).step_by(KEYS) {
            let keys = first..key_len.min(first + KEYS);
            if !at.sees(call, &keys) {
                continue;
            }
            room.load(call, at, &keys);
            room.score(call, at, &keys);
            for lane in (0..at.count).step_by(LANES) {
                let factors = soften(call, at, &keys, lane, &mut room.scores, &mut largest, &mut sums);
                for (row, factor) in room.sums[lane * padded..].chunks_exact_mut(padded).zip(factors) {
                    row.iter_mut().for_each(|value| *value *= factor);
                }
            }
            multiply(Product {
                left: Left { values: &room.scores, row: 1, depth: QUERIES },
                right: &room.values,
                right_step: padded,
                output: &mut room.sums,
                output_step: padded,
                rows: at.count,
                columns: head_dim,
                depth: keys.len(),
                add: true,
            });
        }
        for query in 0..at.count {
            if sums[query] == 0.0 {
                continue; // This query may see nothing: its output stays zero.
            }
            log_sums[query] = largest[query] + sums[query].ln();
            let row = &room.sums[query * padded..][..padded];
            // SAFETY: these numbers of the output belong to this head and these queries only.
            unsafe { add_row(output.column(at.query + query * width), row, head_dim, 1.0 / sums[query]) };
        }
    }

    /// The sum of output times gradient, for each query of a block.
    fn sum_along(sizes: Sizes, at: Place, output: &[f32], gradient: &[f32], along: &mut [f32]) {
        for (query, along) in along.iter_mut().enumerate().take(at.count) {
            let start = at.query + query * sizes.width();
            let range = start..start + sizes.head_dim;
            *along = sum2(&output[range.clone()], &gradient[range], |o, g| o * g);
        }
    }

    /// What one block of queries and some blocks of keys add to the gradients.
    fn backward_block(
        call: &Call,
        at: Place,
        blocks: Range<usize>,
        room: &mut Room,
        more: &mut GradientRoom,
        sums: [&[f32]; 2],
        gradient: &[f32],
        places: [Output; 3],
    ) {
        let Sizes { key_len, head_dim, .. } = call.sizes;
        let (width, kv_width, padded) = (call.sizes.width(), call.sizes.kv_width(), room.padded);
        let (query, scale) = (&call.query[at.query..], call.sizes.scale());
        turn(query, width, at.count, scale, &mut room.turned);
        turn(&gradient[at.query..], width, at.count, 1.0, &mut more.turned);
        copy_rows(query, width, at.count, head_dim, &mut more.queries, padded);
        more.queries.iter_mut().for_each(|value| *value *= scale);
        copy_rows(&gradient[at.query..], width, at.count, head_dim, &mut more.gradients, padded);
        room.sums.fill(0.0);
        for first in blocks.map(|block| block * KEYS) {
            let keys = first..key_len.min(first + KEYS);
            if !at.sees(call, &keys) {
                continue;
            }
            room.load(call, at, &keys);
            room.score(call, at, &keys);
            multiply(Product {
                left: Left { values: &room.values, row: padded, depth: 1 },
                right: &more.turned,
                right_step: QUERIES,
                output: &mut more.d_scores,
                output_step: QUERIES,
                rows: keys.len(),
                columns: at.count,
                depth: head_dim,
                add: false,
            });
            for lane in (0..at.count).step_by(LANES) {
                soften_backward(call, at, &keys, lane, sums, &mut room.scores, &mut more.d_scores);
            }
            for (scores, rows, place) in [
                (&more.d_scores, &more.queries, places[1]),
                (&room.scores, &more.gradients, places[2]),
            ] {
                multiply(Product {
                    left: Left { values: scores, row: QUERIES, depth: 1 },
                    right: rows,
                    right_step: padded,
                    output: &mut more.part,
                    output_step: padded,
                    rows: keys.len(),
                    columns: head_dim,
                    depth: at.count,
                    add: false,
                });
                for (key, row) in keys.clone().zip(more.part.chunks_exact(padded)) {
                    // SAFETY: in this round nobody else has these keys of this head.
                    unsafe { add_row(place.column(at.key + key * kv_width), row, head_dim, 1.0) };
                }
            }
            multiply(Product {
                left: Left { values: &more.d_scores, row: 1, depth: QUERIES },
                right: &room.keys,
                right_step: padded,
                output: &mut room.sums,
                output_step: padded,
                rows: at.count,
                columns: head_dim,
                depth: keys.len(),
                add: true,
            });
        }
        for (query, row) in room.sums.chunks_exact(padded).enumerate().take(at.count) {
            // SAFETY: in this round nobody else has these queries of this head.
            unsafe { add_row(places[0].column(at.query + query * width), row, head_dim, scale) };
        }
    }
}

/// `[head_dim, QUERIES]` of `count` rows that lie `step` apart.
#[inline(always)]
fn turn(rows: &[f32], step: usize, count: usize, scale: f32, turned: &mut [f32]) {
    let head_dim = turned.len() / QUERIES;
    for (query, row) in rows.chunks(step).enumerate().take(count) {
        for (d, value) in row[..head_dim].iter().enumerate() {
            turned[d * QUERIES + query] = value * scale;
        }
    }
}

#[inline(always)]
fn copy_rows(
    rows: &[f32],
    step: usize,
    count: usize,
    width: usize,
    copy: &mut [f32],
    padded: usize,
) {
    for (to, from) in copy
        .chunks_exact_mut(padded)
        .zip(rows.chunks(step))
        .take(count)
    {
        to[..width].copy_from_slice(&from[..width]);
    }
}

/// Adds the first `width` numbers of a row times `factor`.
///
/// # Safety
/// `to` has room for them, and nobody else uses it meanwhile.
#[inline(always)]
unsafe fn add_row(to: Output, row: &[f32], width: usize, factor: f32) {
    // SAFETY: the caller vouches for it.
    let to = unsafe { std::slice::from_raw_parts_mut(to.0, width) };
    to.iter_mut()
        .zip(row)
        .for_each(|(to, value)| *to += value * factor);
}
