//! Six optimizers on the same task, from the same weights, on the same batches.
//!
//! A small network learns the two-dimensional pattern `sin(3x) cos(2y)`. Each optimizer has the best of three learning
//! rates. What differs is how a gradient becomes a step: as it is (SGD, with momentum), divided by the root of all its
//! squares so far (Adagrad) or of their recent mean (RMSprop, Adam, AdamW), or orthogonalized (Muon).
//!
//! Run with `cargo run --release --example 09_optimizers [PICTURE.svg]`. Next: `10_why_scale`.

mod picture;

use attentive_model::tensors::{Schema, TensorSpec};
use attentive_nn::init::Init;
use attentive_nn::layers::linear::Linear;
use attentive_nn::ops::Precision;
use attentive_nn::parameters;
use attentive_nn::random::mix;
use attentive_train::optim::optimizer::{Optimizer, Step};
use attentive_train::recipe::{Optimizer as Settings, OptimizerKind};
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};

const WIDTH: usize = 64;
const STEPS: u64 = 300;
const ROWS: usize = 128;

/// Two numbers in, one out.
#[derive(Module, Debug)]
struct Network {
    first: Linear,
    second: Linear,
    last: Linear,
}

impl Network {
    fn new(device: &Device) -> Self {
        let init = &mut Init::xavier_uniform(1);
        Self {
            first: Linear::new(2, WIDTH, init, device),
            second: Linear::new(WIDTH, WIDTH, init, device),
            last: Linear::new(WIDTH, 1, init, device),
        }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let x = self.first.forward(x, Precision::F32).tanh();
        let x = self.second.forward(x, Precision::F32).tanh();
        self.last.forward(x, Precision::F32)
    }

    /// The schema by which Muon finds the matrices.
    fn tensors() -> Vec<TensorSpec> {
        let mut schema = Schema::default();
        schema.linear("first", 2, WIDTH);
        schema.linear("second", WIDTH, WIDTH);
        schema.linear("last", WIDTH, 1);
        schema.into_tensors()
    }
}

/// The losses of a training run, each averaged over ten steps.
fn train(kind: OptimizerKind, learning_rate: f64) -> Vec<(f64, f64)> {
    let device = Device::flex().autodiff();
    // ANCHOR: train
    let settings = Settings {
        kind,
        ..Settings::default()
    };
    let mut optimizer = Optimizer::new(&settings, &Network::tensors());
    let mut network = Network::new(&device);
    let mut losses = Vec::new();
    for number in 1..=STEPS {
        let (x, y) = batch(number, &device);
        let loss = (network.forward(x) - y).square().mean();
        losses.push(f64::from(loss.clone().into_scalar::<f32>()));
        let step = Step {
            number,
            learning_rate,
            gradient_scale: 1.0,
            precision: Precision::F32,
        };
        let gradients = parameters::gradients(&network, loss.backward());
        network = optimizer.step(network, gradients, &step);
    }
    // ANCHOR_END: train
    let means = losses.chunks(10).map(|ten| ten.iter().sum::<f64>() / 10.0);
    means
        .enumerate()
        .map(|(i, mean)| (10.0 * i as f64 + 5.0, mean))
        .collect()
}

/// Points of a square and their values.
fn batch(number: u64, device: &Device) -> (Tensor<2>, Tensor<2>) {
    let unit = |i: u64| (mix(number << 32 | i) >> 40) as f32 / 8_388_608.0 - 1.0;
    let x: Vec<f32> = (0..2 * ROWS as u64).map(unit).collect();
    let y = x
        .chunks(2)
        .map(|p| (3.0 * p[0]).sin() * (2.0 * p[1]).cos())
        .collect();
    let tensor =
        |values: Vec<f32>, width| Tensor::from_data(TensorData::new(values, [ROWS, width]), device);
    (tensor(x, 2), tensor(y, 1))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    use OptimizerKind::{Adagrad, Adam, AdamW, Muon, Rmsprop, Sgd};
    let mut lines = Vec::new();
    for (name, kind, rates) in [
        ("SGD with momentum", Sgd, [0.01, 0.03, 0.1]),
        ("RMSprop", Rmsprop, [3e-4, 1e-3, 3e-3]),
        ("Adagrad", Adagrad, [0.01, 0.03, 0.1]),
        ("Adam", Adam, [1e-3, 3e-3, 1e-2]),
        ("AdamW", AdamW, [1e-3, 3e-3, 1e-2]),
        ("Muon", Muon, [1e-3, 3e-3, 1e-2]),
    ] {
        let end = |points: &Vec<(f64, f64)>| points.last().map_or(f64::NAN, |point| point.1);
        let runs = rates.map(|rate| (rate, train(kind, rate)));
        let best = runs
            .into_iter()
            .min_by(|a, b| end(&a.1).total_cmp(&end(&b.1)));
        let (rate, points) = best.ok_or("three runs")?;
        println!(
            "{name:>18}: loss {:.5} after {STEPS} steps (learning rate {rate})",
            end(&points)
        );
        let logs = points.iter().map(|(step, loss)| (*step, loss.log10()));
        lines.push((name.to_owned(), logs.collect()));
    }
    let panel = picture::curves(
        "Loss of the same network on the same batches",
        ["step", "log10 of the loss"],
        lines,
    );
    Ok(picture::show("Optimizers", vec![panel])?)
}
