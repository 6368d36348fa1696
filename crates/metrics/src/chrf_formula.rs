//! chrF's formula: from n-gram counts to an F-score.

use crate::chrf::{ChrfOptions, ChrfSmoothing};
use crate::statistics::{Arithmetic, Sample};

/// Stands for a precision or recall of an order that the text is too short for.
const EPSILON: f64 = 1e-16;

/// The F-score of counts that stand in threes: n-grams of the output, of the reference, of both.
pub(crate) fn f_score(counts: &[f64], options: &ChrfOptions, arithmetic: Arithmetic) -> Sample {
    let round = |value| arithmetic.round(value);
    let factor = f64::from(options.beta) * f64::from(options.beta);
    let fraction = |part: f64, whole: f64| {
        if whole > 0.0 {
            round(part / whole)
        } else {
            EPSILON
        }
    };
    let combine = |precision: f64, recall: f64| {
        let numerator = round(round((1.0 + factor) * precision) * recall);
        let denominator = round(round(factor * precision) + recall);
        (denominator > 0.0).then(|| round(numerator / denominator))
    };

    let mut sum = 0.0;
    let (mut precisions, mut recalls) = (0.0, 0.0);
    let mut orders = 0.0;
    let mut any_text = false;
    for order in counts.chunks_exact(3) {
        let &[output, reference, matching] = order else {
            continue;
        };
        let precision = fraction(matching, output);
        let recall = fraction(matching, reference);
        sum = round(sum + combine(precision, recall).unwrap_or(EPSILON));
        if output > 0.0 && reference > 0.0 {
            precisions = round(precisions + precision);
            recalls = round(recalls + recall);
            orders += 1.0;
        }
        any_text |= output > 0.0 || reference > 0.0;
    }

    let single = arithmetic == Arithmetic::Float32;
    match options.smoothing {
        ChrfSmoothing::Epsilon => Sample {
            value: round(round(100.0 * sum) / (counts.len() / 3) as f64),
            single: single && any_text,
        },
        ChrfSmoothing::EffectiveOrder if precisions + recalls > 0.0 => {
            let mean = combine(round(precisions / orders), round(recalls / orders));
            Sample {
                value: round(100.0 * mean.unwrap_or(0.0)),
                single,
            }
        }
        // Python returns its own zero here, not one of numpy's numbers.
        ChrfSmoothing::EffectiveOrder => Sample {
            value: 0.0,
            single: false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_common_is_zero_and_no_text_is_no_error() {
        let options = ChrfOptions::default();
        assert_eq!(
            f_score(&[3.0, 4.0, 0.0], &options, Arithmetic::Python).value,
            0.0
        );
        assert_eq!(f_score(&[0.0; 3], &options, Arithmetic::Python).value, 0.0);
    }

    #[test]
    fn recall_weighs_beta_squared_times_as_much() {
        let options = ChrfOptions::default();
        let score = f_score(&[4.0, 2.0, 2.0], &options, Arithmetic::Python).value;
        assert!((score - 100.0 * 5.0 * 0.5 / (4.0 * 0.5 + 1.0)).abs() < 1e-12);
    }
}
