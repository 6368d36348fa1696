//! Why several heads: take them away one by one, and see which were needed.
//!
//! A small Transformer learns to write lines backwards. Then each head of its attention is switched off alone (its rows
//! of the output projection become zero), and at last all of them, always the one that is missed least. "Are Sixteen
//! Heads Really Better than One?" (Michel et al. 2019).
//!
//! Run with `cargo run --release --example 12_removing_heads [PICTURE.svg]`.

mod picture;
mod reversal;

use attentive_model::directory::ModelDir;
use attentive_nn::device;
use attentive_nn::models::transformer::Transformer;
use attentive_nn::parameters;
use attentive_text::special::{source_ids, target_ids};
use attentive_train::data::corpus::Pair;
use attentive_train::distributed::SingleProcess;
use attentive_train::evaluation::sums;
use burn::tensor::{Tensor, TensorData};

const HEADS: usize = 4;
const ATTENTIONS: [&str; 3] = [
    "encoder.layers.0.self_attention",
    "decoder.layers.0.self_attention",
    "decoder.layers.0.cross_attention",
];

// ANCHOR: without
/// The model without some heads, each the number of its attention and its own.
fn without(model: &Transformer, removed: &[(usize, usize)]) -> Transformer {
    parameters::replace(model.clone(), |name, values| {
        let count = values.dims()[0];
        let mut kept = vec![1.0f32; count];
        for (attention, head) in removed {
            // Rows of `[heads * head_dim, d_model]` that belong to the head.
            if name == format!("{}.output.weight", ATTENTIONS[*attention]) {
                kept[head * count / HEADS..][..count / HEADS].fill(0.0);
            }
        }
        values.clone() * Tensor::from_data(TensorData::new(kept, [count]), &values.device())
    })
}
// ANCHOR_END: without

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let run = folder.path().join("run");
    reversal::train(&run, &[])?;
    let dir = ModelDir::open(&run)?;
    let model = Transformer::load(
        &dir.config,
        &ModelDir::weights_path(&dir.path),
        &device::parse("cpu")?,
    )?;
    let pairs: Vec<Pair> = [
        "a b c d e",
        "j i h g f e d",
        "c a f e",
        "b e d",
        "g a f f e a b",
    ]
    .map(|line| {
        let backwards: Vec<&str> = line.split(' ').rev().collect();
        Pair {
            src: source_ids(&dir.tokenizers.src.encode(line)[..]),
            tgt: target_ids(&dir.tokenizers.tgt.encode(&backwards.join(" "))[..]),
        }
    })
    .into();
    let perplexity = |removed: &[(usize, usize)]| {
        let (_, entropy, tokens) = sums(&without(&model, removed), &pairs, 0.0, &SingleProcess);
        (entropy / tokens as f64).exp()
    };

    println!(
        "perplexity {:.3} with all heads; without one head:",
        perplexity(&[])
    );
    for (attention, name) in ATTENTIONS.iter().enumerate() {
        let alone = [0, 1, 2, 3].map(|head| format!("{:>8.3}", perplexity(&[(attention, head)])));
        println!("{name:>34} {}", alone.join(" "));
    }
    // ANCHOR: one_by_one
    let mut left: Vec<(usize, usize)> = (0..3)
        .flat_map(|a| (0..HEADS).map(move |h| (a, h)))
        .collect();
    let (mut removed, mut points) = (Vec::new(), vec![(0.0, perplexity(&[]).log10())]);
    while !left.is_empty() {
        let with = |head: &(usize, usize)| perplexity(&[&removed[..], &[*head]].concat());
        let costs: Vec<f64> = left.iter().map(with).collect();
        let least = (0..left.len())
            .min_by(|a, b| costs[*a].total_cmp(&costs[*b]))
            .unwrap_or(0);
        points.push((removed.len() as f64 + 1.0, costs[least].log10()));
        removed.push(left.remove(least));
    }
    // ANCHOR_END: one_by_one
    for (count, (attention, head)) in removed.iter().enumerate() {
        let now = 10f64.powf(points[count + 1].1);
        println!(
            "{:>2} removed, last {} head {}: perplexity {now:.3}",
            count + 1,
            ATTENTIONS[*attention],
            head + 1
        );
    }
    let labels = [
        "heads removed, the least missed first",
        "log10 of the perplexity",
    ];
    let panel = picture::curves(
        "12 heads of a model that reverses lines",
        labels,
        vec![("perplexity".to_owned(), points)],
    );
    Ok(picture::show("Heads removed one by one", vec![panel])?)
}
