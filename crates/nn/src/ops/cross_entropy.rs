//! The cross-entropy of classes, none of which is padding: [`super::smoothed_loss`] is for tokens.
//!
//! Classes are few, so this is a composed form on every device. Neighbors: the heads of BERT and of ViT.

use burn::tensor::{Int, Tensor, TensorData, activation::log_softmax};

/// `logits` `[rows, classes]`, one class per row, with label smoothing; summed over the rows. `[1]`
pub fn cross_entropy(logits: Tensor<2>, classes: &[u32], smoothing: f64) -> Tensor<1> {
    let ids: Vec<i64> = classes.iter().map(|class| i64::from(*class)).collect();
    let ids = TensorData::new(ids, [classes.len(), 1]);
    let ids = Tensor::<2, Int>::from_data(ids, &logits.device());
    let share = smoothing / logits.dims()[1] as f64;
    let log_probs = log_softmax(logits, 1);
    let truth = log_probs.clone().gather(1, ids).sum();
    if smoothing == 0.0 {
        return truth.neg();
    }
    (truth.mul_scalar(1.0 - smoothing) + log_probs.sum().mul_scalar(share)).neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn every_class_counts() {
        let logits = Tensor::<2>::from_data([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], &Device::flex());
        let found = cross_entropy(logits, &[2, 0], 0.0).into_scalar::<f32>();
        // -ln softmax of 3 among 1, 2, 3, and ln 3.
        assert!((found - (0.407_606 + 1.098_612)).abs() < 1e-5, "{found}");
    }

    #[test]
    fn label_smoothing_is_that_of_pytorch() {
        let logits = Tensor::<2>::from_data([[1.0, 2.0, 0.5], [0.0, 0.0, 3.0]], &Device::flex());
        // torch.nn.functional.cross_entropy(.., label_smoothing=s, reduction="sum")
        for (smoothing, expected) in [(0.0, 3.559_292), (0.1, 3.542_625)] {
            let loss = cross_entropy(logits.clone(), &[1, 0], smoothing).into_scalar::<f32>();
            assert!((loss - expected).abs() < 1e-4, "{loss}, not {expected}");
        }
    }
}
