//! Multi-head, grouped-query and multi-query attention: the same layer with fewer heads for keys and values.
//!
//! While decoding, each token reads all keys and values of its past. With fewer key-value heads there is less to keep and
//! to read (Shazeer 2019, Ainslie et al. 2023). What it costs in quality, a small task shows at the end.
//!
//! Run with `cargo run --release --example 19_grouped_queries [PICTURE.svg]`. Next: `20_gpt`.

mod picture;
mod reversal;

use std::time::Instant;

use attentive_nn::attention::multi_head::{AttentionConfig, MultiHeadAttention};
use attentive_nn::init::Init;
use attentive_nn::mask::Mask;
use attentive_nn::ops::Precision;
use attentive_nn::parameters;
use attentive_nn::pass::Pass;
use burn::tensor::Device;

const D_MODEL: usize = 512;
const PAST: usize = 4096;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex();
    let mut times = Vec::new();
    println!("one layer, 8 query heads of 64, {PAST} positions in the cache");
    for kv_heads in [8, 4, 2, 1] {
        // ANCHOR: layer
        let config = AttentionConfig {
            d_model: D_MODEL,
            heads: 8,
            kv_heads,
            dropout: 0.0,
        };
        let init = &mut Init::xavier_uniform(1);
        let layer = MultiHeadAttention::new(&config, init, &device);
        let past = init.matrix(PAST, D_MODEL, &device).unsqueeze();
        let cache = layer.project(past, Precision::F32); // [1, PAST, kv_heads * 64] each
        // ANCHOR_END: layer
        let weights = parameters::export(&layer);
        let count: usize = weights.iter().map(|(_, _, values)| values.len()).sum();
        let bytes = 2 * cache.key.dims()[2] * size_of::<f32>();
        let new = init.matrix(1, D_MODEL, &device).unsqueeze::<3>();
        let mut fastest = f64::INFINITY;
        for _ in 0..30 {
            let began = Instant::now();
            // ANCHOR: step
            let pass = &mut Pass::evaluation();
            let out = layer.attend(new.clone(), cache.clone(), &Mask::Open, pass);
            // ANCHOR_END: step
            assert_eq!(out.hidden.dims(), [1, 1, D_MODEL]);
            fastest = fastest.min(began.elapsed().as_secs_f64() * 1000.0);
        }
        println!(
            "  {kv_heads} key-value heads: {count:>7} parameters, {bytes:>4} bytes of cache a token, {fastest:.2} ms a step"
        );
        times.push((kv_heads as f64, fastest));
    }

    println!("writing lines backwards, 300 steps each");
    for kv_heads in [4, 2, 1] {
        let folder = tempfile::tempdir()?;
        let heads = format!("model.kv_heads={kv_heads}");
        let loss = reversal::train(
            &folder.path().join("run"),
            &[&heads, "training.max_steps=300"],
        )?;
        println!("  4 query heads, {kv_heads} key-value heads: loss {loss:.4}");
    }
    let line = vec![("8 query heads".to_owned(), times)];
    let labels = ["key-value heads", "milliseconds"];
    let panel = picture::curves("A step behind 4,096 positions", labels, line);
    Ok(picture::show(
        "Fewer heads for keys and values",
        vec![panel],
    )?)
}
