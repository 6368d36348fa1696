//! Softmax over the keys that a mask leaves: from scores to attention weights.
//!
//! Neighbors: [`crate::mask`] says what is hidden; every scoring function ([`super::dot_product`],
//! [`super::additive`], [`super::kernel_regression`]) ends here.

use burn::tensor::{Tensor, activation::softmax};

use crate::mask::Mask;

/// Scores `[batch, heads, query_len, key_len]` -> weights of the same shape. Rows sum to 1, hidden keys get exactly
/// 0, and a query that may see nothing gets zeros, not NaN.
pub fn masked_softmax(scores: Tensor<4>, mask: &Mask) -> Tensor<4> {
    let [batch, _, query_len, key_len] = scores.dims();
    let scores = match mask.bias() {
        None => scores,
        Some(bias) => scores + bias.reshape([batch, 1, 1, key_len]),
    };
    match mask.pairs(query_len, key_len, &scores.device()) {
        None => softmax(scores, 3),
        Some(hidden) => {
            let hidden = hidden.expand(scores.dims());
            let scores = scores.mask_fill(hidden.clone(), f32::MIN);
            softmax(scores, 3).mask_fill(hidden, 0.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::floats;
    use burn::tensor::Device;

    #[test]
    fn equal_scores_are_shared_among_the_valid_keys_of_a_row_or_of_a_query() {
        let device = Device::flex();
        let weights = |mask: &Mask| {
            let scores = Tensor::<4>::ones([2, 1, 2, 4], &device);
            floats(masked_softmax(scores, mask))
        };
        let share = |valid: usize| {
            let share = 1.0 / valid.max(1) as f32;
            let mut row = [0.0; 4];
            row[..valid].fill(share);
            row
        };
        assert_eq!(
            weights(&Mask::valid_lengths(&[2, 3], 4, &device)),
            [share(2), share(2), share(3), share(3)].concat()
        );
        assert_eq!(
            weights(&Mask::valid_lengths_per_query(
                &[[1, 3], [2, 0]],
                4,
                &device
            )),
            [share(1), share(3), share(2), share(0)].concat()
        );
    }
}
