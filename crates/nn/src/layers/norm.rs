//! Normalizations: each subtracts a mean and divides by a deviation; what they average over is the difference.
//!
//! ```text
//! of [batch, len, channels]   averages over                     in evaluation
//! batch norm                  batch and len, each channel       the averages of training
//! layer norm                  the channels of a position        the same
//! instance norm               len, each row and channel         the same
//! group norm                  len and a group of channels       the same
//! RMS norm                    the channels, without a mean      the same
//! ```
//!
//! The Transformer takes layer norm: it does not mix sentences, does not see how long they are, and needs no averages
//! of training. The epsilon stands inside the square root and the variance is the biased one, as in PyTorch (whose
//! axes are `[batch, channels, len]`). Neighbor: [`crate::ops::layer_norm`] has layer norm fused.

use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor},
};

use crate::ops;

/// `(x - mean) / sqrt(var + epsilon) * weight + bias` over the channels of a position (Ba et al. 2016).
#[derive(Module, Debug)]
pub struct LayerNorm {
    /// `[d_model]`, starts at 1.
    pub weight: Param<Tensor<1>>,
    /// `[d_model]`, starts at 0.
    pub bias: Param<Tensor<1>>,
    epsilon: f64,
}

impl LayerNorm {
    /// Scale 1, shift 0.
    pub fn new(d_model: usize, epsilon: f64, device: &Device) -> Self {
        Self {
            weight: ones(d_model, device),
            bias: zeros(d_model, device),
            epsilon,
        }
    }

    /// `[batch, len, d_model]` -> the same shape.
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        ops::layer_norm(x, self.weight.val(), self.bias.val(), self.epsilon)
    }
}

/// Averages over the batch and the positions, for each channel (Ioffe and Szegedy 2015).
///
/// A sentence's result depends on the other sentences of its batch; in evaluation it must not, and the averages of
/// training take the place of the batch's.
#[derive(Module, Debug)]
pub struct BatchNorm {
    /// `[channels]`, starts at 1.
    pub weight: Param<Tensor<1>>,
    /// `[channels]`, starts at 0.
    pub bias: Param<Tensor<1>>,
    epsilon: f64,
    momentum: f64,
}

/// What batch norm has seen in training: a value of the caller's, for no layer remembers anything.
#[derive(Debug, Clone)]
pub struct RunningMoments {
    /// `[channels]`, starts at 0.
    pub mean: Tensor<1>,
    /// `[channels]`, starts at 1.
    pub variance: Tensor<1>,
}

impl RunningMoments {
    /// Of a layer that has seen nothing.
    pub fn new(channels: usize, device: &Device) -> Self {
        Self {
            mean: Tensor::zeros([channels], device),
            variance: Tensor::ones([channels], device),
        }
    }
}

impl BatchNorm {
    /// Scale 1, shift 0; `momentum` is the share of the newest batch in the running moments (0.1 in PyTorch).
    pub fn new(channels: usize, epsilon: f64, momentum: f64, device: &Device) -> Self {
        Self {
            weight: ones(channels, device),
            bias: zeros(channels, device),
            epsilon,
            momentum,
        }
    }

    /// In training: the batch's own averages, which `running` takes in. `[batch, len, channels]` -> the same shape.
    pub fn forward_training(&self, x: Tensor<3>, running: &mut RunningMoments) -> Tensor<3> {
        let [batch, len, _] = x.dims();
        let (mean, variance) = moments(&x, &[0, 1]);
        let blend = |old: &Tensor<1>, new: Tensor<1>| {
            old.clone() * (1.0 - self.momentum) + new.inner() * self.momentum
        };
        // PyTorch keeps the unbiased variance, though it divides by the biased one.
        let count = (batch * len) as f64;
        let unbiased = variance.clone() * (count / (count - 1.0).max(1.0));
        running.mean = blend(&running.mean, mean.clone().flatten(0, 2));
        running.variance = blend(&running.variance, unbiased.flatten(0, 2));
        self.scaled(normalized(x, mean, variance, self.epsilon))
    }

    /// In evaluation: the averages of training.
    pub fn forward_evaluation(&self, x: Tensor<3>, running: &RunningMoments) -> Tensor<3> {
        let tracked = x.is_autodiff();
        let [mean, variance] = [&running.mean, &running.variance].map(|moment| {
            let moment = moment.clone().unsqueeze::<3>();
            if tracked {
                Tensor::from_inner(moment)
            } else {
                moment
            }
        });
        self.scaled(normalized(x, mean, variance, self.epsilon))
    }

    fn scaled(&self, x: Tensor<3>) -> Tensor<3> {
        x * self.weight.val().unsqueeze() + self.bias.val().unsqueeze()
    }
}

/// Averages over groups of channels and all positions, for each row (Wu and He 2018). One group takes all channels
/// together; as many groups as channels are instance norm (Ulyanov et al. 2016).
#[derive(Module, Debug)]
pub struct GroupNorm {
    /// `[channels]`, starts at 1.
    pub weight: Param<Tensor<1>>,
    /// `[channels]`, starts at 0.
    pub bias: Param<Tensor<1>>,
    groups: usize,
    epsilon: f64,
}

impl GroupNorm {
    /// Scale 1, shift 0; `groups` divides `channels`.
    pub fn new(groups: usize, channels: usize, epsilon: f64, device: &Device) -> Self {
        Self {
            weight: ones(channels, device),
            bias: zeros(channels, device),
            groups,
            epsilon,
        }
    }

    /// Instance norm: every channel is a group.
    pub fn instance(channels: usize, epsilon: f64, device: &Device) -> Self {
        Self::new(channels, channels, epsilon, device)
    }

    /// `[batch, len, channels]` -> the same shape.
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let [batch, len, channels] = x.dims();
        let grouped = x.reshape([batch, len, self.groups, channels / self.groups]);
        let (mean, variance) = moments(&grouped, &[1, 3]);
        let x = normalized(grouped, mean, variance, self.epsilon).reshape([batch, len, channels]);
        x * self.weight.val().unsqueeze() + self.bias.val().unsqueeze()
    }
}

/// `x / sqrt(mean(x^2) + epsilon) * weight` over the channels of a position (Zhang and Sennrich 2019): layer norm
/// without a mean and without a bias.
#[derive(Module, Debug)]
pub struct RmsNorm {
    /// `[d_model]`, starts at 1.
    pub weight: Param<Tensor<1>>,
    epsilon: f64,
}

impl RmsNorm {
    /// Scale 1.
    pub fn new(d_model: usize, epsilon: f64, device: &Device) -> Self {
        Self {
            weight: ones(d_model, device),
            epsilon,
        }
    }

    /// `[batch, len, d_model]` -> the same shape.
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let square = x.clone().square().mean_dim(2);
        x / square.add_scalar(self.epsilon).sqrt() * self.weight.val().unsqueeze()
    }
}

/// Mean and biased variance over some axes, which stay with length 1.
fn moments<const D: usize>(x: &Tensor<D>, axes: &[usize]) -> (Tensor<D>, Tensor<D>) {
    let mean = x.clone().mean_dims(axes);
    let variance = (x.clone() - mean.clone()).square().mean_dims(axes);
    (mean, variance)
}

fn normalized<const D: usize>(
    x: Tensor<D>,
    mean: Tensor<D>,
    variance: Tensor<D>,
    epsilon: f64,
) -> Tensor<D> {
    (x - mean) / variance.add_scalar(epsilon).sqrt()
}

fn ones(count: usize, device: &Device) -> Param<Tensor<1>> {
    Param::from_tensor(Tensor::ones([count], device))
}

fn zeros(count: usize, device: &Device) -> Param<Tensor<1>> {
    Param::from_tensor(Tensor::zeros([count], device))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::{floats, random};
    use burn::tensor::TensorData;

    /// Changes one number and returns which of the others change with it: those that are averaged together.
    fn touched(norm: impl Fn(Tensor<3>) -> Tensor<3>) -> Vec<usize> {
        let shape = [2, 2, 4];
        let x = random(shape, 3);
        let mut other = x.clone();
        other[0] += 1.0;
        let run = |x: Vec<f32>| {
            let x = Tensor::<3>::from_data(TensorData::new(x, shape), &Device::flex());
            floats(norm(x))
        };
        let (before, after) = (run(x), run(other));
        let changed = |i: &usize| (before[*i] - after[*i]).abs() > 1e-4;
        (0..16).filter(changed).collect()
    }

    #[test]
    fn each_normalization_averages_over_its_axes_and_no_others() {
        let device = &Device::flex();
        // The number at [0, 0, 0] of [2 rows, 2 positions, 4 channels].
        let batch = BatchNorm::new(4, 1e-5, 0.1, device);
        let train = |x| batch.forward_training(x, &mut RunningMoments::new(4, device));
        assert_eq!(touched(train), [0, 4, 8, 12]);
        let running = RunningMoments::new(4, device);
        assert_eq!(touched(|x| batch.forward_evaluation(x, &running)), [0]);
        let layer = LayerNorm::new(4, 1e-5, device);
        assert_eq!(touched(|x| layer.forward(x)), [0, 1, 2, 3]);
        let rms = RmsNorm::new(4, 1e-5, device);
        assert_eq!(touched(|x| rms.forward(x)), [0, 1, 2, 3]);
        let instance = GroupNorm::instance(4, 1e-5, device);
        assert_eq!(touched(|x| instance.forward(x)), [0, 4]);
        let group = GroupNorm::new(2, 4, 1e-5, device);
        assert_eq!(touched(|x| group.forward(x)), [0, 1, 4, 5]);
    }

    #[test]
    fn running_moments_become_those_of_the_data() {
        let device = &Device::flex();
        let norm = BatchNorm::new(1, 1e-5, 0.1, device);
        let mut running = RunningMoments::new(1, device);
        let data = TensorData::new(random([8, 16, 1], 5), [8, 16, 1]);
        let x = Tensor::<3>::from_data(data, device) * 3.0 + 7.0;
        for _ in 0..100 {
            norm.forward_training(x.clone(), &mut running);
        }
        let (mean, variance) = (floats(running.mean)[0], floats(running.variance)[0]);
        // Uniform in 4..10.
        assert!((mean - 7.0).abs() < 0.3 && (variance - 3.0).abs() < 0.5);
    }
}
