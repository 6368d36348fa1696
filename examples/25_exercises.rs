//! Questions that readers ask, answered by running something.
//!
//! Does the KV cache return K and V or only K? (`18_kv_cache` shows it.) What happens beyond the maximum length? What
//! differs between training and evaluation in a normalization? Is attention without positions blind to order? Does
//! dropout change what is learned or what is said?
//!
//! Run with `cargo run --release --example 25_exercises`.

use attentive_model::config::{GptConfig, ModelConfig, Preset, TransformerConfig};
use attentive_nn::attention::multi_head::{AttentionConfig, MultiHeadAttention};
use attentive_nn::init::Init;
use attentive_nn::layers::norm::{BatchNorm, LayerNorm, RunningMoments};
use attentive_nn::layers::positions::{LearnedPositions, sinusoids};
use attentive_nn::mask::Mask;
use attentive_nn::models::gpt::Gpt;
use attentive_nn::models::gpt::generation::{Generator, first_seen};
use attentive_nn::models::transformer::Transformer;
use attentive_nn::ops::Precision;
use attentive_nn::pass::Pass;
use burn::tensor::{Device, Int, Tensor};

fn distance<const D: usize>(a: Tensor<D>, b: Tensor<D>) -> f32 {
    (a - b).abs().max().into_scalar::<f32>()
}

fn main() {
    let device = Device::flex();
    let init = &mut Init::xavier_uniform(1);

    println!("What happens beyond the maximum length?");
    // ANCHOR: length
    let table = LearnedPositions::new(8, 16, init, &device); // rows for 8 positions
    let (last, beyond) = (table.forward(7, 1), table.forward(20, 1));
    println!(
        "  learned positions 7 and 20 of 8 differ by {}: the last row is repeated",
        distance(last, beyond)
    );
    let (last, beyond) = (sinusoids(7, 1, 16, &device), sinusoids(20, 1, 16, &device));
    println!(
        "  sinusoids 7 and 20 differ by {:.2}: a function has no end",
        distance(last, beyond)
    );
    let gpt = GptConfig {
        context: 6,
        layers: 1,
        ..GptConfig::from_preset(Preset::Tiny).with_vocabularies(0, 30)
    };
    let model = Gpt::new(&gpt, 1, &device);
    let written = Generator::new(&model, vec![5], 14, None, 0).count();
    let seen: Vec<usize> = (1..=written)
        .map(|len| len - first_seen(len, gpt.context))
        .collect();
    println!("  a GPT that sees 6 tokens goes on; of its text it sees {seen:?}");
    // ANCHOR_END: length

    println!("What differs between training and evaluation in a normalization?");
    // ANCHOR: norms
    let x = init.matrix(12, 4, &device).reshape([3, 4, 4]) * 5.0 + 2.0; // [batch, len, channels]
    let other = x.clone().narrow(0, 1, 2) * 9.0; // other sentences in the batch
    let batch = Tensor::cat(vec![x.clone().narrow(0, 0, 1), other], 0);
    let first = |y: Tensor<3>| y.narrow(0, 0, 1);
    let norm = BatchNorm::new(4, 1e-5, 0.1, &device);
    let mut running = RunningMoments::new(4, &device);
    for _ in 0..100 {
        norm.forward_training(x.clone(), &mut running);
    }
    let training = |x: &Tensor<3>| first(norm.forward_training(x.clone(), &mut running.clone()));
    let evaluation = |x: &Tensor<3>| first(norm.forward_evaluation(x.clone(), &running));
    println!(
        "  batch norm, training: a sentence changes by {:.2} with the others of its batch",
        distance(training(&x), training(&batch))
    );
    println!(
        "  batch norm, evaluation: by {}",
        distance(evaluation(&x), evaluation(&batch))
    );
    let norm = LayerNorm::new(4, 1e-5, &device);
    let layer = |x: &Tensor<3>| first(norm.forward(x.clone()));
    println!(
        "  layer norm, which has no modes: by {}",
        distance(layer(&x), layer(&batch))
    );
    // ANCHOR_END: norms

    println!("Is attention blind to order?");
    // ANCHOR: order
    let sizes = AttentionConfig {
        d_model: 16,
        heads: 2,
        kv_heads: 2,
        dropout: 0.0,
    };
    let attention = MultiHeadAttention::new(&sizes, init, &device);
    let words = init.matrix(5, 16, &device).unsqueeze::<3>(); // [1, 5 words, 16]
    let turned = |x: Tensor<3>| x.flip([1]);
    let attend = |x: Tensor<3>| {
        attention
            .forward(x, &Mask::Open, None, &mut Pass::evaluation())
            .hidden
    };
    let blind = distance(turned(attend(words.clone())), attend(turned(words.clone())));
    let places = sinusoids(0, 5, 16, &device).unsqueeze::<3>();
    let sees = distance(
        turned(attend(words.clone() + places.clone())),
        attend(turned(words) + places),
    );
    println!(
        "  words backwards give the outputs backwards: they differ by {blind:.1e}; with positions by {sees:.2}"
    );
    // ANCHOR_END: order

    println!("Does dropout change what a trained model says?");
    // ANCHOR: dropout
    let config = TransformerConfig::from_preset(Preset::Tiny).with_vocabularies(30, 30);
    let model = Transformer::new(&config, 1, &device);
    let src = Tensor::<2, Int>::from_data([[5, 6, 7, 1]], &device);
    let read = |mut pass: Pass| model.encode(src.clone(), &mut pass).hidden;
    let [one, two] = [1, 2].map(|batch| read(Pass::training(1, batch, Precision::F32)));
    println!(
        "  two passes of training (dropout {}) differ by {:.2}",
        config.dropout,
        distance(one, two)
    );
    println!(
        "  two passes of evaluation by {}",
        distance(read(Pass::evaluation()), read(Pass::evaluation()))
    );
    // ANCHOR_END: dropout
}
