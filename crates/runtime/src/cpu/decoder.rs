//! The decoder (§3.1), one position at a time, for all rows of a search.
//!
//! Rows never see each other, so a few go through all layers before the next ones do. Neighbours:
//! [`super::encoder`] fills the memory, [`crate::search`] feeds tokens and rearranges rows.

use std::sync::Arc;

use super::CpuModel;
use super::attend::Attend;
use super::buffers::{BufferPool, Usage};
use super::encoder::{Sentence, key_values};
use super::layers::{Scratch, Side, Strides};
use super::load::DecoderLayer;
use super::pages::Pages;
use super::rowwise::LogSoftmax;
use super::simd::LANES;
use crate::search::SearchModel;

/// Rows that go through all layers together.
const ROWS: usize = 96;

/// Rows whose logits are made together: few enough to be still in the cache for the softmax.
const LOGIT_ROWS: usize = 18;

/// Everything that changes while decoding.
#[derive(Debug)]
pub struct CpuState {
    buffers: DecoderBuffers,
    sentences: Vec<Sentence>,
    rows: Vec<Row>,
    position: usize,
    /// Where the buffers go when the search is over.
    pool: Arc<BufferPool>,
}

/// Buffers that serve one search after the other.
#[derive(Debug, Default)]
pub(crate) struct DecoderBuffers {
    scratch: Scratch,
    pages: Pages,
    /// Rows of the step before, kept so that their lists are reused.
    free_rows: Vec<Row>,
}

/// One beginning of a target.
#[derive(Debug, Default, Clone)]
struct Row {
    sentence: usize,
    past: Vec<usize>,
}

impl DecoderBuffers {
    /// How much was used, counted anew from now on.
    pub(super) fn take_usage(&mut self) -> Usage {
        Usage::sum([self.scratch.take_usage(), self.pages.usage()])
    }
}

impl Drop for CpuState {
    fn drop(&mut self) {
        self.pool.release(std::mem::take(&mut self.buffers));
    }
}

impl SearchModel for CpuModel {
    type State = CpuState;

    fn vocab(&self) -> usize {
        self.config.tgt_vocab
    }

    fn start(&self, sources: &[Vec<u32>]) -> CpuState {
        let mut buffers = self.buffers.take();
        buffers
            .pages
            .clear(self.network.decoder.len() * self.heads.page());
        let sentences = self.encode(sources, &mut buffers.scratch, &mut buffers.pages);
        let rows = (0..sources.len())
            .map(|sentence| Row {
                sentence,
                past: Vec::new(),
            })
            .collect();
        CpuState {
            buffers,
            sentences,
            rows,
            position: 0,
            pool: self.buffers.clone(),
        }
    }

    fn step(&self, state: &mut CpuState, tokens: &[u32], log_probs: &mut Vec<f32>) {
        assert_eq!(state.rows.len(), tokens.len(), "one token per row");
        let vocab = self.config.tgt_vocab;
        log_probs.resize(tokens.len() * vocab, 0.0);
        for (chunk, out) in log_probs.chunks_mut(ROWS * vocab).enumerate() {
            let first = chunk * ROWS;
            let rows = out.len() / vocab;
            self.decode_rows(state, first, &tokens[first..first + rows], None);
            self.log_probs(&mut state.buffers.scratch, out);
        }
        state.position += 1;
    }

    fn reorder(&self, state: &mut CpuState, rows: &[usize]) {
        let DecoderBuffers {
            pages, free_rows, ..
        } = &mut state.buffers;
        std::mem::swap(free_rows, &mut state.rows);
        state.rows.resize(rows.len(), Row::default());
        for (row, &from) in state.rows.iter_mut().zip(rows) {
            row.clone_from(&free_rows[from]);
            row.past.iter().for_each(|&page| pages.share(page));
        }
        for row in free_rows.iter_mut() {
            row.past.drain(..).for_each(|page| pages.give_back(page));
        }
    }

    /// By the last layer but one: the last is already busy with the next token.
    fn cross_attention(&self, source: &[u32], target: &[u32]) -> Option<Vec<f32>> {
        let layer = self.network.decoder.len().saturating_sub(2);
        Some(CpuModel::cross_attention(self, source, target, layer))
    }
}

impl CpuModel {
    /// How much each source token is looked at (averaged over the heads of decoder layer `layer`,
    /// the last one if there are fewer) when each target token, and at last `</s>`, is predicted:
    /// `[target + 1, source]`, row-major. `source` ends in `</s>`, `target` has no special tokens.
    ///
    /// For word alignments the last layer but one is the usual choice, as the last one is already
    /// busy with the next token.
    pub fn cross_attention(&self, source: &[u32], target: &[u32], layer: usize) -> Vec<f32> {
        let layer = layer.min(self.network.decoder.len() - 1);
        let mut state = self.start(&[source.to_vec()]);
        let mut weights = vec![0.0; (target.len() + 1) * source.len()];
        let tokens = [attentive_text::special::BOS]
            .into_iter()
            .chain(target.iter().copied());
        for (token, weights) in tokens.zip(weights.chunks_exact_mut(source.len())) {
            self.decode_rows(&mut state, 0, &[token], Some((layer, weights)));
            state.position += 1;
        }
        weights
    }

    /// Rows `first..` of the state, fed `tokens`; the decoder's output is in the stream afterwards.
    /// `wanted` is a layer and room for the cross-attention's weights of a single row.
    fn decode_rows(
        &self,
        state: &mut CpuState,
        first: usize,
        tokens: &[u32],
        mut wanted: Option<(usize, &mut [f32])>,
    ) {
        let CpuState {
            buffers,
            sentences,
            rows,
            position,
            ..
        } = state;
        let DecoderBuffers { scratch, pages, .. } = buffers;
        let rows = &mut rows[first..][..tokens.len()];
        let count = rows.len();
        self.room(scratch, count);
        for (i, (row, &token)) in rows.iter_mut().zip(tokens).enumerate() {
            self.embed(scratch, Side::Target, i, token, *position);
            match row.past.last_mut() {
                Some(page) if !position.is_multiple_of(LANES) => {
                    let (block, row) = self.heads.block();
                    *page = pages.own(*page, block, *position % LANES * row);
                }
                _ => row.past.push(pages.take()),
            }
        }
        for (number, layer) in self.network.decoder.iter().enumerate() {
            let weights = match &mut wanted {
                Some((wanted, weights)) if *wanted == number => Some(&mut **weights),
                _ => None,
            };
            self.attend_past(scratch, pages, rows, *position, number, layer);
            self.attend_source(scratch, pages, rows, sentences, number, layer, weights);
            self.feed_forward(
                scratch,
                count,
                &layer.feed_forward_norm,
                &layer.feed_forward,
            );
        }
        self.finish(scratch, count, &self.network.decoder_norm);
    }

    fn attend_past(
        &self,
        scratch: &mut Scratch,
        pages: &mut Pages,
        rows: &[Row],
        position: usize,
        number: usize,
        layer: &DecoderLayer,
    ) {
        let Strides { model, qkv, .. } = self.strides();
        let heads = self.heads;
        let attention = &layer.self_attention;
        let matrices = [&attention.query, &attention.key, &attention.value];
        self.project(scratch, rows.len(), &layer.self_attention_norm, &matrices);
        let part = number * heads.page();
        scratch.scores.grow((position + 1).next_multiple_of(LANES));
        for (i, row) in rows.iter().enumerate() {
            let projected = &scratch.qkv[i * qkv..][..qkv];
            let (keys, values) = key_values(heads, &projected[self.config.d_model..]);
            heads.write(
                &mut pages.page_mut(row.past[position / LANES])[part..],
                position,
                keys,
                values,
            );
            self.isa.run(Attend {
                heads,
                queries: projected.as_ptr(),
                query_stride: qkv,
                rows: 1,
                memory: pages.memory(),
                pages: &row.past,
                layer: part,
                len: position + 1,
                out: scratch.context[i * model..][..model].as_mut_ptr(),
                out_stride: model,
                scores: &mut scratch.scores,
                weights: None,
            });
        }
        self.add_attended(scratch, rows.len(), &layer.self_attention_norm, attention);
    }

    #[allow(clippy::too_many_arguments)]
    fn attend_source(
        &self,
        scratch: &mut Scratch,
        pages: &Pages,
        rows: &[Row],
        sentences: &[Sentence],
        number: usize,
        layer: &DecoderLayer,
        mut weights: Option<&mut [f32]>,
    ) {
        let Strides { model, qkv, .. } = self.strides();
        let attention = &layer.cross_attention;
        self.project(
            scratch,
            rows.len(),
            &layer.cross_attention_norm,
            &[&attention.query],
        );
        let mut first = 0;
        // The beams of a sentence look at the same source: one small product for all of them.
        for beams in rows.chunk_by(|a, b| a.sentence == b.sentence) {
            let Sentence {
                pages: offsets,
                len,
            } = &sentences[beams[0].sentence];
            scratch
                .scores
                .grow(beams.len() * len.next_multiple_of(LANES));
            self.isa.run(Attend {
                heads: self.heads,
                queries: scratch.qkv[first * qkv..][..beams.len() * qkv].as_ptr(),
                query_stride: qkv,
                rows: beams.len(),
                memory: pages.memory(),
                pages: offsets,
                layer: number * self.heads.page(),
                len: *len,
                out: scratch.context[first * model..][..beams.len() * model].as_mut_ptr(),
                out_stride: model,
                scores: &mut scratch.scores,
                weights: weights.as_deref_mut(),
            });
            first += beams.len();
        }
        self.add_attended(scratch, rows.len(), &layer.cross_attention_norm, attention);
    }

    /// Log-probabilities of the rows in the stream.
    fn log_probs(&self, scratch: &mut Scratch, out: &mut [f32]) {
        let width = self.config.tgt_vocab;
        for (chunk, rows) in out.chunks_mut(LOGIT_ROWS * width).enumerate() {
            self.logits(scratch, chunk * LOGIT_ROWS, rows);
            self.isa.run(LogSoftmax { rows, width });
        }
    }
}
