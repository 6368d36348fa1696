//! Sampling, checked by counting many samples of a model with known probabilities.

use attentive_runtime::search::fake::FakeModel;
use attentive_runtime::search::{Hypothesis, Request, Sampling, SearchOptions, search};
use attentive_text::special::{EOS, UNK};

const A: u32 = 4;
const B: u32 = 5;
const C: u32 = 6;

/// Says one of A, B, C, <unk> with these probabilities, then ends.
fn one_word() -> FakeModel {
    FakeModel::from_probabilities(7, |_, target| match target {
        [] => vec![(A, 0.15), (B, 0.5), (C, 0.3), (UNK, 0.05)],
        _ => vec![(EOS, 1.0)],
    })
}

const SAMPLES: usize = 20_000;

fn samples(sampling: Sampling, source: &[u32]) -> Vec<Hypothesis> {
    let options = SearchOptions {
        n_best: SAMPLES,
        ..SearchOptions::sample(sampling)
    };
    search(&one_word(), &[Request::new(source.to_vec())], &options).remove(0)
}

/// Asserts how often each token was drawn; the tolerance is five standard deviations or more.
fn assert_drawn(sampling: Sampling, expected: &[(u32, f64)]) {
    let found = samples(sampling.clone(), &[A, EOS]);
    for token in [UNK, A, B, C] {
        let share = found
            .iter()
            .filter(|sample| sample.tokens == [token])
            .count() as f64
            / SAMPLES as f64;
        let wanted = expected
            .iter()
            .find(|(id, _)| *id == token)
            .map_or(0.0, |(_, share)| *share);
        assert!(
            (share - wanted).abs() < 0.018,
            "{sampling:?}: {token} {share} not {wanted}"
        );
        assert!(
            wanted > 0.0 || share == 0.0,
            "{sampling:?}: {token} must never be drawn"
        );
    }
}

#[test]
fn tokens_are_drawn_by_their_probability() {
    assert_drawn(
        Sampling::default(),
        &[(A, 0.15), (B, 0.5), (C, 0.3), (UNK, 0.05)],
    );
}

#[test]
fn temperature_sharpens_and_flattens() {
    let squared = [(A, 0.0225), (B, 0.25), (C, 0.09), (UNK, 0.0025)].map(|(t, w)| (t, w / 0.365));
    assert_drawn(
        Sampling {
            temperature: 0.5,
            ..Default::default()
        },
        &squared,
    );
    let even = [A, B, C, UNK].map(|token| (token, 0.25));
    assert_drawn(
        Sampling {
            temperature: 1e9,
            ..Default::default()
        },
        &even,
    );
    assert_drawn(
        Sampling {
            temperature: 1e-300,
            ..Default::default()
        },
        &[(B, 1.0)],
    );
}

#[test]
fn top_k_draws_only_from_the_most_probable() {
    assert_drawn(
        Sampling {
            top_k: Some(1),
            ..Default::default()
        },
        &[(B, 1.0)],
    );
    let two = [(B, 0.625), (C, 0.375)];
    assert_drawn(
        Sampling {
            top_k: Some(2),
            ..Default::default()
        },
        &two,
    );
    let all = [(A, 0.15), (B, 0.5), (C, 0.3), (UNK, 0.05)];
    assert_drawn(
        Sampling {
            top_k: Some(100),
            ..Default::default()
        },
        &all,
    );
}

#[test]
fn top_p_draws_only_from_the_nucleus() {
    assert_drawn(
        Sampling {
            top_p: Some(0.4),
            ..Default::default()
        },
        &[(B, 1.0)],
    );
    let two = [(B, 0.625), (C, 0.375)];
    assert_drawn(
        Sampling {
            top_p: Some(0.7),
            ..Default::default()
        },
        &two,
    );
    // Of the best two, B alone holds 0.625.
    let both = Sampling {
        top_k: Some(2),
        top_p: Some(0.6),
        ..Default::default()
    };
    assert_drawn(both, &[(B, 1.0)]);
}

#[test]
fn a_nucleus_of_hundreds_of_tokens_is_found_too() {
    // 900 equal tokens: half of the probability is the 450 lowest ids.
    let probabilities = |_: &[u32], target: &[u32]| match target {
        [] => (10..910).map(|token| (token, 1.0 / 900.0)).collect(),
        _ => vec![(EOS, 1.0)],
    };
    let model = FakeModel::from_probabilities(1000, probabilities);
    let sampling = Sampling {
        top_p: Some(0.49999),
        ..Default::default()
    };
    let options = SearchOptions {
        n_best: SAMPLES,
        ..SearchOptions::sample(sampling)
    };
    let found = search(&model, &[Request::new(vec![EOS])], &options).remove(0);
    let highest = found.iter().map(|sample| sample.tokens[0]).max();
    assert_eq!(highest, Some(459));
    assert!(found.iter().any(|sample| sample.tokens[0] < 30));
}

#[test]
fn the_log_probability_is_the_models_own() {
    let sampling = Sampling {
        temperature: 3.0,
        top_k: Some(2),
        ..Default::default()
    };
    for sample in samples(sampling, &[A, EOS]) {
        let probability: f64 = if sample.tokens == [B] { 0.5 } else { 0.3 };
        assert!((sample.log_prob - probability.ln()).abs() < 1e-6);
    }
}

#[test]
fn the_same_seed_gives_the_same_samples_and_another_seed_others() {
    let drawn = |seed, source: &[u32]| {
        let options = SearchOptions {
            n_best: 1,
            ..SearchOptions::sample(Sampling {
                seed,
                ..Default::default()
            })
        };
        (0..40)
            .map(|word| [&[word], source].concat())
            .map(|source| {
                search(&one_word(), &[Request::new(source)], &options)[0][0]
                    .tokens
                    .clone()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(drawn(1, &[A, EOS]), drawn(1, &[A, EOS]));
    assert_ne!(drawn(1, &[A, EOS]), drawn(2, &[A, EOS]));
    assert_ne!(drawn(1, &[A, EOS]), drawn(1, &[B, EOS]));
}
