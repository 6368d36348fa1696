//! Attention masks: which keys are hidden from which queries. The one place where masks are made.
//!
//! Polarity, stated once: **`true` means hidden**. A mask broadcasts over heads, so it has the shape
//! `[batch or 1, 1, query_len or 1, key_len]`. Neighbors: the models build masks from token ids,
//! [`crate::attention`] applies them.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};

/// Which keys are hidden from which queries.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "a mask lives as long as a pass; boxing it would cost more than it saves"
)]
pub enum Mask {
    /// Nothing is hidden: one sentence without padding.
    Open,
    /// The positions marked `true` are hidden, `[batch or 1, 1, query_len or 1, key_len]`.
    Hidden(Tensor<4, Bool>),
}

impl Mask {
    /// Hides padding: keys whose token is `pad`. `tokens` is `[batch, key_len]`.
    pub fn padding(tokens: Tensor<2, Int>, pad: u32) -> Self {
        Self::Hidden(padding(tokens, pad))
    }

    /// Hides the future: query `i` sees keys `0..=i` (§3.2.3).
    pub fn causal(len: usize, device: &Device) -> Self {
        Self::Hidden(causal(len, device))
    }

    /// Hides both the future and padding. `tokens` is `[batch, len]`.
    pub fn causal_and_padding(tokens: Tensor<2, Int>, pad: u32) -> Self {
        let [batch, len] = tokens.dims();
        let future = causal(len, &tokens.device()).expand([batch, 1, len, len]);
        let padded = padding(tokens, pad).expand([batch, 1, len, len]);
        Self::Hidden(future.bool_or(padded))
    }

    /// The rows of the mask, rearranged like the batch they belong to.
    pub fn select(&self, rows: Tensor<1, Int>) -> Self {
        match self {
            Self::Open => Self::Open,
            Self::Hidden(mask) => Self::Hidden(mask.clone().select(0, rows)),
        }
    }
}

fn padding(tokens: Tensor<2, Int>, pad: u32) -> Tensor<4, Bool> {
    let [batch, len] = tokens.dims();
    tokens.equal_elem(pad as i64).reshape([batch, 1, 1, len])
}

fn causal(len: usize, device: &Device) -> Tensor<4, Bool> {
    let hidden: Vec<bool> = (0..len * len).map(|i| i % len > i / len).collect();
    Tensor::from_data(TensorData::new(hidden, [1, 1, len, len]), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bools(mask: Mask) -> Vec<bool> {
        match mask {
            Mask::Open => vec![],
            Mask::Hidden(mask) => mask.into_data().iter::<bool>().collect(),
        }
    }

    #[test]
    fn the_future_and_padding_are_hidden_and_nothing_else() {
        let device = Device::flex();
        assert_eq!(
            bools(Mask::causal(3, &device)),
            [false, true, true, false, false, true, false, false, false]
        );
        let tokens = Tensor::<2, Int>::from_data([[0, 5, 2], [0, 5, 6]], &device);
        assert_eq!(
            bools(Mask::padding(tokens.clone(), 2)),
            [false, false, true, false, false, false]
        );
        assert_eq!(
            bools(Mask::causal_and_padding(tokens, 2)),
            [
                [false, true, true, false, false, true, false, false, true],
                [false, true, true, false, false, true, false, false, false]
            ]
            .concat()
        );
    }
}
