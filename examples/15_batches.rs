//! Batches: sentences of different length in one rectangle, and how much of it is padding (§5.1).
//!
//! 4,000 pairs with lengths like those of captions, batched in three ways: at random, in neighborhoods of similar
//! length, and by a number of tokens. Padding is computed and thrown away, so its share is wasted time.
//!
//! Run with `cargo run --release --example 15_batches [PICTURE.svg]`. Next: `16_label_smoothing_and_noam`.

mod picture;

use attentive_nn::random::mix;
use attentive_text::special::{BOS, EOS, PAD};
use attentive_train::data::batches::{Batch, Budget, padding_share, plan};
use attentive_train::data::corpus::Pair;

/// A pair of 5 to 28 source tokens and about as many target tokens, which depend on its number only.
fn pair(number: u64) -> Pair {
    let draw = |salt: u64, below: u64| mix(number << 8 | salt) % below;
    let length = 4 + draw(1, 9) + draw(2, 9) + draw(3, 9);
    let words = |count: u64| (0..count).map(|i| 4 + (mix(i) % 90) as u32);
    Pair {
        src: words(length).chain([EOS]).collect(),
        tgt: [BOS]
            .into_iter()
            .chain(words(length - 2 + draw(4, 5)))
            .chain([EOS])
            .collect(),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pairs: Vec<Pair> = (0..4000).map(pair).collect();
    // ANCHOR: collect
    let batch = Batch::collect(&pairs, &[0, 1, 2, 3]);
    for row in batch.src.chunks(batch.src_len) {
        let shown = row.iter().map(|id| if *id == PAD { '.' } else { 'o' });
        println!("{}", shown.collect::<String>());
    }
    // ANCHOR_END: collect
    println!("four sources, `.` is padding\n");

    let mut curves = Vec::new();
    for (name, budget) in [
        ("32 pairs at random", Budget::Random(32)),
        ("32 pairs of similar length", Budget::Sentences(32)),
        ("at most 512 tokens", Budget::Tokens(512)),
    ] {
        // ANCHOR: plan
        let batches = plan(&pairs, budget, 1, 0); // seed 1, epoch 0
        let share = padding_share(&pairs, &batches);
        // ANCHOR_END: plan
        println!(
            "{name:>26}: {:>3} batches, {:>4.1}% padding",
            batches.len(),
            share * 100.0
        );
        let mut shares: Vec<f64> = batches
            .iter()
            .map(|batch| 100.0 * padding_share(&pairs, std::slice::from_ref(batch)))
            .collect();
        shares.sort_by(f64::total_cmp);
        let count = shares.len() as f64;
        let points = shares
            .iter()
            .enumerate()
            .map(|(i, share)| (100.0 * i as f64 / count, *share));
        curves.push((name.to_owned(), points.collect()));
    }
    let labels = [
        "batches, the least padded first (percent)",
        "padding (percent)",
    ];
    let panel = picture::curves("Padding of each batch", labels, curves);
    Ok(picture::show("Padding", vec![panel])?)
}
