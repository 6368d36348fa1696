//! The KV cache: a decoder need not compute the keys and values of its past again.
//!
//! A GPT with random weights writes 256 tokens, once with the cache and once without. Both write the same; with the cache
//! a token costs one position, without it as many as there are. The cache holds keys *and* values: the last lines show
//! what is missing without the latter.
//!
//! Run with `cargo run --release --example 18_kv_cache [PICTURE.svg]`. Next: `19_grouped_queries`.

mod picture;

use std::time::Instant;

use attentive_model::config::{GptConfig, ModelConfig, Preset};
use attentive_nn::attention::cache::{KeyValues, SelfCache};
use attentive_nn::attention::multi_head::{AttentionConfig, MultiHeadAttention};
use attentive_nn::init::Init;
use attentive_nn::mask::Mask;
use attentive_nn::models::gpt::Gpt;
use attentive_nn::models::gpt::generation::{Caching, Continuation};
use attentive_nn::ops::Precision;
use attentive_nn::pass::Pass;
use burn::tensor::{Device, Tensor};

const TOKENS: usize = 256;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = GptConfig {
        layers: 2,
        context: 512,
        ..GptConfig::from_preset(Preset::Tiny).with_vocabularies(0, 100)
    };
    let model = Gpt::new(&config, 1, &Device::flex());
    let mut texts = Vec::new();
    let mut lines = Vec::new();
    for (name, caching) in [("with the cache", Caching::On), ("without", Caching::Off)] {
        // ANCHOR: write
        let mut text = Continuation::new(&model, vec![5], caching);
        let mut times = Vec::new();
        for _ in 0..TOKENS {
            let began = Instant::now();
            let log_probs = text.log_probs();
            times.push(began.elapsed().as_secs_f64() * 1000.0);
            let best = (4..log_probs.len()).max_by(|a, b| log_probs[*a].total_cmp(&log_probs[*b]));
            text.push(best.ok_or("a vocabulary")? as u32);
        }
        // ANCHOR_END: write
        println!(
            "{name:>14}: {:>6.0} ms for {TOKENS} tokens",
            times.iter().sum::<f64>()
        );
        let means = times
            .chunks(16)
            .map(|part| part.iter().sum::<f64>() / part.len() as f64);
        let points = means
            .enumerate()
            .map(|(i, mean)| (16.0 * i as f64 + 8.0, mean));
        lines.push((name.to_owned(), points.collect()));
        texts.push(text.tokens().to_vec());
    }
    println!("the same tokens: {}", texts[0] == texts[1]);

    // One layer: five positions at once, and the fifth behind a cache of four.
    let device = Device::flex();
    let sizes = AttentionConfig {
        d_model: 64,
        heads: 4,
        kv_heads: 4,
        dropout: 0.0,
    };
    let init = &mut Init::xavier_uniform(1);
    let layer = MultiHeadAttention::new(&sizes, init, &device);
    let x = init.matrix(5, 64, &device).unsqueeze::<3>(); // [1, 5, 64]
    let pass = &mut Pass::evaluation();
    let all = layer.forward(x.clone(), &Mask::Causal, None, pass).hidden;
    let expected = all.narrow(1, 4, 1);
    let (past, new) = (x.clone().narrow(1, 0, 4), x.narrow(1, 4, 1));
    let difference = |found: Tensor<3>| (found - expected.clone()).abs().max().into_scalar::<f32>();

    // ANCHOR: both
    let mut cache = SelfCache::default();
    let seen: KeyValues = cache.extend(layer.project(past, Precision::F32));
    println!(
        "a cache of 4 positions: keys {:?}, values {:?}",
        seen.key.dims(),
        seen.value.dims()
    );
    let kept = layer.forward(new.clone(), &Mask::Open, Some(&mut cache), pass);
    println!(
        "keys and values kept: differs by {:.1e}",
        difference(kept.hidden)
    );
    // ANCHOR_END: both
    // ANCHOR: keys_only
    let mut only_keys = SelfCache::default();
    only_keys.extend(KeyValues {
        value: seen.value.zeros_like(),
        key: seen.key,
    });
    let forgotten = layer.forward(new, &Mask::Open, Some(&mut only_keys), pass);
    println!(
        "only the keys kept:   differs by {:.1e}",
        difference(forgotten.hidden)
    );
    // ANCHOR_END: keys_only
    let labels = ["tokens so far", "milliseconds for the next one"];
    let panel = picture::curves("One more token", labels, lines);
    Ok(picture::show("With and without the KV cache", vec![panel])?)
}
