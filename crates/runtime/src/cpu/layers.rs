//! What encoder and decoder layers have in common: norms, projections, feed-forward, embeddings.
//!
//! All rows of a call, of whichever sentences, lie one behind the other without padding. Results go into
//! the buffers of a [`Scratch`], which is used again and again. Neighbors: [`super::encoder`] and
//! [`super::decoder`] put these together.

use super::CpuModel;
use super::activation::Activate;
use super::aligned::Aligned;
use super::buffers::Usage;
use super::candidates::Logits;
use super::load::{Attention, FeedForward, Table};
use super::matrix::{Matrix, Quantized};
use super::product::Then;
use super::rowwise::{Norm, Normalize};
use super::simd::LANES;
use attentive_model::config::{Activation, Autoregression, NormPlacement};

/// Buffers for the rows at work. Numbers behind a row's own stay zero.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The residual stream, `[rows, stride]`.
    pub x: Aligned<f32>,
    /// Queries, keys and values side by side, or what goes into a recurrent unit, `[rows, qkv_stride]`.
    pub qkv: Aligned<f32>,
    /// What attention returns, `[rows, stride]`.
    pub context: Aligned<f32>,
    pub scores: Aligned<f32>,
    /// Keys and values of the sentence that the encoder is at.
    pub pages: Aligned<f32>,
    normed: Aligned<f32>,
    hidden: Aligned<f32>,
    pub quantized: Quantized,
    pub logits: Logits,
    /// Sinusoids of the first positions, `[positions, d_model]`; of whichever formula.
    sinusoids: Vec<f32>,
}

impl Scratch {
    /// How much of it was used, counted anew from now on. What is not counted grows and shrinks with the
    /// rest.
    pub fn take_usage(&mut self) -> Usage {
        let buffers = [
            &mut self.x,
            &mut self.qkv,
            &mut self.context,
            &mut self.scores,
            &mut self.pages,
            &mut self.normed,
            &mut self.hidden,
        ];
        Usage::sum(buffers.map(Aligned::take_usage))
    }
}

/// Distances between rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strides {
    pub model: usize,
    pub qkv: usize,
    pub hidden: usize,
}

/// Which side's embeddings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Source,
    Target,
}

impl CpuModel {
    pub(super) fn strides(&self) -> Strides {
        let pad = |width: usize| width.next_multiple_of(LANES);
        let (d_model, kv_width) = (self.config.d_model, self.heads.kv_width());
        let qkv = match self.config.autoregression {
            Autoregression::SelfAttention => d_model + 2 * kv_width,
            Autoregression::Ssru => d_model + d_model.max(2 * kv_width),
        };
        Strides {
            model: pad(d_model),
            qkv: pad(qkv),
            hidden: pad(self.config.d_ff),
        }
    }

    /// Makes room for `rows` rows.
    pub(super) fn reserve(&self, scratch: &mut Scratch, rows: usize) {
        let Strides { model, qkv, hidden } = self.strides();
        scratch.x.grow(rows * model);
        scratch.normed.grow(rows * model);
        scratch.context.grow(rows * model);
        scratch.qkv.grow(rows * qkv);
        scratch.hidden.grow(rows * hidden);
    }

    /// Row `row` of the stream becomes `token` at `position`: vector times a factor, usually `sqrt(d_model)`
    /// (§3.4), plus place (§3.5).
    pub(super) fn embed(
        &self,
        scratch: &mut Scratch,
        side: Side,
        row: usize,
        token: u32,
        position: usize,
    ) {
        let d_model = self.config.d_model;
        let (tokens, positions) = match side {
            Side::Source => (&self.network.source, &self.network.source_positions),
            Side::Target => (&self.network.target, &self.network.target_positions),
        };
        while positions.is_none() && scratch.sinusoids.len() <= position * d_model {
            let next = scratch.sinusoids.len() / d_model + self.config.position_offset;
            let vector = self.config.positions.sinusoid(next, d_model);
            scratch.sinusoids.extend(vector);
        }
        let x = &mut scratch.x[row * self.strides().model..][..d_model];
        match positions {
            None => x.copy_from_slice(&scratch.sinusoids[position * d_model..][..d_model]),
            Some(table) => add_position(table, position, x),
        }
        tokens.add_row(token as usize, self.config.embedding_factor() as f32, x);
    }

    /// The norm of embeddings or the last one of a stack, where there is one.
    pub(super) fn normalize_stream(&self, scratch: &mut Scratch, rows: usize, norm: &Option<Norm>) {
        if let Some(norm) = norm {
            self.normalize_in_place(&mut scratch.x, rows, norm);
        }
    }

    /// Projects the stream (normalized first, if that is where the norm stands) into columns of
    /// `scratch.qkv`, one matrix behind the other.
    pub(super) fn project(
        &self,
        scratch: &mut Scratch,
        rows: usize,
        norm: &Norm,
        into: &[&Matrix],
    ) {
        let Strides { model, qkv, .. } = self.strides();
        let input = match self.config.norm {
            NormPlacement::Pre => {
                self.normalize(&scratch.x, &mut scratch.normed, rows, norm);
                &scratch.normed
            }
            NormPlacement::Post => &scratch.x,
        };
        let input = into[0].prepare(self.isa, input, model, rows, &mut scratch.quantized);
        let out = &mut scratch.qkv;
        Matrix::apply_all(into, self.isa, &self.team, input, out, qkv, Then::Store);
    }

    /// Projects the attended values and adds them to the stream.
    pub(super) fn add_attended(
        &self,
        scratch: &mut Scratch,
        rows: usize,
        norm: &Norm,
        attention: &Attention,
    ) {
        let stride = self.strides().model;
        let Scratch {
            x,
            context,
            quantized,
            ..
        } = scratch;
        let input = attention
            .output
            .prepare(self.isa, context, stride, rows, quantized);
        attention
            .output
            .apply(self.isa, &self.team, input, x, stride, Then::Add);
        self.normalize_sum(x, rows, norm);
    }

    /// The feed-forward sub-layer (§3.3) with its residual connection.
    pub(super) fn feed_forward(
        &self,
        scratch: &mut Scratch,
        rows: usize,
        norm: &Norm,
        layer: &FeedForward,
    ) {
        let Strides {
            model,
            hidden: hidden_stride,
            ..
        } = self.strides();
        let Scratch {
            x,
            normed,
            hidden,
            quantized,
            ..
        } = scratch;
        let input = match self.config.norm {
            NormPlacement::Pre => {
                self.normalize(x, normed, rows, norm);
                &*normed
            }
            NormPlacement::Post => &*x,
        };
        let input = layer.inner.prepare(self.isa, input, model, rows, quantized);
        let (activation, then) = match self.config.activation {
            Activation::Relu => (None, Then::Relu),
            other => (Some(other), Then::Store),
        };
        layer
            .inner
            .apply(self.isa, &self.team, input, hidden, hidden_stride, then);
        if let Some(activation) = activation {
            let numbers = &mut hidden[..rows * hidden_stride];
            self.isa.run(Activate {
                activation,
                numbers,
            });
        }
        let input = layer
            .outer
            .prepare(self.isa, hidden, hidden_stride, rows, quantized);
        layer
            .outer
            .apply(self.isa, &self.team, input, x, model, Then::Add);
        self.normalize_sum(x, rows, norm);
    }

    /// Projects the stream as it is to keys and values, side by side in `scratch.qkv`.
    pub(super) fn project_memory(&self, scratch: &mut Scratch, rows: usize, attention: &Attention) {
        let Strides {
            model, qkv: stride, ..
        } = self.strides();
        let Scratch {
            x, qkv, quantized, ..
        } = scratch;
        let input = attention.key.prepare(self.isa, x, model, rows, quantized);
        let matrices = [&attention.key, &attention.value];
        Matrix::apply_all(
            &matrices,
            self.isa,
            &self.team,
            input,
            qkv,
            stride,
            Then::Store,
        );
    }

    /// The norm of a sub-layer where it stands behind the sum.
    pub(super) fn normalize_sum(&self, x: &mut [f32], rows: usize, norm: &Norm) {
        if self.config.norm == NormPlacement::Post {
            self.normalize_in_place(x, rows, norm);
        }
    }

    fn normalize_in_place(&self, x: &mut [f32], rows: usize, norm: &Norm) {
        let stride = self.strides().model;
        assert!(x.len() >= rows * stride);
        let (x, out) = (x.as_ptr(), x.as_mut_ptr());
        self.isa.run(Normalize {
            x,
            out,
            stride,
            rows,
            norm,
        });
    }

    fn normalize(&self, x: &[f32], out: &mut [f32], rows: usize, norm: &Norm) {
        let stride = self.strides().model;
        assert!(x.len() >= rows * stride && out.len() >= rows * stride);
        let (x, out) = (x.as_ptr(), out.as_mut_ptr());
        self.isa.run(Normalize {
            x,
            out,
            stride,
            rows,
            norm,
        });
    }
}

/// Positions past the table repeat its last row; the translator cuts inputs before that happens.
fn add_position(table: &Table, position: usize, x: &mut [f32]) {
    x.fill(0.0);
    table.add_row(position.min(table.last_row(x.len())), 1.0, x);
}
