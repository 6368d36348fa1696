//! int8: weights and activations as bytes, and how little is lost.
//!
//! A row of numbers becomes bytes and one scale. First by hand, with fewer and fewer bits, then a trained model, as
//! `attentive quantize` does it: a quarter of the size, and the same words.
//!
//! Run with `cargo run --release --example 22_int8 [PICTURE.svg]`. Next: `23_mistakes_in_attention`.

mod picture;
mod reversal;

use attentive_model::directory::ModelDir;
use attentive_nn::random::mix;
use attentive_runtime::cpu::{Compute, CpuModel, quantize};
use attentive_runtime::inspection::Inspect;
use attentive_runtime::search::{Request, SearchOptions, search};
use attentive_text::special::source_ids;

const WIDTH: usize = 256;

/// Numbers around 0, like weights.
fn row(seed: u64) -> Vec<f32> {
    let unit = |i: u64| (mix(seed << 32 | i) >> 40) as f32 / 8_388_608.0 - 1.0;
    (0..WIDTH as u64)
        .map(|i| unit(3 * i) + unit(3 * i + 1) + unit(3 * i + 2))
        .collect()
}

// ANCHOR: quantized
/// Whole numbers of so many bits, and what one of them is worth.
fn quantized(row: &[f32], bits: u32) -> (Vec<i32>, f32) {
    let largest = row.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    let scale = largest / ((1 << (bits - 1)) - 1) as f32; // 127 steps each way for 8 bits
    (
        row.iter().map(|x| (x / scale).round() as i32).collect(),
        scale,
    )
}

/// The product of two rows: whole numbers are multiplied and added exactly, then scaled once.
fn product(a: &(Vec<i32>, f32), b: &(Vec<i32>, f32)) -> f32 {
    let sum: i32 = a.0.iter().zip(&b.0).map(|(a, b)| a * b).sum();
    sum as f32 * a.1 * b.1
}
// ANCHOR_END: quantized

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let short: Vec<f32> = row(1)[..6].to_vec();
    let (bytes, scale) = quantized(&short, 8);
    println!("numbers {short:.3?}\nbytes   {bytes:?}, one is worth {scale:.5}\n");

    let mut points = Vec::new();
    for bits in (2..=8).rev() {
        let (mut error, mut size) = (0.0, 0.0);
        for pair in 0..200 {
            let (a, b) = (row(2 * pair), row(2 * pair + 1));
            let exact: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            error += (product(&quantized(&a, bits), &quantized(&b, bits)) - exact).powi(2);
            size += exact.powi(2);
        }
        let percent = f64::from(100.0 * (error / size).sqrt());
        println!("{bits} bits: products of {WIDTH} numbers are off by {percent:.2}%");
        points.push((f64::from(bits), percent.log10()));
    }

    let folder = tempfile::tempdir()?;
    let (run, small) = (folder.path().join("run"), folder.path().join("int8"));
    reversal::train(&run, &[])?;
    // ANCHOR: model
    let report = quantize(&run, &small)?;
    let models = [
        CpuModel::open(&ModelDir::open(&run)?, Compute::F32)?,
        CpuModel::open(&ModelDir::open(&small)?, Compute::Int8)?,
    ];
    // ANCHOR_END: model
    println!(
        "\na trained model: {} -> {} bytes of weights ({} matrices are int8)",
        report.bytes_before, report.bytes_after, report.quantized
    );
    let tokenizer = ModelDir::open(&run)?.tokenizers.src;
    let (mut same, mut largest) = (0, 0.0f32);
    for number in 0..200u64 {
        let letter = |i| char::from(b'a' + (mix(number << 8 | i) % 10) as u8).to_string();
        let words: Vec<String> = (0..3 + number % 5).map(letter).collect();
        let source = tokenizer.encode(&words.join(" "));
        let outputs = models.each_ref().map(|model| {
            let request = Request::new(source_ids(&source[..]));
            search(model, &[request], &SearchOptions::greedy())
                .remove(0)
                .remove(0)
                .tokens
        });
        same += usize::from(outputs[0] == outputs[1]);
        let [f32s, int8s] = models
            .each_ref()
            .map(|model| model.inspect(&source, &outputs[0], 1).predictions);
        for (a, b) in f32s.iter().zip(int8s) {
            largest = largest.max((a.log_prob - b.log_prob).abs());
        }
    }
    println!(
        "{same} of 200 outputs are the same; log-probabilities differ by at most {largest:.4}"
    );
    let panel = picture::curves(
        "Error of a product",
        ["bits", "log10 of the error in percent"],
        vec![("256 numbers".to_owned(), points)],
    );
    Ok(picture::show("Fewer bits", vec![panel])?)
}
