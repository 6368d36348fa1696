//! Attention by hand: three words, two numbers each, every step printed (§3.2.1).
//!
//! `softmax(Q Kᵀ / sqrt(d_k)) V`: each word asks a question (its query), compares it with what every
//! word has to offer (their keys), and takes a mixture of what they say (their values). The library
//! does the same for many sentences and heads at once; the last lines show that it agrees.
//!
//! Run with `cargo run --example 01_attention_by_hand`. Next: `02_positions_and_masks`.

use attentive_nn::attention::dot_product::{Heads, scaled_dot_product};
use attentive_nn::device;
use attentive_nn::mask::Mask;
use attentive_nn::pass::Pass;
use burn::tensor::Tensor;

const WORDS: [&str; 3] = ["the", "dog", "barks"];

/// What each word looks for: `barks` wants to know who does it.
const QUERIES: [[f32; 2]; 3] = [[0.0, 2.0], [1.0, 1.0], [4.0, 0.0]];
/// What each word offers: `dog` is a thing that can do something.
const KEYS: [[f32; 2]; 3] = [[0.0, 1.0], [3.0, 0.0], [0.0, 2.0]];
/// What each word says when it is listened to.
const VALUES: [[f32; 2]; 3] = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // ANCHOR: scores
    let d_k = QUERIES[0].len() as f32;
    let scores = QUERIES.map(|query| KEYS.map(|key| dot(query, key) / d_k.sqrt()));
    // ANCHOR_END: scores
    table("scores = query · key / sqrt(2)", &scores);

    // ANCHOR: weights
    let weights = scores.map(softmax);
    // ANCHOR_END: weights
    table(
        "weights = softmax of each row: every row sums to 1",
        &weights,
    );

    // ANCHOR: outputs
    let outputs = weights.map(|row| mixture(row, VALUES));
    // ANCHOR_END: outputs
    println!("outputs = mixtures of the values");
    for (word, output) in WORDS.iter().zip(outputs) {
        println!("{word:>7}  {:6.3} {:6.3}", output[0], output[1]);
    }
    println!("`barks` looks at `dog`, so its output is nearly what `dog` says.\n");

    let device = device::parse("cpu")?;
    let tensor = |rows: [[f32; 2]; 3]| Tensor::<3>::from_data([rows], &device); // [batch, 3, 2]
    let (query, key, value) = (tensor(QUERIES), tensor(KEYS), tensor(VALUES));
    let heads = Heads {
        query: 1,
        key_value: 1,
    };
    // ANCHOR: library
    let pass = &mut Pass::inspection();
    let attended = scaled_dot_product(query, key, value, heads, &Mask::Open, 0.0, pass);
    // ANCHOR_END: library
    let library: Vec<f32> = attended.values.into_data().iter::<f32>().collect();
    let difference = library
        .iter()
        .zip(outputs.as_flattened())
        .map(|(a, b)| (a - b).abs());
    println!(
        "largest difference to the library: {:.1e}",
        difference.fold(0.0, f32::max)
    );
    Ok(())
}

fn dot(a: [f32; 2], b: [f32; 2]) -> f32 {
    a[0] * b[0] + a[1] * b[1]
}

fn softmax(row: [f32; 3]) -> [f32; 3] {
    let powers = row.map(f32::exp);
    let sum: f32 = powers.iter().sum();
    powers.map(|power| power / sum)
}

fn mixture(weights: [f32; 3], values: [[f32; 2]; 3]) -> [f32; 2] {
    let mut mixed = [0.0; 2];
    for (weight, value) in weights.iter().zip(values) {
        mixed[0] += weight * value[0];
        mixed[1] += weight * value[1];
    }
    mixed
}

fn table(title: &str, rows: &[[f32; 3]; 3]) {
    println!("{title}");
    println!("{:>7}  {:>6} {:>6} {:>6}", "", WORDS[0], WORDS[1], WORDS[2]);
    for (word, row) in WORDS.iter().zip(rows) {
        println!("{word:>7}  {:6.3} {:6.3} {:6.3}", row[0], row[1], row[2]);
    }
    println!();
}
