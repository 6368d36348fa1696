//! The output layer: from the stream to the log-probabilities of what may come next.
//!
//! Over the whole vocabulary in packed panels, with exact re-scoring where that was asked for, or over the candidates of a
//! sentence alone. Neighbors: [`super::decoder`] calls this after its layers, [`crate::search`] reads the result.

use super::CpuModel;
use super::candidates::{ByToken, Candidates};
use super::decoder::{Row, Source};
use super::layers::Scratch;
use super::product::Then;
use super::rescoring::Layer;
use super::rowwise::LogSoftmax;

/// Rows whose logits are made together: few enough to be still in the cache for the softmax.
const LOGIT_ROWS: usize = 18;

/// Bytes of an output layer that no cache holds: it is read once for all rows.
const FAR: usize = 32 << 20;

impl CpuModel {
    /// Log-probabilities of the rows in the stream; over the candidates alone where a sentence has some.
    pub(super) fn log_probs(
        &self,
        scratch: &mut Scratch,
        rows: &[Row],
        sources: &[Source],
        out: &mut [f32],
    ) {
        let vocab = self.config.tgt_vocab;
        let of = |row: &Row| sources[row.sentence].candidates.as_deref();
        let (mut first, mut rest) = (0, out);
        for rows in rows.chunk_by(|a, b| of(a).is_some() == of(b).is_some()) {
            let width = |row: &Row| sources[row.sentence].next_tokens(vocab);
            let (out, others) = rest.split_at_mut(rows.iter().map(width).sum());
            rest = others;
            if of(&rows[0]).is_some() {
                let sentences = rows.chunk_by(|a, b| a.sentence == b.sentence);
                let sentences = sentences.map(|rows| Candidates {
                    rows: rows.len(),
                    tokens: of(&rows[0]).unwrap_or_default(),
                });
                self.candidate_log_probs(scratch, first, &sentences.collect::<Vec<_>>(), out);
            } else {
                let far = self.network.projection.bytes() > FAR;
                let together = if far { rows.len() } else { LOGIT_ROWS };
                for (chunk, rows) in out.chunks_mut(together * vocab).enumerate() {
                    self.logits(scratch, first + chunk * together, rows);
                    self.isa.run(LogSoftmax { rows, width: vocab });
                }
            }
            first += rows.len();
        }
    }

    /// Logits of the stream's rows from `first` on, as many as `out` has room for.
    fn logits(&self, scratch: &mut Scratch, first: usize, out: &mut [f32]) {
        let (projection, stride) = (&self.network.projection, self.strides().model);
        let rows = out.len() / self.config.tgt_vocab;
        let x = &scratch.x[first * stride..];
        if let Some(rescoring) = &self.rescoring {
            let layer = Layer {
                exact: projection,
                x,
                stride,
                rows,
            };
            return rescoring.logits(self.isa, &self.team, layer, &mut scratch.quantized, out);
        }
        let input = projection.prepare(self.isa, x, stride, rows, &mut scratch.quantized);
        let vocab = self.config.tgt_vocab;
        projection.apply(self.isa, &self.team, input, out, vocab, Then::Store);
    }

    /// Log-probabilities of the stream's rows from `first` on, which are those of some sentences, over their
    /// candidates alone.
    fn candidate_log_probs(
        &self,
        scratch: &mut Scratch,
        first: usize,
        sentences: &[Candidates<'_>],
        out: &mut [f32],
    ) {
        let (projection, stride) = (&self.network.projection, self.strides().model);
        let Scratch {
            x,
            quantized,
            logits,
            ..
        } = scratch;
        let rows = sentences.iter().map(|sentence| sentence.rows).sum();
        let input = projection.prepare(self.isa, &x[first * stride..], stride, rows, quantized);
        let by_token = self.by_token.get_or_init(|| ByToken::new(projection));
        by_token.log_probs(self.isa, input, sentences, logits, out);
    }
}
