//! The beam searches of other programs, checked against their definitions written out plainly, and what else models of
//! other programs ask of a search: tokens that are forbidden, a forced end, a prefix that costs nothing.

use attentive_runtime::search::fake::FakeModel;
use attentive_runtime::search::{
    AtLimit, BeamRule, Finish, Hypothesis, LengthLimit, Request, SearchModel, SearchOptions, search,
};
use attentive_text::special::{BOS, EOS, PAD, decoder_input};
use proptest::prelude::*;

const A: u32 = 4;
const B: u32 = 5;
const SOURCE: [u32; 2] = [A, EOS];

fn only(model: &FakeModel, request: Request, options: &SearchOptions) -> Vec<Hypothesis> {
    search(model, &[request], options).remove(0)
}

fn options(rule: BeamRule, size: usize, limit: usize, length_penalty: f64) -> SearchOptions {
    SearchOptions {
        beam_rule: rule,
        length_penalty,
        max_length: LengthLimit {
            ratio: 0.0,
            extra: limit,
            cap: None,
        },
        ..SearchOptions::beam(size)
    }
}

/// All continuations of all hypotheses, best first.
fn continuations(model: &FakeModel, live: &[(Vec<u32>, f64)]) -> Vec<(Vec<u32>, f64)> {
    let mut all = Vec::new();
    for (tokens, log_prob) in live {
        let (mut state, mut row) = (model.start(&[&Request::new(SOURCE.to_vec())]), Vec::new());
        for token in decoder_input(tokens) {
            model.step(&mut state, &[token], &mut row);
        }
        for (token, &more) in (0..)
            .zip(&row)
            .filter(|(token, _)| ![BOS, PAD].contains(token))
        {
            let longer = tokens.iter().copied().chain([token]).collect();
            all.push((longer, log_prob + f64::from(more)));
        }
    }
    all.sort_by(|a: &(Vec<u32>, f64), b| b.1.total_cmp(&a.1));
    all
}

/// The best hypothesis by the rule of another program.
fn by_definition(
    model: &FakeModel,
    options: &SearchOptions,
    size: usize,
    limit: usize,
) -> (Vec<u32>, f64) {
    let score =
        |log_prob: f64, length: usize| log_prob / (length as f64).powf(options.length_penalty);
    let mut live = vec![(Vec::new(), 0.0)];
    let mut done: Vec<(Vec<u32>, f64)> = Vec::new();
    for length in 1..=limit {
        let all = continuations(model, &live);
        let ends = |tokens: &[u32]| tokens.last() == Some(&EOS);
        live = match options.beam_rule {
            // Marian: as many as there are places that no complete hypothesis has.
            BeamRule::Shrink => {
                let places = size - done.len();
                let kept: Vec<_> = all.into_iter().take(places).collect();
                done.extend(
                    kept.iter()
                        .filter(|(t, _)| ends(t))
                        .map(|(t, p)| (t.clone(), score(*p, length))),
                );
                kept.into_iter()
                    .filter(|(tokens, _)| !ends(tokens))
                    .collect()
            }
            // The others: complete ones among the first `size`, live ones among twice as many.
            _ => {
                let complete = all.iter().take(size).filter(|(tokens, _)| ends(tokens));
                done.extend(
                    complete.map(|(tokens, log_prob)| (tokens.clone(), score(*log_prob, length))),
                );
                let kept = all.into_iter().take(2 * size);
                kept.filter(|(tokens, _)| !ends(tokens))
                    .take(size)
                    .collect()
            }
        };
        // What is cut counts like what is complete.
        if length == limit {
            done.extend(
                live.iter()
                    .map(|(tokens, log_prob)| (tokens.clone(), score(*log_prob, length))),
            );
        }
        let bound = live.first().map(|(_, log_prob)| score(*log_prob, length));
        done.sort_by(|a, b| b.1.total_cmp(&a.1));
        let enough = match options.beam_rule {
            BeamRule::Shrink => live.is_empty(),
            BeamRule::FullUntilEnough => done.len() >= size,
            _ => done
                .get(size - 1)
                .is_some_and(|worst| bound.is_none_or(|bound| bound <= worst.1)),
        };
        if enough {
            break;
        }
    }
    done.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (mut tokens, score) = done.remove(0);
    if tokens.last() == Some(&EOS) {
        tokens.pop();
    }
    (tokens, score)
}

proptest! {
    #[test]
    fn beams_of_other_programs_follow_their_definitions(
        seed: u64,
        vocab in 6usize..12,
        size in 1usize..6,
        limit in 1usize..9,
        length_penalty in prop::sample::select(vec![0.0, 0.6, 1.0, 2.0]),
        rule in prop::sample::select(vec![BeamRule::Shrink, BeamRule::Full, BeamRule::FullUntilEnough]),
    ) {
        let model = FakeModel::random(vocab, seed);
        let options = options(rule, size, limit, length_penalty);
        let found = only(&model, Request::new(SOURCE.to_vec()), &options).remove(0);
        let (tokens, score) = by_definition(&model, &options, size, limit);
        prop_assert_eq!(found.tokens, tokens);
        prop_assert!((found.score - score).abs() < 1e-9);
    }

    #[test]
    fn forbidden_tokens_never_come_and_a_forced_end_costs_nothing(seed: u64, size in 1usize..4, limit in 1usize..6) {
        let model = FakeModel::random(9, seed);
        let options = SearchOptions {
            forbidden: vec![A, B],
            at_limit: AtLimit::ForceEnd,
            min_length: 100,
            ..options(BeamRule::Full, size, limit, 0.0)
        };
        let found = only(&model, Request::new(SOURCE.to_vec()), &options).remove(0);
        prop_assert_eq!(found.finished, Finish::EndOfSentence);
        prop_assert_eq!(found.tokens.len(), limit - 1);
        prop_assert!(!found.tokens.contains(&A) && !found.tokens.contains(&B));
        let (mut state, mut row, mut log_prob) = (model.start(&[&Request::new(SOURCE.to_vec())]), Vec::new(), 0.0);
        for (before, token) in decoder_input(&found.tokens).into_iter().zip(&found.tokens) {
            model.step(&mut state, &[before], &mut row);
            log_prob += f64::from(row[*token as usize]);
        }
        prop_assert!((found.log_prob - log_prob).abs() < 1e-6);
    }
}

#[test]
fn a_free_prefix_costs_nothing() {
    let model = FakeModel::random(9, 7);
    let paid = Request {
        prefix: vec![B],
        ..Request::new(SOURCE.to_vec())
    };
    let free = Request {
        free_prefix: 1,
        ..paid.clone()
    };
    let [paid, free] =
        [paid, free].map(|request| only(&model, request, &SearchOptions::greedy()).remove(0));
    assert_eq!(paid.tokens, free.tokens);
    let mut row = Vec::new();
    let mut state = model.start(&[&Request::new(SOURCE.to_vec())]);
    model.step(&mut state, &[BOS], &mut row);
    assert!((paid.log_prob - free.log_prob - f64::from(row[B as usize])).abs() < 1e-9);
}
