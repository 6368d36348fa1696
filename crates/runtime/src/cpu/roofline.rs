//! Every kernel by itself, with the work that it does, and what the machine can do at most.
//!
//! For `benches/cpu.rs` only, which measures how near each kernel comes to the machine's limit. Weights and
//! keys are read from as much memory as a model has, one piece after the other, as in translating.

use super::aligned::{Aligned, Plain};
use super::attend::{Attend, Heads};
use super::pairs::Pairs;
use super::product::{F32Product, Int8Product, Out, Then};
use super::rowwise::{LogSoftmax, Norm, Normalize, Quantize};
use super::simd::{Isa, LANES, Simd, Work};

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Multiplications of bytes, each with its addition.
    Int8,
    /// Multiplications of f32, each with its addition.
    F32,
    /// Bytes read and written, each number once, however often a kernel goes over it.
    Bytes,
}

/// Something to measure.
pub struct Kernel {
    /// What it is, with its sizes.
    pub name: String,
    /// What is counted.
    pub unit: Unit,
    /// How much of it one run does.
    pub work: usize,
    run: Box<dyn FnMut()>,
}

impl Kernel {
    fn new(name: String, unit: Unit, work: usize, run: impl FnMut() + 'static) -> Self {
        let run = Box::new(run);
        Self {
            name,
            unit,
            work,
            run,
        }
    }

    /// Does the work once.
    pub fn run(&mut self) {
        (self.run)();
    }
}

/// What the machine can do: a loop that computes in registers only, and one that only reads memory which
/// does not fit the caches next to a core.
pub fn peaks(isa: Isa) -> Vec<Kernel> {
    let loops = 10_000;
    let int8 = move || isa.run(InRegisters::<true> { loops });
    let f32 = move || isa.run(InRegisters::<false> { loops });
    let memory = Aligned::<f32>::zeros(FAR / size_of::<f32>());
    let sums = loops * ACCUMULATORS * LANES;
    vec![
        Kernel::new("registers".into(), Unit::Int8, 4 * sums, int8),
        Kernel::new("registers".into(), Unit::F32, sums, f32),
        Kernel::new("reading".into(), Unit::Bytes, FAR, move || {
            isa.run(Read(&memory))
        }),
    ]
}

/// The kernels at the sizes that they have in translating with a model of width 256.
pub fn kernels(isa: Isa) -> Vec<Kernel> {
    let mut all = Vec::new();
    for rows in [1, 4, 24, 96] {
        for (k, n) in [(256, 256), (256, 1024), (1024, 256), (256, 8000)] {
            all.push(int8_product(isa, rows, k, n));
        }
    }
    for rows in [1, 4, 24, 96] {
        for (k, n) in [(256, 256), (1024, 256), (256, 8000)] {
            all.push(f32_product(isa, rows, k, n));
        }
    }
    for (rows, len) in [(1, 16), (4, 16), (24, 24)] {
        all.push(attention(isa, rows, len));
    }
    all.push(log_softmax(isa, 24, 8000));
    all.push(layer_norm(isa, 24, 256));
    all.extend([256, 1024].map(|width| quantize(isa, 24, width)));
    all
}

/// Bytes that fit no core's own cache.
const FAR: usize = 8 << 20;

/// As many as hide the time that one addition takes, and fit the registers everywhere.
const ACCUMULATORS: usize = 6;

struct InRegisters<const INT8: bool> {
    loops: usize,
}

impl<const INT8: bool> Work for InRegisters<INT8> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        unsafe {
            let bytes = std::hint::black_box([1i8; 4 * LANES]);
            let x = S::splat(std::hint::black_box(1.0));
            let (w, mask) = (S::load_w(bytes.as_ptr()), S::spread(bytes.as_ptr().cast()));
            let mut ints = [S::load_i([0; LANES].as_ptr()); ACCUMULATORS];
            let mut floats = [S::splat(0.0); ACCUMULATORS];
            for _ in 0..self.loops {
                if INT8 {
                    // Otherwise what does not change, or is the same for all, would be computed once, where
                    // a dot product is more than one instruction.
                    let bytes = std::hint::black_box(bytes.as_ptr()).cast::<u8>();
                    for (i, sum) in ints.iter_mut().enumerate() {
                        let a = S::spread(bytes.add(4 * i));
                        *sum = if S::PAIRS {
                            S::dot_pairs(*sum, a, w, mask)
                        } else {
                            S::dot(*sum, a, w)
                        };
                    }
                } else {
                    for sum in &mut floats {
                        *sum = S::fma(x, x, *sum);
                    }
                }
            }
            for (int, float) in ints.into_iter().zip(floats) {
                std::hint::black_box(S::sum(S::add(S::to_f(int), float)));
            }
        }
    }
}

struct Read<'a>(&'a [f32]);

impl Work for Read<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        unsafe {
            let mut sums = [S::splat(0.0); 4];
            for block in self.0.as_chunks::<{ 4 * LANES }>().0 {
                for (i, sum) in sums.iter_mut().enumerate() {
                    *sum = S::max(*sum, S::load(block.as_ptr().add(i * LANES)));
                }
            }
            for sum in sums {
                std::hint::black_box(S::sum(sum));
            }
        }
    }
}

/// Pieces of far memory, one after the other.
struct Pieces<T> {
    memory: Aligned<T>,
    size: usize,
    next: usize,
}

impl<T: Plain> Pieces<T> {
    fn new(size: usize) -> Self {
        let count = (FAR / size_of::<T>()).div_ceil(size);
        Self {
            memory: Aligned::zeros(count * size),
            size,
            next: 0,
        }
    }

    fn next(&mut self) -> *const T {
        self.next = (self.next + self.size) % self.memory.len();
        self.memory[self.next..].as_ptr()
    }
}

fn int8_product(isa: Isa, rows: usize, k: usize, n: usize) -> Kernel {
    let mut weights = Pieces::<i8>::new(k * n);
    let (mut a, columns) = (Aligned::<u8>::zeros(rows * k), Aligned::<f32>::zeros(n));
    a.fill(1); // Zeros might be left out.
    let (a_scales, start) = (vec![1.0; rows], vec![0; n]);
    let mut pairs = Pairs::default();
    pairs.arrange(isa, &a, k, rows);
    let mut out = Aligned::<f32>::zeros(rows * n);
    let name = format!("int8 product, {rows} x {k} x {n}");
    Kernel::new(name, Unit::Int8, rows * k * n, move || {
        isa.run(Int8Product {
            a: a.as_ptr(),
            pairs: &pairs,
            a_stride: k,
            a_scales: a_scales.as_ptr(),
            rows,
            groups: k / 4,
            b: weights.next(),
            b_scales: columns.as_ptr(),
            start: start.as_ptr(),
            bias: columns.as_ptr(),
            out: stored(&mut out, n),
        });
    })
}

fn f32_product(isa: Isa, rows: usize, k: usize, n: usize) -> Kernel {
    let mut weights = Pieces::<f32>::new(k * n);
    let (a, bias) = (Aligned::<f32>::zeros(rows * k), Aligned::<f32>::zeros(n));
    let mut out = Aligned::<f32>::zeros(rows * n);
    let name = format!("f32 product, {rows} x {k} x {n}");
    Kernel::new(name, Unit::F32, rows * k * n, move || {
        isa.run(F32Product {
            a: a.as_ptr(),
            a_stride: k,
            rows,
            k,
            b: weights.next(),
            b_stride: LANES,
            panel_stride: k * LANES,
            bias: bias.as_ptr(),
            out: stored(&mut out, n),
        });
    })
}

fn stored(out: &mut [f32], n: usize) -> Out {
    Out {
        to: out.as_mut_ptr(),
        stride: n,
        n,
        then: Then::Store,
    }
}

fn attention(isa: Isa, rows: usize, len: usize) -> Kernel {
    let heads = Heads {
        heads: 4,
        kv_heads: 4,
        head_dim: 64,
    };
    let width = heads.heads * heads.head_dim;
    let count = len.div_ceil(LANES);
    let memory = Aligned::<f32>::zeros((FAR / size_of::<f32>()).next_multiple_of(heads.page()));
    let (queries, mut out) = (
        Aligned::<f32>::zeros(rows * width),
        Aligned::<f32>::zeros(rows * width),
    );
    let mut scores = Aligned::<f32>::zeros(rows * len.next_multiple_of(LANES));
    let mut place = 0;
    let name = format!("attention, {rows} queries, {len} keys, 4 heads of 64");
    Kernel::new(name, Unit::F32, 2 * rows * len * width, move || {
        let mut page = || {
            place = (place + heads.page()) % memory.len();
            place
        };
        let pages: Vec<usize> = (0..count).map(|_| page()).collect();
        isa.run(Attend {
            heads,
            queries: queries.as_ptr(),
            query_stride: width,
            rows,
            memory: &memory,
            pages: &pages,
            layer: 0,
            len,
            out: out.as_mut_ptr(),
            out_stride: width,
            scores: &mut scores,
            weights: None,
        });
    })
}

fn log_softmax(isa: Isa, rows: usize, width: usize) -> Kernel {
    let mut x: Vec<f32> = (0..rows * width)
        .map(|i| (i * 7919 % 1000) as f32 / 100.0)
        .collect();
    let name = format!("log-softmax, {rows} x {width}");
    Kernel::new(name, Unit::Bytes, 8 * rows * width, move || {
        isa.run(LogSoftmax {
            rows: &mut x,
            width,
        });
    })
}

fn layer_norm(isa: Isa, rows: usize, width: usize) -> Kernel {
    let (x, mut out) = (
        Aligned::<f32>::zeros(rows * width),
        Aligned::<f32>::zeros(rows * width),
    );
    let norm = Norm {
        weight: Aligned::zeros(width),
        bias: Aligned::zeros(width),
        keep: Aligned::zeros(width),
        width,
        epsilon: 1e-5,
    };
    let name = format!("layer norm, {rows} x {width}");
    Kernel::new(name, Unit::Bytes, 8 * rows * width, move || {
        isa.run(Normalize {
            x: x.as_ptr(),
            out: out.as_mut_ptr(),
            stride: width,
            rows,
            norm: &norm,
        });
    })
}

fn quantize(isa: Isa, rows: usize, width: usize) -> Kernel {
    let x = Aligned::<f32>::zeros(rows * width);
    let (mut bytes, mut scales) = (Aligned::<u8>::zeros(rows * width), vec![0.0; rows]);
    let mut pairs = Pairs::default();
    let name = format!("quantize, {rows} x {width}");
    Kernel::new(name, Unit::Bytes, 5 * rows * width, move || {
        isa.run(Quantize {
            x: x.as_ptr(),
            stride: width,
            rows,
            width,
            bytes: &mut bytes,
            scales: &mut scales,
        });
        pairs.arrange(isa, &bytes, width, rows);
    })
}
