//! The whole encoder-decoder (§3.1, figure 1): shapes on the way, where the parameters are, and what depends on what.
//!
//! The base model of the paper with a vocabulary of 37,000 reads a source and a target. Then one token is changed, of
//! the source or of the target, and the positions of the output that notice are marked.
//!
//! Run with `cargo run --release --example 14_encoder_decoder [PICTURE.svg]`. Next: `15_batches`.

mod picture;

use attentive_model::config::{ModelConfig, Preset, TransformerConfig, Tying};
use attentive_nn::models::transformer::Transformer;
use attentive_nn::pass::Pass;
use burn::tensor::{Device, Int, Tensor};

const SRC: [i32; 6] = [11, 12, 13, 14, 15, 1];
const TGT: [i32; 5] = [0, 21, 22, 23, 24];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex();
    let base = TransformerConfig {
        tying: Tying::All,
        ..TransformerConfig::from_preset(Preset::Base).with_vocabularies(37_000, 37_000)
    };
    let mut groups = std::collections::BTreeMap::<&str, usize>::new();
    let specs = base.tensors();
    for tensor in &specs {
        let count: usize = tensor.shape.iter().product();
        *groups.entry(part(&tensor.name)).or_default() += count;
    }
    let all: usize = groups.values().sum();
    println!("the base model, one matrix for both embeddings and the output:");
    for (group, count) in &groups {
        println!(
            "  {group:<26} {count:>11}  {:>4.1}%",
            *count as f64 * 100.0 / all as f64
        );
    }
    println!("  {:<26} {all:>11}\n", "all");

    let tiny = TransformerConfig::from_preset(Preset::Tiny).with_vocabularies(40, 40);
    let model = Transformer::new(&tiny, 1, &device);
    // ANCHOR: forward
    let run = |src: [i32; 6], tgt: [i32; 5]| {
        let pass = &mut Pass::evaluation();
        let src = Tensor::<2, Int>::from_data([src], &device); // [batch, src_len]
        let tgt = Tensor::<2, Int>::from_data([tgt], &device); // [batch, tgt_len]
        let memory = model.encode(src, pass);
        let decoded = model.decode(tgt, &memory, pass);
        let log_probs = model.log_probs(decoded.hidden, pass); // [batch, tgt_len, vocab]
        (memory.hidden, log_probs)
    };
    // ANCHOR_END: forward
    let (memory, before) = run(SRC, TGT);
    println!("memory {:?}, output {:?}", memory.dims(), before.dims());

    let vocab = before.dims()[2];
    let notices = |after: Tensor<3>| -> Vec<f32> {
        let change = (after - before.clone())
            .abs()
            .max_dim(2)
            .reshape([TGT.len()]);
        let change: Vec<f32> = change.into_data().iter::<f32>().collect();
        let mark = |change: &f32| if *change > 1e-6 { 1.0 } else { 0.0 };
        change.iter().map(mark).collect()
    };
    // ANCHOR: change
    let mut by_source = Vec::new();
    for place in 0..SRC.len() {
        let mut src = SRC;
        src[place] += 10;
        by_source.extend(notices(run(src, TGT).1));
    }
    let mut by_target = Vec::new();
    for place in 0..TGT.len() {
        let mut tgt = TGT;
        tgt[place] += 10;
        by_target.extend(notices(run(SRC, tgt).1));
    }
    // ANCHOR_END: change
    let count = |marks: &[f32]| marks.iter().filter(|mark| **mark > 0.0).count();
    println!(
        "a changed source token is noticed at {} of 30 places",
        count(&by_source)
    );
    println!(
        "a changed target token is noticed at {} of 25 places: its own and those behind it",
        count(&by_target)
    );
    println!("({vocab} log-probabilities at each place)");
    let panels = vec![
        picture::map(
            "A source token is changed",
            ["output position", "changed token"],
            TGT.len(),
            by_source,
        ),
        picture::map(
            "A target token is changed",
            ["output position", "changed token"],
            TGT.len(),
            by_target,
        ),
    ];
    Ok(picture::show("What the outputs depend on", panels)?)
}

/// Which part of the model a parameter belongs to, by its name.
fn part(name: &str) -> &'static str {
    let layer = [
        ("self_attention.", "self-attention"),
        ("cross_attention.", "cross-attention"),
        ("feed_forward.", "feed-forward"),
    ];
    let found = layer.iter().find(|(part, _)| name.contains(part));
    match found {
        Some((_, group)) => group,
        None if name.starts_with("embeddings.") => "embeddings and output",
        None => "layer norms",
    }
}
