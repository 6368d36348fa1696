//! Every kernel on every instruction set of this machine, beside plain arithmetic.

use std::sync::Arc;

use proptest::prelude::*;

use super::activation::Activate;
use super::aligned::Aligned;
use super::attend::{Attend, Heads, LayerWeights};
use super::candidates::{ByToken, Candidates, Logits};
use super::matrix::{Bytes, Floats, Int8, Matrix, Numbers, Quantized};
use super::packing::{Plain, pack, padded, quantize};
use super::pages::Pages;
use super::product::Then;
use super::rowwise::{LogSoftmax, Norm, Normalize};
use super::simd::{Isa, LANES};
use super::ssru::Recur;
use super::team::Team;
use crate::search::restrict;
use attentive_model::config::Activation;

/// Numbers from -1 to 1 that look random.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mix = |i: u32| {
        (i.wrapping_add(seed).wrapping_mul(2_654_435_761) ^ seed.rotate_left(9))
            .wrapping_mul(2_246_822_519)
    };
    (0..count as u32)
        .map(|i| (mix(i) >> 8) as f32 / (1 << 23) as f32 - 1.0)
        .collect()
}

fn little_endian(values: &[f32]) -> Vec<[u8; 4]> {
    values.iter().map(|value| value.to_le_bytes()).collect()
}

/// Rows at a distance that is a whole number of vectors, zeros between them.
fn rows(values: &[f32], width: usize) -> (Aligned<f32>, usize) {
    let stride = width.next_multiple_of(LANES);
    let mut rows = Aligned::zeros(values.len() / width * stride);
    for (row, values) in rows
        .chunks_exact_mut(stride)
        .zip(values.chunks_exact(width))
    {
        row[..width].copy_from_slice(values);
    }
    (rows, stride)
}

/// What a matrix makes of rows, on one instruction set.
fn product(isa: Isa, matrix: &Matrix, x: &[f32], k: usize, start: &[f32], then: Then) -> Vec<f32> {
    let (x, stride) = rows(x, k);
    let mut buffer = Quantized::default();
    let input = matrix.prepare(isa, &x, stride, x.len() / stride, &mut buffer);
    let mut out = start.to_vec();
    matrix.apply(
        isa,
        &Team::default(),
        input,
        &mut out,
        matrix.outputs(),
        then,
    );
    out
}

#[test]
fn products_have_the_same_bits_whoever_helps() {
    let (m, k) = (5, 300);
    let x = numbers(m * k, 1);
    let (x, stride) = rows(&x, k);
    let sizes = [600, 330, 64];
    let total: usize = sizes.iter().sum();
    for isa in Isa::available() {
        for eight_bits in [false, true] {
            let matrices = sizes.map(|n| {
                let (values, bias) = (little_endian(&numbers(k * n, n as u32)), numbers(n, 3));
                let plain = Plain {
                    values: &values,
                    k,
                    n,
                    transposed: true,
                };
                if eight_bits {
                    int8(plain, &bias, isa)
                } else {
                    f32(plain, &bias)
                }
            });
            let matrices: Vec<&Matrix> = matrices.iter().collect();
            let mut buffer = Quantized::default();
            let input = matrices[0].prepare(isa, &x, stride, m, &mut buffer);
            let apply = |team: &Team| {
                let mut out = vec![1.0; m * total];
                Matrix::apply_all(&matrices, isa, team, input, &mut out, total, Then::Add);
                out
            };
            let expected = apply(&Team::default());
            // On a busy machine a team goes without help after a while, so this is a new one.
            let team = Arc::new(Team::of(3));
            let _search = team.enter();
            assert!(team.helps());
            for _ in 0..20 {
                assert_eq!(apply(&team), expected, "{isa:?}");
            }
        }
    }
}

fn f32(plain: Plain<'_>, bias: &[f32]) -> Matrix {
    let numbers = Numbers::F32(Floats::Own(pack(plain)));
    Matrix::new(plain.k, plain.n, numbers, bias)
}

fn int8(plain: Plain<'_>, bias: &[f32], isa: Isa) -> Matrix {
    let (panels, scales) = quantize(plain);
    let int8 = Int8::new(plain.k, Bytes::Own(panels), &scales, isa);
    Matrix::new(plain.k, plain.n, Numbers::Int8(int8), bias)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn f32_products_are_what_plain_sums_give(
        m in 1usize..15, k in 1usize..70, n in 1usize..150, seed: u32, transposed: bool,
    ) {
        let (x, w, bias) = (numbers(m * k, seed), numbers(k * n, seed ^ 1), numbers(n, seed ^ 2));
        let start = numbers(m * n, seed ^ 3);
        let values = little_endian(&w);
        let matrix = f32(Plain { values: &values, k, n, transposed }, &bias);
        for isa in Isa::available() {
            for then in [Then::Store, Then::Relu, Then::Add] {
                let found = product(isa, &matrix, &x, k, &start, then);
                for (i, found) in found.into_iter().enumerate() {
                    let (row, column) = (i / n, i % n);
                    let weight = |j: usize| if transposed { w[column * k + j] } else { w[j * n + column] };
                    let sum: f64 = (0..k).map(|j| f64::from(x[row * k + j]) * f64::from(weight(j))).sum();
                    let sum = sum + f64::from(bias[column]);
                    let expected = match then {
                        Then::Store => sum,
                        Then::Relu => sum.max(0.0),
                        Then::Add => sum + f64::from(start[i]),
                    };
                    prop_assert!((f64::from(found) - expected).abs() < 1e-4, "{isa:?} {then:?}: {found}, {expected}");
                }
            }
        }
    }

    /// Over all tokens, int8 gives the bits of the whole layer; over some, what is left of it.
    #[test]
    fn candidates_have_the_probabilities_that_the_whole_layer_gives_them(
        m in 1usize..10, k in 1usize..150, n in 1usize..90, some in 1usize..5, seed: u32, eight_bits: bool,
    ) {
        let (x, w, bias) = (numbers(m * k, seed), numbers(k * n, seed ^ 1), numbers(n, seed ^ 2));
        let values = little_endian(&w);
        let plain = Plain { values: &values, k, n, transposed: true };
        for isa in Isa::available() {
            let matrix = if eight_bits { int8(plain, &bias, isa) } else { f32(plain, &bias) };
            let mut expected = product(isa, &matrix, &x, k, &vec![0.0; m * n], Then::Store);
            isa.run(LogSoftmax { rows: &mut expected, width: n });
            let candidates: Vec<u32> = (0..n as u32).step_by(some).collect();
            let (x, stride) = rows(&x, k);
            let mut buffer = Quantized::default();
            let input = matrix.prepare(isa, &x, stride, m, &mut buffer);
            let mut found = vec![0.0; m * candidates.len()];
            // The rows of two sentences with the same candidates.
            let tokens = &candidates[..];
            let sentences = [m / 2, m - m / 2].map(|rows| Candidates { rows, tokens });
            ByToken::new(&matrix).log_probs(isa, input, &sentences, &mut Logits::default(), &mut found);
            if some == 1 && eight_bits {
                prop_assert_eq!(&found, &expected);
            }
            restrict(&mut expected, n, std::iter::repeat_n(Some(tokens), m));
            prop_assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                let close = (found - expected).abs() < 1e-4 || found == expected;
                prop_assert!(close, "{isa:?}: {found}, {expected}");
            }
        }
    }

    /// Without a bias the last step is one multiplication everywhere, so that the sums of bytes must agree
    /// to the last bit, and a product that saturates would show.
    #[test]
    fn int8_products_are_exact_on_every_instruction_set(
        m in 1usize..15, k in 1usize..70, n in 1usize..150, seed: u32, extreme: bool, transposed: bool,
    ) {
        let (mut x, mut w) = (numbers(m * k, seed), numbers(k * n, seed ^ 1));
        if extreme {
            x.iter_mut().chain(&mut w).for_each(|value| *value = value.signum());
        }
        let values = little_endian(&w);
        let plain = Plain { values: &values, k, n, transposed };
        let zeros = vec![0.0; m * n];
        let all = Isa::available();
        let scalar = *all.last().expect("at least the portable one");
        let expected = product(scalar, &int8(plain, &zeros[..n], scalar), &x, k, &zeros, Then::Store);
        for (i, found) in expected.iter().enumerate() {
            let (row, column) = (i / n, i % n);
            let weight = |j: usize| if transposed { w[column * k + j] } else { w[j * n + column] };
            let sum: f64 = (0..k).map(|j| f64::from(x[row * k + j]) * f64::from(weight(j))).sum();
            let allowed = if extreme { 1e-3 } else { 0.01 * k as f64 };
            prop_assert!((f64::from(*found) - sum).abs() < allowed, "{found}, {sum}");
        }
        for isa in all {
            let found = product(isa, &int8(plain, &zeros[..n], isa), &x, k, &zeros, Then::Store);
            prop_assert_eq!(&found, &expected, "{:?}", isa);
        }
    }

    /// Tiles of other heights, and fetching what comes next, must not show.
    #[test]
    fn a_row_alone_gives_the_bits_that_it_gives_among_others(
        m in 2usize..30, k in 1usize..70, n in 1usize..150, seed: u32,
    ) {
        let (x, w, bias) = (numbers(m * k, seed), numbers(k * n, seed ^ 1), numbers(n, seed ^ 2));
        let start = numbers(m * n, seed ^ 3);
        let values = little_endian(&w);
        let plain = Plain { values: &values, k, n, transposed: false };
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        for isa in Isa::available() {
            for matrix in [f32(plain, &bias), int8(plain, &bias, isa)] {
                for then in [Then::Store, Then::Relu, Then::Add] {
                    let all = product(isa, &matrix, &x, k, &start, then);
                    for row in 0..m {
                        let alone = product(isa, &matrix, &x[row * k..][..k], k, &start[row * n..][..n], then);
                        prop_assert_eq!(bits(&alone), bits(&all[row * n..][..n]), "{:?} {:?}", isa, then);
                    }
                }
            }
        }
    }

    #[test]
    fn rows_are_normalized_and_become_log_probabilities(
        m in 1usize..4, width in 2usize..200, seed: u32,
    ) {
        let x: Vec<f32> = numbers(m * width, seed).iter().map(|value| 5.0 * value + 3.0).collect();
        let (weight, bias) = (numbers(width, seed ^ 1), numbers(width, seed ^ 2));
        let keep = padded(&vec![1.0; width]);
        let norm = Norm { weight: padded(&weight), bias: padded(&bias), keep, width, epsilon: 1e-6 };
        for isa in Isa::available() {
            let (padded_x, stride) = rows(&x, width);
            let mut out = Aligned::zeros(m * stride);
            isa.run(Normalize { x: padded_x.as_ptr(), out: out.as_mut_ptr(), stride, rows: m, norm: &norm });
            let mut log_probs = x.clone();
            isa.run(LogSoftmax { rows: &mut log_probs, width });
            for row in 0..m {
                let x: Vec<f64> = x[row * width..][..width].iter().map(|&x| x.into()).collect();
                let mean = x.iter().sum::<f64>() / width as f64;
                let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64;
                let total = x.iter().map(|x| x.exp()).sum::<f64>().ln();
                for i in 0..width {
                    let expected = (x[i] - mean) / (variance + 1e-6).sqrt() * f64::from(weight[i]) + f64::from(bias[i]);
                    let found = f64::from(out[row * stride + i]);
                    prop_assert!((found - expected).abs() < 1e-3, "{isa:?}: {found}, {expected}");
                    let found = f64::from(log_probs[row * width + i]);
                    prop_assert!((found - (x[i] - total)).abs() < 1e-5, "{isa:?}: {found}, {}", x[i] - total);
                }
                prop_assert!(out[row * stride + width..][..stride - width].iter().all(|&behind| behind == 0.0));
            }
        }
    }

    #[test]
    fn attention_is_the_average_of_values_by_the_softmax_of_products(
        kv_heads in 1usize..3, share in 1usize..3, head_dim in 1usize..70, queries in 1usize..9, len in 1usize..40,
        seed: u32,
    ) {
        let heads = Heads { heads: kv_heads * share, kv_heads, head_dim };
        let (width, kv_width) = (heads.heads * head_dim, heads.kv_width());
        let (q, k, v) = (numbers(queries * width, seed), numbers(len * kv_width, seed ^ 1), numbers(len * kv_width, seed ^ 2));
        let (memory, places) = pages(heads, &k, &v);
        for isa in Isa::available() {
            // Room for the scores of one head, and of all: the same bits.
            let [(out, weights), (other, _)] = [heads.heads, 1].map(|together| {
                let mut out = vec![0.0; queries * width];
                let mut weights = LayerWeights::zeros(heads.heads, queries, len);
                isa.run(Attend {
                    heads,
                    queries: q.as_ptr(),
                    query_stride: width,
                    rows: queries,
                    memory: &memory,
                    pages: &places,
                    layer: 0,
                    len,
                    out: out.as_mut_ptr(),
                    out_stride: width,
                    scores: &mut vec![0.0; together * queries * len.next_multiple_of(LANES)],
                    weights: Some((&mut weights, 0)),
                });
                (out, weights)
            });
            prop_assert_eq!(&out, &other);
            let (mean, by_head) = (weights.mean(), weights.into_heads());
            prop_assert!(mean.chunks(len).all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-5));
            for (i, &found) in out.iter().enumerate() {
                let (row, column) = (i / width, i % width);
                let (head, place) = (column / head_dim, column % head_dim);
                let kv = |position: usize| position * kv_width + head / share * head_dim;
                let score = |position: usize| -> f64 {
                    let pairs = (0..head_dim).map(|d| f64::from(q[row * width + head * head_dim + d]) * f64::from(k[kv(position) + d]));
                    (pairs.sum::<f64>() / (head_dim as f64).sqrt()).exp()
                };
                let total: f64 = (0..len).map(score).sum();
                let expected: f64 = (0..len).map(|position| score(position) / total * f64::from(v[kv(position) + place])).sum();
                prop_assert!((f64::from(found) - expected).abs() < 1e-4, "{isa:?}: {found}, {expected}");
                for position in 0..len {
                    let (found, expected) = (f64::from(by_head[head][row * len + position]), score(position) / total);
                    prop_assert!((found - expected).abs() < 1e-5, "{isa:?}: {found}, {expected}");
                }
            }
        }
    }
}

/// A function of the feed-forward layer in f64, and by how much its rounding in f32 may be off: the exponent's own
/// rounding counts, where the function has one.
fn reference(activation: Activation, x: f64) -> (f64, f64) {
    let gated = |u: f64| x / (1.0 + (-u).exp());
    let (expected, rounded) = match activation {
        Activation::Relu => (x.max(0.0), 0.0),
        Activation::Swish => (gated(x), 0.0),
        Activation::GeluSigmoid => (gated(1.702 * x), 1.702 * x),
        Activation::GeluTanh => {
            let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
            (gated(2.0 * u), 2.0 * u)
        }
        Activation::Gelu => {
            let tail = 0.5 * complementary_error_function(x.abs() / 2f64.sqrt());
            (x.max(0.0) - x.abs() * tail, x * x / 2.0)
        }
    };
    let allowed = 4.0 * f64::from(f32::EPSILON) + 1.5e-7 * rounded.abs().min(100.0);
    // The smallest gate is `exp(-87)`, and not 0.
    (
        expected,
        allowed * expected.abs() + 2e-38 * x.abs().max(1.0),
    )
}

/// By its series for small `z`, by its continued fraction for large ones.
fn complementary_error_function(z: f64) -> f64 {
    let scale = std::f64::consts::FRAC_2_SQRT_PI;
    if z < 2.5 {
        let (mut sum, mut term) = (z, z);
        for n in 1..100 {
            term *= -z * z / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return 1.0 - scale * sum;
    }
    let fraction = (1..200)
        .rev()
        .fold(0.0, |rest, n| f64::from(n) / 2.0 / (z + rest));
    (-z * z).exp() / (z + fraction) * scale / 2.0
}

#[test]
fn activations_are_right_to_a_few_units_in_the_last_place() {
    let steps = (-4000..4000).map(|i| i as f32 * 0.0031);
    let others = [
        0.0, -0.0, 1e-30, -1e-30, 50.0, -50.0, 1e4, -1e4, 1e30, -1e30,
    ];
    let mut x: Vec<f32> = steps.chain(others).collect();
    x.resize(x.len().next_multiple_of(LANES), 1.0);
    for activation in [
        Activation::Relu,
        Activation::Swish,
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::GeluSigmoid,
    ] {
        for isa in Isa::available() {
            let mut found = x.clone();
            isa.run(Activate {
                activation,
                numbers: &mut found,
            });
            for (&x, found) in x.iter().zip(found) {
                let (expected, allowed) = reference(activation, f64::from(x));
                let error = (f64::from(found) - expected).abs();
                assert!(
                    error <= allowed,
                    "{activation:?} of {x} with {isa:?}: {found}, {expected}, {error:e}, {allowed:e}"
                );
                assert!(x != 0.0 || found == 0.0, "{activation:?} of zero");
            }
        }
    }
}

#[test]
fn a_recurrent_unit_forgets_as_its_gate_says_and_adds_what_is_positive() {
    for width in [16, 20, 70] {
        let projected: Vec<f32> = numbers(2 * width, 3).iter().map(|v| 4.0 * v).collect();
        let (input, forget) = projected.split_at(width);
        let (before, _) = rows(&numbers(width, 4), width);
        let (x, stride) = rows(&numbers(width, 5), width);
        for isa in Isa::available() {
            for first in [true, false] {
                let mut sum = x.clone();
                let mut after = Aligned::zeros(stride);
                after.fill(9.0);
                isa.run(Recur {
                    input: input.as_ptr(),
                    forget: forget.as_ptr(),
                    before: if first {
                        std::ptr::null()
                    } else {
                        before.as_ptr()
                    },
                    after: after.as_mut_ptr(),
                    x: sum.as_mut_ptr(),
                    width,
                });
                for i in 0..width {
                    let gate = 1.0 / (1.0 + (-forget[i]).exp());
                    let before = if first { 0.0 } else { before[i] };
                    let cell = gate * before + (1.0 - gate) * input[i];
                    assert!((after[i] - cell).abs() < 2e-6, "{isa:?}");
                    assert!((sum[i] - (x[i] + cell.max(0.0))).abs() < 2e-6, "{isa:?}");
                }
                assert!(
                    after[width..]
                        .iter()
                        .chain(&sum[width..])
                        .all(|&v| v == 0.0)
                );
            }
        }
    }
}

/// Keys and values in pages that do not follow each other, with garbage where nothing was written.
fn pages(heads: Heads, keys: &[f32], values: &[f32]) -> (Vec<f32>, Vec<usize>) {
    let width = heads.kv_width();
    let count = (keys.len() / width).div_ceil(LANES);
    let mut memory = vec![0.0; (count + 1) * heads.page()];
    let places: Vec<usize> = (1..=count).rev().map(|page| page * heads.page()).collect();
    for (position, (keys, values)) in keys.chunks(width).zip(values.chunks(width)).enumerate() {
        heads.write(
            &mut memory[places[position / LANES]..],
            position,
            keys,
            values,
        );
    }
    (memory, places)
}

#[test]
fn a_page_is_copied_only_when_it_is_shared_and_used_again_when_nobody_wants_it() {
    let mut pages = Pages::default();
    pages.clear(4);
    let first = pages.take();
    pages.page_mut(first).copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
    assert_eq!(pages.own(first, 2, 2), first, "nobody else uses it");
    pages.share(first);
    let copy = pages.own(first, 2, 1);
    assert_ne!(copy, first);
    let used = |page: &[f32]| [page[0], page[2]];
    assert_eq!(used(pages.page_mut(copy)), [1.0, 3.0]);
    pages.page_mut(copy)[0] = 9.0;
    assert_eq!(pages.page_mut(first)[0], 1.0, "the other one is as it was");
    pages.give_back(first);
    assert_eq!(pages.take(), first, "memory is used again");
}
