//! BLEU's formula: from summed counts to precisions, brevity penalty and score.

use crate::bleu::Bleu;
use crate::bleu_options::{BleuOptions, NgramOrder, Smoothing};
use crate::statistics::Arithmetic;

/// The score of summed statistics: output length, reference length, matches per order, totals per order.
pub(crate) fn bleu_from_counts(
    sums: &[f64],
    options: &BleuOptions,
    arithmetic: Arithmetic,
) -> Bleu {
    let order = options.max_order;
    let mut counts = sums[2..2 + order].to_vec();
    let mut totals = sums[2 + order..2 + 2 * order].to_vec();
    let (sys_len, ref_len) = (sums[0] as usize, sums[1] as usize);
    let mut bleu = Bleu {
        score: 0.0,
        counts: Vec::new(),
        totals: Vec::new(),
        precisions: vec![0.0; order],
        bp: brevity_penalty(sys_len, ref_len),
        sys_len,
        ref_len,
    };
    if counts.iter().any(|&count| count != 0.0) {
        let used = smooth(
            &mut counts,
            &mut totals,
            &mut bleu.precisions,
            options,
            arithmetic,
        );
        let log_sum: f64 = bleu.precisions[..used]
            .iter()
            .map(|&p| floored_log(p))
            .sum();
        bleu.score = bleu.bp * (log_sum / used as f64).exp();
    }
    bleu.counts = counts;
    bleu.totals = totals;
    bleu
}

/// Fills in the precisions and returns over how many orders the mean is taken.
fn smooth(
    counts: &mut [f64],
    totals: &mut [f64],
    precisions: &mut [f64],
    options: &BleuOptions,
    arithmetic: Arithmetic,
) -> usize {
    let round = |value| arithmetic.round(value);
    let mut halvings = 1.0;
    let mut used = options.max_order;
    for n in 0..options.max_order {
        if let (Smoothing::AddK(k), 1..) = (options.smoothing, n) {
            counts[n] = add(counts[n], k, arithmetic);
            totals[n] = add(totals[n], k, arithmetic);
        }
        if totals[n] == 0.0 {
            break;
        }
        if options.order == NgramOrder::Effective {
            used = n + 1;
        }
        precisions[n] = match options.smoothing {
            _ if counts[n] != 0.0 => round(round(100.0 * counts[n]) / totals[n]),
            Smoothing::Exp => {
                halvings *= 2.0;
                round(100.0 / round(halvings * totals[n]))
            }
            Smoothing::Floor(value) => round(round(100.0 * value) / totals[n]),
            Smoothing::None | Smoothing::AddK(_) => 0.0,
        };
    }
    used
}

/// A count plus the smoothing value; an array of integers cuts the sum's fraction off.
fn add(count: f64, k: f64, arithmetic: Arithmetic) -> f64 {
    match arithmetic {
        Arithmetic::Int64 => (count + k).trunc(),
        _ => arithmetic.round(count + arithmetic.round(k)),
    }
}

fn brevity_penalty(sys_len: usize, ref_len: usize) -> f64 {
    if sys_len >= ref_len {
        1.0
    } else if sys_len == 0 {
        0.0
    } else {
        (1.0 - ref_len as f64 / sys_len as f64).exp()
    }
}

/// The logarithm, a very low number for 0, which makes the score 0.
fn floored_log(value: f64) -> f64 {
    if value == 0.0 {
        -9_999_999_999.0
    } else {
        value.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(smoothing: Smoothing, order: NgramOrder, sums: &[f64]) -> Bleu {
        let options = BleuOptions {
            smoothing,
            order,
            max_order: 2,
            ..BleuOptions::default()
        };
        bleu_from_counts(sums, &options, Arithmetic::Python)
    }

    #[test]
    fn no_smoothing_and_no_bigram_is_zero() {
        let bleu = score(
            Smoothing::None,
            NgramOrder::Full,
            &[4.0, 4.0, 2.0, 0.0, 4.0, 3.0],
        );
        assert_eq!((bleu.score, bleu.precisions), (0.0, vec![50.0, 0.0]));
    }

    #[test]
    fn add_k_shows_in_the_counts() {
        let bleu = score(
            Smoothing::AddK(1.0),
            NgramOrder::Full,
            &[4.0, 4.0, 2.0, 0.0, 4.0, 3.0],
        );
        assert_eq!((bleu.counts, bleu.totals), (vec![2.0, 1.0], vec![4.0, 4.0]));
    }

    #[test]
    fn effective_order_leaves_out_what_one_word_cannot_have() {
        let bleu = score(
            Smoothing::Exp,
            NgramOrder::Effective,
            &[1.0, 1.0, 1.0, 0.0, 1.0, 0.0],
        );
        assert!((bleu.score - 100.0).abs() < 1e-9);
    }
}
