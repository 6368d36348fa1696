//! What training lowers, and how fast it walks: label smoothing (§5.4), the Noam schedule (§5.3), Adam.
//!
//! With label smoothing, a model that is too sure is punished: the loss has its lowest point before probability 1. The
//! learning rate rises for `warmup` steps and falls with the root of the step. Adam divides each gradient by its usual
//! size, so the first step is as long for a small gradient as for a large one.
//!
//! Run with `cargo run --release --example 16_label_smoothing_and_noam [PICTURE.svg]`. Next: `09_optimizers`.

mod picture;

use std::collections::BTreeMap;

use attentive_nn::init::Init;
use attentive_nn::layers::linear::Linear;
use attentive_nn::ops::{Precision, smoothed_loss};
use attentive_nn::parameters;
use attentive_train::optim::optimizer::{Optimizer, Step};
use attentive_train::optim::schedule::Schedule;
use attentive_train::recipe::{Optimizer as Settings, ScheduleKind, ScheduleSection};
use burn::tensor::{Device, Tensor};

const VOCAB: usize = 10;
const TRUE: u32 = 5;

/// The loss of a prediction that gives the true word `probability` and the rest to the others (nothing to padding).
fn loss(probability: f64, epsilon: f64) -> f64 {
    // ANCHOR: smoothing
    let others = ((1.0 - probability) / (VOCAB - 2) as f64).ln() as f32;
    let mut logits = [others; VOCAB];
    logits[attentive_text::special::PAD as usize] = -30.0;
    logits[TRUE as usize] = probability.ln() as f32;
    let logits = Tensor::<2>::from_data([logits], &Device::flex());
    let loss = smoothed_loss(logits, &[TRUE], epsilon).objective;
    // ANCHOR_END: smoothing
    loss.into_scalar::<f32>().max(0.0).into()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("loss by the probability of the true word, vocabulary of {VOCAB}");
    println!("  epsilon     0.5     0.8     0.9     0.99    0.999");
    let mut losses = Vec::new();
    for epsilon in [0.0, 0.1, 0.3] {
        let shown = [0.5, 0.8, 0.9, 0.99, 0.999].map(|p| format!("{:7.4}", loss(p, epsilon)));
        println!("  {epsilon:>7}  {}", shown.join(" "));
        let points = (20..=399).map(|i| f64::from(i) / 400.0);
        let points = points.map(|p| (p, loss(p, epsilon))).collect();
        losses.push((format!("epsilon {epsilon}"), points));
    }

    let mut rates = Vec::new();
    for (d_model, warmup) in [(512, 4000), (512, 8000), (256, 4000)] {
        // ANCHOR: noam
        let settings = ScheduleSection {
            kind: ScheduleKind::Noam,
            warmup,
            ..ScheduleSection::default()
        };
        let noam = Schedule::new(&settings, d_model);
        // ANCHOR_END: noam
        println!(
            "d_model {d_model}, warm-up {warmup}: rate {:.2e} at step 1, {:.2e} at step {warmup}, {:.2e} at step 20000",
            noam.rate(1),
            noam.rate(warmup),
            noam.rate(20_000)
        );
        let points = (0..=200).map(|i| (f64::from(i) * 100.0, 1e4 * noam.rate(i as usize * 100)));
        rates.push((format!("{d_model}:{warmup}"), points.collect()));
    }

    // ANCHOR: adam
    let device = Device::flex();
    let layer = Linear::new(1, 3, &mut Init::zeros(), &device);
    let gradient = Tensor::<1>::from_floats([100.0, 1.0, -0.001], &device);
    let gradients = BTreeMap::from([("weight".to_owned(), gradient)]);
    let step = Step {
        number: 1,
        learning_rate: 1e-3,
        gradient_scale: 1.0,
        precision: Precision::F32,
    };
    let mut adam = Optimizer::new(&Settings::default(), &[]);
    let layer = adam.step(layer, gradients, &step);
    // ANCHOR_END: adam
    let moved = parameters::to_vec(&layer.weight.val().reshape([3]));
    println!("Adam's first step for gradients of 100, 1 and -0.001: {moved:.6?}");

    let panels = vec![
        picture::curves("Loss", ["probability of the true word", "loss"], losses),
        picture::curves(
            "Learning rate (d_model:warm-up)",
            ["step", "rate, in 1e-4"],
            rates,
        ),
    ];
    Ok(picture::show(
        "Label smoothing and the Noam schedule",
        panels,
    )?)
}
