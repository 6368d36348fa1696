//! GPT is PyTorch's GPT: outputs, loss and every gradient of a block and of small models, from the fixtures that
//! `fixtures/make_gpt.py` wrote; the one with learned positions is Hugging Face's GPT-2.

mod fixture;

use attentive_model::config::{GptConfig, PositionKind};
use attentive_nn::{
    init::Init,
    layers::block::{Block, BlockConfig},
    mask::Mask,
    models::gpt::Gpt,
    parameters,
    pass::Pass,
};
use burn::{
    module::Module,
    tensor::{Device, Gradients, Tensor, TensorData},
};

use fixture::Fixture;

#[test]
fn a_gpt_block_matches_pytorch() {
    let fixture = Fixture::read("gpt_block");
    let device = Device::flex().autodiff();
    let config = BlockConfig::from(&config(&fixture));
    let block = Block::new(&config, &mut Init::zeros(), &device);
    let block = with_weights(block, &fixture);
    let tensor = |name: &str| {
        let values = TensorData::new(fixture.floats(name), [2, 5, config.d_model]);
        Tensor::<3>::from_data(values, &device)
    };
    for pass in [&mut Pass::inspection(), &mut Pass::evaluation()] {
        let x = tensor("input.x").require_grad();
        let output = block.forward(x.clone(), &Mask::Causal, None, pass).hidden;
        fixture.compare("output.hidden", output.clone());
        let gradients = (output * tensor("input.direction")).sum().backward();
        fixture.compare("gradient.x", x.grad(&gradients).expect("a gradient"));
        compare_gradients(&fixture, &block, gradients, 1);
    }
}

#[test]
fn gpt_is_the_gpt_2_of_hugging_face() {
    check("gpt_learned");
}

#[test]
fn gpt_with_sinusoids_and_one_key_head_matches_pytorch() {
    check("gpt_sinusoidal");
}

/// `Pass::inspection` runs the composed attention, `Pass::evaluation` the fused one.
fn check(name: &str) {
    let fixture = Fixture::read(name);
    let config = config(&fixture);
    let device = Device::flex().autodiff();
    let model = with_weights(Gpt::zeros(&config, &device), &fixture);
    let tokens = fixture.tokens("input.tokens", &device);
    let [rows, len] = tokens.dims();
    for pass in [&mut Pass::inspection(), &mut Pass::evaluation()] {
        let output = model.forward(tokens.clone(), None, pass);
        fixture.compare("output.hidden", output.hidden.clone());
        if let Some(weights) = output.weights.last() {
            fixture.compare("output.attention", weights.clone());
        }
        fixture.compare("output.log_probs", model.log_probs(output.hidden));

        let read = tokens.clone().narrow(1, 0, len - 1);
        let predicted = tokens.clone().narrow(1, 1, len - 1);
        let predicted: Vec<u32> = predicted.into_data().iter::<u32>().collect();
        let hidden = model.forward(read, None, pass).hidden;
        let loss = model.loss(hidden, &predicted, pass).objective / (rows * (len - 1)) as f64;
        fixture.compare("output.loss", loss.clone());
        // The last position is not read, and has no gradient there either.
        assert!(config.positions != PositionKind::Learned || config.context == len);
        compare_gradients(&fixture, &model, loss.backward(), 0);
    }
}

fn config(fixture: &Fixture) -> GptConfig {
    serde_json::from_value(fixture.config.clone()).expect("a configuration")
}

fn with_weights<M: Module>(model: M, fixture: &Fixture) -> M {
    parameters::replace(model, |name, _| {
        let values = fixture.floats(&format!("weight.{name}"));
        let count = values.len();
        Tensor::from_data(TensorData::new(values, [count]), &Device::flex())
    })
}

/// Compares the gradient of every parameter; the fixture has so many that are none.
fn compare_gradients<M: Module>(fixture: &Fixture, model: &M, gradients: Gradients, more: usize) {
    let found = parameters::gradients(model, gradients);
    assert_eq!(found.len() + more, fixture.count("gradient."));
    for (name, gradient) in found {
        fixture.compare(&format!("gradient.{name}"), gradient);
    }
}
