//! Position vectors: sinusoids (§3.5) of some formula, computed for any length, or a learned table.

use attentive_model::config::PositionKind;
use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor, TensorData},
};

use crate::init::Init;

/// `PE(pos, 2i) = sin(pos / 10000^(2i/d))`, `PE(pos, 2i+1) = cos(...)` for positions
/// `start..start + len`: `[len, d_model]`. A function of the position, not a parameter.
pub fn sinusoids(start: usize, len: usize, d_model: usize, device: &Device) -> Tensor<2> {
    sinusoids_of(Sinusoids::Interleaved, start, len, d_model, device)
}

/// The formulas for sinusoids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sinusoids {
    /// The paper's: sine and cosine of an angle side by side.
    Interleaved,
    /// The same angles, first all sines, then all cosines.
    Halves,
    /// First all sines, then all cosines of `pos * exp(-i ln(10000) / (d / 2 - 1))`, as tensor2tensor has them.
    TimingSignal,
}

impl Sinusoids {
    /// The formula of this kind of positions; nothing for those that are learned.
    pub fn of(kind: PositionKind) -> Option<Self> {
        match kind {
            PositionKind::Sinusoidal => Some(Self::Interleaved),
            PositionKind::SinusoidalHalves => Some(Self::Halves),
            PositionKind::TimingSignal => Some(Self::TimingSignal),
            PositionKind::Learned => None,
        }
    }
}

/// As [`sinusoids`], by any formula.
pub fn sinusoids_of(
    formula: Sinusoids,
    start: usize,
    len: usize,
    d_model: usize,
    device: &Device,
) -> Tensor<2> {
    let half = d_model / 2;
    let mut values = Vec::with_capacity(len * d_model);
    for position in start..start + len {
        for i in 0..d_model {
            let (pair, cosine) = match formula {
                Sinusoids::Interleaved => (i / 2, i % 2 == 1),
                Sinusoids::Halves | Sinusoids::TimingSignal => (i % half, i >= half),
            };
            let exponent = match formula {
                Sinusoids::Interleaved | Sinusoids::Halves => (2 * pair) as f64 / d_model as f64,
                Sinusoids::TimingSignal => pair as f64 / (half as f64 - 1.0),
            };
            // ANCHOR: formula
            // The exponent is computed in log space, as in the Annotated Transformer.
            let angle = position as f64 * (-(10_000f64.ln()) * exponent).exp();
            values.push(if cosine { angle.cos() } else { angle.sin() } as f32);
            // ANCHOR_END: formula
        }
    }
    Tensor::from_data(TensorData::new(values, [len, d_model]), device)
}

/// A table of learned position vectors, for at most `max_positions` tokens.
#[derive(Module, Debug)]
pub struct LearnedPositions {
    /// `[max_positions, d_model]`
    pub weight: Param<Tensor<2>>,
}

impl LearnedPositions {
    /// A matrix of `init`.
    pub fn new(max_positions: usize, d_model: usize, init: &mut Init, device: &Device) -> Self {
        Self {
            weight: Param::from_tensor(init.matrix(max_positions, d_model, device)),
        }
    }

    /// Positions `start..start + len`, `[len, d_model]`. Positions past the table repeat its last row;
    /// the corpus reader and the translator cut inputs before that happens.
    pub fn forward(&self, start: usize, len: usize) -> Tensor<2> {
        let table = self.weight.val();
        let last = table.dims()[0] - 1;
        let rows: Vec<i64> = (start..start + len).map(|p| p.min(last) as i64).collect();
        let device = table.device();
        table.select(0, Tensor::from_data(TensorData::new(rows, [len]), &device))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sinusoids_follow_the_formula_in_f64() {
        let (start, len, d_model) = (37, 5, 512);
        let got: Vec<f32> = sinusoids(start, len, d_model, &Device::flex())
            .into_data()
            .iter::<f32>()
            .collect();
        for p in 0..len {
            for i in 0..d_model / 2 {
                let angle = (start + p) as f64 / 10_000f64.powf(2.0 * i as f64 / d_model as f64);
                assert!((got[p * d_model + 2 * i] as f64 - angle.sin()).abs() < 1e-6);
                assert!((got[p * d_model + 2 * i + 1] as f64 - angle.cos()).abs() < 1e-6);
            }
        }
    }
}
