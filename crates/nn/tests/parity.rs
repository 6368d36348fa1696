//! Parity with PyTorch: outputs, loss and every gradient of small models, from the fixtures that
//! `fixtures/make_transformer.py` and `fixtures/make_variants.py` wrote.

mod fixture;

use attentive_model::config::{NormPlacement, Preset, TransformerConfig, Tying};
use attentive_nn::{
    models::transformer::Transformer,
    ops::{SmoothedLoss, smoothed_loss},
    parameters,
    pass::Pass,
};
use burn::tensor::{Device, Tensor, TensorData};

use fixture::Fixture;

#[test]
fn pre_norm_outputs_loss_and_gradients_match_pytorch() {
    check("transformer_pre");
}

#[test]
fn post_norm_outputs_loss_and_gradients_match_pytorch() {
    check("transformer_post");
}

#[test]
fn grouped_queries_and_tied_embeddings_match_pytorch() {
    check("transformer_gqa");
}

#[test]
fn swish_and_sines_before_cosines_match_pytorch() {
    check("variant_swish");
}

#[test]
fn gelu_the_timing_signal_and_no_final_norm_match_pytorch() {
    check("variant_gelu");
}

#[test]
fn tanh_gelu_and_embedding_norms_match_pytorch() {
    check("variant_gelu_tanh");
}

#[test]
fn sigmoid_gelu_matches_pytorch() {
    check("variant_gelu_sigmoid");
}

#[test]
fn recurrent_decoder_layers_match_pytorch() {
    check("variant_ssru");
}

fn check(fixture: &str) {
    let fixture = Fixture::read(fixture);
    let config = config(&fixture);
    let tying = config.tying;
    let device = Device::flex().autodiff();
    let model = parameters::replace(Transformer::zeros(&config, &device), |name, _| {
        let values = fixture.floats(&format!("weight.{}", fixture_name(name, tying)));
        let count = values.len();
        Tensor::from_data(TensorData::new(values, [count]), &Device::flex())
    });

    for pass in [Pass::inspection(), Pass::evaluation()] {
        check_pass(&fixture, &model, tying, pass);
    }
}

/// `Pass::inspection` runs the composed attention, `Pass::evaluation` the fused one.
fn check_pass(fixture: &Fixture, model: &Transformer, tying: Tying, mut pass: Pass) {
    let device = model.device();
    let pass = &mut pass;
    let src = fixture.tokens("input.src", &device);
    let tgt = fixture.tokens("input.tgt", &device);
    let [batch, tgt_len] = tgt.dims();

    let memory = model.encode(src, pass);
    let decoded = model.decode(tgt.clone().narrow(1, 0, tgt_len - 1), &memory, pass);
    fixture.compare("output.encoder", memory.hidden);
    fixture.compare("output.decoder", decoded.hidden.clone());
    if let Some(weights) = decoded.cross_weights.last() {
        fixture.compare("output.cross_attention", weights.clone());
    }
    let log_probs = model.log_probs(decoded.hidden.clone(), pass);
    fixture.compare("output.log_probs", log_probs);

    let rows = batch * (tgt_len - 1);
    let logits = model.logits(decoded.hidden, pass).reshape([rows, 17]);
    let targets: Vec<u32> = tgt
        .narrow(1, 1, tgt_len - 1)
        .into_data()
        .iter::<u32>()
        .collect();
    let tokens = 3.0 + 4.0 + 5.0; // targets behind <s>: lengths 6, 4 and 5 hold 5 + 3 + 4
    let SmoothedLoss {
        objective,
        cross_entropy,
    } = smoothed_loss(logits, &targets, 0.1);
    fixture.compare("output.loss", objective.clone() / tokens);
    fixture.compare("output.cross_entropy", cross_entropy / tokens);

    let gradients = (objective / tokens).backward();
    let mut checked = 0;
    let tracked = attentive_nn::parameters::gradients(model, gradients);
    for parameter in parameters::named(model) {
        let gradient = tracked
            .get(&parameter.name)
            .expect("every parameter has a gradient")
            .clone();
        fixture.compare(
            &format!("gradient.{}", fixture_name(&parameter.name, tying)),
            gradient,
        );
        checked += 1;
    }
    assert_eq!(
        checked,
        fixture.count("gradient."),
        "parameters and reference gradients differ in number"
    );
}

/// The fixture keeps the embedding names of the script.
fn fixture_name(name: &str, tying: Tying) -> String {
    match name {
        "embeddings.source.weight" => "src_embedding.weight".into(),
        "embeddings.target.weight" if tying == Tying::All => "embedding.weight".into(),
        "embeddings.target.weight" => "tgt_embedding.weight".into(),
        "embeddings.projection" => "output.weight".into(),
        "embeddings.projection_bias" => "output.bias".into(),
        other => other.into(),
    }
}

fn config(fixture: &Fixture) -> TransformerConfig {
    let size = |key: &str| {
        fixture.config[key]
            .as_u64()
            .unwrap_or_else(|| panic!("{key}")) as usize
    };
    let config = TransformerConfig {
        src_vocab: size("src_vocab"),
        tgt_vocab: size("tgt_vocab"),
        d_model: size("d_model"),
        d_ff: size("d_ff"),
        heads: size("heads"),
        kv_heads: size("kv_heads"),
        encoder_layers: size("encoder_layers"),
        decoder_layers: size("decoder_layers"),
        dropout: 0.0,
        norm: if fixture.config["norm"] == "pre" {
            NormPlacement::Pre
        } else {
            NormPlacement::Post
        },
        tying: if fixture.config["tying"] == "all" {
            Tying::All
        } else {
            Tying::None
        },
        ..Preset::Tiny.config(0, 0)
    };
    let mut keys = serde_json::to_value(config).expect("plain numbers");
    if let Some(variant) = fixture.config.get("variant") {
        let variant = variant.as_object().expect("keys").clone();
        keys.as_object_mut().expect("keys").extend(variant);
    }
    serde_json::from_value(keys).expect("a configuration")
}
