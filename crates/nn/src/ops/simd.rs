//! One body, compiled for several instruction sets, chosen when the program runs.
//!
//! The bodies are plain loops that the compiler vectorizes; [`simd!`] compiles each of them for AVX-512,
//! AVX2 and the baseline. On other processors the baseline is what there is (NEON is part of it).

/// Wraps functions so that each call runs the best version for this machine.
macro_rules! simd {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $ret:ty)? $body:block)*) => {$(
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name($($arg: $type),*) $(-> $ret)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn body($($arg: $type),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn avx512($($arg: $type),*) $(-> $ret)? {
                    body($($arg),*)
                }
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn avx2($($arg: $type),*) $(-> $ret)? {
                    body($($arg),*)
                }
                if $crate::ops::simd::has_avx512() {
                    // SAFETY: the features were just detected.
                    return unsafe { avx512($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the features were just detected.
                    return unsafe { avx2($($arg),*) };
                }
            }
            body($($arg),*)
        }
    )*};
}
pub(crate) use simd;

#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("fma")
}

/// Accumulators side by side, so that sums vectorize without changing from run to run.
pub(crate) const LANES: usize = 16;

/// The sum of `term` over all elements, in a fixed order.
#[inline(always)]
pub(crate) fn sum(values: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += term(*value);
        }
    }
    by_halves(lanes, |a, b| a + b) + rest.iter().map(|value| term(*value)).sum::<f32>()
}

/// The sum of `term` over two slices of one length, in a fixed order.
#[inline(always)]
pub(crate) fn sum2(left: &[f32], right: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (left_chunks, right_chunks) = (left.chunks_exact(LANES), right.chunks_exact(LANES));
    let rest = left_chunks.remainder().iter().zip(right_chunks.remainder());
    let rest = rest.map(|(l, r)| term(*l, *r)).sum::<f32>();
    for (l, r) in left_chunks.zip(right_chunks) {
        for i in 0..LANES {
            lanes[i] += term(l[i], r[i]);
        }
    }
    by_halves(lanes, |a, b| a + b) + rest
}

/// All lanes together: in four steps and not in sixteen.
#[inline(always)]
fn by_halves(mut lanes: [f32; LANES], join: impl Fn(f32, f32) -> f32) -> f32 {
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            lanes[i] = join(lanes[i], lanes[i + half]);
        }
    }
    lanes[0]
}

/// The largest element.
#[inline(always)]
pub(crate) fn max(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = if *value > *lane { *value } else { *lane };
        }
    }
    let largest = by_halves(lanes, |a, b| if b > a { b } else { a });
    rest.iter().fold(largest, |max, v| max.max(*v))
}

/// The log of the sum of exponentials: logits minus this are log-probabilities.
#[inline(always)]
pub(crate) fn log_sum(row: &[f32]) -> f32 {
    let largest = max(row);
    largest + sum(row, |v| exp(v - largest)).ln()
}

/// `e^x` without a branch or a call, within 2 units in the last place for `x <= 88`; 0 below -87.
///
/// The CPU runtime has its own, over vector registers and with another polynomial (`cpu/rowwise.rs`): with one
/// for both, either training or translating would compute other bits.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23: adding and subtracting it rounds to an integer
    let x = x.clamp(-87.3, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND; // its lowest bits are the integer's
    let n = shifted - ROUND;
    let r = x - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let mut p = 1.987_569_1e-4;
    p = p * r + 1.398_199_9e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_5e-1;
    p = p * r + 5e-1;
    let p = p * r * r + r + 1.0;
    p * f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23))
}

/// `1 / (1 + e^-x)`
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The hyperbolic tangent, within 1e-6.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    1.0 - 2.0 / (1.0 + exp(2.0 * x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_agrees_with_the_library() {
        for i in -8700..=8800 {
            let x = i as f32 / 100.0;
            let (got, expected) = (f64::from(exp(x)), f64::from(x).exp());
            assert!(
                (got / expected - 1.0).abs() < 3e-7,
                "exp({x}) = {got}, not {expected}"
            );
        }
        assert!(exp(f32::MIN) < 1e-37);
    }

    #[test]
    fn sigmoid_and_tanh_agree_with_the_library() {
        for i in -2000..=2000 {
            let x = i as f32 / 50.0;
            assert!((tanh(x) - x.tanh()).abs() < 1e-6, "tanh({x})");
            let expected = 1.0 / (1.0 + f64::from(-x).exp());
            assert!(
                (f64::from(sigmoid(x)) - expected).abs() < 1e-6,
                "sigmoid({x})"
            );
        }
    }

    #[test]
    fn sums_and_maxima_are_right_for_every_length() {
        for len in 0..70 {
            let values: Vec<f32> = (0..len).map(|i| ((i * 37) % 11) as f32 - 5.0).collect();
            assert_eq!(sum(&values, |v| v), values.iter().sum::<f32>());
            assert_eq!(
                sum2(&values, &values, |a, b| a * b),
                values.iter().map(|v| v * v).sum::<f32>()
            );
            assert_eq!(
                max(&values),
                values.iter().copied().fold(f32::NEG_INFINITY, f32::max)
            );
        }
    }
}
