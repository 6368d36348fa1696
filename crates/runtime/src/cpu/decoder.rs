//! The decoder (§3.1): one position at a time for all rows of a search, or all positions of a given target.
//!
//! A few rows go through all layers before the next ones do. Neighbors: [`super::encoder`] fills the
//! memory, [`crate::search`] feeds tokens and rearranges rows, [`super::inspection`] feeds whole targets.

use std::sync::Arc;

use super::CpuModel;
use super::attend::{Attend, LayerWeights};
use super::buffers::{BufferPool, Usage};
use super::encoder::{Sentence, key_values};
use super::layers::{Scratch, Side, Strides};
use super::load::{Attention, DecoderLayer, PastLayer};
use super::pages::Pages;
use super::rowwise::Norm;
use super::simd::LANES;
use super::ssru::PastPage;
use super::team::Membership;
use crate::search::{Elastic, Request, SearchModel};
use attentive_model::config::Autoregression;

/// Rows that go through all layers together.
const ROWS: usize = 96;

/// Everything that changes while decoding.
#[derive(Debug)]
pub struct CpuState {
    buffers: DecoderBuffers,
    /// Sources that have rows, and places of some that had.
    sources: Vec<Source>,
    rows: Vec<Row>,
    /// Where the buffers go when the search is over.
    pool: Arc<BufferPool>,
    /// Tells the team that the search is under way.
    _membership: Membership,
}

/// A source, and who uses it.
#[derive(Debug)]
pub(super) struct Source {
    sentence: Sentence,
    /// How many rows it has.
    rows: usize,
    /// The target tokens that may be produced; all if nothing is given.
    pub candidates: Option<Arc<[u32]>>,
}

/// Buffers that serve one search after the other.
#[derive(Debug, Default)]
pub(crate) struct DecoderBuffers {
    scratch: Scratch,
    /// Keys and values of the sources.
    pages: Pages,
    /// What the layers remember of the targets so far; [`CpuModel::past_page`] says how.
    past: Pages,
    /// Rows of the step before, kept so that their lists are reused.
    free_rows: Vec<Row>,
}

/// One hypothesis of a search, or one position of a given target.
#[derive(Debug, Default, Clone)]
pub(super) struct Row {
    pub sentence: usize,
    /// Where the next token stands.
    pub position: usize,
    /// Pages with what the layers remember of all positions before.
    pub past: Vec<usize>,
}

/// The attention weights of every decoder layer.
#[derive(Debug)]
pub(super) struct DecoderWeights {
    /// `[heads, tgt_len, tgt_len]`; nothing where the decoder has no self-attention.
    pub self_attention: Vec<LayerWeights>,
    /// `[heads, tgt_len, src_len]`
    pub cross_attention: Vec<LayerWeights>,
}

impl DecoderBuffers {
    /// How much was used, counted anew from now on.
    pub(super) fn take_usage(&mut self) -> Usage {
        let pages = [self.pages.usage(), self.past.usage()];
        Usage::sum(pages.into_iter().chain([self.scratch.take_usage()]))
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
        let mut state = self.empty_state();
        self.admit(&mut state, requests);
        state
    }

    fn step(&self, state: &mut CpuState, tokens: &[u32], log_probs: &mut Vec<f32>) {
        assert_eq!(state.rows.len(), tokens.len(), "one token per row");
        let past = &mut state.buffers.past;
        for row in &mut state.rows {
            self.make_room(past, row, 1);
        }
        self.decode(state, tokens, Some(log_probs), None);
        state.rows.iter_mut().for_each(|row| row.position += 1);
    }

    fn reorder(&self, state: &mut CpuState, rows: &[usize]) {
        let DecoderBuffers {
            pages,
            past,
            free_rows,
            ..
        } = &mut state.buffers;
        std::mem::swap(free_rows, &mut state.rows);
        state.rows.resize(rows.len(), Row::default());
        for (row, &from) in state.rows.iter_mut().zip(rows) {
            row.clone_from(&free_rows[from]);
            row.past.iter().for_each(|&page| past.share(page));
            state.sources[row.sentence].rows += 1;
        }
        for row in free_rows.iter_mut() {
            row.past.drain(..).for_each(|page| past.give_back(page));
            let source = &mut state.sources[row.sentence];
            source.rows -= 1;
            if source.rows == 0 {
                let own = source.sentence.pages.drain(..);
                own.for_each(|page| pages.give_back(page));
            }
        }
    }

    fn elastic(&self) -> Option<&dyn Elastic<CpuState>> {
        Some(self)
    }

    fn cross_attention(&self, source: &[u32], target: &[u32]) -> Option<Vec<f32>> {
        Some(self.alignment_weights(source, target))
    }
}

impl Elastic<CpuState> for CpuModel {
    fn admit(&self, state: &mut CpuState, requests: &[&Request]) {
        let sources: Vec<&[u32]> = requests.iter().map(|request| &request.source[..]).collect();
        let DecoderBuffers { scratch, pages, .. } = &mut state.buffers;
        let sentences = self.encode(&sources, scratch, pages, None);
        let mut free = 0;
        for (sentence, request) in sentences.into_iter().zip(requests) {
            while state
                .sources
                .get(free)
                .is_some_and(|source| source.rows > 0)
            {
                free += 1;
            }
            state.add(free, sentence, request.candidates.clone());
        }
    }

    fn extend(&self, state: &mut CpuState, tokens: &[u32], log_probs: &mut Vec<f32>) {
        let [row] = &mut state.rows[..] else {
            panic!("only one row can be fed several tokens");
        };
        self.make_room(&mut state.buffers.past, row, tokens.len());
        // A row sees those before it, because all of them write into the same pages in order.
        let mut after = row.clone();
        state.rows = successive(row, tokens.len());
        self.decode(state, tokens, Some(log_probs), None);
        after.position += tokens.len();
        state.rows = vec![after];
    }

    fn rewind(&self, state: &mut CpuState, count: usize) {
        let [row] = &mut state.rows[..] else {
            panic!("only one row can forget tokens");
        };
        row.position -= count;
        let past = &mut state.buffers.past;
        let kept = row.position.div_ceil(self.past_page().positions);
        row.past.drain(kept..).for_each(|page| past.give_back(page));
    }
}

impl Source {
    /// How many tokens may come next.
    pub fn next_tokens(&self, vocab: usize) -> usize {
        self.candidates.as_deref().map_or(vocab, <[u32]>::len)
    }
}

impl CpuState {
    /// Adds a row for a new source, at a place where none is in use.
    fn add(&mut self, place: usize, sentence: Sentence, candidates: Option<Arc<[u32]>>) {
        let source = Source {
            sentence,
            rows: 1,
            candidates,
        };
        match self.sources.get_mut(place) {
            Some(free) => *free = source,
            None => self.sources.push(source),
        }
        self.rows.push(Row {
            sentence: place,
            ..Row::default()
        });
    }
}

/// A row for each of the next positions of a row, all with the same pages.
fn successive(row: &Row, count: usize) -> Vec<Row> {
    (0..count)
        .map(|ahead| Row {
            position: row.position + ahead,
            ..row.clone()
        })
        .collect()
}

impl CpuModel {
    /// Pages for the next `count` positions of a row that nobody else uses.
    fn make_room(&self, past: &mut Pages, row: &mut Row, count: usize) {
        let PastPage { positions, .. } = self.past_page();
        if let Some(page) = row.past.last_mut()
            && !row.position.is_multiple_of(positions)
        {
            let (block, width) = self.heads.block();
            *page = past.own(*page, block, row.position % positions * width);
        }
        let needed = (row.position + count).div_ceil(positions);
        while row.past.len() < needed {
            row.past.push(past.take());
        }
    }

    /// A search without sentences.
    fn empty_state(&self) -> CpuState {
        let mut buffers = self.buffers.take();
        let layers = self.network.decoder.len();
        buffers.pages.clear(layers * self.heads.page());
        buffers.past.clear(self.past_page().size);
        CpuState {
            buffers,
            sources: Vec::new(),
            rows: Vec::new(),
            pool: self.buffers.clone(),
            _membership: self.team.enter(),
        }
    }

    /// A search for one source before its first step. `weights` gets the attention weights of the encoder.
    pub(super) fn encoded(
        &self,
        source: &[u32],
        weights: Option<&mut Vec<LayerWeights>>,
    ) -> CpuState {
        let mut state = self.empty_state();
        let DecoderBuffers { scratch, pages, .. } = &mut state.buffers;
        let sentences = self.encode(&[source], scratch, pages, weights);
        for sentence in sentences {
            state.add(0, sentence, None);
        }
        state
    }

    /// Feeds all tokens of a target (`<s>` first) to the only sentence of a new state, a row for each
    /// position. A row sees those before it, because all of them write into the same pages in order.
    pub(super) fn force(
        &self,
        state: &mut CpuState,
        tokens: &[u32],
        log_probs: Option<&mut Vec<f32>>,
    ) -> DecoderWeights {
        let row = &mut state.rows[0];
        self.make_room(&mut state.buffers.past, row, tokens.len());
        state.rows = successive(row, tokens.len());
        let layers = |keys: usize| {
            let layer = |_| LayerWeights::zeros(self.heads.heads, tokens.len(), keys);
            self.network.decoder.iter().map(layer).collect()
        };
        let mut weights = DecoderWeights {
            self_attention: match self.config.autoregression {
                Autoregression::SelfAttention => layers(tokens.len()),
                Autoregression::Ssru => Vec::new(),
            },
            cross_attention: layers(state.sources[0].sentence.len),
        };
        self.decode(state, tokens, log_probs, Some(&mut weights));
        weights
    }

    /// Feeds one token to each row. `log_probs` gets those of the next tokens, one row behind the other; `weights`
    /// gets the attention weights, for rows that are the positions of one target.
    fn decode(
        &self,
        state: &mut CpuState,
        tokens: &[u32],
        mut log_probs: Option<&mut Vec<f32>>,
        mut weights: Option<&mut DecoderWeights>,
    ) {
        let mut written = 0;
        for (chunk, tokens) in tokens.chunks(ROWS).enumerate() {
            let first = chunk * ROWS;
            self.decode_rows(state, first, tokens, weights.as_deref_mut());
            if let Some(log_probs) = &mut log_probs {
                let rows = &state.rows[first..][..tokens.len()];
                let vocab = self.config.tgt_vocab;
                let width = |row: &Row| state.sources[row.sentence].next_tokens(vocab);
                let size: usize = rows.iter().map(width).sum();
                log_probs.resize(log_probs.len().max(written + size), 0.0);
                let out = &mut log_probs[written..][..size];
                self.log_probs(&mut state.buffers.scratch, rows, &state.sources, out);
                written += size;
            }
        }
        if let Some(log_probs) = log_probs {
            log_probs.truncate(written);
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
            sources,
            rows,
            ..
        } = state;
        let DecoderBuffers {
            scratch,
            pages,
            past,
            ..
        } = buffers;
        let rows = &rows[first..][..tokens.len()];
        self.reserve(scratch, rows.len());
        for (i, (row, &token)) in rows.iter().zip(tokens).enumerate() {
            self.embed(scratch, Side::Target, i, token, row.position);
        }
        let count = rows.len();
        self.normalize_stream(scratch, count, &self.network.decoder_embedding_norm);
        for (number, layer) in self.network.decoder.iter().enumerate() {
            let (self_weights, cross_weights) = match &mut weights {
                Some(weights) => (
                    weights.self_attention.get_mut(number),
                    weights.cross_attention.get_mut(number),
                ),
                None => (None, None),
            };
            let norm = &layer.past_norm;
            match &layer.past {
                PastLayer::Attention(attention) => {
                    self.attend_past(scratch, past, rows, number, attention, norm, self_weights);
                }
                PastLayer::Ssru(ssru) => self.recur(scratch, past, rows, number, ssru, norm),
            }
            self.attend_source(scratch, pages, rows, sources, number, layer, cross_weights);
            self.feed_forward(
                scratch,
                count,
                &layer.feed_forward_norm,
                &layer.feed_forward,
            );
        }
        self.normalize_stream(scratch, count, &self.network.decoder_norm);
    }

    #[allow(clippy::too_many_arguments)]
    fn attend_past(
        &self,
        scratch: &mut Scratch,
        past: &mut Pages,
        rows: &[Row],
        number: usize,
        attention: &Attention,
        norm: &Norm,
        mut weights: Option<&mut LayerWeights>,
    ) {
        let Strides { model, qkv, .. } = self.strides();
        let heads = self.heads;
        let matrices = [&attention.query, &attention.key, &attention.value];
        self.project(scratch, rows.len(), norm, &matrices);
        let part = number * heads.page();
        for (i, row) in rows.iter().enumerate() {
            let position = row.position;
            scratch.scores.grow((position + 1).next_multiple_of(LANES));
            let projected = &scratch.qkv[i * qkv..][..qkv];
            let (keys, values) = key_values(heads, &projected[self.config.d_model..]);
            heads.write(
                &mut past.page_mut(row.past[position / LANES])[part..],
                position,
                keys,
                values,
            );
            self.isa.run(Attend {
                heads,
                queries: projected.as_ptr(),
                query_stride: qkv,
                rows: 1,
                memory: past.memory(),
                pages: &row.past,
                layer: part,
                len: position + 1,
                out: scratch.context[i * model..][..model].as_mut_ptr(),
                out_stride: model,
                scores: &mut scratch.scores,
                weights: weights.as_deref_mut().map(|weights| (weights, position)),
            });
        }
        self.add_attended(scratch, rows.len(), norm, attention);
    }

    #[allow(clippy::too_many_arguments)]
    fn attend_source(
        &self,
        scratch: &mut Scratch,
        pages: &Pages,
        rows: &[Row],
        sources: &[Source],
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
            } = &sources[beams[0].sentence].sentence;
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
}

#[cfg(test)]
mod tests {
    use attentive_model::{ModelDir, fake_dir};
    use attentive_text::special::{BOS, EOS};

    use super::*;
    use crate::cpu::Compute;

    #[test]
    fn sentences_that_have_left_make_room_for_others() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fake_dir::write(folder.path()).expect("written");
        let dir = ModelDir::open(folder.path()).expect("a model");
        let model = CpuModel::open(&dir, Compute::F32).expect("a model");
        let request = Request::new([vec![5; 40], vec![EOS]].concat());
        let mut state = model.start(&[&request, &request, &request]);
        let (mut log_probs, mut used) = (Vec::new(), Vec::new());
        for _ in 0..9 {
            model.step(&mut state, &[BOS; 3], &mut log_probs);
            model.reorder(&mut state, &[0, 2, 2]);
            model.reorder(&mut state, &[0, 2]);
            model.admit(&mut state, &[&request]);
            let DecoderBuffers { pages, past, .. } = &state.buffers;
            let pages = [pages, past].map(|pages| pages.usage().used);
            used.push((pages, state.sources.len()));
        }
        assert_eq!(used[8], used[1], "{used:?}");
    }

    #[test]
    fn forgotten_tokens_leave_their_pages() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fake_dir::write(folder.path()).expect("written");
        let dir = ModelDir::open(folder.path()).expect("a model");
        let model = CpuModel::open(&dir, Compute::F32).expect("a model");
        let mut state = model.start(&[&Request::new(vec![5, 6, EOS])]);
        let mut log_probs = Vec::new();
        for _ in 0..9 {
            model.extend(&mut state, &[BOS; 40], &mut log_probs);
            assert_eq!(state.rows[0].past.len(), 3);
            model.rewind(&mut state, 40);
            assert!(state.rows[0].past.is_empty());
        }
        let page = model.past_page().size * size_of::<f32>();
        assert_eq!(state.buffers.pages.usage().used, page, "the source's");
        assert_eq!(state.buffers.past.usage().used, 3 * page);
    }
}
