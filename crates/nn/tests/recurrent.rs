//! Parity with PyTorch of what came before the Transformer: recurrent layers, additive attention, kernel regression
//! and the translators made of them; outputs and gradients. `fixtures/make_recurrent.py` wrote the references.

mod fixture;

use attentive_model::config::{Context, ModelConfig, Preset, RecurrentConfig, Tying};
use attentive_nn::{
    attention::{
        additive::{AdditiveAttention, AdditiveConfig},
        kernel_regression::KernelRegression,
    },
    init::Init,
    layers::gru::BidirectionalGru,
    mask::Mask,
    models::recurrent::Recurrent,
    parameters,
    pass::Pass,
};
use attentive_runtime::{
    inspection::Inspect,
    search::{Request, SearchModel},
};
use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor, TensorData},
};
use fixture::Fixture;

fn with_weights<M: Module>(fixture: &Fixture, module: M) -> M {
    parameters::replace(module, |name, _| {
        let values = fixture.floats(&format!("weight.{name}"));
        let count = values.len();
        Tensor::from_data(TensorData::new(values, [count]), &Device::flex())
    })
}

/// Compares the gradient of every parameter, and that there are as many as the reference has.
fn compare_gradients<M: Module>(
    fixture: &Fixture,
    module: &M,
    gradients: burn::tensor::Gradients,
    of_inputs: usize,
) {
    let found = parameters::gradients(module, gradients);
    assert_eq!(found.len() + of_inputs, fixture.count("gradient."));
    for (name, gradient) in found {
        fixture.compare(&format!("gradient.{name}"), gradient);
    }
}

#[test]
fn a_bidirectional_gru_matches_pytorch() {
    let fixture = Fixture::read("gru");
    let device = Device::flex().autodiff();
    let layer = BidirectionalGru::new(5, 6, &mut Init::zeros(), &device);
    let layer = with_weights(&fixture, layer);
    let x = fixture.tensor::<3>("input.x", &device).require_grad();
    let lengths = fixture.sizes("input.lengths");
    let out = layer.forward(x.clone(), &lengths, &Pass::evaluation());
    // PyTorch writes zeros behind a row's end; here the state stays.
    let expected = fixture.floats("output.states");
    let got: Vec<f32> = out.states.clone().into_data().iter::<f32>().collect();
    for (i, (got, expected)) in got.iter().zip(&expected).enumerate() {
        let (row, position) = (i / 48, i / 12 % 4);
        let inside = position < lengths[row];
        assert!(
            !inside || (got - expected).abs() < 1e-5,
            "{i}: {got}, not {expected}"
        );
    }
    fixture.compare("output.last", out.last.clone());
    let of_states = out.states * fixture.tensor::<3>("input.state_weights", &device);
    let of_last = out.last * fixture.tensor::<2>("input.last_weights", &device);
    let gradients = (of_states.sum() + of_last.sum()).backward();
    fixture.compare("gradient.x", x.grad(&gradients).expect("a gradient"));
    compare_gradients(&fixture, &layer, gradients, 1);
}

#[test]
fn additive_attention_matches_pytorch() {
    let fixture = Fixture::read("additive");
    let device = Device::flex().autodiff();
    let config = AdditiveConfig {
        d_query: 5,
        d_key: 3,
        d_hidden: 7,
        dropout: 0.0,
    };
    let layer = AdditiveAttention::new(&config, &mut Init::zeros(), &device);
    let layer = with_weights(&fixture, layer);
    let names = ["queries", "keys", "values"];
    let inputs = names.map(|name| {
        fixture
            .tensor::<3>(&format!("input.{name}"), &device)
            .require_grad()
    });
    let mask = Mask::valid_lengths(&fixture.sizes("input.lengths"), 6, &device);
    let [queries, keys, values] = inputs.clone();
    let out = layer.forward(queries, keys, values, &mask, &mut Pass::evaluation());
    fixture.compare("output.values", out.values.clone());
    fixture.compare("output.weights", out.weights);
    let weighted = out.values * fixture.tensor::<3>("input.out_weights", &device);
    let gradients = weighted.sum().backward();
    for (name, input) in names.iter().zip(inputs) {
        let gradient = input.grad(&gradients).expect("a gradient");
        fixture.compare(&format!("gradient.{name}"), gradient);
    }
    compare_gradients(&fixture, &layer, gradients, 3);
}

#[test]
fn kernel_regression_with_a_learned_width_matches_pytorch() {
    let fixture = Fixture::read("kernel");
    let device = Device::flex().autodiff();
    let mut kernel = KernelRegression::new(&device);
    kernel.weight = Param::from_tensor(fixture.tensor("input.weight", &device).require_grad());
    let [x, y] = ["input.x", "input.y"].map(|name| fixture.tensor::<2>(name, &device));
    let mask = Mask::all_but_itself(8, &device);
    let pooled = kernel.forward(x.clone(), x, y.clone(), &mask);
    fixture.compare("output.values", pooled.values.clone());
    fixture.compare("output.weights", pooled.weights);
    let loss = (pooled.values - y).square().sum();
    compare_gradients(&fixture, &kernel, loss.backward(), 0);
}

#[test]
fn the_translator_with_attention_matches_pytorch() {
    // `Pass::inspection` runs the composed decoder, `Pass::evaluation` the fused one.
    for pass in [Pass::inspection(), Pass::evaluation()] {
        check_translator("recurrent_attention", Context::Attention, pass);
    }
}

#[test]
fn the_translator_with_a_fixed_context_matches_pytorch() {
    check_translator("recurrent_fixed", Context::Fixed, Pass::evaluation());
}

fn check_translator(name: &str, context: Context, mut pass: Pass) {
    let fixture = Fixture::read(name);
    let device = Device::flex().autodiff();
    let size = |key: &str| fixture.config[key].as_u64().expect("a size") as usize;
    let config = RecurrentConfig {
        d_embedding: size("d_embedding"),
        d_hidden: size("d_hidden"),
        d_attention: size("d_attention"),
        context,
        dropout: 0.0,
        tying: Tying::None,
        ..RecurrentConfig::from_preset(Preset::Tiny)
    }
    .with_vocabularies(size("vocab"), size("vocab"));
    let model = with_weights(&fixture, Recurrent::zeros(&config, &device));
    let pass = &mut pass;
    let memory = model.encode(fixture.tokens("input.src", &device), pass);
    let tgt = fixture.tokens("input.tgt", &device);
    let len = tgt.dims()[1] - 1;
    let start = model.first_state(&memory, pass);
    let decoded = model.decode(tgt.clone().narrow(1, 0, len), start, &memory, pass);
    fixture.compare("output.hidden", decoded.hidden.clone());
    fixture.compare("output.logits", model.logits(decoded.hidden.clone(), pass));
    if let Some(weights) = decoded.weights {
        fixture.compare("output.attention", weights);
    }
    let written = tgt.narrow(1, 1, len).into_data();
    let targets: Vec<u32> = written.iter::<u32>().collect();
    let loss = model.loss(decoded.hidden, &targets, 0.1, pass).objective / (4.0 + 2.0 + 3.0);
    fixture.compare("output.loss", loss.clone());
    compare_gradients(&fixture, &model, loss.backward(), 0);
}

fn small(context: Context) -> Recurrent {
    let config = RecurrentConfig {
        d_embedding: 12,
        d_hidden: 10,
        d_attention: 9,
        context,
        ..RecurrentConfig::from_preset(Preset::Tiny)
    };
    Recurrent::new(&config.with_vocabularies(20, 20), 3, &Device::flex())
}

#[test]
fn steps_of_a_search_give_what_teacher_forcing_gives_whatever_the_batch() {
    let sources: [&[u32]; 3] = [&[5, 6, 7, 8, 1], &[9, 1], &[11, 4, 12, 1]];
    let target = [0, 7, 13, 5, 6];
    for context in [Context::Fixed, Context::Attention] {
        let model = small(context);
        let requests = sources.map(|source| Request::new(source.to_vec()));
        let mut state = model.start(&requests.each_ref());
        // The rows change places on the way.
        model.reorder(&mut state, &[2, 0, 1]);
        let mut log_probs = Vec::new();
        for (position, token) in target.iter().enumerate() {
            model.step(&mut state, &[*token; 3], &mut log_probs);
            for (row, source) in [2, 0, 1].map(|row: usize| sources[row]).iter().enumerate() {
                let source = &source[..source.len() - 1];
                let read = &target[1..=position];
                let alone = model.inspect(source, read, 20).predictions;
                let expected = &alone[position].candidates;
                for (id, expected) in expected {
                    let got = log_probs[row * 20 + *id as usize];
                    assert!(
                        (got - expected).abs() < 1e-4,
                        "{context:?}, row {row}, position {position}: {got}, not {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn attention_weights_are_probabilities_and_a_fixed_context_has_none() {
    let inspection = small(Context::Attention).inspect(&[5, 6, 7], &[8, 9], 1);
    assert_eq!((inspection.encoder.len(), inspection.decoder.len()), (0, 0));
    for row in inspection.cross[0][0].chunks(4) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
    let fixed = small(Context::Fixed).inspect(&[5, 6, 7], &[8, 9], 1);
    assert!(fixed.cross.is_empty());
}

#[test]
fn names_and_shapes_of_the_parameters_are_those_of_the_schema() {
    for context in [Context::Fixed, Context::Attention] {
        for tying in [Tying::None, Tying::Output, Tying::All] {
            let config = RecurrentConfig {
                context,
                tying,
                ..RecurrentConfig::from_preset(Preset::Tiny)
            };
            let config = config.with_vocabularies(20, 20);
            let model = Recurrent::zeros(&config, &Device::flex());
            let mut found: Vec<(String, Vec<usize>)> = parameters::named(&model)
                .into_iter()
                .map(|parameter| (parameter.name, parameter.shape))
                .collect();
            let mut expected: Vec<(String, Vec<usize>)> = config
                .tensors()
                .into_iter()
                .map(|tensor| (tensor.name, tensor.shape))
                .collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected);
        }
    }
}
