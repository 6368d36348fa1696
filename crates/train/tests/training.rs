//! The arithmetic of a step: accumulation, Adam, clipping.

use attentive_model::config::{Preset, TransformerConfig};
use attentive_nn::{
    layers::norm::RmsNorm,
    models::transformer::Transformer,
    ops::{AdamStep, Precision, SmoothedLoss, adam_update},
    parameters,
    pass::Pass,
};
use attentive_train::{
    data::batches::Batch,
    data::corpus::Pair,
    optim::optimizer::{
        Gradients, Optimizer, Step, accumulate, clip_scale, global_norm, muon_update,
    },
    recipe::{Optimizer as Settings, OptimizerKind, Training},
    task::translation::{batch_loss, r_drop, r_drop_loss},
};
use burn::{
    module::Param,
    tensor::{Device, Tensor, TensorData},
};
use serde_json::Value;

fn pairs() -> Vec<Pair> {
    (0..12u32)
        .map(|i| {
            let words: Vec<u32> = (0..2 + i % 5).map(|j| 4 + (i * 3 + j) % 9).collect();
            Pair {
                src: words.iter().copied().chain([1]).collect(),
                tgt: [0]
                    .into_iter()
                    .chain(words.iter().rev().copied())
                    .chain([1])
                    .collect(),
            }
        })
        .collect()
}

fn model() -> Transformer {
    model_with_dropout(0.0)
}

fn model_with_dropout(dropout: f64) -> Transformer {
    let config = TransformerConfig {
        d_model: 16,
        d_ff: 32,
        heads: 2,
        kv_heads: 2,
        encoder_layers: 1,
        decoder_layers: 1,
        dropout,
        ..Preset::Tiny.config(13, 13)
    };
    Transformer::new(&config, 1, &Device::flex().autodiff())
}

fn gradients(model: &Transformer, indices: &[usize]) -> (Gradients, usize) {
    let batch = Batch::collect(&pairs(), indices);
    let loss = batch_loss(model, &batch, 0.1, &mut Pass::evaluation());
    (
        parameters::gradients(model, loss.objective.backward()),
        batch.tgt_tokens(),
    )
}

#[test]
fn r_drop_without_dropout_is_the_plain_loss_and_with_dropout_it_is_more() {
    let model = model_with_dropout(0.3);
    let batch = Batch::collect(&pairs(), &[0, 3, 5]);
    let value = |loss: SmoothedLoss| loss.objective.into_scalar::<f32>();
    let twice = |weight, pass: &mut Pass| value(r_drop_loss(&model, &batch, 0.1, weight, pass));
    let once = value(batch_loss(&model, &batch, 0.1, &mut Pass::evaluation()));
    let calm = twice(5.0, &mut Pass::evaluation());
    assert!((once - calm).abs() < 1e-4 * once, "{once} and {calm}");
    let noisy = |weight| twice(weight, &mut Pass::training(1, 1, Precision::F32));
    assert!(
        noisy(5.0) > noisy(0.0) + 0.01,
        "{} {}",
        noisy(5.0),
        noisy(0.0)
    );
}

#[test]
fn r_drop_may_begin_after_some_epochs() {
    let training = Training {
        r_drop: 5.0,
        r_drop_after: 2,
        ..Training::default()
    };
    let weights = [0, 1, 2, 3].map(|epoch| r_drop(&training, epoch));
    assert_eq!(weights, [0.0, 0.0, 5.0, 5.0]);
}

#[test]
fn accumulated_gradients_match_one_large_batch() {
    let model = model();
    let (whole, tokens) = gradients(&model, &(0..12).collect::<Vec<_>>());
    let mut sum = Gradients::new();
    let mut total = 0;
    // Batches of different size and padding: the sum is weighted by tokens, not by batches.
    for indices in [&[0, 7, 3][..], &[1], &[2, 4, 5, 6, 8], &[9, 10, 11]] {
        let (part, tokens) = gradients(&model, indices);
        accumulate(&mut sum, part);
        total += tokens;
    }
    assert_eq!(total, tokens);
    assert_eq!(whole.len(), sum.len());
    for (name, expected) in &whole {
        let (expected, got) = (parameters::to_vec(expected), parameters::to_vec(&sum[name]));
        let largest = expected.iter().fold(1e-3f32, |max, v| max.max(v.abs()));
        for (e, g) in expected.iter().zip(&got) {
            assert!((e - g).abs() < 1e-4 * largest, "{name}: {e} and {g}");
        }
    }
}

fn fixture(name: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../nn/tests/fixtures");
    let text = std::fs::read_to_string(format!("{folder}/{name}.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn floats(value: &Value) -> Vec<f32> {
    let numbers = value.as_array().unwrap().iter();
    numbers.map(|v| v.as_f64().unwrap() as f32).collect()
}

fn tensor(values: Vec<f32>) -> Tensor<1> {
    let count = values.len();
    Tensor::from_data(TensorData::new(values, [count]), &Device::flex())
}

/// The step of a fixture after `taken` others.
fn rule(fixture: &Value, taken: usize, weight_decay: f64) -> AdamStep {
    AdamStep {
        learning_rate: fixture["learning_rates"][taken].as_f64().unwrap(),
        beta1: 0.9,
        beta2: 0.98,
        epsilon: 1e-9,
        weight_decay,
        step: taken as u64 + 1,
        gradient_scale: 1.0,
    }
}

#[test]
fn adam_and_clipping_match_pytorch() {
    let fixture = fixture("adam");
    for kind in ["adam", "adamw"] {
        let case = &fixture[kind];
        let mut values = tensor(floats(&fixture["start"]));
        let mut first = values.zeros_like();
        let mut second = values.zeros_like();
        for (i, gradient) in fixture["gradients"].as_array().unwrap().iter().enumerate() {
            let rule = rule(&fixture, i, case["weight_decay"].as_f64().unwrap_or(0.0));
            [values, first, second] =
                adam_update(values, tensor(floats(gradient)), first, second, &rule);
            let got = parameters::to_vec(&values);
            for (g, e) in got.iter().zip(floats(&case["parameters_after_step"][i])) {
                assert!(
                    (g - e).abs() <= 2e-6 * e.abs().max(1.0),
                    "{kind} step {}: {g} and {e}",
                    i + 1
                );
            }
        }
    }
}

#[test]
fn sgd_rmsprop_and_adagrad_match_pytorch() {
    let fixture = fixture("optimizers");
    for (name, case) in fixture["optimizers"].as_object().unwrap() {
        let kind = match name.split('_').next() {
            Some("sgd") => OptimizerKind::Sgd,
            Some("rmsprop") => OptimizerKind::Rmsprop,
            _ => OptimizerKind::Adagrad,
        };
        let settings = Settings {
            kind,
            momentum: case["settings"]["momentum"].as_f64().unwrap(),
            weight_decay: case["settings"]["weight_decay"].as_f64().unwrap_or(0.0),
            ..Settings::default()
        };
        let mut optimizer = Optimizer::new(&settings, &[]);
        // Any module with one parameter of six numbers.
        let mut model = RmsNorm::new(6, 1e-5, &Device::flex());
        model.weight = Param::from_tensor(tensor(floats(&fixture["start"])));
        for (i, gradient) in fixture["gradients"].as_array().unwrap().iter().enumerate() {
            let step = Step {
                number: i as u64 + 1,
                learning_rate: fixture["learning_rates"][i].as_f64().unwrap(),
                gradient_scale: 0.5,
                precision: Precision::F32,
            };
            let doubled = tensor(floats(gradient)) * 2.0;
            let gradients = Gradients::from([("weight".into(), doubled)]);
            model = optimizer.step(model, gradients, &step);
            let got = parameters::to_vec(&model.weight.val());
            for (g, e) in got.iter().zip(floats(&case["parameters_after_step"][i])) {
                assert!(
                    (g - e).abs() <= 4e-6 * e.abs().max(1.0),
                    "{name} step {}: {g} and {e}",
                    i + 1
                );
            }
        }
    }
}

#[test]
fn muon_matches_pytorch() {
    let fixture = fixture("muon");
    for case in fixture["cases"].as_array().unwrap() {
        let shape = [0, 1].map(|side| case["shape"][side].as_u64().unwrap() as usize);
        let mut values = tensor(floats(&case["start"]));
        let mut momentum = values.zeros_like();
        for (i, gradient) in case["gradients"].as_array().unwrap().iter().enumerate() {
            let rule = rule(&fixture, i, fixture["weight_decay"].as_f64().unwrap());
            let before = parameters::to_vec(&values);
            let gradient = tensor(floats(gradient));
            (values, momentum) =
                muon_update(values, gradient, momentum, shape, &rule, Precision::F32);
            let expected = floats(&case["parameters_after_step"][i]);
            let largest = before
                .iter()
                .zip(&expected)
                .fold(0f32, |most, (b, e)| most.max((b - e).abs()));
            for (g, e) in parameters::to_vec(&values).iter().zip(expected) {
                // PyTorch orthogonalizes in bf16: little more than one digit of a step.
                assert!((g - e).abs() < 0.1 * largest, "step {}: {g} and {e}", i + 1);
            }
        }
    }
}

#[test]
fn gradients_are_clipped_by_their_norm_as_one_vector() {
    let gradients = Gradients::from([
        ("a".into(), tensor(vec![3.0, 0.0])),
        ("b".into(), tensor(vec![0.0, 4.0])),
    ]);
    let norm = global_norm(&gradients);
    assert!((norm - 5.0).abs() < 1e-6);
    assert!((clip_scale(norm, 1.0) - 0.2).abs() < 1e-6);
    assert_eq!(clip_scale(norm, 10.0), 1.0);
    assert_eq!(clip_scale(norm, 0.0), 1.0);
}
