//! Where a word stands, and what it may see: sinusoidal positions (§3.5) and masks (§3.2.3).
//!
//! Attention alone is blind to order: positions are added to the words so that it is not. And it sees
//! everything: masks hide the padding of a batch, and the future from a decoder that is to predict it.
//!
//! Run with `cargo run --example 02_positions_and_masks`. Next: `03_looking_inside`.

use attentive_nn::device;
use attentive_nn::layers::positions::sinusoids;
use attentive_nn::mask::Mask;
use attentive_text::special::PAD;
use burn::tensor::{Device, Int, Tensor};

const LENGTH: usize = 12;
const D_MODEL: usize = 32;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = device::parse("cpu")?;

    println!("positions: a row for each place, slow waves to the right (# is 1, blank is -1)");
    let table: Vec<f32> = sinusoids(0, LENGTH, D_MODEL, &device)
        .into_data()
        .iter::<f32>()
        .collect();
    let rows: Vec<&[f32]> = table.chunks(D_MODEL).collect();
    for (place, row) in rows.iter().enumerate() {
        let picture: String = row.iter().map(|value| shade((value + 1.0) / 2.0)).collect();
        println!("{place:>4}  {picture}");
    }

    println!("\nhow alike place 5 is to every place: its neighbors most, and the same both ways");
    for (place, row) in rows.iter().enumerate() {
        let likeness: f32 = row.iter().zip(rows[5]).map(|(a, b)| a * b).sum();
        println!(
            "{place:>4}  {}",
            "*".repeat(likeness.max(0.0).round() as usize)
        );
    }

    println!("\nmasks: x is hidden");
    // ANCHOR: masks
    let blank = i64::from(PAD);
    let tokens = Tensor::<2, Int>::from_data([[0, 7, 8, 9, 1], [0, 7, 1, blank, blank]], &device);
    show(
        "padding of two sentences, one row each",
        Mask::padding(tokens.clone(), PAD),
    );
    show("the future: row i sees places 0 to i", Mask::Causal);
    show(
        "both, for the two sentences below each other",
        Mask::causal_and_padding(tokens, PAD),
    );
    // ANCHOR_END: masks
    Ok(())
}

fn shade(value: f32) -> char {
    let shades = [' ', '.', ':', '-', '=', '+', '*', '#'];
    shades[((value * shades.len() as f32) as usize).min(shades.len() - 1)]
}

fn show(title: &str, mask: Mask) {
    println!("  {title}");
    let width = 5;
    let Some(hidden) = mask.pairs(width, width, &Device::flex()) else {
        return println!("    nothing is hidden");
    };
    let hidden: Vec<bool> = hidden.into_data().iter::<bool>().collect();
    for row in hidden.chunks(width) {
        let picture: Vec<&str> = row
            .iter()
            .map(|hidden| if *hidden { "x" } else { "." })
            .collect();
        println!("    {}", picture.join(" "));
    }
}
