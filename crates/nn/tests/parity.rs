//! Parity with PyTorch: outputs, loss and every gradient of small models, from the fixtures that
//! `fixtures/make_transformer.py` and `fixtures/make_variants.py` wrote.

use std::{collections::BTreeMap, path::PathBuf};

use attentive_model::config::{NormPlacement, Preset, TransformerConfig, Tying};
use attentive_nn::{
    models::transformer::Transformer,
    ops::{SmoothedLoss, smoothed_loss},
    parameters,
    pass::Pass,
};
use burn::tensor::{Device, Int, Tensor, TensorData};
use safetensors::SafeTensors;

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
    let config = fixture.config();
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

struct Fixture {
    tensors: BTreeMap<String, (Vec<usize>, Vec<u8>)>,
    config: serde_json::Value,
}

impl Fixture {
    fn read(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join(format!("tests/fixtures/{name}.safetensors"));
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let file = SafeTensors::deserialize(&bytes).expect("a safetensors file");
        let tensors = file
            .tensors()
            .into_iter()
            .map(|(name, view)| (name, (view.shape().to_vec(), view.data().to_vec())))
            .collect();
        let (_, metadata) = SafeTensors::read_metadata(&bytes).expect("metadata");
        let config = &metadata.metadata().as_ref().expect("metadata")["config"];
        Self {
            tensors,
            config: serde_json::from_str(config).expect("JSON"),
        }
    }

    fn raw(&self, name: &str) -> &(Vec<usize>, Vec<u8>) {
        self.tensors
            .get(name)
            .unwrap_or_else(|| panic!("no tensor {name} in the fixture"))
    }

    fn floats(&self, name: &str) -> Vec<f32> {
        self.raw(name)
            .1
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
            .collect()
    }

    fn tokens(&self, name: &str, device: &Device) -> Tensor<2, Int> {
        let (shape, bytes) = self.raw(name);
        let ids: Vec<i64> = bytes
            .chunks_exact(4)
            .map(|b| i64::from(i32::from_le_bytes(b.try_into().unwrap())))
            .collect();
        Tensor::from_data(TensorData::new(ids, [shape[0], shape[1]]), device)
    }

    fn config(&self) -> TransformerConfig {
        let size =
            |key: &str| self.config[key].as_u64().unwrap_or_else(|| panic!("{key}")) as usize;
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
            norm: if self.config["norm"] == "pre" {
                NormPlacement::Pre
            } else {
                NormPlacement::Post
            },
            tying: if self.config["tying"] == "all" {
                Tying::All
            } else {
                Tying::None
            },
            ..Preset::Tiny.config(0, 0)
        };
        let mut keys = serde_json::to_value(config).expect("plain numbers");
        if let Some(variant) = self.config.get("variant") {
            let variant = variant.as_object().expect("keys").clone();
            keys.as_object_mut().expect("keys").extend(variant);
        }
        serde_json::from_value(keys).expect("a configuration")
    }

    fn count(&self, prefix: &str) -> usize {
        self.tensors
            .keys()
            .filter(|name| name.starts_with(prefix))
            .count()
    }

    /// Within 1e-4 of the reference, relative to its largest element.
    fn compare<const D: usize>(&self, name: &str, got: Tensor<D>) {
        let expected = self.floats(name);
        let got: Vec<f32> = got.into_data().iter::<f32>().collect();
        assert_eq!(got.len(), expected.len(), "{name}: number of elements");
        let scale = expected.iter().fold(1e-6f32, |max, v| max.max(v.abs()));
        for (i, (g, e)) in got.iter().zip(&expected).enumerate() {
            assert!(
                (g - e).abs() <= 1e-4 * scale + 1e-6,
                "{name}[{i}]: got {g}, PyTorch has {e}"
            );
        }
    }
}
