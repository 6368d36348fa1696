//! Sixteen numbers at a time, on whatever the processor offers.
//!
//! The kernels ([`super::product`], [`super::rowwise`], [`super::attend`]) are written once over the
//! trait [`Simd`]; [`Isa::run`] compiles them for each instruction set and picks one when the program
//! runs. Sixteen lanes on every machine (one AVX-512 register, two of AVX2, four of NEON) mean one
//! layout of packed weights for all of them. Written by hand because the registry's SIMD crates either
//! need nightly or lack the dot products of bytes that int8 lives on.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use crate::error::{Result, RuntimeError};

/// Lanes of a vector, and columns of a panel of packed weights.
pub(crate) use attentive_model::int8::LANES;

/// Vectors of [`LANES`] numbers.
///
/// Everything is unsafe: the processor must have the instructions, pointers must be good for a whole
/// vector. Implementations mark every function `#[inline(always)]`, so that it is compiled inside
/// [`Isa::run`] with the instructions enabled.
pub(crate) trait Simd {
    /// f32 numbers.
    type F: Copy;
    /// i32 numbers.
    type I: Copy;
    /// Four bytes of an activation, for all lanes.
    type A: Copy;
    /// Four signed bytes of weights for each lane.
    type W: Copy;
    /// What is added to quantized activations, because the instruction wants them unsigned.
    const OFFSET: i32;
    /// Panels side by side in one tile of a product; 1 or 4.
    const PANELS: usize;
    /// Rows in one tile of an int8 product, at most 6.
    const INT8_ROWS: usize;
    /// Whether int8 products go by [`super::pairs`] and [`Simd::dot_pairs`]. [`Simd::OFFSET`] is 0 then.
    const PAIRS: bool = false;

    unsafe fn splat(value: f32) -> Self::F;
    unsafe fn load(from: *const f32) -> Self::F;
    unsafe fn store(to: *mut f32, v: Self::F);
    unsafe fn add(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn sub(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn mul(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn div(a: Self::F, b: Self::F) -> Self::F;
    /// `a * b + c`, rounded once where the machine can.
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    unsafe fn max(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn abs(a: Self::F) -> Self::F;
    /// To the nearest whole number.
    unsafe fn round(a: Self::F) -> Self::F;
    /// `a * 2^n` for whole `n` from -126 to 127.
    unsafe fn scale(a: Self::F, n: Self::F) -> Self::F;
    /// Stores 16 bytes: the nearest whole numbers, which lie in -128..=127, plus [`Simd::OFFSET`].
    unsafe fn store_bytes(to: *mut u8, v: Self::F);

    /// Asks for the cache line at `from` ahead of its use, into the second level; the address need not be good.
    #[inline(always)]
    unsafe fn fetch(from: *const u8) {
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(from.cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = from;
    }

    unsafe fn load_i(from: *const i32) -> Self::I;
    unsafe fn to_f(a: Self::I) -> Self::F;
    unsafe fn spread(bytes: *const u8) -> Self::A;
    unsafe fn load_w(from: *const i8) -> Self::W;
    /// Adds to each lane the products of its four bytes, exactly.
    unsafe fn dot(acc: Self::I, a: Self::A, w: Self::W) -> Self::I;
    /// As [`Simd::dot`] with weights whose bits are combined with `mask`, after which they are unsigned; `a` must
    /// be such that two products fit 16 bits.
    #[inline(always)]
    unsafe fn dot_pairs(_acc: Self::I, _a: Self::A, _w: Self::W, _mask: Self::A) -> Self::I {
        unreachable!("only where `PAIRS` holds")
    }
    /// As [`Simd::dot`], where each lane has four bytes of the activation to itself.
    unsafe fn dot_bytes(acc: Self::I, a: *const u8, w: *const i8) -> Self::I;
    /// The sums of four vectors of whole numbers.
    unsafe fn sum4_i(vectors: [Self::I; 4], to: *mut i32);

    /// The lanes' sum, always in the same order.
    #[inline(always)]
    unsafe fn sum(v: Self::F) -> f32 {
        let mut lanes = [0.0f32; LANES];
        unsafe { Self::store(lanes.as_mut_ptr(), v) };
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                lanes[i] += lanes[i + half];
            }
        }
        lanes[0]
    }

    /// The sums of four vectors.
    #[inline(always)]
    unsafe fn sum4(vectors: [Self::F; 4], to: *mut f32) {
        for (i, v) in vectors.into_iter().enumerate() {
            unsafe { *to.add(i) = Self::sum(v) };
        }
    }

    /// The largest lane.
    #[inline(always)]
    unsafe fn largest(v: Self::F) -> f32 {
        let mut lanes = [0.0f32; LANES];
        unsafe { Self::store(lanes.as_mut_ptr(), v) };
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                lanes[i] = if lanes[i + half] > lanes[i] {
                    lanes[i + half]
                } else {
                    lanes[i]
                };
            }
        }
        lanes[0]
    }

    /// The first `count` numbers, the others `fill`.
    #[inline(always)]
    unsafe fn load_some(from: *const f32, count: usize, fill: f32) -> Self::F {
        let mut lanes = [fill; LANES];
        unsafe {
            std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), count);
            Self::load(lanes.as_ptr())
        }
    }

    /// Stores the first `count` lanes.
    #[inline(always)]
    unsafe fn store_some(to: *mut f32, v: Self::F, count: usize) {
        let mut lanes = [0.0f32; LANES];
        unsafe {
            Self::store(lanes.as_mut_ptr(), v);
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, count);
        }
    }
}

/// Something to compute with the best instructions.
pub(crate) trait Work {
    /// The computation; `#[inline(always)]`, like everything that it calls.
    ///
    /// # Safety
    /// The processor must have the instructions of `S`.
    unsafe fn run<S: Simd>(self);
}

/// An instruction set that this processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "aarch64")]
    Neon,
    Scalar,
}

impl Isa {
    /// The best one, or the one that the environment variable `ATTENTIVE_ISA` names.
    ///
    /// Turning instructions off shows what a machine without them would do.
    pub fn detect() -> Result<Self> {
        match std::env::var_os("ATTENTIVE_ISA") {
            Some(name) => Self::named(&name.to_string_lossy()),
            None => Ok(Self::available()[0]),
        }
    }

    /// The one of this name, if this processor has it.
    fn named(name: &str) -> Result<Self> {
        let available = Self::available();
        let found = available.iter().find(|isa| isa.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<_> = available.into_iter().map(Self::name).collect();
            RuntimeError::Options(vec![format!(
                "ATTENTIVE_ISA is `{name}`, and this processor has {}; choose one of these or unset it",
                names.join(", ")
            )])
        })
    }

    /// `avx512-vnni`, `avx512`, `avx2`, `neon` or `scalar`.
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512Vnni => "avx512-vnni",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => "neon",
            Kind::Scalar => "scalar",
        }
    }

    /// All that this processor has, best first; the last one is portable.
    pub fn available() -> Vec<Self> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            if avx512 && is_x86_feature_detected!("avx512vnni") {
                all.push(Self(Kind::Avx512Vnni));
            }
            if avx512 {
                all.push(Self(Kind::Avx512));
            }
            if avx2 {
                all.push(Self(Kind::Avx2));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("dotprod") {
            all.push(Self(Kind::Neon));
        }
        all.push(Self(Kind::Scalar));
        all
    }

    /// What this instruction set adds to quantized activations; see [`Simd::OFFSET`].
    pub(crate) fn offset(self) -> i32 {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512Vnni => avx512::Avx512::<true>::OFFSET,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => avx512::Avx512::<false>::OFFSET,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => avx2::Avx2::OFFSET,
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => neon::Neon::OFFSET,
            Kind::Scalar => scalar::Scalar::OFFSET,
        }
    }

    /// Runs `work` with this instruction set.
    #[inline]
    pub(crate) fn run<W: Work>(self, work: W) {
        // SAFETY: an `Isa` exists only if its instructions were detected.
        unsafe {
            match self.0 {
                #[cfg(target_arch = "x86_64")]
                Kind::Avx512Vnni => avx512::run_vnni(work),
                #[cfg(target_arch = "x86_64")]
                Kind::Avx512 => avx512::run(work),
                #[cfg(target_arch = "x86_64")]
                Kind::Avx2 => avx2::run(work),
                #[cfg(target_arch = "aarch64")]
                Kind::Neon => neon::run(work),
                Kind::Scalar => work.run::<scalar::Scalar>(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_set_is_found_by_its_name_and_others_are_refused() {
        for isa in Isa::available() {
            assert_eq!(Isa::named(isa.name()).expect("it is available"), isa);
        }
        let error = Isa::named("avx3").expect_err("there is none").to_string();
        assert!(
            error.contains("`avx3`") && error.contains("scalar; choose"),
            "{error}"
        );
    }
}
