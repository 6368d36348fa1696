//! What each normalization averages over: one number is changed, and everything that changes with it is marked.
//!
//! Of `[batch, len, channels]`, batch norm averages over the batch and the positions, layer norm over the channels of a
//! position, instance norm over the positions, group norm over the positions and some channels; RMS norm is layer norm
//! without a mean. In evaluation, batch norm takes the averages of training, and every number is on its own.
//!
//! Run with `cargo run --release --example 07_normalizations [PICTURE.svg]`. Next: `08_activations`.

mod picture;

use attentive_nn::init::Init;
use attentive_nn::layers::norm::{BatchNorm, GroupNorm, LayerNorm, RmsNorm, RunningMoments};
use burn::tensor::{Device, Tensor};

const SHAPE: [usize; 3] = [3, 4, 8]; // [batch, len, channels]
const CHANNELS: usize = SHAPE[2];

/// The number that is changed: the second row, its second position, the third channel.
const CHANGED: usize = (1 + SHAPE[1]) * CHANNELS + 2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = &Device::flex();
    // ANCHOR: norms
    let batch = BatchNorm::new(CHANNELS, 1e-5, 0.1, device);
    let layer = LayerNorm::new(CHANNELS, 1e-5, device);
    let instance = GroupNorm::instance(CHANNELS, 1e-5, device);
    let group = GroupNorm::new(2, CHANNELS, 1e-5, device);
    let rms = RmsNorm::new(CHANNELS, 1e-5, device);
    let seen = || RunningMoments::new(CHANNELS, device);
    let norms: [(&str, &dyn Fn(Tensor<3>) -> Tensor<3>); 6] = [
        ("Batch norm, training", &|x| {
            batch.forward_training(x, &mut seen())
        }),
        ("Batch norm, evaluation", &|x| {
            batch.forward_evaluation(x, &seen())
        }),
        ("Layer norm", &|x| layer.forward(x)),
        ("Instance norm", &|x| instance.forward(x)),
        ("Group norm, 2 groups", &|x| group.forward(x)),
        ("RMS norm", &|x| rms.forward(x)),
    ];
    // ANCHOR_END: norms

    let rows = SHAPE[0] * SHAPE[1];
    let x = Init::xavier_uniform(3).matrix(rows, CHANNELS, device) * 3.0;
    let unit = (0..rows * CHANNELS).map(|i| if i == CHANGED { 1.0 } else { 0.0 });
    let unit = Tensor::<1>::from_floats(&unit.collect::<Vec<f32>>()[..], device).reshape(SHAPE);
    let mut panels = Vec::new();
    for (name, norm) in norms {
        // ANCHOR: touched
        let before = norm(x.clone().reshape(SHAPE));
        let after = norm(x.clone().reshape(SHAPE) + unit.clone());
        let change: Vec<f32> = (after - before).abs().into_data().iter::<f32>().collect();
        // ANCHOR_END: touched
        let touched = |(i, change): (usize, &f32)| match change {
            _ if i == CHANGED => 1.0,
            change if *change > 1e-5 => 0.5,
            _ => 0.0,
        };
        let marks: Vec<f32> = change.iter().enumerate().map(touched).collect();
        let together = marks.iter().filter(|mark| **mark > 0.0).count();
        println!(
            "{name:>22}: averages over {together:>2} of {} numbers",
            marks.len()
        );
        let labels = ["channel", "row and position (3 x 4)"];
        panels.push(picture::map(name, labels, CHANNELS, marks));
    }
    let title = "What changes with one number (darkest): what is averaged together";
    Ok(picture::show(title, panels)?)
}
