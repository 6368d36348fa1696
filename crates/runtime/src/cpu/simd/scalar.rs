//! Plain Rust for any processor, and what the other instruction sets are tested against.

use super::{LANES, Simd};

/// No instructions in particular.
pub(super) struct Scalar;

#[inline(always)]
fn zip(a: [f32; LANES], b: [f32; LANES], f: impl Fn(f32, f32) -> f32) -> [f32; LANES] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

#[rustfmt::skip]
impl Simd for Scalar {
    type F = [f32; LANES];
    type I = [i32; LANES];
    type A = [i8; 4];
    type W = [i8; 4 * LANES];
    const OFFSET: i32 = 0;
    const PANELS: usize = 1;
    const INT8_ROWS: usize = 2;

    #[inline(always)] unsafe fn splat(value: f32) -> Self::F { [value; LANES] }
    #[inline(always)] unsafe fn load(from: *const f32) -> Self::F { unsafe { from.cast::<Self::F>().read_unaligned() } }
    #[inline(always)] unsafe fn store(to: *mut f32, v: Self::F) { unsafe { to.cast::<Self::F>().write_unaligned(v) } }
    #[inline(always)] unsafe fn add(a: Self::F, b: Self::F) -> Self::F { zip(a, b, |a, b| a + b) }
    #[inline(always)] unsafe fn sub(a: Self::F, b: Self::F) -> Self::F { zip(a, b, |a, b| a - b) }
    #[inline(always)] unsafe fn mul(a: Self::F, b: Self::F) -> Self::F { zip(a, b, |a, b| a * b) }
    #[inline(always)] unsafe fn div(a: Self::F, b: Self::F) -> Self::F { zip(a, b, |a, b| a / b) }
    // `f32::mul_add` is a slow library call where the processor has no such instruction.
    #[inline(always)] unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F { zip(zip(a, b, |a, b| a * b), c, |ab, c| ab + c) }
    #[inline(always)] unsafe fn max(a: Self::F, b: Self::F) -> Self::F { zip(a, b, |a, b| if a > b { a } else { b }) }
    #[inline(always)] unsafe fn abs(a: Self::F) -> Self::F { a.map(f32::abs) }
    #[inline(always)] unsafe fn round(a: Self::F) -> Self::F { a.map(f32::round_ties_even) }
    #[inline(always)] unsafe fn scale(a: Self::F, n: Self::F) -> Self::F { zip(a, n, |a, n| a * f32::from_bits(((n as i32 + 127) << 23) as u32)) }
    #[inline(always)] unsafe fn store_bytes(to: *mut u8, v: Self::F) { unsafe { to.cast::<[i8; LANES]>().write_unaligned(v.map(|v| v.round_ties_even() as i8)) } }

    #[inline(always)] unsafe fn load_i(from: *const i32) -> Self::I { unsafe { from.cast::<Self::I>().read_unaligned() } }
    #[inline(always)] unsafe fn to_f(a: Self::I) -> Self::F { a.map(|a| a as f32) }
    #[inline(always)] unsafe fn spread(bytes: *const u8) -> Self::A { unsafe { bytes.cast::<Self::A>().read_unaligned() } }
    #[inline(always)] unsafe fn load_w(from: *const i8) -> Self::W { unsafe { from.cast::<Self::W>().read_unaligned() } }
    #[inline(always)] unsafe fn dot(acc: Self::I, a: Self::A, w: Self::W) -> Self::I {
        std::array::from_fn(|lane| (0..4).fold(acc[lane], |sum, i| sum + i32::from(a[i]) * i32::from(w[4 * lane + i])))
    }
    #[inline(always)] unsafe fn dot_bytes(acc: Self::I, a: *const u8, w: *const i8) -> Self::I {
        let (a, w) = unsafe { (Self::load_w(a.cast()), Self::load_w(w)) };
        std::array::from_fn(|lane| (4 * lane..4 * lane + 4).fold(acc[lane], |sum, i| sum + i32::from(a[i]) * i32::from(w[i])))
    }
    #[inline(always)] unsafe fn sum4_i(vectors: [Self::I; 4], to: *mut i32) { unsafe { to.cast::<[i32; 4]>().write_unaligned(vectors.map(|lanes| lanes.iter().sum())) } }
}
