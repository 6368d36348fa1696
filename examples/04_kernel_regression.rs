//! Attention before attention: predict `y` at a point from the samples near it (Nadaraya and Watson, 1964).
//!
//! The point is the query, the samples' `x` are the keys, their `y` the values. Averaging everything ignores the query; a
//! Gaussian kernel weighs near keys more; with a learned width it finds out what "near" means.
//!
//! Run with `cargo run --release --example 04_kernel_regression [PICTURE.svg]`. Next: `05_scoring_functions`.

mod picture;

use attentive_nn::attention::kernel_regression::{
    KernelRegression, average_pooling, gaussian_pooling,
};
use attentive_nn::mask::Mask;
use attentive_nn::parameters;
use attentive_nn::random::mix;
use burn::tensor::{Device, Tensor, TensorData};

const SAMPLES: usize = 50;

fn truth(x: f32) -> f32 {
    2.0 * x.sin() + x.powf(0.8)
}

/// A number in -1..1 that depends on `seed` only.
fn noise(seed: u64) -> f32 {
    (mix(seed) >> 40) as f32 / 8_388_608.0 - 1.0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex().autodiff();
    let row = |values: Vec<f32>| {
        let count = values.len();
        Tensor::<2>::from_data(TensorData::new(values, [1, count]), &device)
    };
    let mut x: Vec<f32> = (0..SAMPLES as u64)
        .map(|i| 2.5 * (noise(i) + 1.0))
        .collect();
    x.sort_by(f32::total_cmp);
    let y: Vec<f32> = (1000..)
        .zip(&x)
        .map(|(i, x)| truth(*x) + 0.8 * noise(i))
        .collect();
    let asked: Vec<f32> = (0..SAMPLES)
        .map(|i| 5.0 * i as f32 / SAMPLES as f32)
        .collect();
    let (keys, values, queries) = (row(x.clone()), row(y.clone()), row(asked.clone()));

    // ANCHOR: train
    let mut kernel = KernelRegression::new(&device);
    let others = Mask::all_but_itself(SAMPLES, &device);
    for step in 0..200 {
        // Each sample is predicted from all others; from itself it would learn to look at nothing else.
        let predicted = kernel
            .forward(keys.clone(), keys.clone(), values.clone(), &others)
            .values;
        let loss = (predicted - values.clone()).square().mean();
        if step % 50 == 0 {
            let w = kernel.weight.val().into_scalar::<f32>();
            println!(
                "step {step:>3}  loss {:.4}  w {w:.2}",
                loss.clone().into_scalar::<f32>()
            );
        }
        let gradients = parameters::gradients(&kernel, loss.backward());
        kernel = parameters::replace(kernel, |name, old| old - gradients[name].clone() * 5.0);
    }
    // ANCHOR_END: train

    // ANCHOR: pool
    let ask = |pool: &dyn Fn(Tensor<2>, Tensor<2>, Tensor<2>, &Mask) -> _| {
        pool(queries.clone(), keys.clone(), values.clone(), &Mask::Open)
    };
    let kinds = [
        ("average", ask(&average_pooling)),
        ("Gaussian kernel", ask(&gaussian_pooling)),
        (
            "learned width",
            ask(&|q, k, v, mask| kernel.forward(q, k, v, mask)),
        ),
    ];
    // ANCHOR_END: pool

    let points = |y: &[f32]| {
        asked
            .iter()
            .zip(y)
            .map(|(x, y)| (f64::from(*x), f64::from(*y)))
            .collect()
    };
    let real: Vec<f32> = asked.iter().map(|x| truth(*x)).collect();
    let mut lines = vec![("truth".to_owned(), points(&real))];
    let mut panels = Vec::new();
    for (name, pooled) in kinds {
        let found: Vec<f32> = pooled.values.into_data().iter::<f32>().collect();
        let squares: f32 = found.iter().zip(&real).map(|(a, b)| (a - b).powi(2)).sum();
        println!(
            "{name:>16}: mean squared error {:.3}",
            squares / SAMPLES as f32
        );
        lines.push((name.to_owned(), points(&found)));
        if name != "average" {
            let weights: Vec<f32> = pooled.weights.into_data().iter::<f32>().collect();
            let largest = weights.iter().copied().fold(0.0, f32::max);
            let shares = weights.iter().map(|weight| weight / largest).collect();
            let title = format!("Weights: {name} (1 is {largest:.2})");
            panels.push(picture::map(&title, ["sample", "query"], SAMPLES, shares));
        }
    }
    panels.insert(0, picture::curves("Predictions", ["x", "y"], lines));
    Ok(picture::show("Nadaraya-Watson kernel regression", panels)?)
}
