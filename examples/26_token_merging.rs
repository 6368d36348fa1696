//! Token merging: the most similar tokens become one, without any training (ToMe, Bolya et al. 2023).
//!
//! An image of 16 x 16 patches: a bright disk on a dark ground, with a little noise. Most patches say the same as their
//! neighbors, so many of them can be merged, and copied back, before anything is lost. Where all patches are different, as in
//! pure noise, every merge costs.
//!
//! Run with `cargo run --release --example 26_token_merging [PICTURE.svg]`.

mod picture;

use attentive_nn::attention::merging::{Merging, Sides};
use attentive_nn::random::mix;
use burn::tensor::{Device, Tensor, TensorData};

const SIDE: usize = 16;
const WIDTH: usize = 8;

/// A number in -1..1 that depends on `seed` only.
fn noise(seed: usize) -> f32 {
    (mix(seed as u64) >> 40) as f32 / 8_388_608.0 - 1.0
}

fn inside(place: usize) -> bool {
    let [y, x] = [place / SIDE, place % SIDE].map(|at| at as f32 - 7.5);
    y * y + x * x < 25.0
}

/// The vectors of all patches: one of two directions, and so much noise.
fn patches(of_image: f32, of_noise: f32) -> Tensor<3> {
    let value = |i: usize| {
        let (place, channel) = (i / WIDTH, i % WIDTH);
        let direction = noise(1_000_000 + 2 * channel + usize::from(inside(place)));
        of_image * direction + of_noise * noise(i)
    };
    let values: Vec<f32> = (0..SIDE * SIDE * WIDTH).map(value).collect();
    let data = TensorData::new(values, [1, SIDE * SIDE, WIDTH]);
    Tensor::from_data(data, &Device::flex())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut lines = Vec::new();
    let mut panels = Vec::new();
    for (name, image, noise) in [("disk", 1.0, 0.2), ("noise", 0.0, 1.0)] {
        let x = patches(image, noise);
        let mut points = vec![(0.0, 0.0)];
        for count in [32, 64, 96, 128, 160, 192] {
            // ANCHOR: merge
            // One destination in every square of 2 x 2 patches; the others look for the most similar one.
            let merging = Merging::of(x.clone(), &Sides::squares(SIDE, 0), count);
            let sizes = vec![1.0; SIDE * SIDE];
            let (fewer, sizes) = merging.merge(x.clone(), &sizes);
            let back = merging.unmerge(fewer);
            // ANCHOR_END: merge
            let error = (back - x.clone()).square().sum() / x.clone().square().sum();
            let percent = 100.0 * f64::from(error.sqrt().into_scalar::<f32>());
            let (before, after) = merging.lengths();
            let largest = sizes.iter().copied().fold(0.0, f32::max);
            println!(
                "{name:>5}: {before} -> {after:>3} tokens, the largest of {largest:>2} patches, off by {percent:4.1}%"
            );
            points.push((count as f64 * 100.0 / before as f64, percent));
            if name == "disk" && count == 192 {
                let shade = |place: &usize| (mix(*place as u64) >> 40) as f32 / 16_777_216.0;
                let groups = merging.places(0).iter().map(shade).collect();
                let title = "Patches that are one token have one color";
                panels.push(picture::map(title, ["x", "y"], SIDE, groups));
            }
        }
        lines.push((name.to_owned(), points));
    }
    let labels = ["tokens merged (percent)", "error (percent)"];
    panels.insert(0, picture::curves("Merged and copied back", labels, lines));
    Ok(picture::show("Token merging", panels)?)
}
