//! The encoder (§3.1): sources to the keys and values of the decoder's cross-attention.
//!
//! Whole sentences go through all layers together, as many as make a good product, and their rows lie one
//! behind the other: no padding anywhere. Neighbors: [`super::decoder`] takes over.

use super::CpuModel;
use super::attend::{Attend, Heads, LayerWeights};
use super::layers::{Scratch, Side, Strides};
use super::pages::Pages;
use super::simd::LANES;

/// Rows that make products efficient and still leave the caches to the weights.
const ROWS: usize = 96;

/// Queries that look at a source at a time, so that the memory for scores grows with its length and not with the
/// square of it. A query's result does not depend on the others.
const QUERIES: usize = 64;

/// A source as the decoder sees it.
#[derive(Debug)]
pub(crate) struct Sentence {
    pub pages: Vec<usize>,
    pub len: usize,
}

impl CpuModel {
    /// Encodes the sources; their keys and values for every decoder layer go into new pages. `weights` gets
    /// the attention weights of every encoder layer, which must be those of a single source.
    pub(super) fn encode(
        &self,
        sources: &[&[u32]],
        scratch: &mut Scratch,
        pages: &mut Pages,
        mut weights: Option<&mut Vec<LayerWeights>>,
    ) -> Vec<Sentence> {
        let mut sentences = Vec::with_capacity(sources.len());
        let mut first = 0;
        while first < sources.len() {
            let mut rows = sources[first].len();
            let mut end = first + 1;
            while end < sources.len() && rows + sources[end].len() <= ROWS {
                rows += sources[end].len();
                end += 1;
            }
            let some = &sources[first..end];
            self.encode_rows(some, rows, scratch, weights.as_deref_mut());
            self.remember(some, rows, scratch, pages, &mut sentences);
            first = end;
        }
        sentences
    }

    /// The encoder's output for these sources is in the stream afterwards.
    fn encode_rows(
        &self,
        sources: &[&[u32]],
        rows: usize,
        scratch: &mut Scratch,
        mut weights: Option<&mut Vec<LayerWeights>>,
    ) {
        self.reserve(scratch, rows);
        let tokens = sources.iter().flat_map(|source| source.iter().enumerate());
        for (row, (position, &token)) in tokens.enumerate() {
            self.embed(scratch, Side::Source, row, token, position);
        }
        self.normalize_stream(scratch, rows, &self.network.encoder_embedding_norm);
        for layer in &self.network.encoder {
            let attention = &layer.attention;
            let matrices = [&attention.query, &attention.key, &attention.value];
            self.project(scratch, rows, &layer.attention_norm, &matrices);
            let mut kept = weights
                .is_some()
                .then(|| LayerWeights::zeros(self.heads.heads, rows, rows));
            let mut first = 0;
            for source in sources {
                self.attend_within(scratch, first, source.len(), kept.as_mut());
                first += source.len();
            }
            if let Some(weights) = &mut weights {
                weights.extend(kept);
            }
            self.add_attended(scratch, rows, &layer.attention_norm, attention);
            self.feed_forward(scratch, rows, &layer.feed_forward_norm, &layer.feed_forward);
        }
        self.normalize_stream(scratch, rows, &self.network.encoder_norm);
    }

    /// Self-attention of one sentence: rows `first..first + len`.
    fn attend_within(
        &self,
        scratch: &mut Scratch,
        first: usize,
        len: usize,
        mut weights: Option<&mut LayerWeights>,
    ) {
        let Strides { model, qkv, .. } = self.strides();
        let heads = self.heads;
        let Scratch {
            qkv: projected,
            context,
            scores,
            pages,
            ..
        } = scratch;
        let count = len.div_ceil(LANES);
        pages.grow(count * heads.page());
        scores.grow(len.min(QUERIES) * len.next_multiple_of(LANES));
        let rows = &projected[first * qkv..];
        for position in 0..len {
            let (keys, values) = key_values(heads, &rows[position * qkv + self.config.d_model..]);
            heads.write(
                &mut pages[position / LANES * heads.page()..][..heads.page()],
                position,
                keys,
                values,
            );
        }
        let offsets: Vec<usize> = (0..count).map(|page| page * heads.page()).collect();
        for query in (0..len).step_by(QUERIES) {
            self.isa.run(Attend {
                heads,
                queries: rows[query * qkv..].as_ptr(),
                query_stride: qkv,
                rows: QUERIES.min(len - query),
                memory: pages,
                pages: &offsets,
                layer: 0,
                len,
                out: context[(first + query) * model..].as_mut_ptr(),
                out_stride: model,
                scores,
                weights: weights.as_deref_mut().map(|weights| (weights, query)),
            });
        }
    }

    /// Projects the stream once for every decoder layer and keeps the result.
    fn remember(
        &self,
        sources: &[&[u32]],
        rows: usize,
        scratch: &mut Scratch,
        pages: &mut Pages,
        sentences: &mut Vec<Sentence>,
    ) {
        let new = sentences.len();
        for source in sources {
            let count = source.len().div_ceil(LANES);
            let pages = (0..count).map(|_| pages.take()).collect();
            sentences.push(Sentence {
                pages,
                len: source.len(),
            });
        }
        let stride = self.strides().qkv;
        for (number, layer) in self.network.decoder.iter().enumerate() {
            self.project_memory(scratch, rows, &layer.cross_attention);
            let mut rows = scratch.qkv.chunks_exact(stride);
            for sentence in &sentences[new..] {
                for position in 0..sentence.len {
                    let Some(row) = rows.next() else { return };
                    let (keys, values) = key_values(self.heads, row);
                    let page = &mut pages.page_mut(sentence.pages[position / LANES])
                        [number * self.heads.page()..];
                    self.heads.write(page, position, keys, values);
                }
            }
        }
    }
}

/// A row's keys and values, which stand side by side.
pub(super) fn key_values(heads: Heads, row: &[f32]) -> (&[f32], &[f32]) {
    let (keys, rest) = row.split_at(heads.kv_width());
    (keys, &rest[..heads.kv_width()])
}
