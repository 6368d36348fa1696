//! Why residual connections: attention alone makes all tokens alike, twice as fast with every layer.
//!
//! "Attention is not all you need" (Dong et al. 2021): a stack of self-attention without skip connections and
//! feed-forward networks converges to a matrix of rank 1, whose rows are all the same. Here: how far the tokens are from
//! their mean, behind each of twelve random layers, with and without either.
//!
//! Run with `cargo run --release --example 11_rank_collapse [PICTURE.svg]`. Next: `12_removing_heads`.

mod picture;

use attentive_model::config::Activation;
use attentive_nn::attention::multi_head::{AttentionConfig, MultiHeadAttention};
use attentive_nn::init::Init;
use attentive_nn::layers::feed_forward::{FeedForward, FeedForwardConfig};
use attentive_nn::mask::Mask;
use attentive_nn::pass::Pass;
use burn::tensor::{Device, Tensor};

const LAYERS: usize = 12;
const TOKENS: usize = 32;
const D_MODEL: usize = 64;

// ANCHOR: residual
/// How much of the tokens is not their mean: 0 if all are the same.
fn residual(x: &Tensor<3>) -> f64 {
    let apart = (x.clone() - x.clone().mean_dim(1)).square().sum();
    f64::from(
        (apart / x.clone().square().sum())
            .sqrt()
            .into_scalar::<f32>(),
    )
}
// ANCHOR_END: residual

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex();
    let attention = AttentionConfig {
        d_model: D_MODEL,
        heads: 4,
        kv_heads: 4,
        dropout: 0.0,
    };
    let feed_forward = FeedForwardConfig {
        d_model: D_MODEL,
        d_ff: 4 * D_MODEL,
        activation: Activation::Relu,
        dropout: 0.0,
    };
    let kinds = [
        ("attention alone", false, false),
        ("with a feed-forward network", false, true),
        ("with skip connections", true, false),
        ("with both", true, true),
    ];
    let mut lines = Vec::new();
    for (name, skips, networks) in kinds {
        let init = &mut Init::xavier_uniform(5);
        let pass = &mut Pass::evaluation();
        let mut x = init.matrix(TOKENS, D_MODEL, &device).unsqueeze::<3>() * 4.0;
        let mut points = vec![(0.0, residual(&x).log10())];
        for depth in 1..=LAYERS {
            let attend = MultiHeadAttention::new(&attention, init, &device);
            let network = FeedForward::new(&feed_forward, init, &device);
            // ANCHOR: layer
            let attended = attend.forward(x.clone(), &Mask::Open, None, pass).hidden;
            x = if skips { x + attended } else { attended };
            if networks {
                let y = network.forward(x.clone(), pass);
                x = if skips { x + y } else { y };
            }
            // ANCHOR_END: layer
            points.push((depth as f64, residual(&x).log10()));
        }
        let shown: Vec<String> = points
            .iter()
            .step_by(3)
            .map(|(_, y)| format!("{:.1e}", 10f64.powf(*y)))
            .collect();
        println!("{name:>28}: {}", shown.join("  "));
        lines.push((name.to_owned(), points));
    }
    println!("distance from the mean, as a share, behind 0, 3, 6, 9 and 12 layers");
    let labels = ["layer", "log10 of the distance from the mean"];
    let panel = picture::curves("How different the tokens are", labels, lines);
    Ok(picture::show("Rank collapse", vec![panel])?)
}
