//! BERT is Hugging Face's BERT: outputs, losses and every gradient, with both heads of pre-training and with a
//! classifier, from the fixtures that `fixtures/make_bert.py` wrote.

mod fixture;

use attentive_model::config::BertConfig;
use attentive_nn::{
    models::bert::{Bert, BertOutput},
    ops::Precision,
    parameters,
    pass::Pass,
};
use attentive_text::special::PAD;
use burn::tensor::{Device, Int, Tensor, TensorData, activation::log_softmax};

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

/// `Pass::inspection` runs the composed attention, `Pass::evaluation` the fused one.
fn check(name: &str, loss: impl Fn(&Fixture, &Bert, &BertOutput) -> Tensor<1>) {
    let fixture = Fixture::read(name);
    let config: BertConfig = serde_json::from_value(fixture.config.clone()).expect("a config");
    let device = Device::flex().autodiff();
    let model = parameters::replace(Bert::zeros(&config, &device), |name, _| {
        let values = fixture.floats(&format!("weight.{name}"));
        let count = values.len();
        Tensor::from_data(TensorData::new(values, [count]), &Device::flex())
    });
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
    let targets: Vec<i64> = targets.iter().map(|id| i64::from(*id)).collect();
    let rows = targets.len();
    let targets = ids(&targets, &logits.device()).reshape([rows, 1]);
    let log_probs = log_softmax(logits, 1).gather(1, targets);
    log_probs.sum() / -(rows as f64)
}
