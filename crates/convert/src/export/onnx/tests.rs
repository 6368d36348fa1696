//! What the written graphs must have, whoever runs them: read back from the files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use attentive_model::config::{Preset, Tying};
use attentive_model::fake_dir;
use attentive_model::{ModelDir, Tokenizers};
use attentive_text::{Tokenizer, TokenizerKind, TokenizerOptions};
use prost::Message;

use super::proto::{DataType, Graph, Model, Size, ValueInfo};
use crate::export::{ExportFormat, export};
use crate::{ImportOptions, WeightKind, import};

const LAYERS: usize = 2;

/// A small model, of f32 or int8.
fn model(folder: &Path, weights: WeightKind, tying: Tying) -> ModelDir {
    let options = TokenizerOptions {
        kind: TokenizerKind::Unigram,
        vocab_size: 300,
        min_frequency: 1,
        lowercase: false,
    };
    let text = ["ein kleiner Hund", "two men on a bench"];
    let tokenizer = Tokenizer::train(&options, &mut text.into_iter()).expect("enough text");
    let vocab = tokenizer.vocab_size();
    let mut config = Preset::Tiny.config(vocab, vocab);
    (config.d_model, config.d_ff, config.heads, config.kv_heads) = (16, 24, 2, 2);
    (config.encoder_layers, config.decoder_layers) = (1, LAYERS);
    (config.max_positions, config.tying) = (40, tying);
    let [real, theirs, ours] = ["real", "theirs", "ours"].map(|name| folder.join(name));
    let tokenizers = Tokenizers::shared(tokenizer);
    fake_dir::write_model(&real, &config, &tokenizers, |_, _| {}).expect("writable");
    let real = ModelDir::open(real).expect("just written");
    export(&real, ExportFormat::Ctranslate2, &theirs).expect("it can be expressed");
    let options = ImportOptions {
        weights,
        ..ImportOptions::default()
    };
    import(&theirs, &ours, &options).expect("what we wrote we read");
    ModelDir::open(ours).expect("just written")
}

/// The three graphs: encoder, decoder, decoder with past.
fn graphs(weights: WeightKind, tying: Tying) -> [Model; 3] {
    let folder = tempfile::tempdir().expect("a folder");
    let model = model(folder.path(), weights, tying);
    let out = folder.path().join("onnx");
    export(&model, ExportFormat::Onnx, &out).expect("it can be expressed");
    ["encoder_model", "decoder_model", "decoder_with_past_model"].map(|name| {
        let bytes = fs::read(out.join(format!("{name}.onnx"))).expect("a graph");
        Model::decode(&bytes[..]).expect("a protobuf message")
    })
}

fn all() -> impl Iterator<Item = (WeightKind, [Model; 3])> {
    let kinds = [WeightKind::F32, WeightKind::Int8];
    let kinds = kinds
        .into_iter()
        .flat_map(|kind| [(kind, Tying::All), (kind, Tying::None)]);
    kinds.map(|(kind, tying)| (kind, graphs(kind, tying)))
}

fn graph(model: &Model) -> &Graph {
    model.graph.as_ref().expect("a graph")
}

fn names(values: &[ValueInfo]) -> Vec<&str> {
    values.iter().map(|value| value.name.as_str()).collect()
}

/// Sizes that are chosen when the graph runs.
fn dynamic(values: &[ValueInfo], name: &str) -> Vec<String> {
    let value = values
        .iter()
        .find(|value| value.name == name)
        .expect("a value");
    let kind = value
        .r#type
        .as_ref()
        .and_then(|kind| kind.tensor_type.as_ref());
    let shape = kind.and_then(|kind| kind.shape.as_ref()).expect("a shape");
    let named = shape.dim.iter().filter_map(|size| match &size.value {
        Some(Size::Named(name)) => Some(name.clone()),
        _ => None,
    });
    named.collect()
}

#[test]
fn the_graphs_have_the_usual_names_and_dynamic_sizes() {
    for (_, models) in all() {
        for model in &models {
            let opset = &model.opset_import[..];
            assert!(opset.len() == 1 && opset[0].domain.is_empty() && opset[0].version == 17);
            assert_eq!(model.ir_version, 8);
        }
        let [encoder, decoder, step] = [0, 1, 2].map(|place| graph(&models[place]));
        assert_eq!(names(&encoder.input), ["input_ids", "attention_mask"]);
        assert_eq!(names(&encoder.output), ["last_hidden_state"]);
        let source = ["batch_size", "encoder_sequence_length"];
        assert_eq!(dynamic(&encoder.input, "input_ids"), source);
        assert_eq!(dynamic(&encoder.output, "last_hidden_state"), source);

        let given = [
            "input_ids",
            "encoder_attention_mask",
            "encoder_hidden_states",
        ];
        assert_eq!(names(&decoder.input), given);
        assert_eq!(dynamic(&decoder.input, "encoder_hidden_states"), source);
        let target = ["batch_size", "decoder_sequence_length"];
        assert_eq!(dynamic(&decoder.output, "logits"), target);
        let parts = |prefix: &str, sides: &[&str]| -> BTreeSet<String> {
            let layers = (0..LAYERS).flat_map(|layer| sides.iter().map(move |side| (layer, side)));
            let parts = layers.flat_map(|(layer, side)| {
                ["key", "value"].map(|part| format!("{prefix}.{layer}.{side}.{part}"))
            });
            parts.collect()
        };
        let behind = |values: &[ValueInfo], first: usize| -> BTreeSet<String> {
            values
                .iter()
                .skip(first)
                .map(|value| value.name.clone())
                .collect()
        };
        let both = ["decoder", "encoder"];
        assert_eq!(behind(&decoder.output, 1), parts("present", &both));
        assert_eq!(behind(&step.input, 2), parts("past_key_values", &both));
        assert_eq!(behind(&step.output, 1), parts("present", &both[..1]));
        let past = ["batch_size", "past_decoder_sequence_length"];
        assert_eq!(dynamic(&step.input, "past_key_values.1.decoder.key"), past);
        assert_eq!(
            dynamic(&step.input, "past_key_values.0.encoder.value"),
            source
        );
    }
}

#[test]
fn every_node_takes_what_was_made_before_it_and_every_name_is_made_once() {
    for (_, models) in all() {
        for model in &models {
            let graph = graph(model);
            let mut known = BTreeSet::new();
            let constants = graph.initializer.iter().map(|constant| &constant.name);
            let inputs = graph.input.iter().map(|input| &input.name);
            for name in constants.chain(inputs) {
                assert!(known.insert(name), "{name} twice");
            }
            for constant in &graph.initializer {
                let count: i64 = constant.dims.iter().product();
                let width = match DataType::try_from(constant.data_type) {
                    Ok(DataType::Int8) => 1,
                    Ok(DataType::Float) => 4,
                    _ => 8,
                };
                assert_eq!(
                    constant.raw_data.len() as i64,
                    count * width,
                    "{}",
                    constant.name
                );
            }
            for node in &graph.node {
                for input in &node.input {
                    assert!(known.contains(input), "{}: {input} is not there", node.name);
                }
                for output in &node.output {
                    assert!(known.insert(output), "{output} twice");
                }
            }
            for output in &graph.output {
                assert!(known.contains(&output.name), "{}", output.name);
            }
        }
    }
}

#[test]
fn both_factors_of_a_product_with_8_bit_weights_are_quantized() {
    for (kind, models) in all() {
        for model in &models {
            let graph = graph(model);
            let maker = |name: &str| graph.node.iter().find(|node| node.output[0] == name);
            let count = |kind: &str| {
                graph
                    .node
                    .iter()
                    .filter(|node| node.op_type == kind)
                    .count()
            };
            if kind == WeightKind::F32 {
                assert_eq!(count("QuantizeLinear") + count("DequantizeLinear"), 0);
                continue;
            }
            assert!(count("QuantizeLinear") > 0 && count("DequantizeLinear") > 0);
            let mut products = 0;
            for node in graph.node.iter().filter(|node| node.op_type == "MatMul") {
                // Products of two activations (attention) stay f32.
                let weight = maker(&node.input[1]);
                let Some(weight) = weight.filter(|node| node.op_type == "DequantizeLinear") else {
                    continue;
                };
                products += 1;
                let scales = graph
                    .initializer
                    .iter()
                    .find(|one| one.name == weight.input[1]);
                let rows = graph
                    .initializer
                    .iter()
                    .find(|one| one.name == weight.input[0]);
                let [scales, rows] = [scales, rows].map(|one| one.expect("a constant"));
                assert_eq!(rows.data_type, DataType::Int8 as i32, "{}", rows.name);
                assert_eq!(scales.dims[..], rows.dims[1..], "a scale for each output");
                let x = maker(&node.input[0]).expect("made by a node");
                assert_eq!(x.op_type, "DequantizeLinear", "{}", node.name);
                let integers = maker(&x.input[0]).expect("made by a node");
                assert_eq!(integers.op_type, "QuantizeLinear", "{}", node.name);
                assert_eq!(
                    integers.input[1..],
                    x.input[1..],
                    "one scale, there and back"
                );
            }
            // Four of an attention and two of a network, for each layer, and the output.
            let expected = match graph.input[1].name.as_str() {
                "attention_mask" => 6,
                _ if names(&graph.input).contains(&"encoder_hidden_states") => LAYERS * 10 + 1,
                _ => LAYERS * 8 + 1,
            };
            assert_eq!(products, expected);
        }
    }
}
