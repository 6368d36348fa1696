//! Quantized rows, arranged for instructions that add two products of bytes in 16 bits: AVX2's `maddubs`.
//!
//! It multiplies unsigned bytes by signed ones and saturates, but our sums are exact. Weights become unsigned by
//! adding 128, so they are at most 255, and two activations `a` and `b` that share a sum must not add up to
//! more than ±128. Where they do, `b` changes its sign and its weight `w` becomes `127 - w`, which is unsigned
//! too; then `a - b` counts, and one of both is always small enough. The rows of a tile share their weights and
//! so the choice; where none is good for all of them, the activations are halved and the weights come twice. Weights
//! that meet zeros only do not come at all. What was added to the weights comes to a number for each row, with which its sums begin.
//!
//! (Taking the sign of each weight to the activation instead, for each row and weight, needs a third instruction
//! of those that only two units of a core can do; the products then took up to 1.5 times as long.)
//! Neighbors: [`super::matrix`] prepares rows, [`super::product`] covers the output with the tiles here.

use super::product::{FETCHING_ROWS, Int8Product, Place, height, int8_finish};
use super::simd::{Isa, LANES, Simd, Work};

/// What the tiles of a product do, step by step, if the instruction set wants it so.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    /// The steps of one tile after the other. A step is a group of four inputs: its number, what the bits of its
    /// weights are combined with, and four bytes of each row.
    steps: Vec<u32>,
    /// Where a tile's steps begin and end, at the place of its first row.
    places: Vec<(usize, usize)>,
    /// Where the sums of each row begin.
    start: Vec<i32>,
    scratch: Scratch,
}

/// Room for the rows of one tile, a number for each pair.
#[derive(Debug, Default)]
struct Scratch {
    /// The largest sums and differences over all rows.
    together: Vec<i16>,
    apart: Vec<i16>,
    masks: Vec<i16>,
    /// `[rows, width / 2]`
    pairs: Vec<i16>,
}

/// The most that two activations may add up to: 255 times this fits 16 bits.
const MOST: i16 = 128;

/// What a step has before its rows.
const HEAD: usize = 2;

impl Pairs {
    /// Arranges signed bytes, `[rows, width]`.
    pub fn arrange(&mut self, isa: Isa, bytes: &[u8], width: usize, rows: usize) {
        isa.run(Arrange {
            bytes: &bytes[..rows * width],
            width,
            pairs: self,
        });
    }
}

struct Arrange<'a> {
    bytes: &'a [u8],
    width: usize,
    pairs: &'a mut Pairs,
}

impl Work for Arrange<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        if !S::PAIRS {
            return;
        }
        const { assert!(!S::PAIRS || S::INT8_ROWS == 4) };
        let Self {
            bytes,
            width,
            pairs,
        } = self;
        let rows = bytes.len() / width;
        pairs.steps.clear();
        pairs.places.resize(rows, (0, 0));
        pairs.start.resize(rows, 0);
        let mut first = 0;
        while first < rows {
            let height = height(rows - first, S::INT8_ROWS);
            let bytes = &bytes[first * width..][..height * width];
            match height {
                1 => pairs.arrange_tile::<1>(bytes, first),
                2 => pairs.arrange_tile::<2>(bytes, first),
                3 => pairs.arrange_tile::<3>(bytes, first),
                _ => pairs.arrange_tile::<4>(bytes, first),
            }
            first += height;
        }
    }
}

/// The two bytes of a pair.
#[inline(always)]
fn halves(pair: i16) -> (i16, i16) {
    (pair << 8 >> 8, pair >> 8)
}

#[inline(always)]
fn pair(a: i16, b: i16) -> i16 {
    a & 0xFF | b << 8
}

/// The four bytes of a group.
#[inline(always)]
fn four(pairs: &[i16], group: usize) -> u32 {
    let two = |i: usize| u32::from(pairs[2 * group + i].cast_unsigned());
    two(0) | two(1) << 16
}

impl Pairs {
    #[inline(always)]
    fn arrange_tile<const M: usize>(&mut self, bytes: &[u8], first: usize) {
        let width = bytes.len() / M;
        self.scratch.fill::<M>(bytes, &mut self.start[first..][..M]);
        let Scratch {
            together,
            apart,
            masks,
            pairs,
        } = &self.scratch;
        let begin = self.steps.len();
        // At most two steps for each group, of which those behind the last are taken away again.
        self.steps.resize(begin + width / 2 * (HEAD + M), 0);
        let mut end = begin;
        for group in 0..width / 4 {
            let step = &mut self.steps[end..][..2 * (HEAD + M)];
            (step[0], step[1]) = (group as u32, four(masks, group));
            let mut any = 0;
            for m in 0..M {
                step[HEAD + m] = four(&pairs[m * width / 2..], group);
                any |= step[HEAD + m];
            }
            if any == 0 {
                continue;
            }
            let least = |i: usize| together[i].min(apart[i]);
            if least(2 * group).max(least(2 * group + 1)) > MOST {
                let (one, other) = step.split_at_mut(HEAD + M);
                other[..HEAD].copy_from_slice(&one[..HEAD]);
                for (one, other) in one[HEAD..].iter_mut().zip(&mut other[HEAD..]) {
                    let all = one.to_le_bytes().map(u8::cast_signed);
                    *one = u32::from_le_bytes(all.map(|a| (a >> 1).cast_unsigned()));
                    *other = u32::from_le_bytes(all.map(|a| (a - (a >> 1)).cast_unsigned()));
                }
                end += HEAD + M;
            }
            end += HEAD + M;
        }
        self.steps.truncate(end);
        self.places[first] = (begin, end);
    }
}

impl Scratch {
    /// Chooses for all rows of a tile, and says where their sums begin.
    #[inline(always)]
    fn fill<const M: usize>(&mut self, bytes: &[u8], start: &mut [i32]) {
        let bytes = bytes.as_chunks::<2>().0;
        let width = bytes.len() / M;
        for numbers in [&mut self.together, &mut self.apart, &mut self.masks] {
            numbers.clear();
            numbers.resize(width, 0);
        }
        self.pairs.resize(M * width, 0);
        for row in bytes.chunks_exact(width) {
            let worst = self.together.iter_mut().zip(&mut self.apart);
            for (bytes, (together, apart)) in row.iter().zip(worst) {
                let (a, b) = halves(i16::from_le_bytes(*bytes));
                *together = (a + b).abs().max(*together);
                *apart = (a - b).abs().max(*apart);
            }
        }
        let worst = self.together.iter().zip(&self.apart);
        for (mask, (together, apart)) in self.masks.iter_mut().zip(worst) {
            *mask = if together > apart {
                pair(0x80, 0x7F)
            } else {
                pair(0x80, 0x80)
            };
        }
        let rows = bytes
            .chunks_exact(width)
            .zip(self.pairs.chunks_exact_mut(width));
        for ((from, to), start) in rows.zip(start) {
            let mut sum = 0;
            for ((from, to), mask) in from.iter().zip(to).zip(&self.masks) {
                let (a, b) = halves(i16::from_le_bytes(*from));
                // -1 where the sign changes, and 0 elsewhere.
                let change = !(mask >> 15);
                let b = (b ^ change) - change;
                *to = pair(a, b);
                sum += i32::from(a) * 128 + i32::from(b) * i32::from(128 + change);
            }
            *start = -sum;
        }
    }
}

/// A tile of an [`Int8Product`].
#[inline(always)]
pub(super) unsafe fn pairs_tile<S: Simd, const M: usize, const P: usize>(
    product: &Int8Product<'_>,
    at: Place,
) {
    unsafe {
        let Place {
            first,
            panel,
            fetch,
        } = at;
        let Pairs {
            steps,
            places,
            start,
            ..
        } = product.pairs;
        let panel_bytes = product.groups * 4 * LANES;
        let b = product.b.add(panel * panel_bytes);
        let mut sums = [[S::load_i([0; LANES].as_ptr()); P]; M];
        for (row, start) in sums.iter_mut().zip(&start[first..]) {
            *row = [S::load_i([*start; LANES].as_ptr()); P];
        }
        let fetch = if M >= FETCHING_ROWS { fetch } else { 0..0 };
        let next = b.wrapping_add(P * panel_bytes);
        let (begin, end) = places[first];
        for step in steps[begin..end].chunks_exact(HEAD + M) {
            let group = step[0] as usize * 4 * LANES;
            let mask = S::spread(step[1..].as_ptr().cast());
            for p in fetch.clone() {
                S::fetch(next.wrapping_add(p * panel_bytes + group).cast());
            }
            let mut vectors = [S::load_w(b.add(group)); P];
            for (p, vector) in vectors.iter_mut().enumerate() {
                *vector = S::load_w(b.add(p * panel_bytes + group));
            }
            for (m, row) in sums.iter_mut().enumerate() {
                let a = S::spread(step[HEAD + m..].as_ptr().cast());
                for (sum, vector) in row.iter_mut().zip(vectors) {
                    *sum = S::dot_pairs(*sum, a, vector, mask);
                }
            }
        }
        int8_finish::<S, M, P>(product, sums, first, panel);
    }
}
