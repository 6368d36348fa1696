//! Learning-rate schedules as curves (§5.3).

use crate::figure::{Content, Curve, Figure, Line, Panel};

/// How many points a curve has at most; more could not be seen.
pub const POINTS: usize = 600;

/// Steps at which a curve of so many steps is to be known: the first, the last, evenly between.
pub fn steps(total: usize) -> Vec<usize> {
    let count = total.min(POINTS);
    // Wide, because someone may ask for very many steps.
    let step =
        |i: usize| 1 + (i as u128 * (total - 1) as u128 / (count - 1).max(1) as u128) as usize;
    (0..count).map(step).collect()
}

/// Curves with their names, each as `(step, rate)`.
pub fn figure(curves: Vec<(String, Vec<(usize, f64)>)>) -> Figure {
    let curve = |(number, (name, points)): (usize, (String, Vec<(usize, f64)>))| {
        let points = points.into_iter().map(|(step, rate)| (step as f64, rate));
        Curve::new(name, points.collect(), Line::Plain, number)
    };
    Figure {
        title: "Learning rate".to_owned(),
        panels: vec![Panel {
            title: "Learning rate by step".to_owned(),
            x_label: "step".to_owned(),
            y_label: "learning rate".to_owned(),
            content: Content::Curves(curves.into_iter().enumerate().map(curve).collect()),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_reach_from_the_first_to_the_last() {
        assert_eq!(steps(4), [1, 2, 3, 4]);
        assert_eq!(steps(1), [1]);
        assert_eq!(steps(usize::MAX).last(), Some(&usize::MAX));
        let many = steps(100_000);
        assert_eq!(
            (many.len(), many[0], many[POINTS - 1]),
            (POINTS, 1, 100_000)
        );
        assert!(many.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
