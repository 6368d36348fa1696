//! NEON with the dot product of bytes (ARMv8.2 and later): a vector is four registers.

use std::arch::aarch64::*;
use std::arch::asm;

use super::{Simd, Work};

/// Four registers of four lanes.
pub(super) struct Neon;

#[target_feature(enable = "neon,dotprod")]
pub(super) unsafe fn run<W: Work>(work: W) {
    unsafe { work.run::<Neon>() }
}

type F = [float32x4_t; 4];
type Ints = [int32x4_t; 4];

/// The same for each of the four registers. (No closure: those are compiled without the instructions
/// that are enabled around them.)
macro_rules! each {
    ($i:ident => $value:expr) => {
        unsafe {
            [
                {
                    const $i: usize = 0;
                    $value
                },
                {
                    const $i: usize = 1;
                    $value
                },
                {
                    const $i: usize = 2;
                    $value
                },
                {
                    const $i: usize = 3;
                    $value
                },
            ]
        }
    };
}

#[rustfmt::skip]
impl Simd for Neon {
    type F = F;
    type I = Ints;
    type A = int8x16_t;
    type W = [int8x16_t; 4];
    const OFFSET: i32 = 0;
    const PANELS: usize = 1;
    const INT8_ROWS: usize = 4;

    #[inline(always)] unsafe fn splat(value: f32) -> F { unsafe { [vdupq_n_f32(value); 4] } }
    #[inline(always)] unsafe fn load(from: *const f32) -> F { each!(I => vld1q_f32(from.add(4 * I))) }
    #[inline(always)] unsafe fn store(to: *mut f32, v: F) { for (i, v) in v.into_iter().enumerate() { unsafe { vst1q_f32(to.add(4 * i), v) } } }
    #[inline(always)] unsafe fn add(a: F, b: F) -> F { each!(I => vaddq_f32(a[I], b[I])) }
    #[inline(always)] unsafe fn sub(a: F, b: F) -> F { each!(I => vsubq_f32(a[I], b[I])) }
    #[inline(always)] unsafe fn mul(a: F, b: F) -> F { each!(I => vmulq_f32(a[I], b[I])) }
    #[inline(always)] unsafe fn div(a: F, b: F) -> F { each!(I => vdivq_f32(a[I], b[I])) }
    #[inline(always)] unsafe fn fma(a: F, b: F, c: F) -> F { each!(I => vfmaq_f32(c[I], a[I], b[I])) }
    #[inline(always)] unsafe fn max(a: F, b: F) -> F { each!(I => vmaxq_f32(a[I], b[I])) }
    #[inline(always)] unsafe fn abs(a: F) -> F { each!(I => vabsq_f32(a[I])) }
    #[inline(always)] unsafe fn round(a: F) -> F { each!(I => vrndnq_f32(a[I])) }
    #[inline(always)] unsafe fn scale(a: F, n: F) -> F {
        each!(I => vmulq_f32(a[I], vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(vcvtnq_s32_f32(n[I]), vdupq_n_s32(127))))))
    }
    #[inline(always)] unsafe fn store_bytes(to: *mut u8, v: F) {
        unsafe {
            let low = vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(v[0])), vqmovn_s32(vcvtnq_s32_f32(v[1])));
            let high = vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(v[2])), vqmovn_s32(vcvtnq_s32_f32(v[3])));
            vst1q_s8(to.cast(), vcombine_s8(vqmovn_s16(low), vqmovn_s16(high)));
        }
    }

    #[inline(always)] unsafe fn sum(v: F) -> f32 { unsafe { vaddvq_f32(folded(v)) } }
    #[inline(always)] unsafe fn sum4(v: [F; 4], to: *mut f32) {
        unsafe { vst1q_f32(to, vpaddq_f32(vpaddq_f32(folded(v[0]), folded(v[1])), vpaddq_f32(folded(v[2]), folded(v[3])))) }
    }
    #[inline(always)] unsafe fn largest(v: F) -> f32 { unsafe { vmaxvq_f32(vmaxq_f32(vmaxq_f32(v[0], v[1]), vmaxq_f32(v[2], v[3]))) } }

    #[inline(always)] unsafe fn load_i(from: *const i32) -> Ints { each!(I => vld1q_s32(from.add(4 * I))) }
    #[inline(always)] unsafe fn to_f(a: Ints) -> F { each!(I => vcvtq_f32_s32(a[I])) }
    #[inline(always)] unsafe fn spread(bytes: *const u8) -> int8x16_t { unsafe { vreinterpretq_s8_s32(vdupq_n_s32(bytes.cast::<i32>().read_unaligned())) } }
    #[inline(always)] unsafe fn load_w(from: *const i8) -> [int8x16_t; 4] { each!(I => vld1q_s8(from.add(16 * I))) }
    #[inline(always)] unsafe fn dot(acc: Ints, a: int8x16_t, w: [int8x16_t; 4]) -> Ints {
        each!(I => dot_quarter(acc[I], a, w[I]))
    }
    #[inline(always)] unsafe fn dot_bytes(acc: Ints, a: *const u8, w: *const i8) -> Ints { each!(I => dot_quarter(acc[I], vld1q_s8(a.cast::<i8>().add(16 * I)), vld1q_s8(w.add(16 * I)))) }
    #[inline(always)] unsafe fn sum4_i(v: [Ints; 4], to: *mut i32) {
        let v = each!(I => vaddq_s32(vaddq_s32(v[I][0], v[I][1]), vaddq_s32(v[I][2], v[I][3])));
        unsafe { vst1q_s32(to, vpaddq_s32(vpaddq_s32(v[0], v[1]), vpaddq_s32(v[2], v[3]))) };
    }
}

/// The intrinsic (vdotq_s32) is not stable yet.
#[inline(always)]
unsafe fn dot_quarter(sum: int32x4_t, a: int8x16_t, w: int8x16_t) -> int32x4_t {
    let mut sum = sum;
    unsafe {
        asm!("sdot {sum:v}.4s, {a:v}.16b, {w:v}.16b", sum = inout(vreg) sum, a = in(vreg) a, w = in(vreg) w, options(pure, nomem, nostack, preserves_flags))
    };
    sum
}

/// The sum of the four registers.
#[inline(always)]
unsafe fn folded(v: F) -> float32x4_t {
    unsafe { vaddq_f32(vaddq_f32(v[0], v[1]), vaddq_f32(v[2], v[3])) }
}
