//! Why the scores are divided by `sqrt(d_k)` (§3.2.1): without it, softmax saturates and its gradient vanishes.
//!
//! Queries and keys are random numbers of variance 1, so a dot product of `d_k` of them has variance `d_k`. For each
//! `d_k`: how large the largest of 64 attention weights is, and how much gradient comes back through the softmax.
//!
//! Run with `cargo run --release --example 10_why_scale [PICTURE.svg]`. Next: `11_rank_collapse`.

mod picture;

use attentive_nn::random::mix;
use burn::tensor::{Device, Tensor, TensorData, activation::softmax};

const KEYS: usize = 64;
const QUERIES: usize = 256;

/// Random numbers of mean 0 and variance 1 (sums of twelve uniform ones).
fn normal(rows: usize, columns: usize, seed: u64) -> Tensor<2> {
    let uniform = |i: u64| (mix(seed << 32 | i) >> 40) as f32 / 16_777_216.0;
    let number = |i: u64| (0..12).map(|j| uniform(12 * i + j)).sum::<f32>() - 6.0;
    let values: Vec<f32> = (0..(rows * columns) as u64).map(number).collect();
    let data = TensorData::new(values, [rows, columns]);
    Tensor::from_data(data, &Device::flex().autodiff())
}

/// The mean of the largest weights, and the mean length of the gradient of a random loss.
fn measure(d_k: usize, scale: f32) -> Result<(f64, f64), &'static str> {
    // ANCHOR: measure
    let (query, key) = (normal(QUERIES, d_k, 1), normal(KEYS, d_k, 2));
    let scores = (query.matmul(key.transpose()) * scale)
        .detach()
        .require_grad();
    let weights = softmax(scores.clone(), 1); // [queries, keys]
    let loss = (weights.clone() * normal(QUERIES, KEYS, 3)).sum();
    let gradient = scores.grad(&loss.backward()).ok_or("a gradient")?;
    let length = gradient.square().sum_dim(1).sqrt().mean();
    // ANCHOR_END: measure
    let largest = weights.max_dim(1).mean();
    Ok((
        largest.into_scalar::<f32>().into(),
        length.into_scalar::<f32>().into(),
    ))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names = ["q k", "q k / sqrt(d_k)"];
    let mut largest = names.map(|name| (name.to_owned(), Vec::new()));
    let mut gradients = largest.clone();
    println!("         largest weight      gradient");
    println!("  d_k    plain   scaled      plain    scaled");
    for power in 0..=10 {
        let d_k = 1usize << power;
        let x = f64::from(power);
        let found = [measure(d_k, 1.0)?, measure(d_k, (d_k as f32).powf(-0.5))?];
        for (i, (weight, gradient)) in found.into_iter().enumerate() {
            largest[i].1.push((x, weight));
            gradients[i].1.push((x, gradient));
        }
        let [(a, c), (b, d)] = found;
        println!("{d_k:>5}   {a:>6.3}   {b:>6.3}   {c:>8.5}  {d:>8.5}");
    }
    let panels = vec![
        picture::curves(
            "The largest of 64 weights",
            ["log2 of d_k", "weight"],
            largest.into(),
        ),
        picture::curves(
            "The gradient of the scores",
            ["log2 of d_k", "length"],
            gradients.into(),
        ),
    ];
    Ok(picture::show(
        "Softmax with and without 1 / sqrt(d_k)",
        panels,
    )?)
}
