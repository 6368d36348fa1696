//! Attention masks: which keys are hidden from which queries. The one place where masks are made.
//!
//! Polarity, stated once: **`true` means hidden**. A mask says what it hides (the future, padding) instead of
//! listing every pair of query and key, so that it grows with the length of a sentence and not with its
//! square. Neighbors: the models build masks from token ids, [`crate::attention`] applies them.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};

// ANCHOR: mask
/// Which keys are hidden from which queries.
#[derive(Debug, Clone)]
pub enum Mask {
    /// Nothing is hidden: one sentence without padding.
    Open,
    /// The future is hidden: query `i` sees keys `0..=i` (§3.2.3).
    Causal,
    /// The keys marked `true` are hidden from every query, `[batch, key_len]`.
    Padding(Tensor<2, Bool>),
    /// Both the future and the keys marked `true` are hidden, `[batch, key_len]`.
    CausalAndPadding(Tensor<2, Bool>),
    /// Every query has hidden keys of its own, marked `true`, `[batch or 1, query_len, key_len]`.
    PerQuery(Tensor<3, Bool>),
    /// Nothing is hidden, and each key counts as often as the tokens that were merged into it, `[batch, key_len]`:
    /// proportional attention ([`crate::attention::merging`]).
    Sizes(Tensor<2>),
}
// ANCHOR_END: mask

impl Mask {
    /// Every query of row `i` sees the first `lengths[i]` of `key_len` keys.
    pub fn valid_lengths(lengths: &[usize], key_len: usize, device: &Device) -> Self {
        let hidden = behind(lengths, key_len);
        let shape = [lengths.len(), key_len];
        Self::Padding(Tensor::from_data(TensorData::new(hidden, shape), device))
    }

    /// Query `q` of row `i` sees the first `lengths[i][q]` of `key_len` keys.
    pub fn valid_lengths_per_query<const Q: usize>(
        lengths: &[[usize; Q]],
        key_len: usize,
        device: &Device,
    ) -> Self {
        let hidden = behind(lengths.as_flattened(), key_len);
        let shape = [lengths.len(), Q, key_len];
        Self::PerQuery(Tensor::from_data(TensorData::new(hidden, shape), device))
    }

    /// Query `i` sees every key but the `i`-th, itself.
    pub fn all_but_itself(len: usize, device: &Device) -> Self {
        let hidden: Vec<bool> = (0..len * len).map(|i| i % len == i / len).collect();
        Self::PerQuery(Tensor::from_data(
            TensorData::new(hidden, [1, len, len]),
            device,
        ))
    }

    /// Hides padding: keys whose token is `pad`. `tokens` is `[batch, key_len]`.
    pub fn padding(tokens: Tensor<2, Int>, pad: u32) -> Self {
        Self::Padding(tokens.equal_elem(i64::from(pad)))
    }

    /// Hides both the future and padding. `tokens` is `[batch, len]`.
    pub fn causal_and_padding(tokens: Tensor<2, Int>, pad: u32) -> Self {
        Self::CausalAndPadding(tokens.equal_elem(i64::from(pad)))
    }

    /// Whether the future is hidden.
    pub fn is_causal(&self) -> bool {
        matches!(self, Self::Causal | Self::CausalAndPadding(_))
    }

    /// The keys that are hidden from every query, `[batch, key_len]`.
    pub fn padded(&self) -> Option<&Tensor<2, Bool>> {
        match self {
            Self::Open | Self::Causal | Self::PerQuery(_) | Self::Sizes(_) => None,
            Self::Padding(padded) | Self::CausalAndPadding(padded) => Some(padded),
        }
    }

    /// What is added to the scores of each key, `[batch, key_len]`: the logarithm of how many tokens it stands for.
    pub fn bias(&self) -> Option<Tensor<2>> {
        match self {
            Self::Sizes(sizes) => Some(sizes.clone().log()),
            _ => None,
        }
    }

    /// Every pair of query and key, `[batch or 1, 1, query_len or 1, key_len]`; none if nothing is hidden.
    pub fn pairs(
        &self,
        query_len: usize,
        key_len: usize,
        device: &Device,
    ) -> Option<Tensor<4, Bool>> {
        if let Self::PerQuery(hidden) = self {
            return Some(hidden.clone().unsqueeze_dim(1));
        }
        let future = self.is_causal().then(|| future(query_len, key_len, device));
        let padded = self.padded().map(|padded| {
            let [batch, len] = padded.dims();
            padded.clone().reshape([batch, 1, 1, len])
        });
        match (future, padded) {
            (Some(future), Some(padded)) => {
                let shape = [padded.dims()[0], 1, query_len, key_len];
                Some(future.expand(shape).bool_or(padded.expand(shape)))
            }
            (future, padded) => future.or(padded),
        }
    }

    /// The rows of the mask, rearranged like the batch they belong to.
    pub fn select(&self, rows: Tensor<1, Int>) -> Self {
        match self {
            Self::Open => Self::Open,
            Self::Causal => Self::Causal,
            Self::Padding(padded) => Self::Padding(padded.clone().select(0, rows)),
            Self::CausalAndPadding(padded) => {
                Self::CausalAndPadding(padded.clone().select(0, rows))
            }
            // One row serves the whole batch.
            Self::PerQuery(hidden) if hidden.dims()[0] == 1 => self.clone(),
            Self::PerQuery(hidden) => Self::PerQuery(hidden.clone().select(0, rows)),
            Self::Sizes(sizes) => Self::Sizes(sizes.clone().select(0, rows)),
        }
    }
}

/// For each length, which of `key_len` keys lie behind it.
fn behind(lengths: &[usize], key_len: usize) -> Vec<bool> {
    let rows = lengths.iter();
    rows.flat_map(|length| (0..key_len).map(move |key| key >= *length))
        .collect()
}

fn future(query_len: usize, key_len: usize, device: &Device) -> Tensor<4, Bool> {
    let hidden: Vec<bool> = (0..query_len * key_len)
        .map(|i| i % key_len > i / key_len)
        .collect();
    Tensor::from_data(TensorData::new(hidden, [1, 1, query_len, key_len]), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bools(mask: Mask, len: usize) -> Vec<bool> {
        let pairs = mask.pairs(len, len, &Device::flex());
        pairs.map_or(vec![], |pairs| pairs.into_data().iter::<bool>().collect())
    }

    #[test]
    fn the_future_and_padding_are_hidden_and_nothing_else() {
        let device = Device::flex();
        assert!(bools(Mask::Open, 3).is_empty());
        assert_eq!(
            bools(Mask::Causal, 3),
            [false, true, true, false, false, true, false, false, false]
        );
        let tokens = Tensor::<2, Int>::from_data([[0, 5, 2], [0, 5, 6]], &device);
        assert_eq!(
            bools(Mask::padding(tokens.clone(), 2), 3),
            [false, false, true, false, false, false]
        );
        assert_eq!(
            bools(Mask::causal_and_padding(tokens.clone(), 2), 3),
            [
                [false, true, true, false, false, true, false, false, true],
                [false, true, true, false, false, true, false, false, false]
            ]
            .concat()
        );
        let rows = Tensor::<1, Int>::from_data([1, 0], &device);
        assert_eq!(
            bools(Mask::padding(tokens, 2).select(rows), 3),
            [false, false, false, false, false, true]
        );
    }

    #[test]
    fn valid_lengths_hide_what_lies_behind_them_for_a_row_or_a_query() {
        let device = Device::flex();
        let by_row = Mask::valid_lengths(&[1, 3], 3, &device);
        assert_eq!(
            bools(by_row.clone(), 3),
            [false, true, true, false, false, false]
        );
        let by_query = Mask::valid_lengths_per_query(&[[1, 3], [2, 0]], 3, &device);
        let expected = [
            [false, true, true, false, false, false],
            [false, false, true, true, true, true],
        ];
        assert_eq!(bools(by_query.clone(), 3), expected.concat());
        let rows = Tensor::<1, Int>::from_data([1], &device);
        assert_eq!(bools(by_query.select(rows), 3), expected[1]);
        assert_eq!(
            bools(Mask::all_but_itself(2, &device), 2),
            [true, false, false, true]
        );
    }

    #[test]
    fn a_mask_holds_one_flag_for_each_token() {
        let tokens = Tensor::<2, Int>::zeros([2, 5000], &Device::flex());
        let mask = Mask::causal_and_padding(tokens, 2);
        assert_eq!(mask.padded().map(Tensor::dims), Some([2, 5000]));
    }
}
