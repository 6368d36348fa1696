//! The simpler simple recurrent unit, which a decoder layer may have instead of self-attention.
//!
//! `f = sigmoid(x Wf + bf)`, `c = f * c + (1 - f) * (x W)`, and the output is `relu(c)` ("From Research to Production
//! and Back: Ludicrously Fast Neural Machine Translation", Kim et al. 2019, §3.2). The cell `c` of the last position
//! is all that a later one needs. Neighbor: [`crate::models::transformer::decoder`].

use burn::{
    module::{Module, Param},
    tensor::{
        Device, Tensor,
        activation::{relu, sigmoid},
    },
};

use super::linear::Linear;
use crate::{init::Init, ops::project, pass::Pass};

/// A recurrent unit of `d_model` cells.
#[derive(Module, Debug)]
pub struct Ssru {
    /// What may go into the cells.
    pub input: Input,
    /// How much of themselves the cells keep.
    pub forget: Linear,
}

/// A linear map without a bias.
#[derive(Module, Debug)]
pub struct Input {
    /// `[d_model, d_model]`
    pub weight: Param<Tensor<2>>,
}

impl Ssru {
    /// Matrices of `init`, zero bias.
    pub fn new(d_model: usize, init: &mut Init, device: &Device) -> Self {
        Self {
            input: Input {
                weight: Param::from_tensor(init.matrix(d_model, d_model, device)),
            },
            forget: Linear::new(d_model, d_model, init, device),
        }
    }

    /// New positions `[batch, len, d_model]` -> the same shape. `cell` `[batch, 1, d_model]` is that of the position
    /// before them, nothing for zeros, and becomes that of the last one.
    pub fn forward(
        &self,
        x: Tensor<3>,
        cell: &mut Option<Tensor<3>>,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let input = project(x.clone(), self.input.weight.val(), pass.precision);
        let kept = sigmoid(self.forget.forward(x, pass.precision));
        let added = (-kept.clone() + 1.0) * input;
        let cells = scan(kept, added, cell.take());
        let len = cells.dims()[1];
        *cell = Some(cells.clone().narrow(1, len - 1, 1));
        relu(cells)
    }
}

/// `c[t] = kept[t] * c[t - 1] + added[t]` for all positions, in as many steps as the length has bits: after the
/// step of `reach`, each position holds what it and the `2 * reach - 1` before it make of zeros, and what they keep.
fn scan(mut kept: Tensor<3>, mut cells: Tensor<3>, start: Option<Tensor<3>>) -> Tensor<3> {
    let [batch, len, d_model] = cells.dims();
    let device = cells.device();
    let mut reach = 1;
    while reach < len {
        let earlier = |x: &Tensor<3>, fill: f64| {
            let before_all = Tensor::full([batch, reach, d_model], fill, &device);
            Tensor::cat(vec![before_all, x.clone().narrow(1, 0, len - reach)], 1)
        };
        cells = cells.clone() + kept.clone() * earlier(&cells, 0.0);
        kept = kept.clone() * earlier(&kept, 1.0);
        reach *= 2;
    }
    match start {
        Some(start) => cells + kept * start,
        None => cells,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::check::{assert_same_gradients, floats, random};

    #[test]
    fn the_scan_is_the_recurrence_gradients_included() {
        for len in [1, 2, 3, 8, 13] {
            let shape = [2, len, 5];
            assert_same_gradients(
                [random(shape, 1), random(shape, 2), random([2, 1, 5], 3)],
                |[kept, added, start]| {
                    let start = Some(start.reshape([2, 1, 5]));
                    scan(kept.reshape(shape), added.reshape(shape), start)
                },
                |[kept, added, start]| {
                    let (kept, added) = (kept.reshape(shape), added.reshape(shape));
                    let mut cell: Tensor<3> = start.reshape([2, 1, 5]);
                    let mut cells = Vec::new();
                    for t in 0..len {
                        cell = kept.clone().narrow(1, t, 1) * cell + added.clone().narrow(1, t, 1);
                        cells.push(cell.clone());
                    }
                    Tensor::cat(cells, 1)
                },
            );
        }
    }

    #[test]
    fn positions_one_by_one_give_what_all_together_give() {
        let device = Device::flex();
        let ssru = Ssru::new(6, &mut Init::xavier_uniform(4), &device);
        let data = burn::tensor::TensorData::new(random([2, 7, 6], 5), [2, 7, 6]);
        let x = Tensor::<3>::from_data(data, &device);
        let pass = &mut Pass::evaluation();
        let whole = ssru.forward(x.clone(), &mut None, pass);
        let mut cell = None;
        let steps: Vec<Tensor<3>> = [(0, 3), (3, 1), (4, 3)]
            .map(|(first, count)| ssru.forward(x.clone().narrow(1, first, count), &mut cell, pass))
            .into();
        let (whole, steps) = (floats(whole), floats(Tensor::cat(steps, 1)));
        assert!(whole.iter().any(|v| *v > 0.0) && whole.contains(&0.0));
        for (whole, step) in whole.iter().zip(&steps) {
            assert!((whole - step).abs() < 1e-6, "{whole} and {step}");
        }
    }
}
