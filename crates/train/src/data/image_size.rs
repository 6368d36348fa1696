//! Images of another size: scaled as PIL does it, with a linear filter that is as wide as what it averages.
//!
//! Neighbor: [`super::images`].

/// A plane of `width` x `height` bytes, scaled to `size` x `size`.
pub(super) fn scaled(plane: &[u8], (width, height): (usize, usize), size: usize) -> Vec<u8> {
    let columns = filter(width, size);
    let rows = filter(height, size);
    let mut narrow = vec![0; height * size]; // [height, size]
    for (from, to) in plane.chunks_exact(width).zip(narrow.chunks_exact_mut(size)) {
        for (to, (first, weights)) in to.iter_mut().zip(&columns) {
            *to = rounded(from[*first..].iter().zip(weights));
        }
    }
    let mut result = Vec::with_capacity(size * size);
    for (first, weights) in &rows {
        for column in 0..size {
            let from = narrow[first * size + column..].iter().step_by(size);
            result.push(rounded(from.zip(weights)));
        }
    }
    result
}

/// For each new place: the first old one that counts, and the weights of it and those behind it.
fn filter(before: usize, after: usize) -> Vec<(usize, Vec<f64>)> {
    let scale = before as f64 / after as f64;
    let support = scale.max(1.0);
    let place = |place: usize| {
        let center = (place as f64 + 0.5) * scale;
        let first = ((center - support + 0.5) as usize).min(before - 1);
        let end = ((center + support + 0.5) as usize).clamp(first + 1, before);
        let weight = |at: usize| (1.0 - ((at as f64 + 0.5 - center) / support).abs()).max(0.0);
        let weights: Vec<f64> = (first..end).map(weight).collect();
        let sum: f64 = weights.iter().sum();
        (first, weights.iter().map(|weight| weight / sum).collect())
    };
    (0..after).map(place).collect()
}

fn rounded<'a>(values: impl Iterator<Item = (&'a u8, &'a f64)>) -> u8 {
    let sum: f64 = values
        .map(|(value, weight)| f64::from(*value) * weight)
        .sum();
    sum.round().clamp(0.0, 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_averages_and_doubling_interpolates() {
        // PIL: Image.fromarray(..).resize((2, 2), BILINEAR) and back.
        let plane: Vec<u8> = (0..16).map(|i| i * 16).collect();
        assert_eq!(scaled(&plane, (4, 4), 4), plane);
        let half = scaled(&plane, (4, 4), 2);
        assert_eq!(half, [57, 83, 157, 183]);
        assert_eq!(
            scaled(&[0, 100, 100, 200], (2, 2), 4)[..4],
            [0, 25, 75, 100]
        );
    }
}
