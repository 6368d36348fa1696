//! Attention before attention: Nadaraya-Watson kernel regression (1964).
//!
//! A query `x` asks what `y` belongs to it, keys are the `x_i` that were seen, values their `y_i`, and the answer is
//! a weighted average of the values. The weights are all that the kinds differ in: the same for everybody, or the
//! more the nearer a key is. With a learned width this is attention with one parameter. Neighbors:
//! [`super::additive`] and [`super::dot_product`] are the same average with other weights.

use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor},
};

use super::masked_softmax::masked_softmax;
use crate::mask::Mask;

/// Predictions, and the weights behind them.
#[derive(Debug, Clone)]
pub struct Pooled {
    /// `[batch, queries]`
    pub values: Tensor<2>,
    /// `[batch, queries, keys]`; rows sum to 1.
    pub weights: Tensor<3>,
}

/// Every key has the same weight, whatever is asked: the mean of the values. `queries` `[batch, queries]`, `keys`
/// and `values` `[batch, keys]`.
pub fn average_pooling(
    queries: Tensor<2>,
    keys: Tensor<2>,
    values: Tensor<2>,
    mask: &Mask,
) -> Pooled {
    pooled(distances(queries, keys).mul_scalar(0.0), values, mask)
}

/// Weights of a Gaussian kernel of width 1, without parameters: `softmax(-(x - x_i)^2 / 2)`. Shapes as in
/// [`average_pooling`].
pub fn gaussian_pooling(
    queries: Tensor<2>,
    keys: Tensor<2>,
    values: Tensor<2>,
    mask: &Mask,
) -> Pooled {
    let scores = distances(queries, keys).square().mul_scalar(-0.5);
    pooled(scores, values, mask)
}

/// A Gaussian kernel whose width is learned: `softmax(-((x - x_i) w)^2 / 2)`.
///
/// It is trained with each sample attending to all others but itself ([`Mask::all_but_itself`]); a sample that
/// could see itself would learn to look at nothing else.
#[derive(Module, Debug)]
pub struct KernelRegression {
    /// `w`, one over the width of the kernel. `[1]`
    pub weight: Param<Tensor<1>>,
}

impl KernelRegression {
    /// A kernel of width 1.
    pub fn new(device: &Device) -> Self {
        Self {
            weight: Param::from_tensor(Tensor::ones([1], device)),
        }
    }

    /// Shapes as in [`average_pooling`].
    pub fn forward(
        &self,
        queries: Tensor<2>,
        keys: Tensor<2>,
        values: Tensor<2>,
        mask: &Mask,
    ) -> Pooled {
        let scaled = distances(queries, keys) * self.weight.val().unsqueeze();
        pooled(scaled.square().mul_scalar(-0.5), values, mask)
    }
}

/// `x - x_i`, `[batch, 1, queries, keys]`
fn distances(queries: Tensor<2>, keys: Tensor<2>) -> Tensor<4> {
    let ([batch, n], [_, m]) = (queries.dims(), keys.dims());
    let shape = [batch, 1, n, m];
    let queries = queries.reshape([batch, 1, n, 1]).expand(shape);
    queries - keys.reshape([batch, 1, 1, m]).expand(shape)
}

fn pooled(scores: Tensor<4>, values: Tensor<2>, mask: &Mask) -> Pooled {
    let weights = masked_softmax(scores, mask).squeeze_dim::<3>(1);
    let values = weights.clone().matmul(values.unsqueeze_dim(2));
    Pooled {
        values: values.squeeze_dim(2),
        weights,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::floats;

    #[test]
    fn the_average_does_not_ask_and_a_narrow_kernel_finds_the_nearest() {
        let device = Device::flex();
        let row = |values: [f32; 3]| Tensor::<2>::from_data([values], &device);
        let (keys, values) = (row([0.0, 1.0, 2.0]), row([3.0, 6.0, 12.0]));
        let queries = Tensor::<2>::from_data([[0.1, 1.9]], &device);
        let open = &Mask::Open;
        let average = average_pooling(queries.clone(), keys.clone(), values.clone(), open);
        assert_eq!(floats(average.values), [7.0, 7.0]);

        let mut narrow = KernelRegression::new(&device);
        let same = narrow.forward(queries.clone(), keys.clone(), values.clone(), open);
        let gaussian = gaussian_pooling(queries.clone(), keys.clone(), values.clone(), open);
        assert_eq!(floats(same.values), floats(gaussian.values));
        narrow.weight = Param::from_tensor(Tensor::from_data([20.0], &device));
        let nearest = floats(narrow.forward(queries, keys, values, open).values);
        assert!((nearest[0] - 3.0).abs() < 1e-3 && (nearest[1] - 12.0).abs() < 1e-3);
    }

    #[test]
    fn a_sample_that_attends_to_all_but_itself_has_no_weight_for_itself() {
        let device = Device::flex();
        let x = Tensor::<2>::from_data([[0.0, 0.5, 3.0]], &device);
        let mask = Mask::all_but_itself(3, &device);
        let weights = gaussian_pooling(x.clone(), x.clone(), x, &mask).weights;
        let weights = floats(weights);
        for (i, row) in weights.chunks(3).enumerate() {
            assert_eq!(row[i], 0.0);
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        }
    }
}
