//! BERT is Hugging Face's BERT: outputs, losses and every gradient, with both heads of pre-training and with a
//! classifier, from the fixtures that `fixtures/make_bert.py` wrote.

mod fixture;

use attentive_model::config::BertConfig;
use attentive_nn::{
    attention::pruning::{Pruning, kept_share},
    models::bert::{Bert, BertOutput, text::Framed},
    ops::{self, Precision},
    parameters,
    pass::Pass,
};
use attentive_text::special::PAD;
use burn::tensor::{Device, Int, Tensor, TensorData};

use fixture::Fixture;

/// Which token was at each hidden place of the fixture, as `make_bert.py` has it.
const HIDDEN: [(usize, u32); 5] = [(2, 10), (3, 8), (6, 3), (9, 7), (12, 14)];

#[test]
fn pretraining_with_both_heads_matches_hugging_face() {
    check("bert_pretraining", |fixture, model, output| {
        let [batch, len, d_model] = output.hidden.dims();
        let places = HIDDEN.map(|(place, _)| place as i64);
        let places = ids(&places, &model.device());
        let rows = output.hidden.clone().reshape([1, batch * len, d_model]);
        let logits = model.masked_logits(rows.select(1, places), Precision::F32);
        let logits = logits.expect("a head").flatten::<2>(0, 1);
        fixture.compare("output.masked_logits", logits.clone());
        let pooled = model
            .pooled(output.hidden.clone(), Precision::F32)
            .expect("a pooler");
        let next = model.next_sentence.as_ref().expect("a head");
        let next = next.forward(pooled, Precision::F32);
        fixture.compare("output.next_sentence", next.clone());
        cross_entropy(logits, &HIDDEN.map(|(_, token)| token)) + cross_entropy(next, &[0, 1])
    });
}

#[test]
fn a_classifier_matches_hugging_face() {
    check("bert_classification", |fixture, model, output| {
        let pooled = model
            .pooled(output.hidden.clone(), Precision::F32)
            .expect("a pooler");
        let logits = model.classifier.as_ref().expect("a head");
        let logits = logits.forward(pooled, Precision::F32);
        fixture.compare("output.classes", logits.clone());
        cross_entropy(logits, &[2, 0])
    });
}

/// As `make_bert.py` has them.
const TEMPERATURE: f64 = 0.05;
const REGULARIZER: f64 = 0.7;

#[test]
fn learned_token_pruning_and_the_gradients_of_its_thresholds_match_pytorch() {
    let fixture = Fixture::read("bert_pruning");
    let device = Device::flex().autodiff();
    let model = model(&fixture, &device);
    let [tokens, segments] =
        ["input.tokens", "input.segments"].map(|name| fixture.tokens(name, &device));
    let there = tokens.clone().not_equal_elem(i64::from(PAD)).float();
    let pass = &mut Pass::evaluation();
    let soft = Pruning::Soft {
        temperature: TEMPERATURE,
    };
    let output = model.forward_pruned(tokens, segments, soft, pass);
    for (layer, degrees) in output.stays.iter().enumerate() {
        fixture.compare(&format!("output.degrees.{layer}"), degrees.clone());
    }
    let logits = model.class_logits(output.hidden, pass).expect("a head");
    fixture.compare("output.classes", logits.clone());
    let kept = kept_share(output.stays, there).mean();
    let loss = cross_entropy(logits, &[2, 0]) + kept * REGULARIZER;
    fixture.compare("output.loss", loss.clone());
    let gradients = parameters::gradients(&model, loss.backward());
    assert_eq!(gradients.len(), fixture.count("gradient."));
    assert!(gradients.contains_key("pruning.thresholds"));
    for (name, gradient) in gradients {
        fixture.compare(&format!("gradient.{name}"), gradient);
    }
}

/// The fixture's texts one by one, as PyTorch has them without padding.
#[test]
fn pruned_tokens_are_not_computed_and_the_classes_are_those_of_pytorch() {
    let fixture = Fixture::read("bert_pruning");
    let device = Device::flex();
    let model = model(&fixture, &device);
    let texts = texts(&fixture);
    let (logits, encoded) = model.classes(&texts).expect("a head");
    fixture.compare("output.hard_classes", logits);
    let left = fixture.sizes("output.left");
    let found: Vec<usize> = (0..texts.len())
        .flat_map(|text| encoded.layers.iter().map(move |layer| layer[text].len()))
        .collect();
    assert_eq!(found, left);
    // What is computed is the sum of what is left, and not of all tokens.
    let last: usize = encoded.layers[1].iter().map(Vec::len).sum();
    assert_eq!(encoded.hidden.dims()[1], last);
    let [done, all] = model.work(&texts, &encoded);
    assert_eq!([done, all], [12624.0, 15744.0]);

    // With masks in the place of tokens that left, as training and other devices have it, the classes are the same.
    let tokens = fixture.tokens("input.tokens", &device);
    let segments = fixture.tokens("input.segments", &device);
    let pass = &mut Pass::evaluation();
    let masked = model.forward(tokens, segments, pass);
    let logits = model.class_logits(masked.hidden, pass).expect("a head");
    fixture.compare("output.hard_classes", logits);
}

#[test]
fn texts_without_padding_have_the_vectors_of_padded_ones() {
    let fixture = Fixture::read("bert_classification");
    let model = model(&fixture, &Device::flex());
    let encoded = model.encode(&texts(&fixture));
    let expected = fixture.tensor::<3>("output.hidden", &Device::flex());
    let [rows, len, _] = expected.dims();
    let first = expected.clone().narrow(0, 0, 1);
    let second = expected.narrow(0, 1, rows - 1).narrow(1, 0, len - 2);
    let difference = encoded.hidden - Tensor::cat(vec![first, second], 1);
    let worst = difference.abs().max().into_scalar::<f32>();
    assert!(worst < 1e-4, "{worst}");
}

fn texts(fixture: &Fixture) -> Vec<Framed> {
    let rows = |name: &str| -> Vec<Vec<u32>> {
        let numbers = fixture.sizes(name);
        let rows = numbers.chunks(numbers.len() / 2);
        rows.map(|row| row.iter().map(|id| *id as u32).collect())
            .collect()
    };
    let pairs = rows("input.tokens").into_iter().zip(rows("input.segments"));
    let text = |(mut tokens, mut segments): (Vec<u32>, Vec<u32>)| {
        tokens.retain(|token| *token != PAD);
        segments.truncate(tokens.len());
        Framed {
            tokens,
            segments,
            left_out: 0,
        }
    };
    pairs.map(text).collect()
}

fn model(fixture: &Fixture, device: &Device) -> Bert {
    let config: BertConfig = serde_json::from_value(fixture.config.clone()).expect("a config");
    parameters::replace(Bert::zeros(&config, device), |name, _| {
        let values = fixture.floats(&format!("weight.{name}"));
        let count = values.len();
        Tensor::from_data(TensorData::new(values, [count]), &Device::flex())
    })
}

/// `Pass::inspection` runs the composed attention, `Pass::evaluation` the fused one.
fn check(name: &str, loss: impl Fn(&Fixture, &Bert, &BertOutput) -> Tensor<1>) {
    let fixture = Fixture::read(name);
    let device = Device::flex().autodiff();
    let model = model(&fixture, &device);
    for pass in [&mut Pass::inspection(), &mut Pass::evaluation()] {
        let tokens = fixture.tokens("input.tokens", &device);
        let segments = fixture.tokens("input.segments", &device);
        let there = tokens.clone().not_equal_elem(i64::from(PAD)).float();
        let output = model.forward(tokens, segments, pass);
        let visible = output.hidden.clone() * there.unsqueeze_dim::<3>(2);
        fixture.compare("output.hidden", visible);
        let pooled = model.pooled(output.hidden.clone(), pass.precision);
        fixture.compare("output.pooled", pooled.expect("a pooler"));
        let loss = loss(&fixture, &model, &output);
        fixture.compare("output.loss", loss.clone());
        let gradients = parameters::gradients(&model, loss.backward());
        assert_eq!(gradients.len(), fixture.count("gradient."));
        for (name, gradient) in gradients {
            fixture.compare(&format!("gradient.{name}"), gradient);
        }
    }
}

fn ids(values: &[i64], device: &Device) -> Tensor<1, Int> {
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), device)
}

/// The mean over the rows. `[1]`
fn cross_entropy(logits: Tensor<2>, targets: &[u32]) -> Tensor<1> {
    ops::cross_entropy(logits, targets, 0.0) / targets.len() as f64
}
