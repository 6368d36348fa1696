//! Greedy and beam search, checked against enumeration of everything a small model can say.

use std::sync::Arc;

use attentive_runtime::search::fake::FakeModel;
use attentive_runtime::search::{
    Constraint, Finish, Hypothesis, LengthLimit, Method, Next, NoRepeatedNgrams, Request, Sampling,
    SearchModel, SearchOptions, search,
};
use attentive_text::special::{BOS, EOS, PAD, UNK, decoder_input, source_ids};
use proptest::prelude::*;

const A: u32 = 4;
const B: u32 = 5;

fn exactly(tokens: usize) -> LengthLimit {
    LengthLimit {
        ratio: 0.0,
        extra: tokens,
        cap: None,
    }
}

fn only(model: &FakeModel, options: &SearchOptions) -> Vec<Hypothesis> {
    search(model, &[Request::new(vec![A, EOS])], options).remove(0)
}

fn requests(sources: &[Vec<u32>]) -> Vec<Request> {
    sources.iter().cloned().map(Request::new).collect()
}

/// What the model gives the next token after `target`.
fn log_probs(model: &FakeModel, source: &[u32], target: &[u32]) -> Vec<f32> {
    let (mut state, mut row) = (model.start(&[&Request::new(source.to_vec())]), Vec::new());
    for token in decoder_input(target) {
        model.step(&mut state, &[token], &mut row);
    }
    row
}

fn every_method() -> impl Strategy<Value = Method> {
    prop::sample::select(METHODS.to_vec())
}

const METHODS: [Method; 3] = [
    Method::Greedy,
    Method::Beam { size: 3 },
    Method::Sample(Sampling {
        temperature: 1.0,
        top_k: None,
        top_p: None,
        seed: 0,
    }),
];

/// Every sentence the model can say within the limit, best first, by brute force.
fn everything(model: &FakeModel, source: &[u32], options: &SearchOptions) -> Vec<(Vec<u32>, f64)> {
    let limit = options.max_length.tokens(source.len());
    let mut complete = Vec::new();
    let mut prefixes = vec![(Vec::new(), 0.0)];
    for length in 1..=limit {
        let mut longer = Vec::new();
        for (tokens, log_prob) in prefixes {
            let row = log_probs(model, source, &tokens);
            for (token, &log_prob_of_token) in (0..).zip(&row) {
                let log_prob = log_prob + f64::from(log_prob_of_token);
                let mut tokens: Vec<u32> = tokens.clone();
                match token {
                    EOS if tokens.len() >= options.min_length => {
                        let score = log_prob / (length as f64).powf(options.length_penalty);
                        complete.push((tokens, score));
                    }
                    BOS | PAD | EOS => {}
                    _ => {
                        tokens.push(token);
                        longer.push((tokens, log_prob));
                    }
                }
            }
        }
        prefixes = longer;
    }
    complete.sort_by(|a, b| b.1.total_cmp(&a.1));
    complete
}

/// Beam search as its definition says and without any bound: until `size` sentences are complete
/// and no live hypothesis is better by its present length than the best `n_best` of them.
fn patient_beam(
    model: &FakeModel,
    source: &[u32],
    options: &SearchOptions,
    size: usize,
) -> Vec<(Vec<u32>, f64)> {
    let score = |log_prob: f64, length: usize| {
        log_prob / (length.max(1) as f64).powf(options.length_penalty)
    };
    let limit = options.max_length.tokens(source.len());
    let mut live: Vec<(Vec<u32>, f64)> = vec![(Vec::new(), 0.0)];
    let mut complete: Vec<(Vec<u32>, f64)> = Vec::new();
    let mut cut = Vec::new();
    for length in 1..=limit {
        let mut all = Vec::new();
        for (tokens, log_prob) in &live {
            let row = log_probs(model, source, tokens);
            for (token, &more) in (0..)
                .zip(&row)
                .filter(|(token, _)| ![BOS, PAD].contains(token))
            {
                let longer: Vec<u32> = tokens.iter().copied().chain([token]).collect();
                all.push((longer, log_prob + f64::from(more)));
            }
        }
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all.truncate(size);
        live.clear();
        for (mut tokens, log_prob) in all {
            if tokens.last() == Some(&EOS) {
                tokens.pop();
                complete.push((tokens, score(log_prob, length)));
            } else {
                live.push((tokens, log_prob));
            }
        }
        if length == limit {
            cut = live
                .iter()
                .map(|(tokens, log_prob)| (tokens.clone(), score(*log_prob, length)))
                .collect();
        }
        let Some((_, best)) = live.first() else { break };
        let better = complete
            .iter()
            .filter(|(_, found)| *found >= score(*best, length))
            .count();
        if complete.len() >= size && better >= options.n_best {
            break;
        }
    }
    complete.sort_by(|a, b| b.1.total_cmp(&a.1));
    cut.sort_by(|a: &(Vec<u32>, f64), b| b.1.total_cmp(&a.1));
    complete.extend(cut);
    complete.truncate(options.n_best);
    complete
}

proptest! {
    #[test]
    fn a_beam_as_wide_as_the_space_finds_the_best_of_everything(
        seed: u64,
        length_penalty in prop::sample::select(vec![0.0, 0.3, 1.0, 2.5]),
        limit in 1usize..5,
        min_length in 0usize..3,
        n_best in 1usize..6,
    ) {
        let model = FakeModel::random(7, seed);
        let options = SearchOptions {
            n_best, length_penalty, min_length, max_length: exactly(limit),
            ..SearchOptions::beam(2000)
        };
        let found = only(&model, &options);
        let truth = everything(&model, &[A, EOS], &options);
        let complete: Vec<_> =
            found.iter().filter(|h| h.finished == Finish::EndOfSentence).collect();
        prop_assert_eq!(complete.len(), truth.len().min(n_best));
        for (hypothesis, (tokens, score)) in complete.iter().zip(&truth) {
            prop_assert_eq!(&hypothesis.tokens, tokens);
            prop_assert!((hypothesis.score - score).abs() < 1e-9);
        }
    }

    #[test]
    fn stopping_early_changes_nothing(
        seed: u64,
        vocab in 6usize..12,
        size in 1usize..6,
        length_penalty in prop::sample::select(vec![0.0, 0.6, 1.0, 2.0]),
        limit in 1usize..9,
        n_best in 1usize..6,
    ) {
        let n_best = n_best.min(size);
        let model = FakeModel::random(vocab, seed);
        let options = SearchOptions {
            n_best, length_penalty, max_length: exactly(limit), ..SearchOptions::beam(size)
        };
        let found: Vec<_> = only(&model, &options).into_iter().map(|h| (h.tokens, h.score)).collect();
        prop_assert_eq!(found, patient_beam(&model, &[A, EOS], &options, size));
    }

    #[test]
    fn a_prefix_starts_every_hypothesis_and_the_rest_is_as_if_it_had_been_found(
        seed: u64,
        prefix in prop::collection::vec(3u32..9, 0..4),
        method in every_method(),
    ) {
        let random = FakeModel::random(9, seed);
        let options = SearchOptions { method, ..Default::default() };
        let with_prefix = Request { prefix: prefix.clone(), ..Request::new(vec![A, EOS]) };
        let requests = [with_prefix, Request::new(vec![B, EOS])];
        let found = search(&random, &requests, &options);
        prop_assert!(found[0][0].tokens.starts_with(&prefix));
        prop_assert_eq!(&found[1], &search(&random, &requests[1..], &options)[0]);

        // The same model, sure of the prefix, finds the same without being told.
        let (model, forced) = (FakeModel::random(9, seed), prefix.clone());
        let sure = FakeModel::new(9, move |source, target| {
            let mut row = log_probs(&model, source, target);
            if let Some(&token) = forced.get(target.len()) {
                row.fill(f32::NEG_INFINITY);
                row[token as usize] = 0.0;
            }
            row
        });
        if options.method == Method::Greedy {
            let mut longer = options;
            longer.max_length.extra += prefix.len();
            prop_assert_eq!(&only(&sure, &longer)[0].tokens, &found[0][0].tokens);
        }
    }

    #[test]
    fn the_log_probability_is_that_of_every_token_and_those_of_the_prefix_count_too(
        seed: u64,
        prefix in prop::collection::vec(3u32..9, 0..4),
        method in every_method(),
        banned in prop::collection::vec(3u32..9, 0..2),
    ) {
        let model = FakeModel::random(9, seed);
        let request = Request {
            prefix,
            constraints: vec![Arc::new(Never(banned))],
            ..Request::new(vec![A, EOS])
        };
        let options = SearchOptions { method, min_length: 2, ..Default::default() };
        let found = search(&model, std::slice::from_ref(&request), &options).remove(0).remove(0);
        prop_assert!(found.tokens.starts_with(&request.prefix));
        let mut produced = found.tokens.clone();
        if found.finished == Finish::EndOfSentence {
            produced.push(EOS);
        }
        let expected: f64 = (0..produced.len())
            .map(|at| log_probs(&model, &request.source, &produced[..at])[produced[at] as usize])
            .map(f64::from)
            .sum();
        prop_assert!((found.log_prob - expected).abs() < 1e-9, "{} {expected}", found.log_prob);
        let length = produced.len() as f64;
        prop_assert!((found.score - expected / length).abs() < 1e-9, "{}", found.score);
    }

    #[test]
    fn a_constraint_of_a_request_holds_for_this_request_only(
        seed: u64,
        method in every_method(),
        banned in prop::collection::vec(3u32..9, 1..4),
    ) {
        let model = FakeModel::random(9, seed);
        let options = SearchOptions { method, ..Default::default() };
        let free = Request::new(vec![A, EOS]);
        let bound = Request {
            constraints: vec![Arc::new(Never(banned.clone())), Arc::new(NoRepeatedNgrams(1))],
            ..free.clone()
        };
        let found = search(&model, &[&free, &bound], &options);
        prop_assert_eq!(&found[0], &search(&model, &[&free], &options)[0]);
        let tokens = &found[1][0].tokens;
        let mut seen = std::collections::HashSet::new();
        prop_assert!(tokens.iter().all(|token| !banned.contains(token) && seen.insert(token)));
    }

    #[test]
    fn only_candidates_are_produced_and_log_probabilities_are_over_them_alone(
        seed: u64,
        method in every_method(),
        prefix in prop::collection::vec(4u32..9, 0..3),
    ) {
        let model = FakeModel::random(9, seed);
        let options = SearchOptions { method, max_length: exactly(6), ..SearchOptions::default() };
        let allowed = [EOS, 5, 7];
        let restricted = Request {
            candidates: Some(Arc::from(allowed)),
            prefix: prefix.clone(),
            ..Request::new(vec![A, EOS])
        };
        let free = Request::new(vec![B, EOS]);
        let found = search(&model, &[&restricted, &free, &restricted], &options);
        prop_assert_eq!(&found[1], &search(&model, &[&free], &options)[0]);
        prop_assert_eq!(&found[0], &found[2]);

        let best = &found[0][0];
        prop_assert!(best.tokens.starts_with(&prefix));
        let own = &best.tokens[prefix.len()..];
        prop_assert!(own.iter().all(|token| allowed.contains(token)), "{:?}", best);
        let mut expected = 0.0;
        let ended = (best.finished == Finish::EndOfSentence).then_some(EOS);
        for (place, &token) in best.tokens.iter().chain(&ended).enumerate() {
            let row = log_probs(&model, &restricted.source, &best.tokens[..place]);
            let total: f64 = allowed.iter().map(|&t| f64::from(row[t as usize]).exp()).sum();
            expected += match allowed.contains(&token) {
                true => f64::from(row[token as usize]) - total.ln(),
                false => f64::from(f32::MIN), // only a prefix can force it
            };
        }
        let tolerance = 1e-5 * expected.abs().max(1.0);
        prop_assert!((best.log_prob - expected).abs() < tolerance, "{:?}: {}", best, expected);
    }

    #[test]
    fn no_n_gram_occurs_twice_where_that_is_forbidden(
        seed: u64,
        n in 1usize..4,
        method in every_method(),
    ) {
        // Never wants to end, so that it would repeat itself.
        let random = FakeModel::random(8, seed);
        let model = FakeModel::new(8, move |source, target| {
            let mut row = log_probs(&random, source, &[]);
            row[EOS as usize] -= 5.0 - target.len() as f32 / 10.0;
            row
        });
        let options = SearchOptions { method, no_repeat_ngram: Some(n), max_length: exactly(30), ..Default::default() };
        let tokens = &only(&model, &options)[0].tokens;
        let mut seen = std::collections::HashSet::new();
        prop_assert!(tokens.windows(n).all(|gram| seen.insert(gram)), "{:?}", tokens);
    }

    #[test]
    fn a_beam_of_one_is_greedy(
        seed: u64,
        length_penalty in 0.0..3.0f64,
        min_length in 0usize..4,
        src_lens in prop::collection::vec(0usize..6, 1..5),
    ) {
        let model = FakeModel::random(9, seed);
        let requests = requests_of(&src_lens);
        let beam = SearchOptions { length_penalty, min_length, ..SearchOptions::beam(1) };
        let greedy = SearchOptions { method: Method::Greedy, ..beam.clone() };
        prop_assert_eq!(search(&model, &requests, &beam), search(&model, &requests, &greedy));
    }

    #[test]
    fn batched_matches_single(
        seed: u64,
        method in prop::sample::select(vec![
            Method::Greedy,
            Method::Beam { size: 1 },
            Method::Beam { size: 3 },
            Method::Beam { size: 8 },
            Method::Sample(Sampling { seed: 7, ..Default::default() }),
        ]),
        src_lens in prop::collection::vec(0usize..6, 1..6),
    ) {
        let model = FakeModel::random(9, seed);
        let requests = requests_of(&src_lens);
        let n_best = if method == Method::Greedy || method == (Method::Beam { size: 1 }) { 1 } else { 3 };
        let options = SearchOptions { method, n_best, ..Default::default() };
        let single: Vec<_> =
            requests.iter().flat_map(|request| search(&model, &[request], &options)).collect();
        prop_assert_eq!(search(&model, &requests, &options), single);
    }

    #[test]
    fn hypotheses_are_distinct_best_first_and_hold_no_special_tokens(seed: u64, size in 2usize..7) {
        let model = FakeModel::random(8, seed);
        let options = SearchOptions { n_best: size, ..SearchOptions::beam(size) };
        let found = only(&model, &options);
        prop_assert_eq!(found.len(), size);
        for pair in found.windows(2) {
            prop_assert!(pair[0].score >= pair[1].score || pair[1].finished != Finish::EndOfSentence);
            prop_assert_ne!(&pair[0].tokens, &pair[1].tokens);
        }
        for token in found.iter().flat_map(|hypothesis| &hypothesis.tokens) {
            prop_assert!(![BOS, EOS, PAD].contains(token));
        }
    }

    #[test]
    fn rows_of_nan_and_infinities_never_panic(
        seed: u64,
        bad in prop::sample::select(vec![f32::NAN, f32::NEG_INFINITY, f32::INFINITY, 3.0]),
        every in 1u64..4,
        method in every_method(),
    ) {
        let random = FakeModel::random(7, seed);
        let model = FakeModel::new(7, move |source, target| {
            let mut row = log_probs(&random, source, &[]);
            for (token, log_prob) in (0u64..).zip(&mut row) {
                if (seed ^ token ^ target.len() as u64).is_multiple_of(every) {
                    *log_prob = bad;
                }
            }
            row
        });
        let found = only(&model, &SearchOptions { method, ..Default::default() });
        prop_assert_eq!(found.len(), 1);
        prop_assert!(found[0].score.is_finite());
    }
}

fn requests_of(lengths: &[usize]) -> Vec<Request> {
    let source = |&len: &usize| source_ids((4..4 + len as u32).collect::<Vec<u32>>());
    lengths.iter().map(source).map(Request::new).collect()
}

/// Forbids these tokens, and shows how a rule of one's own is written.
#[derive(Debug)]
struct Never(Vec<u32>);

impl Constraint for Never {
    fn apply(&self, _: &[u32], next: &mut Next<'_>) {
        self.0.iter().for_each(|&token| next.forbid(token));
    }
}

/// Greedy takes A (0.6) and then the best end is 0.3: 0.18. The best sentence is B </s>: 0.4 * 0.9.
fn garden_path() -> FakeModel {
    FakeModel::from_probabilities(6, |_, target| match target {
        [] => vec![(A, 0.6), (B, 0.4)],
        [A] => vec![(EOS, 0.3), (A, 0.3), (B, 0.25), (UNK, 0.15)],
        [B] => vec![(EOS, 0.9), (A, 0.1)],
        _ => vec![(EOS, 1.0)],
    })
}

#[test]
fn a_beam_of_two_avoids_the_garden_path_that_greedy_takes() {
    let greedy = only(&garden_path(), &SearchOptions::greedy());
    assert_eq!(greedy[0].tokens, [A]);
    let options = SearchOptions {
        length_penalty: 0.0,
        n_best: 2,
        ..SearchOptions::beam(2)
    };
    let beam = only(&garden_path(), &options);
    assert_eq!(beam[0].tokens, [B]);
    assert!((beam[0].log_prob - 0.36f64.ln()).abs() < 1e-6);
    assert_eq!(beam[0].score, beam[0].log_prob);
    assert_eq!(beam[1].tokens, [A]);
}

#[test]
fn the_score_divides_by_the_length_with_its_end() {
    let options = SearchOptions {
        length_penalty: 1.0,
        ..SearchOptions::greedy()
    };
    let found = &only(&FakeModel::copying(6), &options)[0];
    assert_eq!(found.tokens, [A]);
    assert!((found.score - found.log_prob / 2.0).abs() < 1e-12);
    assert!((found.log_prob - 2.0 * 0.99f64.ln()).abs() < 1e-6);
}

#[test]
fn a_length_penalty_prefers_the_longer_sentence() {
    let model = || {
        FakeModel::from_probabilities(6, |_, target| match target {
            [] => vec![(EOS, 0.5), (A, 0.5)],
            [A] | [A, A] => vec![(A, 0.9), (EOS, 0.1)],
            _ => vec![(EOS, 1.0)],
        })
    };
    let with = |length_penalty| {
        let options = SearchOptions {
            length_penalty,
            ..SearchOptions::beam(4)
        };
        only(&model(), &options)[0].tokens.clone()
    };
    assert_eq!(with(0.0), Vec::<u32>::new());
    assert_eq!(with(1.0), [A, A, A]);
}

#[test]
fn equal_probabilities_go_to_the_lower_id() {
    let even = || FakeModel::new(8, |_, _| vec![-(8f32.ln()); 8]);
    let options = SearchOptions {
        max_length: exactly(2),
        ..SearchOptions::greedy()
    };
    let min_length = SearchOptions {
        min_length: 1,
        ..options.clone()
    };
    assert!(
        only(&even(), &options)[0].tokens.is_empty(),
        "</s> has id 1, the lowest allowed"
    );
    assert_eq!(only(&even(), &min_length)[0].tokens, [UNK]);
    let beam = SearchOptions {
        method: Method::Beam { size: 3 },
        n_best: 3,
        ..min_length
    };
    let found: Vec<_> = only(&even(), &beam)
        .into_iter()
        .map(|found| found.tokens)
        .collect();
    assert_eq!(found, [vec![UNK], vec![UNK, UNK], vec![UNK, A]]);
}

#[test]
fn a_sentence_that_never_ends_is_cut_at_the_limit_and_says_so() {
    let endless = || FakeModel::from_probabilities(6, |_, _| vec![(A, 0.7), (B, 0.3)]);
    for method in METHODS {
        let max_length = LengthLimit {
            ratio: 2.0,
            extra: 1,
            cap: None,
        };
        let options = SearchOptions {
            method,
            max_length,
            ..Default::default()
        };
        let found = &only(&endless(), &options)[0];
        assert_eq!(found.tokens.len(), 5, "2 * 2 source tokens + 1");
        assert_eq!(found.finished, Finish::LengthLimit);
        let capped = LengthLimit {
            cap: Some(3),
            ..max_length
        };
        let options = SearchOptions {
            max_length: capped,
            ..options
        };
        assert_eq!(only(&endless(), &options)[0].tokens.len(), 3);
    }
}

#[test]
fn a_request_may_have_a_length_limit_of_its_own() {
    let endless = FakeModel::from_probabilities(6, |_, _| vec![(A, 0.7), (B, 0.3)]);
    for method in METHODS {
        let options = SearchOptions {
            method,
            max_length: exactly(5),
            ..Default::default()
        };
        let shorter = Request {
            max_length: Some(exactly(2)),
            ..Request::new(vec![A, EOS])
        };
        let found = search(&endless, &[Request::new(vec![A, EOS]), shorter], &options);
        let lengths: Vec<usize> = found.iter().map(|found| found[0].tokens.len()).collect();
        assert_eq!(lengths, [5, 2]);
    }
}

#[test]
fn a_complete_sentence_comes_before_a_cut_one_of_better_score() {
    let model = FakeModel::from_probabilities(6, |_, _| vec![(A, 0.95), (EOS, 0.05)]);
    let options = SearchOptions {
        n_best: 2,
        max_length: exactly(3),
        ..SearchOptions::beam(2)
    };
    let found = only(&model, &options);
    assert_eq!(found[0].finished, Finish::EndOfSentence);
    assert_eq!(found[1].finished, Finish::EndOfSentence);
    assert!(
        found[0].score < 3.0 * 0.95f64.ln(),
        "the cut sentence would have scored better"
    );
}

#[test]
fn the_end_is_forbidden_before_the_least_length() {
    for method in METHODS {
        let model = FakeModel::from_probabilities(6, |_, _| vec![(EOS, 0.9), (A, 0.1)]);
        let options = SearchOptions {
            method,
            min_length: 3,
            ..Default::default()
        };
        let found = &only(&model, &options)[0];
        assert!(found.tokens.len() >= 3, "{:?}", found.tokens);
        assert_eq!(found.finished, Finish::EndOfSentence);
    }
}

#[test]
fn a_model_without_any_probable_token_is_a_dead_end_and_not_a_panic() {
    for method in METHODS {
        let model = FakeModel::new(6, |_, target| match target {
            [] => vec![f32::NAN, f32::NAN, f32::NAN, f32::NAN, -0.1, f32::NAN],
            _ => vec![f32::NAN; 6],
        });
        let found = only(
            &model,
            &SearchOptions {
                method,
                ..Default::default()
            },
        );
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].tokens.as_slice(), found[0].finished),
            (&[A][..], Finish::DeadEnd)
        );
    }
}

#[test]
fn finished_sentences_leave_the_batch() {
    let model = FakeModel::copying(20);
    let sources = [vec![A, EOS], (4..14).chain([EOS]).collect()];
    let found = search(&model, &requests(&sources), &SearchOptions::greedy());
    assert_eq!(found[1][0].tokens, sources[1][..10]);
    assert_eq!(
        model.rows_fed(),
        2 + 11,
        "the short one needs 2 steps, the long one 11"
    );
}

#[test]
fn beam_search_ends_as_soon_as_nothing_live_can_win() {
    // </s> at once has probability 0.98: whatever else is said cannot reach that, so one step does.
    let model = FakeModel::from_probabilities(6, |_, _| vec![(EOS, 0.98), (A, 0.01), (B, 0.01)]);
    let options = SearchOptions {
        length_penalty: 0.5,
        ..SearchOptions::beam(4)
    };
    assert!(only(&model, &options)[0].tokens.is_empty());
    assert_eq!(model.rows_fed(), 1);
    // Asked for two, it must go on until the second is known.
    let model = FakeModel::from_probabilities(6, |_, _| vec![(EOS, 0.98), (A, 0.01), (B, 0.01)]);
    let found = only(
        &model,
        &SearchOptions {
            n_best: 2,
            ..options
        },
    );
    assert_eq!(found[1].tokens, [A]);
    assert!(model.rows_fed() > 1);
}

#[test]
fn a_beam_full_of_better_sentences_ends_the_search_long_before_the_limit() {
    // With so long a limit the exact bound alone would go on for dozens of steps.
    let model = FakeModel::from_probabilities(6, |_, _| vec![(EOS, 0.5), (A, 0.3), (B, 0.2)]);
    let options = SearchOptions {
        length_penalty: 1.0,
        ..SearchOptions::beam(2)
    };
    assert!(only(&model, &options)[0].tokens.is_empty());
    assert_eq!(model.rows_fed(), 2);
}

#[test]
fn a_sure_long_sentence_is_not_lost_to_poor_short_ones() {
    // At every step </s> is the second best token, so a narrow beam completes one bad sentence
    // after the other while the right one is still on its way.
    let source: Vec<u32> = (4..18).chain([EOS]).collect();
    for size in 1..5 {
        let found = search(
            &FakeModel::copying(20),
            &[Request::new(source.clone())],
            &SearchOptions::beam(size),
        );
        assert_eq!(found[0][0].tokens, source[..14], "beam of {size}");
    }
}

#[test]
fn no_sources_give_no_hypotheses() {
    let model = FakeModel::copying(6);
    assert!(search::<_, Request>(&model, &[], &SearchOptions::default()).is_empty());
}

#[test]
#[should_panic(expected = "`n_best` (5) must be at most the beam size (4)")]
fn unchecked_options_are_not_searched_with() {
    let options = SearchOptions {
        n_best: 5,
        ..SearchOptions::beam(4)
    };
    search(&FakeModel::copying(6), &requests(&[vec![EOS]]), &options);
}
