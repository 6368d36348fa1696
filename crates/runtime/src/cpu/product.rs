//! Matrix products of activations and packed weights, in f32 and int8.
//!
//! Weights lie in panels of [`LANES`] columns ([`super::matrix`] packs them), so that the innermost loop
//! reads one vector after the other. A tile of at most [`MAX_ROWS`] rows and a few panels stays in registers.
//! Every output is summed over its inputs in one accumulator from first to last, so that it does not
//! depend on which rows it is computed with. Neighbors: [`super::attend`] uses the tiles too.

use std::ops::Range;

use super::pairs::{Pairs, pairs_tile};
use super::simd::{LANES, Simd, Work};

/// Rows in one tile.
const MAX_ROWS: usize = 6;

/// Rows of a tile from which on it has time to fetch what comes next. Lower ones do nothing but read.
pub(super) const FETCHING_ROWS: usize = 4;

/// Panels that a tile of int8 fetches, beginning with the first of its share: a constant, since a loop of any other length took a
/// tenth of the time there. (In f32 with AVX2 the constant was slower.)
const FETCHED: usize = 2;

/// Covers `[rows, n]` with tiles, whose sizes are constants. A few panels meet all rows before the
/// next ones do, so that weights are read from far memory once; and while they do, the tiles fetch
/// the panels that come next, each of them its share.
///
/// A macro, because closures are compiled without the instructions that are enabled around them.
macro_rules! tiles {
    ($simd:ident, $rows:expr, $n:expr, $most:expr, $tile:ident($product:expr)) => {{
        let mut panel = 0;
        while panel * LANES < $n {
            // Wide tiles have whole panels only.
            let wide = $simd::PANELS == 4 && $n - panel * LANES >= 4 * LANES;
            let width = if wide { 4 } else { 1 };
            let mut first = 0;
            while first < $rows {
                let height = height($rows - first, $most);
                let at = Place {
                    first,
                    panel,
                    fetch: width * first / $rows..width * (first + height) / $rows,
                };
                match (height, wide) {
                    (1, true) => $tile::<$simd, 1, 4>($product, at),
                    (2, true) => $tile::<$simd, 2, 4>($product, at),
                    (3, true) => $tile::<$simd, 3, 4>($product, at),
                    (4, true) => $tile::<$simd, 4, 4>($product, at),
                    (5, true) => $tile::<$simd, 5, 4>($product, at),
                    (_, true) => $tile::<$simd, 6, 4>($product, at),
                    (1, false) => $tile::<$simd, 1, 1>($product, at),
                    (2, false) => $tile::<$simd, 2, 1>($product, at),
                    (3, false) => $tile::<$simd, 3, 1>($product, at),
                    (4, false) => $tile::<$simd, 4, 1>($product, at),
                    (5, false) => $tile::<$simd, 5, 1>($product, at),
                    (_, false) => $tile::<$simd, 6, 1>($product, at),
                }
                first += height;
            }
            panel += width;
        }
    }};
}

/// Where a tile stands.
pub(super) struct Place {
    pub first: usize,
    pub panel: usize,
    /// Which of the next panels it fetches.
    pub fetch: Range<usize>,
}

/// Rows of the next tile: of eight rather four and four than six and two.
#[inline(always)]
pub(super) fn height(rest: usize, most: usize) -> usize {
    if rest > most && rest < 2 * most {
        rest.div_ceil(2)
    } else {
        rest.min(most)
    }
}

/// What happens to the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// They replace the output.
    Store,
    /// They replace the output, negative ones as zero.
    Relu,
    /// They are added to the output.
    Add,
}

/// Where results go: `[rows, n]` with a distance of `stride` between rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Out {
    pub to: *mut f32,
    pub stride: usize,
    pub n: usize,
    pub then: Then,
}

/// `a` `[rows, k]` times `b` `[k, n]` plus bias.
#[derive(Debug, Clone, Copy)]
pub(crate) struct F32Product {
    pub a: *const f32,
    pub a_stride: usize,
    pub rows: usize,
    pub k: usize,
    pub b: *const f32,
    /// From one input's vector to the next one's.
    pub b_stride: usize,
    /// From one panel to the next.
    pub panel_stride: usize,
    /// `n` numbers up to a whole vector, or null.
    pub bias: *const f32,
    pub out: Out,
}

/// Quantized `a` `[rows, k]` times quantized `b` `[k, n]`, scaled back, plus bias.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Int8Product<'a> {
    /// Bytes as [`super::rowwise::Quantize`] writes them.
    pub a: *const u8,
    /// The same, arranged for where [`Simd::PAIRS`] holds.
    pub pairs: &'a Pairs,
    pub a_stride: usize,
    pub a_scales: *const f32,
    pub rows: usize,
    /// Groups of four inputs.
    pub groups: usize,
    /// `[n / LANES, groups, LANES, 4]`
    pub b: *const i8,
    /// One per column, like everything below up to a whole vector.
    pub b_scales: *const f32,
    /// What takes away [`Simd::OFFSET`].
    pub start: *const i32,
    pub bias: *const f32,
    pub out: Out,
}

impl Work for F32Product {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        unsafe { f32_product::<S>(&self) }
    }
}

impl Work for Int8Product<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        unsafe {
            if S::PAIRS {
                tiles!(S, self.rows, self.out.n, S::INT8_ROWS, pairs_tile(&self))
            } else {
                tiles!(S, self.rows, self.out.n, S::INT8_ROWS, int8_tile(&self))
            }
        }
    }
}

/// See [`F32Product`]; for kernels that need a product in their midst.
#[inline(always)]
pub(super) unsafe fn f32_product<S: Simd>(product: &F32Product) {
    unsafe { tiles!(S, product.rows, product.out.n, MAX_ROWS, f32_tile(product)) }
}

#[inline(always)]
unsafe fn f32_tile<S: Simd, const M: usize, const P: usize>(product: &F32Product, at: Place) {
    unsafe {
        let Place {
            first,
            panel,
            fetch,
        } = at;
        let a = product.a.add(first * product.a_stride);
        let b = product.b.add(panel * product.panel_stride);
        let mut sums = [[S::splat(0.0); P]; M];
        if !product.bias.is_null() {
            for p in 0..P {
                let bias = S::load(product.bias.add((panel + p) * LANES));
                for row in &mut sums {
                    row[p] = bias;
                }
            }
        }
        // Weights lie close together; keys and values, which do not, have no panels that come next.
        let fetch = if M >= FETCHING_ROWS && product.b_stride == LANES {
            fetch
        } else {
            0..0
        };
        let next = b.wrapping_add(P * product.panel_stride);
        for i in 0..product.k {
            let b = b.add(i * product.b_stride);
            for p in fetch.clone() {
                S::fetch(
                    next.wrapping_add(p * product.panel_stride + i * LANES)
                        .cast(),
                );
            }
            let mut vectors = [S::splat(0.0); P];
            for (p, vector) in vectors.iter_mut().enumerate() {
                *vector = S::load(b.add(p * product.panel_stride));
            }
            for (m, row) in sums.iter_mut().enumerate() {
                let a = S::splat(*a.add(m * product.a_stride + i));
                for (sum, vector) in row.iter_mut().zip(vectors) {
                    *sum = S::fma(a, vector, *sum);
                }
            }
        }
        // Not a `match` for each vector: that would keep the sums in memory instead of in registers.
        match product.out.then {
            Then::Store => f32_finish::<S, M, P, STORE>(&product.out, sums, first, panel),
            Then::Relu => f32_finish::<S, M, P, RELU>(&product.out, sums, first, panel),
            Then::Add => f32_finish::<S, M, P, ADD>(&product.out, sums, first, panel),
        }
    }
}

#[inline(always)]
#[allow(clippy::needless_range_loop)] // An iterator over the sums would move them to memory.
unsafe fn f32_finish<S: Simd, const M: usize, const P: usize, const THEN: u8>(
    out: &Out,
    sums: [[S::F; P]; M],
    first: usize,
    panel: usize,
) {
    for m in 0..M {
        for p in 0..P {
            unsafe { put::<S, P, THEN>(out, first + m, panel + p, sums[m][p]) };
        }
    }
}

#[inline(always)]
unsafe fn int8_tile<S: Simd, const M: usize, const P: usize>(product: &Int8Product<'_>, at: Place) {
    unsafe {
        let Place {
            first,
            panel,
            fetch,
        } = at;
        let a = product.a.add(first * product.a_stride);
        let panel_bytes = product.groups * 4 * LANES;
        let b = product.b.add(panel * panel_bytes);
        let mut start = [S::load_i(product.start.add(panel * LANES)); P];
        for (p, start) in start.iter_mut().enumerate() {
            *start = S::load_i(product.start.add((panel + p) * LANES));
        }
        let mut sums = [start; M];
        let next = b.wrapping_add((P + fetch.start.min(P.saturating_sub(FETCHED))) * panel_bytes);
        for group in 0..product.groups {
            let b = b.add(group * 4 * LANES);
            if M >= FETCHING_ROWS {
                for p in 0..FETCHED.min(P) {
                    S::fetch(
                        next.wrapping_add(p * panel_bytes + group * 4 * LANES)
                            .cast(),
                    );
                }
            }
            let mut vectors = [S::load_w(b); P];
            for (p, vector) in vectors.iter_mut().enumerate() {
                *vector = S::load_w(b.add(p * panel_bytes));
            }
            for (m, row) in sums.iter_mut().enumerate() {
                let a = S::spread(a.add(m * product.a_stride + 4 * group));
                for (sum, vector) in row.iter_mut().zip(vectors) {
                    *sum = S::dot(*sum, a, vector);
                }
            }
        }
        int8_finish::<S, M, P>(product, sums, first, panel);
    }
}

/// The sums of a tile to results where they belong.
#[inline(always)]
pub(super) unsafe fn int8_finish<S: Simd, const M: usize, const P: usize>(
    product: &Int8Product<'_>,
    sums: [[S::I; P]; M],
    first: usize,
    panel: usize,
) {
    unsafe {
        match product.out.then {
            Then::Store => int8_put::<S, M, P, STORE>(product, sums, first, panel),
            Then::Relu => int8_put::<S, M, P, RELU>(product, sums, first, panel),
            Then::Add => int8_put::<S, M, P, ADD>(product, sums, first, panel),
        }
    }
}

#[inline(always)]
#[allow(clippy::needless_range_loop)] // As above.
unsafe fn int8_put<S: Simd, const M: usize, const P: usize, const THEN: u8>(
    product: &Int8Product<'_>,
    sums: [[S::I; P]; M],
    first: usize,
    panel: usize,
) {
    unsafe {
        for p in 0..P {
            let column = (panel + p) * LANES;
            let (scale, bias) = (
                S::load(product.b_scales.add(column)),
                S::load(product.bias.add(column)),
            );
            for m in 0..M {
                let scaled = S::mul(S::to_f(sums[m][p]), scale);
                let result = S::fma(scaled, S::splat(*product.a_scales.add(first + m)), bias);
                put::<S, P, THEN>(&product.out, first + m, panel + p, result);
            }
        }
    }
}

/// The kinds of [`Then`] as numbers, which can be constants of a function.
const STORE: u8 = 0;
const RELU: u8 = 1;
const ADD: u8 = 2;

/// One vector of a tile to where it belongs. In tiles of several panels all are whole.
#[inline(always)]
unsafe fn put<S: Simd, const P: usize, const THEN: u8>(
    out: &Out,
    row: usize,
    panel: usize,
    mut result: S::F,
) {
    unsafe {
        let column = panel * LANES;
        let to = out.to.add(row * out.stride + column);
        let count = out.n - column;
        let whole = P > 1 || count >= LANES;
        if THEN == RELU {
            result = S::max(result, S::splat(0.0));
        }
        if whole {
            if THEN == ADD {
                result = S::add(S::load(to), result);
            }
            S::store(to, result);
        } else {
            if THEN == ADD {
                result = S::add(S::load_some(to, count, 0.0), result);
            }
            S::store_some(to, result, count);
        }
    }
}
