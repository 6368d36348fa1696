//! From probabilities to a sentence: greedy search, beam search, the length penalty, sampling.
//!
//! Two models with probabilities that one can multiply on paper. In the first one the most probable first word leads to
//! an improbable sentence; in the second one every further word costs. The search is the one that translates.
//!
//! Run with `cargo run --release --example 17_decoding [PICTURE.svg]`. Next: `18_kv_cache`.

mod picture;

use attentive_runtime::search::fake::FakeModel;
use attentive_runtime::search::{Hypothesis, Method, Request, Sampling, SearchOptions, search};
use attentive_text::special::EOS;

const WORDS: [&str; 10] = ["", "", "", "", "A", "The", "dog", "cat", "runs", "sits"];
const A: u32 = 4;
const THE: u32 = 5;
const DOG: u32 = 6;
const CAT: u32 = 7;
const RUNS: u32 = 8;
const SITS: u32 = 9;

fn text(found: &Hypothesis) -> String {
    let words: Vec<&str> = found.tokens.iter().map(|id| WORDS[*id as usize]).collect();
    words.join(" ")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // ANCHOR: model
    let model = FakeModel::from_probabilities(WORDS.len(), |_, target| match target {
        [] => vec![(A, 0.55), (THE, 0.45)],
        [A] => vec![(DOG, 0.5), (CAT, 0.5)],
        [THE] => vec![(DOG, 0.9), (CAT, 0.1)],
        [A, _] => vec![(RUNS, 0.5), (SITS, 0.5)],
        [THE, _] => vec![(RUNS, 0.9), (SITS, 0.1)],
        _ => vec![(EOS, 1.0)],
    });
    // ANCHOR_END: model
    let request = || [Request::new(vec![EOS])];
    for size in [1, 2, 4] {
        // ANCHOR: beam
        let options = SearchOptions {
            method: Method::of_beam(size),
            ..SearchOptions::default()
        };
        let found = search(&model, &request(), &options);
        // ANCHOR_END: beam
        let best = &found[0][0];
        println!(
            "beam {size}: {:<13} probability {:.4}",
            text(best),
            best.log_prob.exp()
        );
    }

    println!(
        "\neach word has probability 0.7, the end 0.3; after six words there is nothing but the end"
    );
    // ANCHOR: length
    let wordy = FakeModel::from_probabilities(WORDS.len(), |_, target| match target.len() {
        0 => vec![(DOG, 1.0)],
        1..6 => vec![(DOG, 0.7), (EOS, 0.3)],
        _ => vec![(EOS, 1.0)],
    });
    // ANCHOR_END: length
    for length_penalty in [0.0, 0.6, 1.0] {
        let options = SearchOptions {
            length_penalty,
            ..SearchOptions::default()
        };
        let found = search(&wordy, &request(), &options);
        let best = &found[0][0];
        println!(
            "length penalty {length_penalty}: {} words, log-probability {:.3}, score {:.3}",
            best.tokens.len(),
            best.log_prob,
            best.score
        );
    }

    println!("\nhow often 2,000 samples say what, in percent");
    let sentences = ["The dog runs", "A dog runs", "The cat sits"];
    let mut lines = sentences.map(|sentence| (sentence.to_owned(), Vec::new()));
    for temperature in [0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0] {
        // ANCHOR: sample
        let sampling = Sampling {
            temperature,
            seed: 1,
            ..Sampling::default()
        };
        let options = SearchOptions {
            method: Method::Sample(sampling),
            n_best: 2000,
            ..SearchOptions::default()
        };
        let found = &search(&model, &request(), &options)[0];
        // ANCHOR_END: sample
        let shares = sentences.map(|sentence| {
            let count = found.iter().filter(|one| text(one) == sentence).count();
            count as f64 / found.len() as f64 * 100.0
        });
        for (line, share) in lines.iter_mut().zip(shares) {
            line.1.push((temperature, share));
        }
        let shown: Vec<String> = sentences
            .iter()
            .zip(shares)
            .map(|(s, x)| format!("{s} {x:4.1}"))
            .collect();
        println!("temperature {temperature:<4}  {}", shown.join("   "));
    }
    let panel = picture::curves(
        "Samples by temperature",
        ["temperature", "percent"],
        lines.into(),
    );
    Ok(picture::show("Sampling", vec![panel])?)
}
