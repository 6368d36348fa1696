//! Three ONNX graphs, with the inputs and outputs that Hugging Face's optimum gives such models:
//!
//! - `encoder_model.onnx`: `input_ids`, `attention_mask` -> `last_hidden_state`
//! - `decoder_model.onnx`: `input_ids`, `encoder_attention_mask`, `encoder_hidden_states` -> `logits`,
//!   `present.N.{decoder,encoder}.{key,value}`
//! - `decoder_with_past_model.onnx`: the newest token as `input_ids`, `encoder_attention_mask`,
//!   `past_key_values.N.{decoder,encoder}.{key,value}` -> `logits`, `present.N.decoder.{key,value}`
//!
//! Batch and lengths are dynamic. 8-bit weights stay 8 bits in the file, with a scale for each output, and the other
//! factor of their products is rounded to 8 bits, too, with a scale that the graph finds (`QuantizeLinear` and
//! `DequantizeLinear`). Beside the graphs lie the tokenizer and configuration files of the Hugging Face export.

mod graph;
mod layers;
mod proto;
#[cfg(test)]
mod tests;

use std::path::Path;

use attentive_model::durable;
use prost::Message;

use super::huggingface;
use super::source::Source;
use crate::error::{ConvertError, Result};
use graph::int;
use layers::Net;
use proto::{DataType, Model};

/// Writes the folder.
pub(super) fn write(source: &Source<'_>, folder: &Path) -> Result<Vec<String>> {
    source.require_self_attention()?;
    let warnings = huggingface::write_settings(source, folder)?;
    for (name, model) in [
        ("encoder_model.onnx", encoder(source)?),
        ("decoder_model.onnx", decoder(source, Past::None)?),
        (
            "decoder_with_past_model.onnx",
            decoder(source, Past::Given)?,
        ),
    ] {
        source.require(
            model.encoded_len() <= LARGEST,
            "more than 2 GB of weights in one file",
        )?;
        let path = folder.join(name);
        durable::write(&path, &model.encode_to_vec()).map_err(ConvertError::io("write", &path))?;
    }
    Ok(warnings)
}

/// A protobuf message has at most 2 GiB.
const LARGEST: usize = i32::MAX as usize;

/// Whether keys and values of earlier tokens come in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Past {
    None,
    Given,
}

fn encoder(source: &Source<'_>) -> Result<Model> {
    let mut net = Net::new(source);
    let shape = ["batch_size", "encoder_sequence_length"];
    let ids = net.graph.input("input_ids", DataType::Int64, &shape);
    let mask = net.graph.input("attention_mask", DataType::Int64, &shape);
    let bias = net.padding_bias(&mask);
    let zero = net.graph.integer(0);
    let mut x = net.embed("encoder", &ids, &zero)?;
    for layer in 0..source.config.encoder_layers {
        let name = format!("encoder.layers.{layer}");
        x = net.sublayer(&x, &format!("{name}.self_attention_norm"), |net, x| {
            let attention = format!("{name}.self_attention");
            let (key, value) = net.keys_and_values(&attention, x)?;
            net.attention(&attention, x, &key, &value, &bias)
        })?;
        x = net.feed_forward(&name, &x)?;
    }
    let x = net.final_norm("encoder", x)?;
    let width = source.config.d_model.to_string();
    net.graph
        .output(&x, "last_hidden_state", &[shape[0], shape[1], &width]);
    Ok(net.graph.finish("encoder"))
}

fn decoder(source: &Source<'_>, past: Past) -> Result<Model> {
    let mut net = Net::new(source);
    let config = source.config;
    let (batch, source_length) = ("batch_size", "encoder_sequence_length");
    let (heads, head_dim) = (config.heads.to_string(), config.head_dim().to_string());
    let length = if past == Past::None {
        "decoder_sequence_length"
    } else {
        "1"
    };
    let ids = net
        .graph
        .input("input_ids", DataType::Int64, &[batch, length]);
    let mask = net.graph.input(
        "encoder_attention_mask",
        DataType::Int64,
        &[batch, source_length],
    );
    let source_bias = net.padding_bias(&mask);
    // Keys and values of every layer: the target's so far and the source's.
    let mut pasts = Vec::new();
    let mut memory = None;
    match past {
        Past::None => {
            let width = config.d_model.to_string();
            let shape = [batch, source_length, &width];
            memory = Some(
                net.graph
                    .input("encoder_hidden_states", DataType::Float, &shape),
            );
        }
        Past::Given => {
            for layer in 0..config.decoder_layers {
                let mut input = |part: &str, length: &str| {
                    let name = format!("past_key_values.{layer}.{part}");
                    net.graph
                        .input(&name, DataType::Float, &[batch, &heads, length, &head_dim])
                };
                let past = "past_decoder_sequence_length";
                pasts.push([
                    input("decoder.key", past),
                    input("decoder.value", past),
                    input("encoder.key", source_length),
                    input("encoder.value", source_length),
                ]);
            }
        }
    }
    let start = match pasts.first() {
        None => net.graph.integer(0),
        Some([key, ..]) => net.size(&key.clone(), 2),
    };
    let target_bias = match past {
        Past::None => Some(net.causal_bias(&ids)),
        Past::Given => None,
    };
    let mut x = net.embed("decoder", &ids, &start)?;
    let mut presents = Vec::new();
    for layer in 0..config.decoder_layers {
        let name = format!("decoder.layers.{layer}");
        let mut own = None;
        x = net.sublayer(&x, &format!("{name}.self_attention_norm"), |net, x| {
            let attention = format!("{name}.self_attention");
            let (mut key, mut value) = net.keys_and_values(&attention, x)?;
            if let Some([past_key, past_value, ..]) = pasts.get(layer) {
                key = net
                    .graph
                    .op_with("Concat", &[past_key, &key], vec![int("axis", 2)]);
                value = net
                    .graph
                    .op_with("Concat", &[past_value, &value], vec![int("axis", 2)]);
            }
            own = Some([key.clone(), value.clone()]);
            net.attention_with(&attention, x, &key, &value, target_bias.as_ref())
        })?;
        let [key, value] = own.expect("set above");
        presents.push((
            format!("{layer}.decoder"),
            key,
            value,
            "decoder_sequence_length",
        ));
        x = net.sublayer(&x, &format!("{name}.cross_attention_norm"), |net, x| {
            let attention = format!("{name}.cross_attention");
            let (key, value) = match (&memory, pasts.get(layer)) {
                (Some(memory), _) => {
                    let (key, value) = net.keys_and_values(&attention, memory)?;
                    let name = format!("{layer}.encoder");
                    presents.push((name, key.clone(), value.clone(), source_length));
                    (key, value)
                }
                (None, Some([_, _, key, value])) => (key.clone(), value.clone()),
                (None, None) => unreachable!("either the memory or the past is given"),
            };
            net.attention(&attention, x, &key, &value, &source_bias)
        })?;
        x = net.feed_forward(&name, &x)?;
    }
    let x = net.final_norm("decoder", x)?;
    let logits = net.logits(&x)?;
    net.graph.output(
        &logits,
        "logits",
        &[batch, length, &config.tgt_vocab.to_string()],
    );
    for (name, key, value, length) in presents {
        for (part, value) in [("key", key), ("value", value)] {
            let length = if past == Past::Given {
                "past_decoder_sequence_length + 1"
            } else {
                length
            };
            let shape = [batch, &heads, length, &head_dim];
            net.graph
                .output(&value, &format!("present.{name}.{part}"), &shape);
        }
    }
    Ok(net.graph.finish("decoder"))
}
