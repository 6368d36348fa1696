//! The first attention for translation: a recurrent decoder that looks at the source anew at every step.
//!
//! Two translators of gated recurrent units learn to write lines backwards. One gets the whole line as a single vector
//! (Cho et al. 2014), the other attends to all states of the encoder (Bahdanau et al. 2015). The map shows where the
//! second one looks: at the end first.
//!
//! Run with `cargo run --release --example 06_bahdanau [PICTURE.svg]`. Next: `07_normalizations`.

mod picture;

use attentive_model::config::{Context, ModelConfig, Preset, RecurrentConfig};
use attentive_nn::models::EncoderDecoder;
use attentive_nn::models::recurrent::Recurrent;
use attentive_nn::models::transformer::search::pad_rows;
use attentive_nn::ops::Precision;
use attentive_nn::parameters;
use attentive_nn::pass::Pass;
use attentive_nn::random::mix;
use attentive_runtime::inspection::Inspect;
use attentive_text::special::{decoder_input, decoder_output, source_ids};
use attentive_train::optim::optimizer::{Optimizer, Step, clip_scale, global_norm};
use attentive_train::recipe::Optimizer as Settings;
use burn::tensor::Device;

const LETTERS: u64 = 10;
const SPECIALS: u32 = 4;

/// A line of letters that depends on its number only.
fn line(number: u64) -> Vec<u32> {
    let length = 4 + mix(number) % 9;
    (1..=length)
        .map(|i| SPECIALS + (mix(number << 8 | i) % LETTERS) as u32)
        .collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut losses = Vec::new();
    let mut panels = Vec::new();
    for (name, context) in [
        ("one fixed context", Context::Fixed),
        ("attention", Context::Attention),
    ] {
        // ANCHOR: model
        let config = RecurrentConfig {
            d_embedding: 32,
            d_hidden: 64,
            d_attention: 64,
            context,
            dropout: 0.0,
            ..RecurrentConfig::from_preset(Preset::Tiny)
        };
        let vocab = SPECIALS as usize + LETTERS as usize;
        let config = config.with_vocabularies(vocab, vocab);
        let device = Device::flex().autodiff();
        let mut model = Recurrent::new(&config, 1, &device);
        // ANCHOR_END: model
        let mut optimizer = Optimizer::new(&Settings::default(), &config.tensors());
        let mut points = Vec::new();
        for number in 1..=250 {
            // ANCHOR: step
            let lines: Vec<Vec<u32>> = (0..48).map(|row| line(number * 64 + row)).collect();
            let backwards = lines
                .iter()
                .map(|line| line.iter().rev().copied().collect());
            let targets: Vec<Vec<u32>> = backwards.collect();
            let src = pad_rows(
                &lines
                    .iter()
                    .map(|line| source_ids(&line[..]))
                    .collect::<Vec<_>>(),
                &device,
            );
            let read = pad_rows(
                &targets
                    .iter()
                    .map(|line| decoder_input(&line[..]))
                    .collect::<Vec<_>>(),
                &device,
            );
            let written = pad_rows(
                &targets
                    .iter()
                    .map(|line| decoder_output(&line[..]))
                    .collect::<Vec<_>>(),
                &device,
            );
            let written: Vec<u32> = written.into_data().iter::<u32>().collect();
            let tokens = targets.iter().map(|line| line.len() + 1).sum::<usize>() as f64;
            let pass = &mut Pass::training(1, number, Precision::F32);
            let hidden = model.teacher_forcing(src, read, pass);
            let loss = model.loss(hidden, &written, 0.0, pass).objective;
            let value = f64::from(loss.clone().into_scalar::<f32>()) / tokens;
            let gradients = parameters::gradients(&model, loss.backward());
            let norm = global_norm(&gradients) / tokens;
            let update = Step {
                number,
                learning_rate: 5e-3,
                gradient_scale: clip_scale(norm, 1.0) / tokens,
                precision: Precision::F32,
            };
            model = optimizer.step(model, gradients, &update);
            // ANCHOR_END: step
            points.push((number as f64, value));
            if number % 50 == 0 {
                println!("{name:>18}, step {number}: loss {value:.3}");
            }
        }
        losses.push((name.to_owned(), points));
        // ANCHOR: inspect
        let source = line(7);
        let target: Vec<u32> = source.iter().rev().copied().collect();
        let weights = model.inspect(&source, &target, 1).cross;
        // ANCHOR_END: inspect
        if let Some(weights) = weights.into_iter().flatten().next() {
            let labels = ["letter of the line", "letter that is written"];
            panels.push(picture::map(
                "Where attention looks",
                labels,
                source.len() + 1,
                weights,
            ));
        }
    }
    panels.insert(
        0,
        picture::curves("Loss per letter", ["step", "loss"], losses),
    );
    Ok(picture::show(
        "Writing lines backwards, with and without attention",
        panels,
    )?)
}
