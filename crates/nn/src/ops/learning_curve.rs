//! Test: a whole model learns the same through fused operations as through composed ones, and the same
//! bit by bit whenever it runs.

use attentive_model::config::{Preset, TransformerConfig};
use attentive_text::special::{BOS, EOS, PAD};
use burn::tensor::{Device, Tensor};

use super::{
    AdamStep, Precision, adam_update,
    check::{floats, with_composed_forms},
    smoothed_loss,
};
use crate::{
    models::transformer::{Transformer, search::pad_rows},
    parameters,
    pass::Pass,
    random::mix,
};

/// Number sequences and their reversal, of several lengths, so that there is padding.
fn sentences(step: u64, rows: u64) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
    (0..rows)
        .map(|row| {
            let draw = |i: u64| mix(step << 20 | row << 10 | i);
            let words: Vec<u32> = (0..2 + draw(0) % 6)
                .map(|i| 4 + (draw(i + 1) % 12) as u32)
                .collect();
            let target = [BOS]
                .into_iter()
                .chain(words.iter().rev().copied())
                .collect();
            ([words, vec![EOS]].concat(), target)
        })
        .unzip()
}

/// Trains and returns the loss per token of each step, and the parameters at the end.
fn learn(
    config: &TransformerConfig,
    precision: Precision,
    steps: u64,
    rows: u64,
) -> (Vec<f64>, Vec<Vec<f32>>) {
    let device = Device::flex().autodiff();
    let mut model = Transformer::new(config, 5, &device);
    let mut moments: std::collections::BTreeMap<String, (Tensor<1>, Tensor<1>)> =
        Default::default();
    let mut losses = Vec::new();
    for step in 1..=steps {
        let (src, fed) = sentences(step, rows);
        let len = fed.iter().map(Vec::len).max().unwrap();
        let predicted: Vec<u32> = fed
            .iter()
            .flat_map(|row| {
                let mut row = [&row[1..], &[EOS]].concat();
                row.resize(len, PAD);
                row
            })
            .collect();
        let pass = &mut Pass::training(1, step, precision);
        let memory = model.encode(pad_rows(&src, &device), pass);
        let hidden = model.decode(pad_rows(&fed, &device), &memory, pass).hidden;
        let logits = model
            .logits(hidden, pass)
            .reshape([predicted.len(), config.tgt_vocab]);
        let loss = smoothed_loss(logits, &predicted, 0.1).objective;
        let tokens = predicted.iter().filter(|token| **token != PAD).count() as f64;
        losses.push(f64::from(loss.clone().into_scalar::<f32>()) / tokens);
        let mut gradients = parameters::gradients(&model, loss.backward());
        let rule = AdamStep {
            learning_rate: 1e-3,
            beta1: 0.9,
            beta2: 0.98,
            epsilon: 1e-9,
            weight_decay: 0.0,
            step,
            gradient_scale: 1.0 / tokens,
        };
        model = parameters::replace(model, |name, values| {
            let gradient = gradients.remove(name).unwrap();
            let start = || (values.zeros_like(), values.zeros_like());
            let (first, second) = moments.remove(name).unwrap_or_else(start);
            let [values, first, second] = adam_update(values, gradient, first, second, &rule);
            moments.insert(name.to_string(), (first, second));
            values
        });
    }
    let parameters = parameters::named(&model);
    (
        losses,
        parameters.into_iter().map(|p| floats(p.values)).collect(),
    )
}

fn small_model() -> TransformerConfig {
    TransformerConfig {
        d_model: 32,
        d_ff: 64,
        encoder_layers: 2,
        decoder_layers: 2,
        ..Preset::Tiny.config(16, 16)
    }
}

fn assert_same_curve(left: &[f64], right: &[f64], tolerance: f64) {
    for (step, (l, r)) in left.iter().zip(right).enumerate() {
        let step = step + 1;
        assert!((l - r).abs() <= tolerance * r, "step {step}: {l} and {r}");
    }
}

#[test]
fn fused_and_composed_models_have_one_learning_curve() {
    let (fused, _) = learn(&small_model(), Precision::F32, 200, 24);
    let (composed, _) = with_composed_forms(|| learn(&small_model(), Precision::F32, 200, 24));
    assert_same_curve(&fused, &composed, 5e-3);
    let (first, last) = (fused[0], fused[199]);
    assert!(last < 0.7 * first, "it learns: {first} to {last}");
}

#[test]
fn in_bf16_the_model_learns_as_in_f32() {
    if !Precision::Bf16.available() {
        eprintln!("SKIPPED: this processor has no bf16 product");
        return;
    }
    let (full, _) = learn(&small_model(), Precision::F32, 200, 24);
    let (half, _) = learn(&small_model(), Precision::Bf16, 200, 24);
    assert_same_curve(&half, &full, 0.02);
    assert_ne!(half, full);
}

#[test]
fn training_gives_the_same_bits_every_time_at_a_given_number_of_threads() {
    let config = Preset::Tiny.config(200, 200);
    for threads in [1, 2, 3] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let run = || pool.install(|| learn(&config, Precision::F32, 3, 96));
        let ((losses, parameters), (again_losses, again_parameters)) = (run(), run());
        assert_eq!(losses, again_losses, "{threads} threads");
        assert!(parameters == again_parameters, "{threads} threads");
    }
}
