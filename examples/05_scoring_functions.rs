//! Two ways to compare a query with a key: additive attention and scaled dot products.
//!
//! Additive attention (Bahdanau et al. 2015) compares things of different size with a small network; the scaled dot
//! product (§3.2.1) needs one size and is a single matrix product. Keys that are all alike get the same weight, so the
//! output is the mean of the valid values, whatever the weights of the layer are: the check of every implementation.
//!
//! Run with `cargo run --release --example 05_scoring_functions [PICTURE.svg]`. Next: `06_bahdanau`.

mod picture;

use attentive_nn::attention::additive::{AdditiveAttention, AdditiveConfig};
use attentive_nn::attention::dot_product::{Heads, scaled_dot_product};
use attentive_nn::init::Init;
use attentive_nn::mask::Mask;
use attentive_nn::pass::Pass;
use burn::tensor::{Device, Tensor};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex();
    let init = &mut Init::xavier_uniform(1);
    // ANCHOR: additive
    let config = AdditiveConfig {
        d_query: 20,
        d_key: 2,
        d_hidden: 8,
        dropout: 0.1,
    };
    let layer = AdditiveAttention::new(&config, init, &device);
    let queries = init.matrix(2, 20, &device).unsqueeze_dim::<3>(1); // [batch 2, 1 query, 20]
    let keys = Tensor::ones([2, 10, 2], &device); // [batch 2, 10 keys, 2]
    let numbers = Tensor::arange(0..40, &device).float();
    let values = numbers.reshape([1, 10, 4]).expand([2, 10, 4]);
    let mask = Mask::valid_lengths(&[2, 6], 10, &device);
    let out = layer.forward(
        queries,
        keys,
        values.clone(),
        &mask,
        &mut Pass::evaluation(),
    );
    // ANCHOR_END: additive
    let printed = |values: Tensor<3>| {
        let values: Vec<f32> = values.into_data().iter::<f32>().collect();
        let rows: Vec<String> = values.chunks(4).map(|row| format!("{row:.3?}")).collect();
        rows.join(" and ")
    };
    println!("additive attention   {}", printed(out.values));

    // ANCHOR: dot_product
    let heads = Heads {
        query: 1,
        key_value: 1,
    };
    let queries = init.matrix(2, 4, &device).unsqueeze_dim::<3>(1);
    let keys = Tensor::ones([2, 10, 4], &device);
    let pass = &mut Pass::inspection();
    let out = scaled_dot_product(queries, keys, values, heads, &mask, 0.0, pass);
    // ANCHOR_END: dot_product
    println!("scaled dot products  {}", printed(out.values));
    println!(
        "means of the first 2 and of the first 6 values: nothing behind a valid length is seen"
    );

    let weights = out.weights.ok_or("asked for")?;
    let weights: Vec<f32> = weights.into_data().iter::<f32>().collect();
    let panel = picture::map(
        "Weights, valid lengths 2 and 6",
        ["key", "row"],
        10,
        weights,
    );
    Ok(picture::show("Equal keys, masked softmax", vec![panel])?)
}
