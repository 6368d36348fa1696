//! The CPU runtime beside the Burn model it must equal, for every architecture.

use attentive_model::config::{
    Activation, Autoregression, EmbeddingNorm, FinalNorm, NormPlacement, PositionKind, Preset,
    TransformerConfig, Tying,
};
use attentive_model::{ModelDir, Tokenizers};
use attentive_nn::models::transformer::Transformer;
use attentive_nn::parameters;
use attentive_runtime::cpu::{Compute, CpuModel, Isa, quantize};
use attentive_runtime::inspection::{Inspect, Inspection};
use attentive_runtime::search::{Method, Request, SearchModel, SearchOptions, restrict, search};
use attentive_text::special::{BOS, EOS};
use attentive_text::{Tokenizer, TokenizerKind, TokenizerOptions};
use burn::tensor::Device;

/// Every kind of model, in sizes that no vector divides.
fn architectures() -> Vec<TransformerConfig> {
    let mut all = Vec::new();
    for norm in [NormPlacement::Pre, NormPlacement::Post] {
        for positions in [PositionKind::Sinusoidal, PositionKind::Learned] {
            for tying in [Tying::None, Tying::Output, Tying::All] {
                for (d_model, d_ff, heads, kv_heads) in [
                    (32, 48, 4, 4),
                    (36, 50, 6, 2),
                    (20, 7, 4, 1),
                    (80, 130, 2, 2),
                ] {
                    let vocab = VOCAB;
                    all.push(TransformerConfig {
                        d_model,
                        d_ff,
                        heads,
                        kv_heads,
                        norm,
                        positions,
                        tying,
                        encoder_layers: 2,
                        decoder_layers: 2,
                        max_positions: 60,
                        ..Preset::Tiny.config(vocab, vocab)
                    });
                }
            }
        }
    }
    all.extend(variants());
    all
}

/// Models that differ from the paper's in other ways.
fn variants() -> Vec<TransformerConfig> {
    let base = |d_model, d_ff, heads, kv_heads| TransformerConfig {
        d_model,
        d_ff,
        heads,
        kv_heads,
        encoder_layers: 2,
        decoder_layers: 2,
        max_positions: 60,
        ..Preset::Tiny.config(VOCAB, VOCAB)
    };
    vec![
        TransformerConfig {
            activation: Activation::Swish,
            positions: PositionKind::SinusoidalHalves,
            norm: NormPlacement::Post,
            tying: Tying::All,
            ..base(36, 50, 6, 2)
        },
        TransformerConfig {
            activation: Activation::Gelu,
            positions: PositionKind::TimingSignal,
            position_offset: 2,
            embedding_scale: Some(1.0),
            final_norm: FinalNorm::None,
            ..base(32, 48, 4, 4)
        },
        TransformerConfig {
            activation: Activation::GeluTanh,
            positions: PositionKind::Learned,
            embedding_norm: EmbeddingNorm::LayerNorm,
            final_norm: FinalNorm::LayerNorm,
            norm: NormPlacement::Post,
            tying: Tying::Output,
            ..base(20, 7, 4, 1)
        },
        TransformerConfig {
            activation: Activation::GeluSigmoid,
            embedding_norm: EmbeddingNorm::LayerNorm,
            ..base(80, 130, 2, 2)
        },
        // Bergamot's students.
        TransformerConfig {
            autoregression: Autoregression::Ssru,
            positions: PositionKind::TimingSignal,
            norm: NormPlacement::Post,
            tying: Tying::All,
            ..base(32, 48, 4, 4)
        },
        // Cells that no vector divides, and which are wider than queries, keys and values.
        TransformerConfig {
            autoregression: Autoregression::Ssru,
            activation: Activation::Swish,
            embedding_norm: EmbeddingNorm::LayerNorm,
            ..base(36, 50, 6, 1)
        },
        TransformerConfig {
            autoregression: Autoregression::Ssru,
            positions: PositionKind::Learned,
            tying: Tying::Output,
            ..base(20, 7, 4, 1)
        },
    ]
}

const VOCAB: usize = 37;

/// A model directory with random weights, biases and norms included.
struct Saved {
    folder: tempfile::TempDir,
}

impl Saved {
    fn new(config: &TransformerConfig) -> Self {
        Self::with(config, |_| true, |_, _| {})
    }

    /// As [`Saved::new`], with only some tensors, or with other shapes.
    fn with(
        config: &TransformerConfig,
        keep: impl Fn(&str) -> bool,
        change: impl Fn(&str, &mut Vec<usize>),
    ) -> Self {
        let mut tensors = parameters::export(&Transformer::new(config, 5, &Device::flex()));
        tensors.retain(|(name, ..)| keep(name));
        for (seed, (name, shape, values)) in tensors.iter_mut().enumerate() {
            for (i, value) in values.iter_mut().enumerate() {
                let noise = ((seed * 7919 + i) as u32).wrapping_mul(2_654_435_761) >> 16;
                *value += (noise as f32 / 65_536.0 - 0.5) * 0.4;
            }
            change(name, shape);
        }
        let options = TokenizerOptions {
            kind: TokenizerKind::Word,
            vocab_size: 0,
            min_frequency: 1,
            lowercase: false,
        };
        let words: Vec<String> = (4..VOCAB).map(|word| format!("w{word}")).collect();
        let tokenizer = Tokenizer::train(&options, &mut [words.join(" ").as_str()].into_iter());
        let tokenizers = Tokenizers::shared(tokenizer.expect("some words"));
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("f32");
        let tensors = tensors.iter().map(|(n, s, v)| (&**n, &s[..], &v[..]));
        ModelDir::save(path, config, &tokenizers, tensors).expect("a writable directory");
        Self { folder }
    }

    fn dir(&self) -> ModelDir {
        ModelDir::open(self.folder.path().join("f32")).expect("a model just saved")
    }

    fn cpu(&self, compute: Compute) -> CpuModel {
        CpuModel::open(&self.dir(), compute).expect("a sound model")
    }

    fn burn(&self) -> Transformer {
        let dir = self.dir();
        let file = dir.path.join("model.safetensors");
        Transformer::load(&dir.config, &file, &Device::flex()).expect("a sound model")
    }

    fn int8_dir(&self) -> ModelDir {
        let to = self.folder.path().join("int8");
        quantize(&self.dir().path, &to).expect("a new directory");
        ModelDir::open(to).expect("a model just written")
    }
}

fn sources() -> Vec<Vec<u32>> {
    [3, 21, 1, 16, 9]
        .iter()
        .map(|&len| {
            (0..len)
                .map(|i| 4 + (i * 7 + len) % 33)
                .chain([EOS])
                .collect()
        })
        .collect()
}

/// Log-probabilities of forced steps, with beams that split, move and end on the way.
fn forced<M: SearchModel>(model: &M) -> Vec<f32> {
    let requests: Vec<Request> = sources().into_iter().map(Request::new).collect();
    let mut state = model.start(&requests.iter().collect::<Vec<_>>());
    let (mut all, mut row) = (Vec::new(), Vec::new());
    let mut tokens = vec![BOS; 5];
    for step in 0..40u32 {
        model.step(&mut state, &tokens, &mut row);
        all.extend_from_slice(&row);
        let rows: &[usize] = match step {
            2 => &[0, 0, 1, 2, 2, 2, 3, 4],
            5 => &[1, 0, 2, 3, 3, 5, 6, 7],
            18 => &[0, 0, 2, 4, 5],
            30 => &[1, 3, 3],
            _ => &[],
        };
        if !rows.is_empty() {
            model.reorder(&mut state, rows);
            tokens.resize(rows.len(), 0);
        }
        for (i, token) in (0..).zip(&mut tokens) {
            *token = 4 + (step * 5 + i * 3) % 33;
        }
    }
    all
}

fn assert_close(left: &[f32], right: &[f32], tolerance: f32, what: &str) {
    assert_eq!(left.len(), right.len());
    for (i, (l, r)) in left.iter().zip(right).enumerate() {
        assert!(
            (l - r).abs() <= tolerance,
            "{what}, element {i}: {l} and {r}"
        );
    }
}

/// Relative to the mean size of what is expected.
fn mean_difference(left: &[f32], right: &[f32]) -> f32 {
    assert_eq!(left.len(), right.len());
    let sum: f32 = left.iter().zip(right).map(|(l, r)| (l - r).abs()).sum();
    sum / right.iter().map(|r| r.abs()).sum::<f32>()
}

#[test]
fn candidates_restrict_the_rows_of_their_own_request_in_both_models() {
    fn check<M: SearchModel>(model: &M) {
        let mut requests: Vec<Request> = sources().into_iter().map(Request::new).collect();
        let free = forced(model);
        let candidates = [EOS, 6, 20, 36];
        requests[1].candidates = Some(candidates.into());
        let mut state = model.start(&requests.iter().collect::<Vec<_>>());
        let mut rows = Vec::new();
        model.step(&mut state, &[BOS; 5], &mut rows);
        let own = |i: usize| (i == 1).then_some(&candidates[..]);
        let mut expected = free[..5 * VOCAB].to_vec();
        restrict(&mut expected, VOCAB, (0..5).map(own));
        assert_close(&rows, &expected, 1e-5, "all rows");
        model.reorder(&mut state, &[2, 1, 1]);
        model.step(&mut state, &[5; 3], &mut rows);
        assert_eq!(rows.len(), VOCAB + 4 + 4);
        assert!(rows.iter().all(|log_prob| log_prob.is_finite()));
    }
    let saved = Saved::new(&architectures()[0]);
    check(&saved.burn());
    check(&saved.cpu(Compute::F32));
    check(&saved.cpu(Compute::Int8));
}

#[test]
fn f32_equals_the_burn_model_with_every_architecture_and_instruction_set() {
    for config in architectures() {
        let saved = Saved::new(&config);
        let expected = forced(&saved.burn());
        for isa in Isa::available() {
            let model =
                CpuModel::open_with(&saved.dir(), Compute::F32, isa).expect("a sound model");
            assert_close(
                &forced(&model),
                &expected,
                1e-4,
                &format!("{isa:?} {config:?}"),
            );
        }
    }
}

/// Log-probabilities of the first token after a long source, which is encoded block by block.
fn after_a_long_source<M: SearchModel>(model: &M) -> Vec<f32> {
    let words = (0..3000u32).map(|i| 4 + i * i % 33);
    let source = Request::new(words.chain([EOS]).collect());
    let mut state = model.start(&[&source]);
    let mut row = Vec::new();
    model.step(&mut state, &[BOS], &mut row);
    row
}

#[test]
fn a_source_of_3000_tokens_equals_the_burn_model() {
    let saved = Saved::new(&architectures()[0]);
    let found = after_a_long_source(&saved.cpu(Compute::F32));
    assert_close(&found, &after_a_long_source(&saved.burn()), 1e-4, "long");
}

#[test]
fn int8_stays_close_to_f32_with_every_architecture_and_instruction_set() {
    for config in architectures() {
        let saved = Saved::new(&config);
        let expected = forced(&saved.cpu(Compute::F32));
        for isa in Isa::available() {
            let model =
                CpuModel::open_with(&saved.dir(), Compute::Int8, isa).expect("a sound model");
            let difference = mean_difference(&forced(&model), &expected);
            assert!(difference < 0.05, "{isa:?} {config:?}: {difference}");
            assert!(difference > 0.0, "int8 was not used");
        }
    }
}

#[test]
fn a_quantized_directory_gives_what_quantizing_when_loading_gives() {
    for config in architectures() {
        let saved = Saved::new(&config);
        let dir = saved.int8_dir();
        let stored = CpuModel::open(&dir, Compute::Auto).expect("a sound model");
        assert_eq!(stored.compute(), Compute::Int8);
        assert_eq!(
            forced(&stored),
            forced(&saved.cpu(Compute::Int8)),
            "{config:?}"
        );
    }
}

#[test]
fn batches_and_their_order_change_no_bit() {
    let options = |method| SearchOptions {
        method,
        ..Default::default()
    };
    for config in architectures().into_iter().step_by(5).chain(variants()) {
        let saved = Saved::new(&config);
        for compute in [Compute::F32, Compute::Int8] {
            let model = saved.cpu(compute);
            for method in [Method::Greedy, Method::Beam { size: 3 }] {
                let options = options(method);
                let mut many: Vec<Request> = Vec::new();
                for copy in 0..6 {
                    many.extend(sources().into_iter().map(|mut source| {
                        source[0] = 4 + copy;
                        Request::new(source)
                    }));
                }
                let together = search(&model, &many, &options);
                let alone: Vec<_> = many
                    .iter()
                    .flat_map(|one| search(&model, &[one], &options))
                    .collect();
                assert_eq!(together, alone, "{config:?}");
                many.reverse();
                let mut reversed = search(&model, &many, &options);
                reversed.reverse();
                assert_eq!(together, reversed, "{config:?}");
            }
        }
    }
}

/// All weights of an inspection, one after the other.
fn weights(inspection: &Inspection) -> Vec<f32> {
    let stacks = [&inspection.encoder, &inspection.decoder, &inspection.cross];
    let heads = stacks.into_iter().flatten().flatten();
    heads.flatten().copied().collect()
}

/// A sentence pair without special tokens; the target has more positions than a batch of rows.
fn pair() -> (Vec<u32>, Vec<u32>) {
    let tgt = (0..117).map(|i| 4 + (i * 5 + 3) % 33).collect();
    (sources()[1][..21].to_vec(), tgt)
}

#[test]
fn attention_weights_and_predictions_equal_those_of_the_burn_model() {
    for config in architectures() {
        let saved = Saved::new(&config);
        let (cpu, burn) = (saved.cpu(Compute::F32), saved.burn());
        assert_eq!(cpu.position_limit(), burn.position_limit());
        let (src, long) = pair();
        for tgt in [&long[..], &long[..4], &[]] {
            let (found, expected) = (cpu.inspect(&src, tgt, 5), burn.inspect(&src, tgt, 5));
            let shape = |inspection: &Inspection| {
                let stacks = [&inspection.encoder, &inspection.decoder, &inspection.cross];
                let size = |head: &Vec<f32>| head.len();
                stacks.map(|layers| {
                    let sizes = |heads: &Vec<Vec<f32>>| heads.iter().map(size).collect();
                    layers.iter().map(sizes).collect::<Vec<Vec<usize>>>()
                })
            };
            assert_eq!(shape(&found), shape(&expected), "{config:?}");
            assert_close(&weights(&found), &weights(&expected), 1e-5, "weights");
            for (found, expected) in found.predictions.iter().zip(&expected.predictions) {
                assert!((found.log_prob - expected.log_prob).abs() < 1e-4);
                assert_eq!(found.rank, expected.rank, "{config:?}");
                let ids = |candidates: &[(u32, f32)]| candidates.iter().map(|c| c.0).collect();
                let (found, expected): (Vec<u32>, Vec<u32>) =
                    (ids(&found.candidates), ids(&expected.candidates));
                assert_eq!(found, expected, "{config:?}");
            }
        }
    }
}

#[test]
fn attention_weights_are_distributions_over_what_a_query_may_see() {
    for config in architectures().into_iter().step_by(3) {
        let saved = Saved::new(&config);
        let (src, tgt) = pair();
        for compute in [Compute::F32, Compute::Int8] {
            let inspection = saved.cpu(compute).inspect(&src, &tgt, 1);
            let (src_len, tgt_len) = (src.len() + 1, tgt.len() + 1);
            for (layers, keys) in [
                (&inspection.encoder, src_len),
                (&inspection.decoder, tgt_len),
                (&inspection.cross, src_len),
            ] {
                for row in layers.iter().flatten().flat_map(|head| head.chunks(keys)) {
                    assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{row:?}");
                }
            }
            for head in inspection.decoder.iter().flatten() {
                for (query, row) in head.chunks(tgt_len).enumerate() {
                    assert!(row[query + 1..].iter().all(|&weight| weight == 0.0));
                }
            }
        }
    }
}

#[test]
fn attention_weights_of_int8_stay_close_to_f32() {
    for config in architectures() {
        let saved = Saved::new(&config);
        let (src, tgt) = pair();
        let inspect = |compute| weights(&saved.cpu(compute).inspect(&src, &tgt, 1));
        let difference = mean_difference(&inspect(Compute::Int8), &inspect(Compute::F32));
        assert!(difference < 0.1, "{config:?}: {difference}");
        assert!(difference > 0.0, "int8 was not used");
    }
}

#[test]
fn predictions_are_those_of_the_steps_of_a_search_to_the_last_bit() {
    for config in architectures().into_iter().step_by(5) {
        let saved = Saved::new(&config);
        let (src, tgt) = pair();
        for compute in [Compute::F32, Compute::Int8] {
            let model = saved.cpu(compute);
            let predictions = model.inspect(&src, &tgt, VOCAB).predictions;
            assert_eq!(predictions.len(), tgt.len() + 1);
            let mut state = model.start(&[&Request::new([&src[..], &[EOS]].concat())]);
            let (mut row, mut fed) = (Vec::new(), BOS);
            for (prediction, &next) in predictions.iter().zip(tgt.iter().chain([&EOS])) {
                model.step(&mut state, &[fed], &mut row);
                assert_eq!(prediction.log_prob, row[next as usize], "{config:?}");
                for &(token, log_prob) in &prediction.candidates {
                    assert_eq!(log_prob, row[token as usize], "{config:?}");
                }
                fed = next;
            }
        }
    }
}

#[test]
fn alignments_use_the_mean_over_the_heads_of_all_layers_but_the_first() {
    let mean = |rows: &[Vec<f32>]| -> Vec<f32> {
        let share = 1.0 / rows.len() as f32;
        let sum = |i: usize| rows.iter().fold(0.0, |sum, row| sum + share * row[i]);
        (0..rows[0].len()).map(sum).collect()
    };
    for config in architectures().into_iter().step_by(5) {
        for compute in [Compute::F32, Compute::Int8] {
            let model = Saved::new(&config).cpu(compute);
            let (src, tgt) = pair();
            let layers = model.inspect(&src, &tgt, 1).cross;
            let layers = &layers[usize::from(layers.len() > 1)..];
            let layers: Vec<Vec<f32>> = layers.iter().map(|heads| mean(heads)).collect();
            let found = model.cross_attention(&[&src[..], &[EOS]].concat(), &tgt);
            assert_eq!(found, Some(mean(&layers)), "{config:?}");
        }
    }
}

/// How the CPU runtime and the Burn model refuse a damaged model.
fn refusals(saved: &Saved, compute: Compute) -> [String; 2] {
    let dir = saved.dir();
    let cpu = CpuModel::open(&dir, compute).expect_err("damaged");
    let file = dir.path.join("model.safetensors");
    let burn = Transformer::load(&dir.config, &file, &Device::flex()).expect_err("damaged");
    [cpu.to_string(), burn.to_string()]
}

#[test]
fn missing_and_misshapen_tensors_are_named_with_the_remedy() {
    let config = architectures().remove(0);
    let names = parameters::export(&Transformer::new(&config, 5, &Device::flex()));
    for (name, shape, _) in &names {
        let without = Saved::with(&config, |other| other != name, |_, _| {});
        for message in refusals(&without, Compute::Auto) {
            assert!(
                message.contains(&format!("no tensor `{name}`")),
                "{message}"
            );
        }
        let other: Vec<usize> = shape
            .iter()
            .product::<usize>()
            .checked_div(2)
            .into_iter()
            .chain([2])
            .collect();
        let turned = Saved::with(
            &config,
            |_| true,
            |tensor, shape| {
                if tensor == name {
                    *shape = if shape.iter().product::<usize>() % 2 == 0 {
                        other.clone()
                    } else {
                        vec![1, shape[0]]
                    };
                }
            },
        );
        for message in refusals(&turned, Compute::Int8) {
            assert!(
                message.contains(&format!("tensor `{name}` has shape")),
                "{message}"
            );
            assert!(
                message.contains(&format!("expected {shape:?}")),
                "{message}"
            );
        }
    }
}

#[test]
fn int8_weights_are_not_taken_for_f32() {
    let saved = Saved::new(&architectures()[0]);
    let dir = saved.int8_dir();
    let message = CpuModel::open(&dir, Compute::F32)
        .expect_err("int8 weights")
        .to_string();
    assert!(message.contains("the weights are int8"), "{message}");
    let file = dir.path.join("model.safetensors");
    let burn = Transformer::load(&dir.config, &file, &Device::flex()).expect_err("int8 weights");
    assert!(burn.to_string().contains("the weights are int8"), "{burn}");
    let again = quantize(&dir.path, &saved.folder.path().join("twice"));
    assert!(
        again
            .expect_err("int8 weights")
            .to_string()
            .contains("int8 already")
    );
    assert!(!saved.folder.path().join("twice").exists());
    let taken = quantize(&saved.dir().path, &dir.path).expect_err("a directory with a model");
    assert!(taken.to_string().contains("exists already"), "{taken}");
}
