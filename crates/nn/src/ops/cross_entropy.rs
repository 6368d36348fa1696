//! The cross-entropy of classes, none of which is padding: [`super::smoothed_loss`] is for tokens.
//!
//! Classes are few, so this is a composed form on every device. Neighbor: the heads of BERT.

use burn::tensor::{Int, Tensor, TensorData, activation::log_softmax};

/// `logits` `[rows, classes]`, one class per row; summed over the rows. `[1]`
pub fn cross_entropy(logits: Tensor<2>, classes: &[u32]) -> Tensor<1> {
    let ids: Vec<i64> = classes.iter().map(|class| i64::from(*class)).collect();
    let ids = TensorData::new(ids, [classes.len(), 1]);
    let ids = Tensor::<2, Int>::from_data(ids, &logits.device());
    log_softmax(logits, 1).gather(1, ids).sum().neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn every_class_counts() {
        let logits = Tensor::<2>::from_data([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], &Device::flex());
        let found = cross_entropy(logits, &[2, 0]).into_scalar::<f32>();
        // -ln softmax of 3 among 1, 2, 3, and ln 3.
        assert!((found - (0.407_606 + 1.098_612)).abs() < 1e-5, "{found}");
    }
}
