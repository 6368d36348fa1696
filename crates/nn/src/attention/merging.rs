//! Token merging (ToMe, Bolya et al. 2023): the most similar tokens become one, without any training.
//!
//! The tokens stand on two sides. Each one of the first side looks for the most similar one of the second (bipartite
//! soft matching, by the cosine of their keys), and the most similar pairs are merged: a merged token is the mean of
//! all that it stands for, and attention counts it as often ([`crate::mask::Mask::Sizes`]). In a diffusion model
//! tokens are merged before a sub-layer and copied back behind it (Bolya and Hoffman 2023, `tomesd`).
//! For inference: no gradient goes through it. Neighbors: [`crate::models::vit`], [`crate::models::diffusion`].

use burn::tensor::{Tensor, TensorData};
use rayon::prelude::*;

use crate::ops::{
    attention_kernel::Transposed,
    simd::{simd, sum},
};

/// Which tokens of each row become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merging {
    /// Tokens of a row before and after.
    lengths: (usize, usize),
    /// The new place of every token, row by row.
    places: Vec<usize>,
}

/// The two sides of the tokens of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sides {
    /// Those that may be merged into another one.
    sources: Vec<usize>,
    /// Those that others are merged into.
    destinations: Vec<usize>,
    /// So many tokens at the beginning of `sources` stay alone.
    protected: usize,
}

impl Sides {
    /// Every second token, as in a ViT: the class token, which is the first one, is never merged.
    pub fn alternating(len: usize) -> Self {
        Self {
            sources: (0..len).step_by(2).collect(),
            destinations: (1..len).step_by(2).collect(),
            protected: 1,
        }
    }

    /// One destination in every square of 2 x 2 positions of an image, as `tomesd` has it; `corner` (0 to 3) is where
    /// in the square it stands.
    pub fn squares(side: usize, corner: usize) -> Self {
        let [dy, dx] = [corner / 2 % 2, corner % 2];
        // At the end of an odd row or column, squares are cut off, and what is left of them is their destination.
        let chosen = |at: usize, shift: usize| at % 2 == shift.min((side - 1) - (at - at % 2));
        let is_destination = |at: &usize| chosen(at / side, dy) && chosen(at % side, dx);
        let (destinations, sources) = (0..side * side).partition(is_destination);
        Self {
            sources,
            destinations,
            protected: 0,
        }
    }

    /// How many tokens can be merged at most.
    pub fn most(&self) -> usize {
        if self.destinations.is_empty() {
            return 0;
        }
        self.sources.len().saturating_sub(self.protected)
    }
}

impl Merging {
    /// The `count` best pairs of each row, or as many as there are, by the cosine of `metric` `[batch, len, width]`.
    pub fn of(metric: Tensor<3>, sides: &Sides, count: usize) -> Self {
        let [_, len, width] = metric.dims();
        let count = count.min(sides.most());
        let values = metric.into_data();
        let values = values.as_slice::<f32>().expect("metrics are f32");
        let places = values.par_chunks(len * width).flat_map_iter(|row| {
            let row = normalized(row, width);
            places_of(&row, width, sides, count)
        });
        Self {
            lengths: (len, len - count),
            places: places.collect(),
        }
    }

    /// Tokens of a row before and after.
    pub fn lengths(&self) -> (usize, usize) {
        self.lengths
    }

    /// The new place of every token of a row.
    pub fn places(&self, row: usize) -> &[usize] {
        &self.places[row * self.lengths.0..][..self.lengths.0]
    }

    /// The merged tokens, means weighted by `sizes` `[batch, len]`, and their sizes:
    /// `[batch, len, width]` -> `[batch, fewer, width]` and `[batch, fewer]`.
    pub fn merge(&self, x: Tensor<3>, sizes: &[f32]) -> (Tensor<3>, Vec<f32>) {
        let [batch, len, width] = x.dims();
        let after = self.lengths.1;
        let device = x.device();
        let data = x.into_data();
        let values = data.as_slice::<f32>().expect("hidden vectors are f32");
        let mut merged = vec![0.0; batch * after * width];
        let mut counts = vec![0.0; batch * after];
        merged
            .par_chunks_mut(after * width)
            .zip(counts.par_chunks_mut(after))
            .enumerate()
            .for_each(|(row, (merged, counts))| {
                let tokens = &values[row * len * width..][..len * width];
                let sizes = &sizes[row * len..][..len];
                merge_row(tokens, sizes, self.places(row), merged, counts);
            });
        let merged = TensorData::new(merged, [batch, after, width]);
        (Tensor::from_data(merged, &device), counts)
    }

    /// Copies of the merged tokens at all places that they stand for: `[batch, fewer, width]` -> `[batch, len, width]`.
    pub fn unmerge(&self, merged: Tensor<3>) -> Tensor<3> {
        let [batch, _, width] = merged.dims();
        let nothing = Tensor::zeros([batch, self.lengths.0, width], &merged.device());
        self.add_unmerged(nothing, merged)
    }

    /// Adds the merged tokens to all places that they stand for: `x` `[batch, len, width]` and `[batch, fewer, width]`
    /// -> `[batch, len, width]`.
    pub fn add_unmerged(&self, x: Tensor<3>, merged: Tensor<3>) -> Tensor<3> {
        let [_, len, width] = x.dims();
        let device = x.device();
        let (mut x, merged) = (x.into_data(), merged.into_data());
        let merged = merged.as_slice::<f32>().expect("hidden vectors are f32");
        let rows = x.as_mut_slice::<f32>().expect("hidden vectors are f32");
        rows.par_chunks_mut(len * width)
            .zip(merged.par_chunks(self.lengths.1 * width))
            .enumerate()
            .for_each(|(row, (x, merged))| add_row_unmerged(x, merged, self.places(row)));
        Tensor::from_data(x, &device)
    }
}

/// The mean over the heads: `[batch, len, heads * head_dim]` -> `[batch, len, head_dim]`.
pub fn mean_over_heads(keys: Tensor<3>, heads: usize) -> Tensor<3> {
    let [batch, len, width] = keys.dims();
    let head_dim = width / heads;
    let device = keys.device();
    let data = keys.into_data();
    let values = data.as_slice::<f32>().expect("keys are f32");
    let mut mean = vec![0.0; batch * len * head_dim];
    mean.par_chunks_mut(len * head_dim)
        .zip(values.par_chunks(len * width))
        .for_each(|(mean, row)| mean_of_row(row, heads, head_dim, mean));
    Tensor::from_data(TensorData::new(mean, [batch, len, head_dim]), &device)
}

/// The new place of every token: first the sources that stay, in their order, then the destinations.
fn places_of(row: &[f32], width: usize, sides: &Sides, count: usize) -> Vec<usize> {
    let mut pairs = if count == 0 {
        Vec::new()
    } else {
        most_similar(row, width, sides)
    };
    pairs.sort_by(|a, b| b.2.total_cmp(&a.2));
    pairs.truncate(count);
    let mut into = vec![None; sides.sources.len()];
    for (number, destination, _) in pairs {
        into[number] = Some(destination);
    }
    let kept = sides.sources.len() - count;
    let mut places = vec![0; sides.sources.len() + sides.destinations.len()];
    let mut next = 0;
    for (source, into) in sides.sources.iter().zip(into) {
        places[*source] = match into {
            Some(destination) => kept + destination,
            None => {
                next += 1;
                next - 1
            }
        };
    }
    for (number, destination) in sides.destinations.iter().enumerate() {
        places[*destination] = kept + number;
    }
    places
}

simd! {
    /// The tokens of a row, each of length 1.
    fn normalized(row: &[f32], width: usize) -> Vec<f32> {
        let mut row = row.to_vec();
        for token in row.chunks_exact_mut(width) {
            let inverse = 1.0 / sum(token, |v| v * v).sqrt().max(1e-12);
            token.iter_mut().for_each(|v| *v *= inverse);
        }
        row
    }

    fn mean_of_row(row: &[f32], heads: usize, head_dim: usize, mean: &mut [f32]) {
        let share = 1.0 / heads as f32;
        for (mean, token) in mean.chunks_exact_mut(head_dim).zip(row.chunks_exact(heads * head_dim)) {
            for head in token.chunks_exact(head_dim) {
                mean.iter_mut().zip(head).for_each(|(m, k)| *m += share * k);
            }
        }
    }

    /// The tokens of a row to their places, as means, and how much stands at each.
    fn merge_row(tokens: &[f32], sizes: &[f32], places: &[usize], merged: &mut [f32], counts: &mut [f32]) {
        let width = merged.len() / counts.len().max(1);
        for (place, size) in places.iter().zip(sizes) {
            counts[*place] += size;
        }
        for ((place, size), token) in places.iter().zip(sizes).zip(tokens.chunks_exact(width)) {
            let share = size / counts[*place];
            let mean = &mut merged[place * width..][..width];
            mean.iter_mut().zip(token).for_each(|(mean, value)| *mean += share * value);
        }
    }

    fn add_row_unmerged(x: &mut [f32], merged: &[f32], places: &[usize]) {
        let width = x.len() / places.len();
        for (token, place) in x.chunks_exact_mut(width).zip(places) {
            let merged = &merged[place * width..][..width];
            token.iter_mut().zip(merged).for_each(|(token, merged)| *token += merged);
        }
    }

    /// The number of every source that is not protected, its most similar destination, and how similar they are.
    fn most_similar(row: &[f32], width: usize, sides: &Sides) -> Vec<(usize, usize, f32)> {
        let count = sides.destinations.len();
        let token = |place: &usize| &row[place * width..][..width];
        let destinations: Vec<f32> = sides.destinations.iter().flat_map(token).copied().collect();
        let mut columns = Transposed::new(count, width);
        columns.load(&destinations, width);
        let mut similarities = vec![0.0f32; columns.padded];
        let mut pairs = Vec::with_capacity(sides.most());
        for (number, source) in sides.sources.iter().enumerate().skip(sides.protected) {
            columns.dots(token(source), &mut similarities);
            let mut best = (0, f32::NEG_INFINITY);
            for (place, similarity) in similarities[..count].iter().enumerate() {
                if *similarity > best.1 {
                    best = (place, *similarity);
                }
            }
            pairs.push((number, best.0, best.1));
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::floats;
    use burn::tensor::Device;

    fn tokens(values: &[[f32; 2]]) -> Tensor<3> {
        let flat = values.as_flattened().to_vec();
        Tensor::from_data(TensorData::new(flat, [1, values.len(), 2]), &Device::flex())
    }

    #[test]
    fn the_most_similar_pair_becomes_one_and_the_class_token_stays_first() {
        // Tokens 2 and 3 point the same way; 0 is the class token, and like 1.
        let x = tokens(&[[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.1, 4.0], [1.0, 1.0]]);
        let merging = Merging::of(x.clone(), &Sides::alternating(5), 1);
        // Kept sources 0 and 4, then destinations 1 and 3; 2 went into 3.
        assert_eq!(merging.places(0), [0, 2, 3, 3, 1]);
        assert_eq!(merging.lengths(), (5, 4));
        let (merged, sizes) = merging.merge(x, &[1.0, 1.0, 1.0, 3.0, 1.0]);
        assert_eq!(sizes, [1.0, 1.0, 1.0, 4.0]);
        let merged_values = floats(merged.clone());
        let expected = [1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.075, 3.5];
        for (got, expected) in merged_values.iter().zip(expected) {
            assert!((got - expected).abs() < 1e-6, "{merged_values:?}");
        }
        let ones = tokens(&[[1.0, 1.0]; 5]);
        let spread = floats(merging.add_unmerged(ones, merged));
        assert_eq!(spread[4..8], [1.075, 4.5, 1.075, 4.5]);
    }

    #[test]
    fn never_more_tokens_are_merged_than_there_are() {
        let x = tokens(&[[1.0, 0.0]; 5]);
        let merging = Merging::of(x, &Sides::alternating(5), 99);
        assert_eq!(merging.lengths(), (5, 3));
        let alone = Merging::of(tokens(&[[1.0, 0.0]]), &Sides::alternating(1), 1);
        assert_eq!(alone.lengths(), (1, 1));
    }

    #[test]
    fn every_square_has_one_destination_also_at_an_odd_edge() {
        for (side, squares) in [(4, 4), (5, 9), (7, 16)] {
            for corner in 0..4 {
                let sides = Sides::squares(side, corner);
                assert_eq!(sides.destinations.len(), squares, "{side} {corner}");
                assert_eq!(sides.most(), side * side - squares);
            }
        }
        assert_eq!(Sides::squares(4, 3).destinations, [5, 7, 13, 15]);
    }
}
