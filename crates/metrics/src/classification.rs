//! Scores for classes: how many are right, and F1.
//!
//! Classes are numbers; what they are called is the caller's.

/// The share of right classes; 0 without any.
pub fn accuracy(found: &[usize], expected: &[usize]) -> f64 {
    let right = found.iter().zip(expected).filter(|(a, b)| a == b).count();
    right as f64 / expected.len().max(1) as f64
}

/// F1 as GLUE reports it: of the second of two classes; of more classes, the mean over them (macro F1).
pub fn f1(found: &[usize], expected: &[usize], classes: usize) -> f64 {
    match classes {
        2 => f1_of(found, expected, 1),
        _ => {
            (0..classes)
                .map(|class| f1_of(found, expected, class))
                .sum::<f64>()
                / classes as f64
        }
    }
}

/// The harmonic mean of precision and recall of one class; 0 if it neither is there nor was found.
fn f1_of(found: &[usize], expected: &[usize], class: usize) -> f64 {
    let count = |of: &[usize]| of.iter().filter(|it| **it == class).count();
    let pairs = found.iter().zip(expected);
    let right = pairs.filter(|(a, b)| **a == class && a == b).count();
    let both = count(found) + count(expected);
    2.0 * right as f64 / both.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracy_and_f1_are_those_of_scikit_learn() {
        let (found, expected) = ([1, 1, 0, 1, 0], [1, 0, 0, 1, 1]);
        assert!((accuracy(&found, &expected) - 0.6).abs() < 1e-12);
        // Precision 2/3, recall 2/3.
        assert!((f1(&found, &expected, 2) - 2.0 / 3.0).abs() < 1e-12);
        // Per class 0.5, 2/3 and 0: the third class neither is there nor was found.
        assert!((f1(&found, &expected, 3) - (0.5 + 2.0 / 3.0) / 3.0).abs() < 1e-12);
        assert_eq!((accuracy(&[], &[]), f1(&[], &[], 2)), (0.0, 0.0));
    }
}
