//! What must not change a result: padding, batching, caching, and the way grouped heads are written.

use attentive_model::{
    config::{
        Activation, Autoregression, EmbeddingNorm, FinalNorm, ModelConfig, NormPlacement,
        PositionKind, Preset, TransformerConfig, Tying,
    },
    weights::Weights,
};
use attentive_nn::{
    models::transformer::{Transformer, search::pad_rows},
    parameters,
    pass::Pass,
};
use attentive_runtime::inspection::Inspect;
use attentive_runtime::search::{Request, SearchModel, SearchOptions, search};
use attentive_text::special::{BOS, EOS, PAD};
use burn::tensor::{Device, Tensor, TensorData};

fn config() -> TransformerConfig {
    TransformerConfig {
        d_model: 32,
        d_ff: 48,
        heads: 4,
        kv_heads: 4,
        encoder_layers: 2,
        decoder_layers: 2,
        ..Preset::Tiny.config(23, 23)
    }
}

fn model(config: &TransformerConfig) -> Transformer {
    Transformer::new(config, 11, &Device::flex())
}

fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

fn assert_close(left: &[f32], right: &[f32], tolerance: f32) {
    assert_eq!(left.len(), right.len());
    for (i, (l, r)) in left.iter().zip(right).enumerate() {
        assert!((l - r).abs() <= tolerance, "element {i}: {l} and {r}");
    }
}

/// Every architecture that the configuration can describe, small.
fn architectures() -> Vec<TransformerConfig> {
    let mut all = Vec::new();
    for norm in [NormPlacement::Pre, NormPlacement::Post] {
        for positions in [PositionKind::Sinusoidal, PositionKind::Learned] {
            for tying in [Tying::None, Tying::Output, Tying::All] {
                for kv_heads in [1, 2, 4] {
                    all.push(TransformerConfig {
                        norm,
                        positions,
                        tying,
                        kv_heads,
                        max_positions: 40,
                        ..config()
                    });
                }
            }
        }
    }
    let variants = [
        TransformerConfig {
            autoregression: Autoregression::Ssru,
            positions: PositionKind::TimingSignal,
            norm: NormPlacement::Post,
            tying: Tying::All,
            ..config()
        },
        TransformerConfig {
            autoregression: Autoregression::Ssru,
            activation: Activation::Swish,
            embedding_norm: EmbeddingNorm::LayerNorm,
            ..config()
        },
        TransformerConfig {
            activation: Activation::Gelu,
            positions: PositionKind::SinusoidalHalves,
            position_offset: 2,
            embedding_scale: Some(1.0),
            final_norm: FinalNorm::None,
            ..config()
        },
        TransformerConfig {
            activation: Activation::GeluTanh,
            final_norm: FinalNorm::LayerNorm,
            norm: NormPlacement::Post,
            ..config()
        },
    ];
    all.extend(variants);
    all
}

#[test]
fn padding_does_not_change_outputs() {
    for config in architectures() {
        let model = model(&config);
        let device = Device::flex();
        let pass = &mut Pass::evaluation();
        let run = |src: Vec<u32>, tgt: Vec<u32>, pass: &mut Pass| {
            let memory = model.encode(pad_rows(&[src], &device), pass);
            let hidden = model
                .decode(pad_rows(&[tgt], &device), &memory, pass)
                .hidden;
            floats(model.log_probs(hidden.narrow(1, 0, 3), pass))
        };
        let plain = run(vec![5, 6, 7, EOS], vec![BOS, 8, 9], pass);
        let padded = run(
            vec![5, 6, 7, EOS, PAD, PAD],
            vec![BOS, 8, 9, PAD, PAD],
            pass,
        );
        assert_close(&plain, &padded, 1e-5);
    }
}

#[test]
fn cached_steps_match_full_forward() {
    for config in architectures() {
        let model = model(&config);
        let device = Device::flex();
        let sources = [vec![5, 6, 7, EOS], vec![9, EOS]];
        let targets = [vec![BOS, 8, 9, 10], vec![BOS, 4, 4, 7]];
        let memory = model.encode(pad_rows(&sources, &device), &mut Pass::evaluation());
        let full = model.decode(
            pad_rows(&targets, &device),
            &memory,
            &mut Pass::evaluation(),
        );
        let full = floats(model.log_probs(full.hidden, &Pass::evaluation())); // [2, 4, 23]
        let requests = sources.map(Request::new);
        let mut state = SearchModel::start(&model, &[&requests[0], &requests[1]]);
        for (position, tokens) in targets[0].iter().zip(&targets[1]).enumerate() {
            let mut step = Vec::new();
            SearchModel::step(&model, &mut state, &[*tokens.0, *tokens.1], &mut step);
            for row in 0..2 {
                let at = (row * 4 + position) * 23;
                assert_close(&step[row * 23..(row + 1) * 23], &full[at..at + 23], 1e-5);
            }
        }
    }
}

#[test]
fn the_future_is_never_seen() {
    let model = model(&config());
    let device = Device::flex();
    let memory = model.encode(
        pad_rows(&[vec![5, 6, EOS]], &device),
        &mut Pass::evaluation(),
    );
    let run = |tgt: Vec<u32>| {
        let decoded = model.decode(pad_rows(&[tgt], &device), &memory, &mut Pass::evaluation());
        floats(decoded.hidden.narrow(1, 0, 2))
    };
    assert_eq!(run(vec![BOS, 8, 9, 10]), run(vec![BOS, 8, 17, 4]));
}

#[test]
fn batched_matches_single() {
    let model = model(&config());
    let sources = [vec![5, 6, 7, 8, 9, EOS], vec![11, EOS], vec![4, 4, 5, EOS]].map(Request::new);
    for options in [SearchOptions::greedy(), SearchOptions::beam(4)] {
        let batched = search(&model, &sources, &options);
        for (source, together) in sources.iter().zip(&batched) {
            let alone = &search(&model, &[source], &options)[0];
            assert_eq!(alone[0].tokens, together[0].tokens);
            assert!((alone[0].score - together[0].score).abs() < 1e-4);
        }
    }
}

#[test]
fn beam_of_one_is_greedy_with_the_real_model() {
    let model = model(&config());
    let sources = [vec![5, 6, 7, 8, 9, EOS], vec![11, EOS]].map(Request::new);
    let greedy = search(&model, &sources, &SearchOptions::greedy());
    let beam = search(&model, &sources, &SearchOptions::beam(1));
    for (g, b) in greedy.iter().zip(&beam) {
        assert_eq!(g[0].tokens, b[0].tokens);
    }
}

/// A grouped-query model is the multi-head model whose key and value heads are equal within a group.
#[test]
fn gqa_is_mha_with_repeated_heads() {
    let grouped_config = TransformerConfig {
        kv_heads: 2,
        ..config()
    };
    let grouped = model(&grouped_config);
    let head_dim = grouped_config.head_dim();
    let source = parameters::named(&grouped);
    let full = parameters::replace(
        Transformer::zeros(&config(), &Device::flex()),
        |name, old| {
            let parameter = source.iter().find(|p| p.name == name).expect("same names");
            let values = parameters::to_vec(&parameter.values);
            let columns = *parameter.shape.last().expect("a rank");
            let grouped_columns =
                name.contains("attention.key") || name.contains("attention.value");
            let values: Vec<f32> = if grouped_columns {
                values
                    .chunks(columns)
                    .flat_map(|row| {
                        row.chunks(head_dim)
                            .flat_map(|head| [head, head].concat())
                            .collect::<Vec<_>>()
                    })
                    .collect()
            } else {
                values
            };
            assert_eq!(values.len(), old.dims()[0], "{name}");
            let count = values.len();
            Tensor::from_data(TensorData::new(values, [count]), &Device::flex())
        },
    );
    let run = |model: &Transformer| {
        let device = Device::flex();
        let pass = &mut Pass::evaluation();
        let memory = model.encode(pad_rows(&[vec![5, 6, 7, EOS]], &device), pass);
        floats(
            model
                .decode(pad_rows(&[vec![BOS, 8, 9]], &device), &memory, pass)
                .hidden,
        )
    };
    assert_close(&run(&grouped), &run(&full), 1e-5);
}

#[test]
fn attention_weights_are_probabilities_over_what_may_be_seen() {
    let model = model(&config());
    let device = Device::flex();
    let pass = &mut Pass::inspection();
    let memory = model.encode(pad_rows(&[vec![5, 6, 7, EOS], vec![9, EOS]], &device), pass);
    let decoded = model.decode(
        pad_rows(&[vec![BOS, 8, 9], vec![BOS, 4, 5]], &device),
        &memory,
        pass,
    );
    for weights in memory
        .weights
        .iter()
        .chain(&decoded.self_weights)
        .chain(&decoded.cross_weights)
    {
        let [.., keys] = weights.dims();
        for row in floats(weights.clone()).chunks(keys) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        }
    }
    let last = floats(decoded.self_weights[1].clone());
    assert!(
        last.chunks(9)
            .all(|head| head[1] == 0.0 && head[2] == 0.0 && head[5] == 0.0)
    );
    let cross = floats(decoded.cross_weights[0].clone()); // [2, 4, 3, 4]: the second source has 2 tokens
    assert!(
        cross[48..]
            .chunks(4)
            .all(|row| row[2] == 0.0 && row[3] == 0.0)
    );
}

#[test]
fn parameters_survive_the_weights_file_bit_by_bit() {
    let dir = std::env::temp_dir().join(format!("attentive-nn-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("model.safetensors");
    for config in architectures() {
        let written = model(&config);
        let tensors = parameters::export(&written);
        let list = tensors
            .iter()
            .map(|(name, shape, values)| (name.as_str(), shape.as_slice(), values.as_slice()));
        Weights::write(&file, list).unwrap();
        let read = Transformer::load(&config, &file, &Device::flex()).unwrap();
        for (a, b) in parameters::named(&written)
            .iter()
            .zip(&parameters::named(&read))
        {
            assert_eq!(a.name, b.name);
            assert_eq!(parameters::to_vec(&a.values), parameters::to_vec(&b.values));
        }
        let count: usize = parameters::named(&read)
            .iter()
            .map(|p| p.values.dims()[0])
            .sum();
        assert_eq!(count, config.parameter_count());
    }
    let other = TransformerConfig {
        d_ff: 64,
        ..config()
    };
    let message = Transformer::load(&other, &file, &Device::flex())
        .unwrap_err()
        .to_string();
    assert!(message.contains("model.safetensors"), "{message}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn inspection_shows_the_weights_and_probabilities_of_the_forward_pass() {
    let model = model(&config());
    let (source, target) = ([5u32, 9, 4, 17], [8u32, 6, 21]);
    let seen = model.inspect(&source, &target, 3);

    let rows = |ids: &[u32]| pad_rows(&[ids.to_vec()], &Device::flex());
    let memory = model.encode(rows(&[5, 9, 4, 17, EOS]), &mut Pass::inspection());
    let decoded = model.decode(rows(&[BOS, 8, 6, 21]), &memory, &mut Pass::inspection());
    for (seen, layers) in [
        (&seen.encoder, &memory.weights),
        (&seen.decoder, &decoded.self_weights),
        (&seen.cross, &decoded.cross_weights),
    ] {
        assert_eq!(seen.len(), layers.len());
        for (heads, layer) in seen.iter().zip(layers) {
            assert_eq!(heads.concat(), floats(layer.clone()));
        }
    }
    // Rows sum to 1, and no position sees a later one.
    for (weights, keys) in seen
        .encoder
        .iter()
        .flatten()
        .map(|weights| (weights, 5))
        .chain(seen.decoder.iter().flatten().map(|weights| (weights, 4)))
        .chain(seen.cross.iter().flatten().map(|weights| (weights, 5)))
    {
        for row in weights.chunks(keys) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{row:?}");
        }
    }
    for weights in seen.decoder.iter().flatten() {
        for (query, row) in weights.chunks(4).enumerate() {
            assert!(
                row[query + 1..].iter().all(|weight| *weight == 0.0),
                "{row:?}"
            );
        }
    }
    // What it thinks comes next is what the search would be told, step by step.
    let mut state = SearchModel::start(&model, &[&Request::new(vec![5, 9, 4, 17, EOS])]);
    let mut log_probs = Vec::new();
    for ((read, written), step) in [BOS, 8, 6, 21]
        .iter()
        .zip([8, 6, 21, EOS])
        .zip(&seen.predictions)
    {
        SearchModel::step(&model, &mut state, &[*read], &mut log_probs);
        let better = log_probs
            .iter()
            .filter(|other| **other > log_probs[written as usize])
            .count();
        assert_close(&[step.log_prob], &[log_probs[written as usize]], 1e-4);
        assert_eq!(step.rank, better + 1);
        assert_eq!(step.candidates.len(), 3);
        assert!(step.candidates.is_sorted_by(|a, b| a.1 >= b.1));
        assert_close(
            &[step.candidates[0].1],
            &[log_probs.iter().copied().fold(f32::MIN, f32::max)],
            1e-4,
        );
    }
}

#[test]
fn the_schema_lists_the_parameters_of_the_network_in_their_order() {
    for config in architectures() {
        let built = parameters::named(&model(&config)).into_iter();
        let built: Vec<_> = built.map(|found| (found.name, found.shape)).collect();
        let listed = config.tensors().into_iter();
        let listed: Vec<_> = listed.map(|spec| (spec.name, spec.shape)).collect();
        assert_eq!(listed, built);
    }
}
