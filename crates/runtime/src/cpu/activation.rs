//! The functions between the two matrices of a feed-forward layer (§3.3), other than ReLU.
//!
//! ReLU is part of the product ([`super::product`]); these are a pass of their own over the hidden layer, which is
//! still in a near cache. All of them make 0 of 0, so that what lies behind a row's end stays zero. Neighbors:
//! [`super::layers`] calls this, [`super::ssru`] uses [`sigmoid`].

use attentive_model::config::Activation;

use super::rowwise::exp2_near_zero;
use super::simd::{LANES, Simd, Work};

/// Applies the function to each of the numbers, whose count is a multiple of [`LANES`].
pub(crate) struct Activate<'a> {
    pub activation: Activation,
    pub numbers: &'a mut [f32],
}

impl Work for Activate<'_> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // The choice is made once, and not for each vector.
        unsafe {
            match self.activation {
                Activation::Relu => each::<S, Relu>(self.numbers),
                Activation::Swish => each::<S, Swish>(self.numbers),
                Activation::Gelu => each::<S, Gelu>(self.numbers),
                Activation::GeluTanh => each::<S, GeluTanh>(self.numbers),
                Activation::GeluSigmoid => each::<S, GeluSigmoid>(self.numbers),
            }
        }
    }
}

/// A function of one number, for all lanes. (Not a closure: those are compiled without the instructions that are
/// enabled around them.)
trait Function {
    unsafe fn of<S: Simd>(x: S::F) -> S::F;
}

#[inline(always)]
unsafe fn each<S: Simd, F: Function>(numbers: &mut [f32]) {
    for vector in numbers.as_chunks_mut::<LANES>().0 {
        let place = vector.as_mut_ptr();
        unsafe { S::store(place, F::of::<S>(S::load(place))) };
    }
}

struct Relu;
struct Swish;
struct Gelu;
struct GeluTanh;
struct GeluSigmoid;

impl Function for Relu {
    #[inline(always)]
    unsafe fn of<S: Simd>(x: S::F) -> S::F {
        unsafe { S::max(x, S::splat(0.0)) }
    }
}

impl Function for Swish {
    #[inline(always)]
    unsafe fn of<S: Simd>(x: S::F) -> S::F {
        unsafe { gated::<S>(x, x) }
    }
}

impl Function for GeluSigmoid {
    #[inline(always)]
    unsafe fn of<S: Simd>(x: S::F) -> S::F {
        unsafe { gated::<S>(x, S::mul(x, S::splat(1.702))) }
    }
}

impl Function for GeluTanh {
    /// `(1 + tanh(u)) / 2` is `sigmoid(2u)`.
    #[inline(always)]
    unsafe fn of<S: Simd>(x: S::F) -> S::F {
        /// `2 sqrt(2 / pi)`, and that times 0.044715.
        const LINEAR: f32 = 1.595_769;
        const CUBIC: f32 = 0.071_354_814;
        unsafe {
            let factor = S::fma(S::mul(x, x), S::splat(CUBIC), S::splat(LINEAR));
            gated::<S>(x, S::mul(x, factor))
        }
    }
}

impl Function for Gelu {
    /// `x Phi(x)` is `max(0, x) - |x| Q(|x|)` with `Q = 1 - Phi`, the tail of the normal distribution, which is
    /// `exp(-x^2 / 2)` times a polynomial in `t = 1 / (1 + 0.35 |x|)`: fitted to a relative error of 3.2e-8.
    #[inline(always)]
    unsafe fn of<S: Simd>(x: S::F) -> S::F {
        const TAIL: [f32; 9] = [
            -0.029_126_084,
            0.143_873_26,
            -0.255_506_6,
            0.158_931_5,
            -0.022_938_566,
            0.105_433_495,
            0.119_852_31,
            0.139_859_1,
            0.139_621_57,
        ];
        unsafe {
            let size = S::abs(x);
            let one = S::splat(1.0);
            let t = S::div(one, S::fma(size, S::splat(0.35), one));
            let mut sum = S::splat(TAIL[0]);
            for coefficient in &TAIL[1..] {
                sum = S::fma(sum, t, S::splat(*coefficient));
            }
            // Large numbers must not become infinite before they meet the tail's zero.
            let half = S::mul(S::mul(size, size), S::splat(-0.5));
            let tail = S::mul(S::mul(sum, t), exp::<S>(half));
            S::sub(S::max(x, S::splat(0.0)), S::mul(size, tail))
        }
    }
}

/// `x sigmoid(u)`
#[inline(always)]
unsafe fn gated<S: Simd>(x: S::F, u: S::F) -> S::F {
    unsafe { S::div(x, one_and_exp::<S>(u)) }
}

/// `1 / (1 + exp(-x))`
#[inline(always)]
pub(super) unsafe fn sigmoid<S: Simd>(x: S::F) -> S::F {
    unsafe { S::div(S::splat(1.0), one_and_exp::<S>(x)) }
}

/// `1 + exp(-x)`, for the smallest `x` less than infinity.
#[inline(always)]
unsafe fn one_and_exp<S: Simd>(x: S::F) -> S::F {
    unsafe {
        let x = S::max(x, S::splat(-SMALLEST));
        S::add(S::splat(1.0), exp::<S>(S::sub(S::splat(0.0), x)))
    }
}

/// `exp(-SMALLEST)` and `exp(SMALLEST)` are still ordinary numbers.
const SMALLEST: f32 = 87.0;

/// `exp(x)` for `x` up to [`SMALLEST`], to about two units in the last place; tiny where it is almost 0.
///
/// `exp2(x log2(e))` would do for a softmax, but the rounding of that product costs accuracy where `x` is large.
/// So the multiple of `ln(2)` is taken off in two parts, of which the first is exact.
#[inline(always)]
unsafe fn exp<S: Simd>(x: S::F) -> S::F {
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    unsafe {
        let x = S::max(x, S::splat(-SMALLEST));
        let log2_e = S::splat(std::f32::consts::LOG2_E);
        let n = S::round(S::mul(x, log2_e));
        let rest = S::fma(n, S::splat(-LN_2_HIGH), x);
        let rest = S::fma(n, S::splat(-LN_2_LOW), rest);
        S::scale(exp2_near_zero::<S>(S::mul(rest, log2_e)), n)
    }
}
