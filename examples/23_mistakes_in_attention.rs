//! Mistakes that readers of the paper make in attention, each of them made here, and what it does.
//!
//! Each part does the right thing and the wrong thing and compares them; the program fails if a mistake goes unnoticed. Most
//! of them raise no error: shapes fit, the loss falls, and the model is worse than it could be.
//!
//! Run with `cargo run --release --example 23_mistakes_in_attention`. Next: `24_mistakes_in_training`.

use std::panic::catch_unwind;

use attentive_model::config::{ModelConfig, Preset, TransformerConfig};
use attentive_nn::attention::dot_product::{Heads, scaled_dot_product};
use attentive_nn::attention::masked_softmax::masked_softmax;
use attentive_nn::init::Init;
use attentive_nn::mask::Mask;
use attentive_nn::pass::Pass;
use burn::tensor::{Bool, Device, Tensor, activation::softmax};

/// What must hold for a mistake to be shown.
fn ensure(shown: bool) -> Result<(), String> {
    if shown {
        Ok(())
    } else {
        Err("the mistake did not show".to_owned())
    }
}

fn distance<const D: usize>(a: &Tensor<D>, b: &Tensor<D>) -> f32 {
    (a.clone() - b.clone()).abs().max().into_scalar::<f32>()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex();
    let init = &mut Init::xavier_uniform(1);
    let mut random = |rows, columns| init.matrix(rows, columns, &device);

    // ANCHOR: sizes
    let config = TransformerConfig {
        heads: 5,
        kv_heads: 5,
        ..TransformerConfig::from_preset(Preset::Base).with_vocabularies(100, 100)
    };
    let refused = config.check().err().unwrap_or_default();
    // ANCHOR_END: sizes
    println!("1. Sizes that do not fit: {}", refused.join(" "));
    std::panic::set_hook(Box::new(|_| ()));
    let (x, w) = (random(3, 8), random(6, 8));
    let product = catch_unwind(|| x.matmul(w));
    println!(
        "   a product of [3, 8] and [6, 8] {}",
        if product.is_err() {
            "panics"
        } else {
            "is computed"
        }
    );
    ensure(!refused.is_empty() && product.is_err())?;

    // ANCHOR: split
    let [query, key, value] = [(); 3].map(|()| random(4, 8).unsqueeze::<3>() * 3.0);
    let attend = |heads: usize| {
        let heads = Heads {
            query: heads,
            key_value: heads,
        };
        let (q, k, v) = (query.clone(), key.clone(), value.clone());
        scaled_dot_product(q, k, v, heads, &Mask::Open, 0.0, &mut Pass::inspection())
    };
    let (one, two) = (attend(1), attend(2));
    // ANCHOR_END: split
    let maps = [&one, &two].map(|out| out.weights.as_ref().map_or(0, |weights| weights.dims()[1]));
    println!(
        "2. Heads that are not split: the shape {:?} is the same,\n   but there is {} map instead of {}; outputs differ by {:.2}",
        one.values.dims(),
        maps[0],
        maps[1],
        distance(&one.values, &two.values)
    );
    ensure(distance(&one.values, &two.values) > 0.05)?;

    // ANCHOR: broadcast
    // The second sentence ends with padding: [batch 2, keys 2].
    let padded = Tensor::<2, Bool>::from_data([[false, false], [false, true]], &device);
    let scores = Tensor::<4>::zeros([2, 1, 2, 2], &device); // [batch, heads, queries, keys]
    let right = masked_softmax(scores.clone(), &Mask::Padding(padded.clone()));
    // Read as [queries, keys].
    let aligned_right = padded.reshape([1, 1, 2, 2]).expand([2, 1, 2, 2]);
    let wrong = softmax(scores.mask_fill(aligned_right, f32::MIN), 3);
    // ANCHOR_END: broadcast
    let rows = |weights: Tensor<4>| weights.into_data().iter::<f32>().collect::<Vec<_>>();
    println!(
        "3. A mask [batch, keys] that is broadcast as [queries, keys],\n   with as many sentences as queries:"
    );
    println!(
        "   right {:?}\n   wrong {:?}\n   the first sentence loses a word, the second one sees its padding",
        rows(right.clone()),
        rows(wrong.clone())
    );
    ensure(distance(&right, &wrong) > 0.4)?;

    // ANCHOR: shared
    let x = random(5, 16) * 3.0;
    let scores = |query: Tensor<2>, key: Tensor<2>| {
        x.clone()
            .matmul(query)
            .matmul(x.clone().matmul(key).transpose())
    };
    let (a, b) = (random(16, 16), random(16, 16));
    let separate = scores(a.clone(), b);
    let shared = scores(a.clone(), a);
    // ANCHOR_END: shared
    let asymmetry = |scores: &Tensor<2>| distance(scores, &scores.clone().transpose());
    println!(
        "4. One matrix for queries and keys: scores differ from their transpose by {:.1e}\n   (two matrices: {:.2}), so who looks at whom is mutual",
        asymmetry(&shared),
        asymmetry(&separate)
    );
    ensure(asymmetry(&shared) < 1e-5 && asymmetry(&separate) > 0.1)?;

    // ANCHOR: scale
    let d_k = 512;
    // Products of numbers of variance 1.
    let dots = random(64, d_k).matmul(random(64, d_k).transpose()) * 288.0;
    let largest = |scores: Tensor<2>| softmax(scores, 1).max_dim(1).mean().into_scalar::<f32>();
    let (plain, scaled) = (largest(dots.clone()), largest(dots / (d_k as f32).sqrt()));
    // ANCHOR_END: scale
    println!(
        "5. No 1 / sqrt(d_k): the largest of 64 weights is {plain:.2} on average (scaled: {scaled:.2}),\n   and nothing flows back through the others"
    );
    ensure(plain > 0.8 && scaled < 0.3)?;

    // ANCHOR: merge
    let words = Tensor::<1>::from_floats([1.0, 2.0, 3.0, 4.0], &device);
    // [batch, heads, len, head_dim]
    let numbers = words.reshape([1, 1, 4, 1]).expand([1, 2, 4, 2]);
    let right = numbers.clone().swap_dims(1, 2).reshape([1, 4, 4]); // heads of a word side by side
    let wrong = numbers.reshape([1, 4, 4]);
    // ANCHOR_END: merge
    println!(
        "6. Heads merged without swapping the axes back; each number is the word that it came from:"
    );
    let values = |x: Tensor<3>| {
        x.into_data()
            .iter::<f32>()
            .map(|x| x.to_string())
            .collect::<Vec<_>>()
    };
    let shown = |x: Tensor<3>| {
        values(x)
            .chunks(4)
            .map(|row| row.join(" "))
            .collect::<Vec<_>>()
            .join(" | ")
    };
    println!(
        "   right {}\n   wrong {}",
        shown(right.clone()),
        shown(wrong.clone())
    );
    ensure(distance(&right, &wrong) > 0.0)?;
    Ok(())
}
