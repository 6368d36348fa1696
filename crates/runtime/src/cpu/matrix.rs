//! Weight matrices, packed for [`super::product`]: f32, or int8 with a scale for each output.
//!
//! Packed f32 is `[n / 16, k, 16]`, packed int8 `[n / 16, k / 4, 16, 4]`, with zeros where `n` and `k` end
//! earlier. The int8 form ([`attentive_model::int8`]) is that of weights files, the f32 form what [`super::cache`] keeps,
//! so that they are used where the file is mapped, without a copy. (f32 where a model's own file is mapped, row
//! by row, was measured to translate a fifth slower.) Neighbors: [`super::load`] makes these from a weights file.

use std::ops::Range;
use std::sync::Arc;

use super::aligned::Aligned;
use super::packing::{Along, padded, quantize_by, sums};
use super::pairs::Pairs;
use super::product::{F32Product, Int8Product, Out, Then};
use super::rowwise::Quantize;
use super::simd::{Isa, LANES};
use super::team::Team;
use attentive_model::int8::packed_place;
use attentive_model::weights::Weights;

/// `[k, n]` with a bias.
#[derive(Debug)]
pub(crate) struct Matrix {
    k: usize,
    n: usize,
    bias: Aligned<f32>,
    numbers: Numbers,
}

/// The weights of a matrix, packed.
#[derive(Debug)]
pub(crate) enum Numbers {
    F32(Floats),
    Int8(Int8),
}

/// Numbers of our own, or where a file is mapped.
#[derive(Debug)]
pub(crate) enum Floats {
    Own(Aligned<f32>),
    /// Only what [`Floats::mapped`] has checked.
    Mapped(Arc<Weights>, Range<usize>),
}

/// Packed bytes and what they mean.
#[derive(Debug)]
pub(crate) struct Int8 {
    pub panels: Bytes,
    /// One per output.
    pub scales: Aligned<f32>,
    /// What takes the activations' offset away again.
    start: Vec<i32>,
}

/// Bytes of our own, or where a file is mapped.
#[derive(Debug)]
pub(crate) enum Bytes {
    Own(Aligned<i8>),
    Mapped(Arc<Weights>, Range<usize>),
}

/// Rows that go into matrices: numbers, and as bytes if the matrices are int8.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a> {
    pub x: &'a [f32],
    pub stride: usize,
    pub rows: usize,
    pub quantized: &'a Quantized,
}

/// Room for quantized rows.
#[derive(Debug, Default)]
pub(crate) struct Quantized {
    bytes: Aligned<u8>,
    scales: Vec<f32>,
    pairs: Pairs,
}

impl Quantized {
    /// Bytes and scales of the rows.
    pub fn parts(&self) -> (&[u8], &[f32]) {
        (&self.bytes, &self.scales)
    }
}

impl Matrix {
    /// Numbers of a matrix with `k` inputs and `n` outputs, and its bias.
    pub fn new(k: usize, n: usize, numbers: Numbers, bias: &[f32]) -> Self {
        Self {
            k,
            n,
            bias: padded(bias),
            numbers,
        }
    }

    /// Makes `rows` rows ready for matrices of this kind.
    pub fn prepare<'a>(
        &self,
        isa: Isa,
        x: &'a [f32],
        stride: usize,
        rows: usize,
        buffer: &'a mut Quantized,
    ) -> Input<'a> {
        assert!(stride >= self.k && x.len() >= rows * stride);
        if let Numbers::Int8(_) = self.numbers {
            buffer.bytes.grow(rows * stride);
            buffer.scales.resize(buffer.scales.len().max(rows), 0.0);
            let Quantized {
                bytes,
                scales,
                pairs,
            } = buffer;
            isa.run(Quantize {
                x: x.as_ptr(),
                stride,
                rows,
                width: stride,
                bytes,
                scales,
            });
            pairs.arrange(isa, bytes, stride, rows);
        }
        Input {
            x,
            stride,
            rows,
            quantized: buffer,
        }
    }

    /// The product of all rows and this matrix, plus bias, into `out` `[rows, n]`.
    pub fn apply(
        &self,
        isa: Isa,
        team: &Team,
        input: Input<'_>,
        out: &mut [f32],
        stride: usize,
        then: Then,
    ) {
        Self::apply_all(&[self], isa, team, input, out, stride, then);
    }

    /// The products of all rows and several matrices, plus biases, side by side into `out`.
    pub fn apply_all(
        matrices: &[&Self],
        isa: Isa,
        team: &Team,
        input: Input<'_>,
        out: &mut [f32],
        stride: usize,
        then: Then,
    ) {
        let rows = input.rows;
        if rows == 0 {
            return;
        }
        let outputs: usize = matrices.iter().map(|matrix| matrix.n).sum();
        assert!(stride >= outputs && out.len() >= (rows - 1) * stride + outputs);
        let to = Shared(out.as_mut_ptr());
        let helped = team.helps();
        let parts = matrices.iter().map(|matrix| matrix.parts(helped)).sum();
        team.share(parts, &|mut part| {
            let mut column = 0;
            for matrix in matrices {
                let parts = matrix.parts(helped);
                if part < parts {
                    let panels = matrix.panels_of(part, parts);
                    return matrix.apply_panels(isa, input, to.at(column), stride, then, panels);
                }
                part -= parts;
                column += matrix.n;
            }
        });
    }

    /// Into how many parts it is cut where others help: with whole tiles, and enough work, in each.
    fn parts(&self, helped: bool) -> usize {
        if !helped {
            return 1;
        }
        let tiles = self.n.div_ceil(TILE * LANES);
        (self.bytes() / PART).clamp(1, MOST_PARTS).min(tiles)
    }

    /// How many bytes its weights have.
    pub fn bytes(&self) -> usize {
        match &self.numbers {
            Numbers::F32(_) => 4 * self.k * self.n,
            Numbers::Int8(_) => self.k * self.n,
        }
    }

    /// The panels of one of so many parts.
    fn panels_of(&self, part: usize, parts: usize) -> Range<usize> {
        let tiles = self.n.div_ceil(TILE * LANES);
        let first = |part: usize| part * tiles / parts * TILE;
        first(part)..first(part + 1).min(self.n.div_ceil(LANES))
    }

    /// The outputs of some panels, to their places behind `out`, where the matrix's first one belongs.
    fn apply_panels(
        &self,
        isa: Isa,
        input: Input<'_>,
        out: *mut f32,
        stride: usize,
        then: Then,
        panels: Range<usize>,
    ) {
        let Input {
            x,
            stride: a_stride,
            rows,
            quantized,
        } = input;
        assert!(a_stride >= self.k && x.len() >= rows * a_stride);
        let (first, end) = (panels.start * LANES, self.n.min(panels.end * LANES));
        let out = Out {
            to: out.wrapping_add(first),
            stride,
            n: end - first,
            then,
        };
        let bias = self.bias[first..].as_ptr();
        match &self.numbers {
            Numbers::F32(weights) => isa.run(F32Product {
                a: x.as_ptr(),
                a_stride,
                rows,
                k: self.k,
                b: weights.get()[first * self.k..].as_ptr(),
                b_stride: LANES,
                panel_stride: self.k * LANES,
                bias,
                out,
            }),
            Numbers::Int8(Int8 {
                panels: weights,
                scales,
                start,
            }) => {
                assert!(quantized.bytes.len() >= rows * a_stride && quantized.scales.len() >= rows);
                let groups = self.k.div_ceil(4);
                isa.run(Int8Product {
                    a: quantized.bytes.as_ptr(),
                    pairs: &quantized.pairs,
                    a_stride,
                    a_scales: quantized.scales.as_ptr(),
                    rows,
                    groups,
                    b: weights.get()[first * 4 * groups..].as_ptr(),
                    b_scales: scales[first..].as_ptr(),
                    start: start[first..].as_ptr(),
                    bias,
                    out,
                });
            }
        }
    }
}

/// Where results go, for threads that write to different places.
#[derive(Clone, Copy)]
struct Shared(*mut f32);

// SAFETY: no two parts of a product have an output in common.
unsafe impl Sync for Shared {}

impl Shared {
    fn at(self, column: usize) -> *mut f32 {
        self.0.wrapping_add(column)
    }
}

/// Bytes of weights that are worth a thread's attention: less are read sooner than they are handed over.
const PART: usize = 64 << 10;

/// More parts would only be more to hand over.
const MOST_PARTS: usize = 16;

/// Panels in the widest tile, which parts do not cut.
const TILE: usize = 4;

impl Matrix {
    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.n
    }

    /// Number of inputs.
    pub fn inputs(&self) -> usize {
        self.k
    }

    /// One number per output, and zeros up to a whole vector.
    pub fn bias(&self) -> &[f32] {
        &self.bias
    }

    /// Scales, and what takes the activations' offset away again, for each output; nothing in f32.
    pub fn int8_parts(&self) -> Option<(&[f32], &[i32])> {
        match &self.numbers {
            Numbers::F32(_) => None,
            Numbers::Int8(Int8 { scales, start, .. }) => Some((scales, start)),
        }
    }

    /// The outputs of one panel of an f32 matrix for one row, with the bits of [`Matrix::apply`].
    pub fn apply_panel(&self, isa: Isa, x: &[f32], panel: usize, out: &mut [f32]) {
        let Numbers::F32(panels) = &self.numbers else {
            unreachable!("asked for f32 of an int8 matrix");
        };
        let size = self.k * LANES;
        assert!(x.len() >= self.k && out.len() == LANES.min(self.n - panel * LANES));
        isa.run(F32Product {
            a: x.as_ptr(),
            a_stride: self.k,
            rows: 1,
            k: self.k,
            b: panels.get()[panel * size..][..size].as_ptr(),
            b_stride: LANES,
            panel_stride: size,
            bias: self.bias[panel * LANES..][..LANES].as_ptr(),
            out: Out {
                to: out.as_mut_ptr(),
                stride: LANES,
                n: out.len(),
                then: Then::Store,
            },
        });
    }

    /// An f32 matrix in int8, and for each output the norm of its weights and of what rounding changed of them.
    pub fn to_int8(&self, isa: Isa) -> (Self, Vec<f32>, Vec<f32>) {
        let Numbers::F32(panels) = &self.numbers else {
            unreachable!("asked for f32 of an int8 matrix");
        };
        let (k, n, panels) = (self.k, self.n, panels.get());
        let at = |i, output| panels[output / LANES * k * LANES + i * LANES + output % LANES];
        let (bytes, scales) = quantize_by(k, n, at, Along::Inputs);
        let norm = |value: &dyn Fn(usize) -> f32| {
            let squares = (0..k).map(|i| f64::from(value(i)).powi(2));
            squares.sum::<f64>().sqrt() as f32
        };
        let norms = (0..n).map(|output| norm(&|i| at(i, output)));
        let rounding = (0..n).map(|output| {
            let byte = |i| f32::from(bytes[packed_place(k, i, output)]);
            norm(&|i| at(i, output) - byte(i) * scales[output])
        });
        let (norms, rounding) = (norms.collect(), rounding.collect());
        let numbers = Numbers::Int8(Int8::new(k, Bytes::Own(bytes), &scales, isa));
        (Self::new(k, n, numbers, &self.bias[..n]), norms, rounding)
    }

    /// Copies the weights of one output of an f32 matrix.
    pub fn copy_f32_output(&self, output: usize, to: &mut [f32]) {
        let Numbers::F32(panels) = &self.numbers else {
            unreachable!("asked for f32 of an int8 matrix");
        };
        assert!(output < self.n && to.len() == self.k);
        let panel = &panels.get()[output / LANES * self.k * LANES + output % LANES..];
        for (to, weight) in to.iter_mut().zip(panel.iter().step_by(LANES)) {
            *to = *weight;
        }
    }

    /// Copies the weights of one output of an int8 matrix.
    pub fn copy_int8_output(&self, output: usize, to: &mut [i8]) {
        let Numbers::Int8(Int8 { panels, .. }) = &self.numbers else {
            unreachable!("asked for int8 of an f32 matrix");
        };
        assert!(output < self.n && to.len() == self.k);
        let panels = &panels.get()[packed_place(self.k, 0, output)..];
        for (to, weights) in to.chunks_mut(4).zip(panels.chunks(4 * LANES)) {
            to.copy_from_slice(&weights[..to.len()]);
        }
    }

    /// Adds the weights of one output, times `factor`, to `out`: a row of an embedding.
    pub fn add_output(&self, output: usize, factor: f32, out: &mut [f32]) {
        assert!(output < self.n && out.len() == self.k);
        let Int8 { panels, scales, .. } = match &self.numbers {
            Numbers::F32(panels) => {
                let first = output / LANES * self.k * LANES + output % LANES;
                let panel = &panels.get()[first..];
                for (out, weight) in out.iter_mut().zip(panel.iter().step_by(LANES)) {
                    *out += weight * factor;
                }
                return;
            }
            Numbers::Int8(int8) => int8,
        };
        let factor = factor * scales[output];
        let panels = &panels.get()[packed_place(self.k, 0, output)..];
        for (out, weights) in out.chunks_mut(4).zip(panels.chunks(4 * LANES)) {
            for (out, weight) in out.iter_mut().zip(weights) {
                *out += f32::from(*weight) * factor;
            }
        }
    }
}

impl Bytes {
    pub fn get(&self) -> &[i8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Mapped(weights, range) => {
                let bytes = weights.bytes(range.clone());
                // SAFETY: i8 and u8 have the same size and no forbidden values.
                unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
            }
        }
    }
}

impl Floats {
    /// The numbers at `place`, if they can be computed with there.
    pub fn mapped(weights: &Arc<Weights>, place: Range<usize>) -> Option<Self> {
        let bytes = weights.bytes(place.clone());
        let aligned = bytes.as_ptr().cast::<f32>().is_aligned();
        (aligned && cfg!(target_endian = "little")).then(|| Self::Mapped(weights.clone(), place))
    }

    pub fn get(&self) -> &[f32] {
        match self {
            Self::Own(numbers) => numbers,
            Self::Mapped(weights, place) => {
                let bytes = weights.bytes(place.clone());
                // SAFETY: they are aligned, and any four bytes are a number.
                unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / 4) }
            }
        }
    }
}

impl Int8 {
    /// Packed bytes as [`quantize`] makes them.
    pub fn new(k: usize, panels: Bytes, scales: &[f32], isa: Isa) -> Self {
        let start = sums(panels.get(), k)
            .into_iter()
            .map(|sum| -isa.offset() * sum)
            .collect();
        Self {
            panels,
            scales: padded(scales),
            start,
        }
    }
}

/// An f32 matrix of numbers in a file.
#[cfg(test)]
pub(crate) fn from_plain(plain: super::packing::Plain<'_>, bias: &[f32]) -> Matrix {
    let numbers = Numbers::F32(Floats::Own(super::packing::pack(plain)));
    Matrix::new(plain.k, plain.n, numbers, bias)
}
