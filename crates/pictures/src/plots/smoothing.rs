//! The target distribution of label smoothing, and what it does to the loss (§5.4).
//!
//! The target puts `1 - epsilon` on the true token, `epsilon / (V - 2)` on every other token and nothing
//! on padding; where the true token is padding there is no target. The loss is the Kullback-Leibler
//! divergence from the target: with smoothing it rises again when the model is too sure.

use attentive_text::special::{PAD, SPECIALS};

use crate::error::{PictureError, Result};
use crate::figure::{Content, Curve, Figure, HeatMap, Line, Panel, Span};

/// The target distribution of one true token over a vocabulary.
pub fn target(truth: usize, vocab: usize, epsilon: f64) -> Vec<f64> {
    let share = |word: usize| match word {
        _ if truth == PAD as usize || word == PAD as usize => 0.0,
        _ if word == truth => 1.0 - epsilon,
        _ => epsilon / (vocab - 2) as f64,
    };
    (0..vocab).map(share).collect()
}

/// The loss of a model that gives the true token probability `p` and all others the same.
pub fn loss(p: f64, vocab: usize, epsilon: f64) -> f64 {
    let others = (vocab - 2) as f64;
    let term = |target: f64, found: f64| {
        if target > 0.0 {
            target * (target.ln() - found.ln())
        } else {
            0.0
        }
    };
    let share = epsilon / others;
    term(1.0 - epsilon, p) + others * term(share, (1.0 - p) / others)
}

/// The target distributions of a small vocabulary with the first of these epsilons, and the loss with each
/// of them.
pub fn figure(vocab: usize, epsilons: &[f64]) -> Result<Figure> {
    let refuse = |what: &str, expected: &str, found: String| {
        Err(PictureError::Shape {
            what: what.to_owned(),
            expected: expected.to_owned(),
            found,
        })
    };
    let Some(first) = epsilons.first() else {
        return refuse("label smoothing", "at least one epsilon", "none".to_owned());
    };
    if !(5..=40).contains(&vocab) {
        return refuse(
            "the vocabulary of the picture",
            "5 to 40 words",
            vocab.to_string(),
        );
    }
    if let Some(wrong) = epsilons
        .iter()
        .find(|epsilon| !(0.0..1.0).contains(*epsilon))
    {
        return refuse(
            "label smoothing",
            "a number from 0 to below 1",
            wrong.to_string(),
        );
    }
    let names: Vec<String> = (0..vocab)
        .map(|word| {
            SPECIALS
                .get(word)
                .map_or_else(|| word.to_string(), |name| (*name).to_owned())
        })
        .collect();
    let values = (0..vocab).flat_map(|truth| target(truth, vocab, *first));
    let curve = |(number, epsilon): (usize, &f64)| {
        let points = (10..500).map(|i| f64::from(i) / 500.0);
        let points = points.map(|p| (p, loss(p, vocab, *epsilon)));
        Curve::new(
            format!("epsilon {epsilon}"),
            points.collect(),
            Line::Plain,
            number,
        )
    };
    Ok(Figure {
        title: format!("Label smoothing, {vocab} words"),
        panels: vec![
            Panel {
                title: format!("What the model should say (epsilon {first})"),
                x_label: "word".to_owned(),
                y_label: "true word".to_owned(),
                content: Content::HeatMap(HeatMap {
                    cols: vocab,
                    values: values.map(|value| value as f32).collect(),
                    span: Span::Shares,
                    names: Some((names.clone(), names)),
                }),
            },
            Panel {
                title: "What being sure costs".to_owned(),
                x_label: "probability of the true word".to_owned(),
                y_label: "loss".to_owned(),
                content: Content::Curves(epsilons.iter().enumerate().map(curve).collect()),
            },
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_distribution_without_padding() {
        for truth in [0, 1, 3, 7] {
            let target = target(truth, 8, 0.1);
            assert!((target.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert_eq!((target[truth], target[PAD as usize]), (0.9, 0.0));
        }
        assert_eq!(target(PAD as usize, 8, 0.1), [0.0; 8]);
    }

    #[test]
    fn the_loss_is_least_at_the_target_and_plain_cross_entropy_without_smoothing() {
        assert!(loss(0.9, 10, 0.1).abs() < 1e-12);
        assert!(loss(0.99, 10, 0.1) > 0.01 && loss(0.5, 10, 0.1) > 0.01);
        assert!((loss(0.25, 10, 0.0) - 4f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        for (vocab, epsilons) in [(4, &[0.1][..]), (8, &[1.0]), (8, &[]), (8, &[f64::NAN])] {
            assert!(figure(vocab, epsilons).is_err(), "{vocab} {epsilons:?}");
        }
    }
}
