//! AVX2 with FMA: a vector is two registers.

use std::arch::x86_64::*;

use super::{Simd, Work};

/// Two registers of eight lanes.
pub(super) struct Avx2;

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn run<W: Work>(work: W) {
    unsafe { work.run::<Avx2>() }
}

type F = [__m256; 2];
type I = [__m256i; 2];

#[rustfmt::skip]
impl Simd for Avx2 {
    type F = F;
    type I = I;
    type A = __m256i;
    type W = I;
    const OFFSET: i32 = 0;
    const PANELS: usize = 1;
    const INT8_ROWS: usize = 4;
    const PAIRS: bool = true;

    #[inline(always)] unsafe fn splat(value: f32) -> F { unsafe { [_mm256_set1_ps(value); 2] } }
    #[inline(always)] unsafe fn load(from: *const f32) -> F { unsafe { [_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))] } }
    #[inline(always)] unsafe fn store(to: *mut f32, v: F) { unsafe { _mm256_storeu_ps(to, v[0]); _mm256_storeu_ps(to.add(8), v[1]) } }
    #[inline(always)] unsafe fn add(a: F, b: F) -> F { unsafe { [_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])] } }
    #[inline(always)] unsafe fn sub(a: F, b: F) -> F { unsafe { [_mm256_sub_ps(a[0], b[0]), _mm256_sub_ps(a[1], b[1])] } }
    #[inline(always)] unsafe fn mul(a: F, b: F) -> F { unsafe { [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])] } }
    #[inline(always)] unsafe fn div(a: F, b: F) -> F { unsafe { [_mm256_div_ps(a[0], b[0]), _mm256_div_ps(a[1], b[1])] } }
    #[inline(always)] unsafe fn fma(a: F, b: F, c: F) -> F { unsafe { [_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])] } }
    #[inline(always)] unsafe fn max(a: F, b: F) -> F { unsafe { [_mm256_max_ps(a[0], b[0]), _mm256_max_ps(a[1], b[1])] } }
    #[inline(always)] unsafe fn abs(a: F) -> F { unsafe { let sign = _mm256_set1_ps(-0.0); [_mm256_andnot_ps(sign, a[0]), _mm256_andnot_ps(sign, a[1])] } }
    #[inline(always)] unsafe fn round(a: F) -> F { unsafe { [_mm256_round_ps::<8>(a[0]), _mm256_round_ps::<8>(a[1])] } }
    #[inline(always)] unsafe fn scale(a: F, n: F) -> F {
        unsafe {
            [_mm256_mul_ps(a[0], power_of_two(n[0])), _mm256_mul_ps(a[1], power_of_two(n[1]))]
        }
    }
    #[inline(always)] unsafe fn store_bytes(to: *mut u8, v: F) {
        unsafe {
            let words = _mm256_packs_epi32(_mm256_cvtps_epi32(v[0]), _mm256_cvtps_epi32(v[1])); // halves interleaved
            let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(words);
            let bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
            _mm_storeu_si128(to.cast(), bytes);
        }
    }

    #[inline(always)] unsafe fn sum(v: F) -> f32 {
        unsafe {
            let sums = folded(_mm256_add_ps(v[0], v[1]));
            let sums = _mm_add_ps(sums, _mm_movehl_ps(sums, sums));
            _mm_cvtss_f32(_mm_add_ss(sums, _mm_movehdup_ps(sums)))
        }
    }
    #[inline(always)] unsafe fn sum4(v: [F; 4], to: *mut f32) {
        unsafe {
            let ab = _mm256_hadd_ps(_mm256_add_ps(v[0][0], v[0][1]), _mm256_add_ps(v[1][0], v[1][1]));
            let cd = _mm256_hadd_ps(_mm256_add_ps(v[2][0], v[2][1]), _mm256_add_ps(v[3][0], v[3][1]));
            _mm_storeu_ps(to, folded(_mm256_hadd_ps(ab, cd))); // a b c d in each half
        }
    }
    #[inline(always)] unsafe fn largest(v: F) -> f32 {
        unsafe {
            let all = _mm256_max_ps(v[0], v[1]);
            let all = _mm_max_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps::<1>(all));
            let all = _mm_max_ps(all, _mm_movehl_ps(all, all));
            _mm_cvtss_f32(_mm_max_ss(all, _mm_movehdup_ps(all)))
        }
    }

    #[inline(always)] unsafe fn load_i(from: *const i32) -> I { unsafe { [_mm256_loadu_si256(from.cast()), _mm256_loadu_si256(from.add(8).cast())] } }
    #[inline(always)] unsafe fn to_f(a: I) -> F { unsafe { [_mm256_cvtepi32_ps(a[0]), _mm256_cvtepi32_ps(a[1])] } }
    #[inline(always)] unsafe fn spread(bytes: *const u8) -> __m256i { unsafe { _mm256_set1_epi32(bytes.cast::<i32>().read_unaligned()) } }
    #[inline(always)] unsafe fn load_w(from: *const i8) -> I { unsafe { [_mm256_loadu_si256(from.cast()), _mm256_loadu_si256(from.add(32).cast())] } }
    #[inline(always)] unsafe fn dot(acc: I, a: __m256i, w: I) -> I {
        unsafe {
            [dot_half(acc[0], a, w[0]), dot_half(acc[1], a, w[1])]
        }
    }
    #[inline(always)] unsafe fn dot_pairs(acc: I, a: __m256i, w: I, mask: __m256i) -> I {
        unsafe {
            [unsigned_half(acc[0], a, _mm256_xor_si256(w[0], mask)), unsigned_half(acc[1], a, _mm256_xor_si256(w[1], mask))]
        }
    }
    #[inline(always)] unsafe fn dot_bytes(acc: I, a: *const u8, w: *const i8) -> I {
        unsafe {
            let (a, w) = (Self::load_w(a.cast()), Self::load_w(w));
            [dot_half(acc[0], a[0], w[0]), dot_half(acc[1], a[1], w[1])]
        }
    }
    #[inline(always)] unsafe fn sum4_i(v: [I; 4], to: *mut i32) {
        unsafe {
            let ab = _mm256_hadd_epi32(_mm256_add_epi32(v[0][0], v[0][1]), _mm256_add_epi32(v[1][0], v[1][1]));
            let cd = _mm256_hadd_epi32(_mm256_add_epi32(v[2][0], v[2][1]), _mm256_add_epi32(v[3][0], v[3][1]));
            let halves = _mm256_hadd_epi32(ab, cd); // a b c d in each half
            _mm_storeu_si128(to.cast(), _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves)));
        }
    }
}

// Functions, because closures are compiled without the instructions that are enabled around them.

/// The sum of both halves.
#[inline(always)]
unsafe fn folded(v: __m256) -> __m128 {
    unsafe { _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v)) }
}

#[inline(always)]
unsafe fn power_of_two(n: __m256) -> __m256 {
    unsafe {
        let exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
        _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponent))
    }
}

/// `maddubs` adds two products in 16 bits and would saturate with full unsigned bytes. |w| and a with
/// w's sign give the same products, and at most 2 * 127 * 127, which fits. (|a| and w with a's sign would
/// do too, but |w| serves all rows of a tile.)
#[inline(always)]
unsafe fn dot_half(acc: __m256i, a: __m256i, w: __m256i) -> __m256i {
    unsafe {
        let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
        _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
    }
}

#[inline(always)]
unsafe fn unsigned_half(acc: __m256i, a: __m256i, w: __m256i) -> __m256i {
    unsafe {
        let pairs = _mm256_maddubs_epi16(w, a);
        _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
    }
}
