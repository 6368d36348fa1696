//! The output layer for a few tokens of the vocabulary: the candidates of a sentence's shortlist.
//!
//! For all tokens the packed matrix of [`super::matrix`] is best, but a token's weights lie scattered there.
//! Here they lie one behind the other, a row for each token, and the rows of the candidates are multiplied
//! where they are: nothing is copied for a sentence. int8 gives the bits of the packed matrix; f32 adds up in
//! another order.
//! Neighbors: [`super::decoder`] calls this in place of the whole layer.

use super::aligned::Aligned;
use super::matrix::{Input, Matrix};
use super::rowwise::LogSoftmax;
use super::simd::{Isa, LANES, Simd, Work};

/// The weights of the output layer by token.
#[derive(Debug)]
pub(crate) struct ByToken {
    /// Numbers in a token's row, zeros behind the layer's own included.
    stride: usize,
    rows: Rows,
    bias: Vec<f32>,
}

#[derive(Debug)]
enum Rows {
    F32(Aligned<f32>),
    Int8 {
        bytes: Aligned<i8>,
        scales: Vec<f32>,
        /// What takes the activations' offset away again.
        start: Vec<i32>,
    },
}

/// A sentence's candidates, and how many rows it has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidates<'a> {
    pub rows: usize,
    /// Rising.
    pub tokens: &'a [u32],
}

/// Room for logits.
#[derive(Debug, Default)]
pub(crate) struct Logits {
    values: Aligned<f32>,
    bytes: Aligned<u8>,
}

impl ByToken {
    /// A copy of the layer's weights.
    pub fn new(matrix: &Matrix) -> Self {
        let (k, n) = (matrix.inputs(), matrix.outputs());
        let bias = matrix.bias()[..n].to_vec();
        match matrix.int8_parts() {
            None => {
                let stride = k.next_multiple_of(LANES);
                let mut rows = Aligned::zeros(n * stride);
                for (output, row) in rows.chunks_exact_mut(stride).enumerate() {
                    matrix.copy_f32_output(output, &mut row[..k]);
                }
                let rows = Rows::F32(rows);
                Self { stride, rows, bias }
            }
            Some((scales, start)) => {
                let stride = k.next_multiple_of(BYTES);
                let mut bytes = Aligned::zeros(n * stride);
                for (output, row) in bytes.chunks_exact_mut(stride).enumerate() {
                    matrix.copy_int8_output(output, &mut row[..k]);
                }
                let rows = Rows::Int8 {
                    bytes,
                    scales: scales[..n].to_vec(),
                    start: start[..n].to_vec(),
                };
                Self { stride, rows, bias }
            }
        }
    }

    /// Log-probabilities over the candidates alone: `out` gets one for each, a row behind the other. The rows of `input` are
    /// those of the sentences in their order.
    pub fn log_probs(
        &self,
        isa: Isa,
        input: Input<'_>,
        sentences: &[Candidates<'_>],
        logits: &mut Logits,
        out: &mut [f32],
    ) {
        assert_eq!(sentences.iter().map(|s| s.rows).sum::<usize>(), input.rows);
        let size = sentences.iter().map(|s| s.rows * s.width()).sum();
        logits.values.grow(size);
        let values = &mut logits.values[..size];
        match &self.rows {
            Rows::F32(weights) => {
                assert!(input.stride >= self.stride);
                assert!(input.x.len() >= input.rows * input.stride);
                isa.run(Product {
                    layer: self,
                    sentences,
                    values,
                    tile: F32Tile {
                        x: input.x.as_ptr(),
                        x_stride: input.stride,
                        weights,
                    },
                });
            }
            Rows::Int8 {
                bytes,
                scales,
                start,
            } => {
                // Behind a row's own bytes any will do: the weights are zero there.
                logits.bytes.grow(input.rows * self.stride);
                let (x, x_scales) = input.quantized.parts();
                let own = input.stride.min(self.stride);
                for row in 0..input.rows {
                    logits.bytes[row * self.stride..][..own]
                        .copy_from_slice(&x[row * input.stride..][..own]);
                }
                isa.run(Product {
                    layer: self,
                    sentences,
                    values,
                    tile: Int8Tile {
                        x: logits.bytes.as_ptr(),
                        x_scales: &x_scales[..input.rows],
                        weights: bytes,
                        scales,
                        start,
                    },
                });
            }
        }
        let (mut first, mut rest) = (0, out);
        for sentence in sentences.iter().filter(|s| !s.tokens.is_empty()) {
            let size = sentence.rows * sentence.width();
            for values in values[first..][..size].chunks_exact_mut(sentence.width()) {
                let width = sentence.tokens.len();
                let rows = &mut values[..width];
                isa.run(LogSoftmax { rows, width });
                let (row, others) = rest.split_at_mut(width);
                row.copy_from_slice(&values[..width]);
                rest = others;
            }
            first += size;
        }
        assert!(rest.is_empty(), "a log-probability for each candidate");
    }
}

impl Candidates<'_> {
    /// Logits of a row, up to a whole vector.
    fn width(&self) -> usize {
        self.tokens.len().next_multiple_of(LANES)
    }
}

/// Bytes in a vector.
const BYTES: usize = 4 * LANES;

/// Tokens whose sums are finished together.
const TOKENS: usize = 4;

/// Rows of a sentence that meet the weights together.
const ROWS: usize = 4;

/// The logits of all sentences, `[rows, width]` for one after the other.
struct Product<'a, T> {
    layer: &'a ByToken,
    sentences: &'a [Candidates<'a>],
    values: &'a mut [f32],
    tile: T,
}

/// The logits of a few rows of one sentence and at most [`LANES`] tokens.
trait Tile {
    /// Rows `first..first + M`; `out` has room for a whole vector for each, `width` apart.
    unsafe fn run<S: Simd, const M: usize>(
        &self,
        layer: &ByToken,
        first: usize,
        tokens: &[u32],
        out: &mut [f32],
        width: usize,
    );
}

struct F32Tile<'a> {
    x: *const f32,
    x_stride: usize,
    /// `[vocab, stride]`
    weights: &'a [f32],
}

/// Quantized rows, a stride of the layer apart.
struct Int8Tile<'a> {
    x: *const u8,
    x_scales: &'a [f32],
    /// `[vocab, stride]`
    weights: &'a [i8],
    scales: &'a [f32],
    start: &'a [i32],
}

impl<T: Tile> Work for Product<'_, T> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (mut row, mut value) = (0, 0);
        for sentence in self.sentences {
            let (rows, width) = (sentence.rows, sentence.width());
            for (vector, tokens) in sentence.tokens.chunks(LANES).enumerate() {
                for m in (0..rows).step_by(ROWS) {
                    let out = &mut self.values[value + m * width + vector * LANES..];
                    let (layer, tile, at) = (self.layer, &self.tile, row + m);
                    unsafe {
                        match rows - m {
                            1 => tile.run::<S, 1>(layer, at, tokens, out, width),
                            2 => tile.run::<S, 2>(layer, at, tokens, out, width),
                            3 => tile.run::<S, 3>(layer, at, tokens, out, width),
                            _ => tile.run::<S, ROWS>(layer, at, tokens, out, width),
                        }
                    }
                }
            }
            row += rows;
            value += rows * width;
        }
    }
}

impl Tile for F32Tile<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd, const M: usize>(
        &self,
        layer: &ByToken,
        first: usize,
        tokens: &[u32],
        out: &mut [f32],
        width: usize,
    ) {
        for (four, tokens) in tokens.chunks(TOKENS).enumerate() {
            let mut weights = [self.weights.as_ptr(); TOKENS];
            let mut bias = [0.0; TOKENS];
            for (i, token) in tokens.iter().enumerate() {
                weights[i] = self.weights[*token as usize * layer.stride..].as_ptr();
                bias[i] = layer.bias[*token as usize];
            }
            unsafe {
                let x = self.x.add(first * self.x_stride);
                let mut sums = [[S::splat(0.0); TOKENS]; M];
                for i in (0..layer.stride).step_by(LANES) {
                    let mut vectors = [S::splat(0.0); TOKENS];
                    for (vector, weights) in vectors.iter_mut().zip(weights) {
                        *vector = S::load(weights.add(i));
                    }
                    for (m, sums) in sums.iter_mut().enumerate() {
                        let x = S::load(x.add(m * self.x_stride + i));
                        for (sum, vector) in sums.iter_mut().zip(vectors) {
                            *sum = S::fma(x, vector, *sum);
                        }
                    }
                }
                for (m, sums) in sums.into_iter().enumerate() {
                    let out = &mut out[m * width + four * TOKENS..][..TOKENS];
                    S::sum4(sums, out.as_mut_ptr());
                    for (out, bias) in out.iter_mut().zip(bias) {
                        *out += bias;
                    }
                }
            }
        }
    }
}

impl Tile for Int8Tile<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd, const M: usize>(
        &self,
        layer: &ByToken,
        first: usize,
        tokens: &[u32],
        out: &mut [f32],
        width: usize,
    ) {
        let stride = layer.stride;
        let (mut scales, mut bias) = ([0.0; LANES], [0.0; LANES]);
        let mut start = [0; LANES];
        let mut weights = [self.weights.as_ptr(); LANES];
        for (i, token) in tokens.iter().enumerate() {
            let token = *token as usize;
            weights[i] = self.weights[token * stride..].as_ptr();
            scales[i] = self.scales[token];
            bias[i] = layer.bias[token];
            start[i] = self.start[token];
        }
        unsafe {
            let x = self.x.add(first * stride);
            let mut totals = [[0; LANES]; M];
            for (four, weights) in weights.as_chunks::<TOKENS>().0.iter().enumerate() {
                let mut sums = [[S::load_i([0; LANES].as_ptr()); TOKENS]; M];
                for i in (0..stride).step_by(BYTES) {
                    for (m, sums) in sums.iter_mut().enumerate() {
                        let x = x.add(m * stride + i);
                        for (sum, weights) in sums.iter_mut().zip(weights) {
                            *sum = S::dot_bytes(*sum, x, weights.add(i));
                        }
                    }
                }
                for (sums, totals) in sums.into_iter().zip(&mut totals) {
                    S::sum4_i(sums, totals[four * TOKENS..].as_mut_ptr());
                }
            }
            let (scales, bias) = (S::load(scales.as_ptr()), S::load(bias.as_ptr()));
            for (m, totals) in totals.iter_mut().enumerate() {
                for (total, start) in totals.iter_mut().zip(start) {
                    *total += start;
                }
                // As the packed product does it, for the same bits.
                let scaled = S::mul(S::to_f(S::load_i(totals.as_ptr())), scales);
                let result = S::fma(scaled, S::splat(self.x_scales[first + m]), bias);
                S::store(out[m * width..][..LANES].as_mut_ptr(), result);
            }
        }
    }
}
