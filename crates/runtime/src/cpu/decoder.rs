//! The decoder (§3.1): one position at a time for all rows of a search, or all positions of a given target.
//!
//! A few rows go through all layers before the next ones do. Neighbors: [`super::encoder`] fills the
//! memory, [`crate::search`] feeds tokens and rearranges rows, [`super::inspection`] feeds whole targets.

use std::sync::Arc;

use super::CpuModel;
use super::attend::{Attend, LayerWeights};
use super::buffers::{BufferPool, Usage};
use super::candidates::Candidates;
use super::encoder::{Sentence, key_values};
use super::layers::{Scratch, Side, Strides};
use super::load::DecoderLayer;
use super::pages::Pages;
use super::rowwise::LogSoftmax;
use super::simd::LANES;
use crate::search::{Request, SearchModel};

/// Rows that go through all layers together.
const ROWS: usize = 96;

/// Rows whose logits are made together: few enough to be still in the cache for the softmax.
const LOGIT_ROWS: usize = 18;

/// Everything that changes while decoding.
#[derive(Debug)]
pub struct CpuState {
    buffers: DecoderBuffers,
    sentences: Vec<Sentence>,
    /// The target tokens that may be produced, for each sentence.
    candidates: Vec<Option<Arc<[u32]>>>,
    rows: Vec<Row>,
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

/// One hypothesis of a search, or one position of a given target.
#[derive(Debug, Default, Clone)]
struct Row {
    sentence: usize,
    /// Where the next token stands.
    position: usize,
    /// Pages with the keys and values of all positions before.
    past: Vec<usize>,
}

/// The attention weights of every decoder layer.
#[derive(Debug)]
pub(super) struct DecoderWeights {
    /// `[heads, tgt_len, tgt_len]`
    pub self_attention: Vec<LayerWeights>,
    /// `[heads, tgt_len, src_len]`
    pub cross_attention: Vec<LayerWeights>,
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

    fn start(&self, requests: &[&Request]) -> CpuState {
        let sources: Vec<&[u32]> = requests.iter().map(|request| &request.source[..]).collect();
        let mut state = self.encoded(&sources, None);
        for (candidates, request) in state.candidates.iter_mut().zip(requests) {
            candidates.clone_from(&request.candidates);
        }
        state
    }

    fn step(&self, state: &mut CpuState, tokens: &[u32], log_probs: &mut Vec<f32>) {
        assert_eq!(state.rows.len(), tokens.len(), "one token per row");
        let pages = &mut state.buffers.pages;
        for row in &mut state.rows {
            match row.past.last_mut() {
                Some(page) if !row.position.is_multiple_of(LANES) => {
                    let (block, width) = self.heads.block();
                    *page = pages.own(*page, block, row.position % LANES * width);
                }
                _ => row.past.push(pages.take()),
            }
        }
        self.decode(state, tokens, Some(log_probs), None);
        state.rows.iter_mut().for_each(|row| row.position += 1);
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

    fn cross_attention(&self, source: &[u32], target: &[u32]) -> Option<Vec<f32>> {
        Some(self.alignment_weights(source, target))
    }
}

impl CpuModel {
    /// A search before its first step. `weights` gets the attention weights of the encoder, for one source.
    pub(super) fn encoded(
        &self,
        sources: &[&[u32]],
        weights: Option<&mut Vec<LayerWeights>>,
    ) -> CpuState {
        let mut buffers = self.buffers.take();
        buffers
            .pages
            .clear(self.network.decoder.len() * self.heads.page());
        let sentences = self.encode(sources, &mut buffers.scratch, &mut buffers.pages, weights);
        let rows = (0..sources.len())
            .map(|sentence| Row {
                sentence,
                ..Row::default()
            })
            .collect();
        CpuState {
            buffers,
            candidates: vec![None; sentences.len()],
            sentences,
            rows,
            pool: self.buffers.clone(),
        }
    }

    /// Feeds all tokens of a target (`<s>` first) to the only sentence of a new state, a row for each
    /// position. A row attends to those before it, because all of them write into the same pages in order.
    pub(super) fn force(
        &self,
        state: &mut CpuState,
        tokens: &[u32],
        log_probs: Option<&mut Vec<f32>>,
    ) -> DecoderWeights {
        let pages = &mut state.buffers.pages;
        let count = tokens.len().div_ceil(LANES);
        let past: Vec<usize> = (0..count).map(|_| pages.take()).collect();
        state.rows = (0..tokens.len())
            .map(|position| Row {
                sentence: 0,
                position,
                past: past.clone(),
            })
            .collect();
        let layers = |keys: usize| {
            let layer = |_| LayerWeights::zeros(self.heads.heads, tokens.len(), keys);
            self.network.decoder.iter().map(layer).collect()
        };
        let mut weights = DecoderWeights {
            self_attention: layers(tokens.len()),
            cross_attention: layers(state.sentences[0].len),
        };
        self.decode(state, tokens, log_probs, Some(&mut weights));
        weights
    }

    /// Feeds one token to each row. `log_probs` gets those of the next tokens, `[rows, vocab]`; `weights`
    /// gets the attention weights, for rows that are the positions of one target.
    fn decode(
        &self,
        state: &mut CpuState,
        tokens: &[u32],
        mut log_probs: Option<&mut Vec<f32>>,
        mut weights: Option<&mut DecoderWeights>,
    ) {
        let vocab = self.config.tgt_vocab;
        if let Some(log_probs) = &mut log_probs {
            log_probs.resize(tokens.len() * vocab, 0.0);
        }
        for (chunk, tokens) in tokens.chunks(ROWS).enumerate() {
            let first = chunk * ROWS;
            self.decode_rows(state, first, tokens, weights.as_deref_mut());
            if let Some(log_probs) = &mut log_probs {
                let out = &mut log_probs[first * vocab..][..tokens.len() * vocab];
                let rows = &state.rows[first..][..tokens.len()];
                self.log_probs(&mut state.buffers.scratch, rows, &state.candidates, out);
            }
        }
    }

    /// Rows `first..` of the state, fed `tokens`; the decoder's output is in the stream afterwards.
    fn decode_rows(
        &self,
        state: &mut CpuState,
        first: usize,
        tokens: &[u32],
        mut weights: Option<&mut DecoderWeights>,
    ) {
        let CpuState {
            buffers,
            sentences,
            rows,
            ..
        } = state;
        let DecoderBuffers { scratch, pages, .. } = buffers;
        let rows = &rows[first..][..tokens.len()];
        self.reserve(scratch, rows.len());
        for (i, (row, &token)) in rows.iter().zip(tokens).enumerate() {
            self.embed(scratch, Side::Target, i, token, row.position);
        }
        for (number, layer) in self.network.decoder.iter().enumerate() {
            let (self_weights, cross_weights) = match &mut weights {
                Some(weights) => (
                    Some(&mut weights.self_attention[number]),
                    Some(&mut weights.cross_attention[number]),
                ),
                None => (None, None),
            };
            self.attend_past(scratch, pages, rows, number, layer, self_weights);
            self.attend_source(
                scratch,
                pages,
                rows,
                sentences,
                number,
                layer,
                cross_weights,
            );
            self.feed_forward(
                scratch,
                rows.len(),
                &layer.feed_forward_norm,
                &layer.feed_forward,
            );
        }
        self.finish(scratch, rows.len(), &self.network.decoder_norm);
    }

    fn attend_past(
        &self,
        scratch: &mut Scratch,
        pages: &mut Pages,
        rows: &[Row],
        number: usize,
        layer: &DecoderLayer,
        mut weights: Option<&mut LayerWeights>,
    ) {
        let Strides { model, qkv, .. } = self.strides();
        let heads = self.heads;
        let attention = &layer.self_attention;
        let matrices = [&attention.query, &attention.key, &attention.value];
        self.project(scratch, rows.len(), &layer.self_attention_norm, &matrices);
        let part = number * heads.page();
        for (i, row) in rows.iter().enumerate() {
            let position = row.position;
            scratch.scores.grow((position + 1).next_multiple_of(LANES));
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
                weights: weights.as_deref_mut().map(|weights| (weights, position)),
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
        mut weights: Option<&mut LayerWeights>,
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
        // The rows of a sentence attend to the same source: one small product for all of them.
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
                weights: weights
                    .as_deref_mut()
                    .map(|weights| (weights, beams[0].position)),
            });
            first += beams.len();
        }
        self.add_attended(scratch, rows.len(), &layer.cross_attention_norm, attention);
    }

    /// Log-probabilities of the rows in the stream; over the candidates alone where a sentence has some.
    fn log_probs(
        &self,
        scratch: &mut Scratch,
        rows: &[Row],
        candidates: &[Option<Arc<[u32]>>],
        out: &mut [f32],
    ) {
        let width = self.config.tgt_vocab;
        let of = |row: &Row| candidates[row.sentence].as_deref();
        let mut first = 0;
        for rows in rows.chunk_by(|a, b| of(a).is_some() == of(b).is_some()) {
            let out = &mut out[first * width..][..rows.len() * width];
            if of(&rows[0]).is_some() {
                let sentences = rows.chunk_by(|a, b| a.sentence == b.sentence);
                let sentences = sentences.map(|rows| Candidates {
                    rows: rows.len(),
                    tokens: of(&rows[0]).unwrap_or_default(),
                });
                self.candidate_log_probs(scratch, first, &sentences.collect::<Vec<_>>(), out);
            } else {
                for (chunk, rows) in out.chunks_mut(LOGIT_ROWS * width).enumerate() {
                    self.logits(scratch, first + chunk * LOGIT_ROWS, rows);
                    self.isa.run(LogSoftmax { rows, width });
                }
            }
            first += rows.len();
        }
    }
}
