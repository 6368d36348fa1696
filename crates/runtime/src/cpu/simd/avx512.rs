//! AVX-512, with the dot products of VNNI where the processor has them.

use std::arch::x86_64::*;

use super::{Simd, Work};

/// One register per vector; `VNNI` says whether `vpdpbusd` exists.
pub(super) struct Avx512<const VNNI: bool>;

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma")]
pub(super) unsafe fn run_vnni<W: Work>(work: W) {
    unsafe { work.run::<Avx512<true>>() }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
pub(super) unsafe fn run<W: Work>(work: W) {
    unsafe { work.run::<Avx512<false>>() }
}

#[rustfmt::skip]
impl<const VNNI: bool> Simd for Avx512<VNNI> {
    type F = __m512;
    type I = __m512i;
    type A = __m512i;
    type W = __m512i;
    const OFFSET: i32 = if VNNI { 128 } else { 0 };
    const PANELS: usize = 4;
    const INT8_ROWS: usize = if VNNI { 6 } else { 4 };

    #[inline(always)] unsafe fn splat(value: f32) -> __m512 { unsafe { _mm512_set1_ps(value) } }
    #[inline(always)] unsafe fn load(from: *const f32) -> __m512 { unsafe { _mm512_loadu_ps(from) } }
    #[inline(always)] unsafe fn store(to: *mut f32, v: __m512) { unsafe { _mm512_storeu_ps(to, v) } }
    #[inline(always)] unsafe fn add(a: __m512, b: __m512) -> __m512 { unsafe { _mm512_add_ps(a, b) } }
    #[inline(always)] unsafe fn sub(a: __m512, b: __m512) -> __m512 { unsafe { _mm512_sub_ps(a, b) } }
    #[inline(always)] unsafe fn mul(a: __m512, b: __m512) -> __m512 { unsafe { _mm512_mul_ps(a, b) } }
    #[inline(always)] unsafe fn div(a: __m512, b: __m512) -> __m512 { unsafe { _mm512_div_ps(a, b) } }
    #[inline(always)] unsafe fn fma(a: __m512, b: __m512, c: __m512) -> __m512 { unsafe { _mm512_fmadd_ps(a, b, c) } }
    #[inline(always)] unsafe fn max(a: __m512, b: __m512) -> __m512 { unsafe { _mm512_max_ps(a, b) } }
    #[inline(always)] unsafe fn abs(a: __m512) -> __m512 { unsafe { _mm512_abs_ps(a) } }
    #[inline(always)] unsafe fn round(a: __m512) -> __m512 { unsafe { _mm512_roundscale_ps::<0>(a) } }
    #[inline(always)] unsafe fn scale(a: __m512, n: __m512) -> __m512 { unsafe { _mm512_scalef_ps(a, n) } }
    #[inline(always)] unsafe fn store_bytes(to: *mut u8, v: __m512) {
        unsafe {
            let bytes = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(v));
            let bytes = if VNNI { _mm_xor_si128(bytes, _mm_set1_epi8(-128)) } else { bytes };
            _mm_storeu_si128(to.cast(), bytes);
        }
    }

    #[inline(always)] unsafe fn load_some(from: *const f32, count: usize, fill: f32) -> __m512 { unsafe { _mm512_mask_loadu_ps(_mm512_set1_ps(fill), first_lanes(count), from) } }
    #[inline(always)] unsafe fn store_some(to: *mut f32, v: __m512, count: usize) { unsafe { _mm512_mask_storeu_ps(to, first_lanes(count), v) } }
    #[inline(always)] unsafe fn sum(v: __m512) -> f32 { unsafe { _mm512_reduce_add_ps(v) } }
    #[inline(always)] unsafe fn largest(v: __m512) -> f32 { unsafe { _mm512_reduce_max_ps(v) } }
    #[inline(always)] unsafe fn sum4(v: [__m512; 4], to: *mut f32) {
        unsafe {
            let ab = _mm512_add_ps(_mm512_unpacklo_ps(v[0], v[1]), _mm512_unpackhi_ps(v[0], v[1]));
            let cd = _mm512_add_ps(_mm512_unpacklo_ps(v[2], v[3]), _mm512_unpackhi_ps(v[2], v[3]));
            let low = _mm512_shuffle_ps::<0b01_00_01_00>(ab, cd); // a b c d in each quarter
            let quarters = _mm512_add_ps(low, _mm512_shuffle_ps::<0b11_10_11_10>(ab, cd));
            let halves = _mm256_add_ps(_mm512_castps512_ps256(quarters), _mm512_extractf32x8_ps::<1>(quarters));
            _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps::<1>(halves)));
        }
    }

    #[inline(always)] unsafe fn load_i(from: *const i32) -> __m512i { unsafe { _mm512_loadu_si512(from.cast()) } }
    #[inline(always)] unsafe fn to_f(a: __m512i) -> __m512 { unsafe { _mm512_cvtepi32_ps(a) } }
    #[inline(always)] unsafe fn spread(bytes: *const u8) -> __m512i { unsafe { _mm512_set1_epi32(bytes.cast::<i32>().read_unaligned()) } }
    #[inline(always)] unsafe fn load_w(from: *const i8) -> __m512i { unsafe { _mm512_loadu_si512(from.cast()) } }
    #[inline(always)] unsafe fn dot(acc: __m512i, a: __m512i, w: __m512i) -> __m512i {
        unsafe {
            if VNNI {
                return _mm512_dpbusd_epi32(acc, a, w);
            }
            // |a| is unsigned and w takes a's sign: two products fit 16 bits, as neither is -128.
            let negative = _mm512_movepi8_mask(a);
            let w = _mm512_mask_sub_epi8(w, negative, _mm512_setzero_si512(), w);
            let pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(a), w);
            _mm512_add_epi32(acc, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))
        }
    }
    #[inline(always)] unsafe fn dot_bytes(acc: __m512i, a: *const u8, w: *const i8) -> __m512i { unsafe { Self::dot(acc, _mm512_loadu_si512(a.cast()), Self::load_w(w)) } }
    #[inline(always)] unsafe fn sum4_i(v: [__m512i; 4], to: *mut i32) {
        unsafe {
            let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(v[0], v[1]), _mm512_unpackhi_epi32(v[0], v[1]));
            let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(v[2], v[3]), _mm512_unpackhi_epi32(v[2], v[3]));
            let quarters = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd)); // a b c d in each quarter
            let halves = _mm256_add_epi32(_mm512_castsi512_si256(quarters), _mm512_extracti64x4_epi64::<1>(quarters));
            _mm_storeu_si128(to.cast(), _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves)));
        }
    }
}

#[inline(always)]
fn first_lanes(count: usize) -> __mmask16 {
    ((1u32 << count) - 1) as __mmask16
}
