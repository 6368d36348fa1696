//! Required terms: they are in every translation, and the best of those that have them is found. Checked against
//! enumeration of everything a small model can say.

use std::sync::Arc;

use attentive_runtime::search::fake::FakeModel;
use attentive_runtime::search::{
    BeamRule, Finish, Hypothesis, LengthLimit, Method, NoRepeatedNgrams, Request, Sampling,
    SearchModel, SearchOptions, Term, Terms, search,
};
use attentive_text::special::{BOS, EOS, PAD, decoder_input};
use proptest::prelude::*;

/// Tokens of the fake models: `<unk>` and three more.
const VOCAB: usize = 7;
const A: u32 = 4;
const B: u32 = 5;
const C: u32 = 6;

fn exactly(tokens: usize) -> LengthLimit {
    LengthLimit {
        ratio: 0.0,
        extra: tokens,
        cap: None,
    }
}

fn request(terms: Terms) -> Request {
    Request {
        terms: Some(Arc::new(terms)),
        ..Request::new(vec![A, B, EOS])
    }
}

/// A term that occurs once, in one form.
fn once(form: &[u32]) -> Term {
    Term::new(vec![form.to_vec()])
}

fn only(model: &FakeModel, request: &Request, options: &SearchOptions) -> Vec<Hypothesis> {
    search(model, &[request], options).remove(0)
}

/// Whether a target has all terms: by a definition of its own, as often as needed and without overlaps.
fn has_all(target: &[u32], terms: &Terms, continues: &[u32]) -> bool {
    let has = |term: &Term| {
        let (mut count, mut place) = (0, 0);
        while place < target.len() {
            let mut lengths: Vec<usize> = Vec::new();
            for form in &term.forms {
                let end = place + form.len();
                let ends_word = target.get(end).is_none_or(|next| !continues.contains(next));
                if target.get(place..end) == Some(form) && ends_word {
                    lengths.push(form.len());
                }
            }
            count += usize::from(!lengths.is_empty());
            place += lengths.into_iter().max().unwrap_or(1);
        }
        count >= term.count
    };
    terms.terms().iter().all(has)
}

/// Every sentence with all terms that the model can say within `limit` tokens (with `</s>`), best first. It never says
/// something behind a place where it would rather end, unless no other sentence is nearer to having the terms.
fn everything(
    model: &FakeModel,
    request: &Request,
    limit: usize,
    continues: &[u32],
) -> Vec<(Vec<u32>, f64)> {
    let terms = request.terms.as_ref().expect("terms");
    let mut complete = Vec::new();
    let mut prefixes = vec![(Vec::new(), 0.0)];
    for length in 1..=limit {
        let mut longer = Vec::new();
        let missing = |(tokens, _): &(Vec<u32>, f64)| terms.missing(tokens);
        let least = prefixes.iter().map(missing).min().unwrap_or(0);
        let least = if complete.is_empty() { least } else { 0 };
        for (tokens, log_prob) in prefixes {
            let (mut state, mut row) = (model.start(&[request]), Vec::new());
            for token in decoder_input(&tokens) {
                model.step(&mut state, &[token], &mut row);
            }
            let best = row.iter().copied().fold(f32::MIN, f32::max);
            if row[EOS as usize] == best && terms.missing(&tokens) > least {
                continue;
            }
            for (token, &more) in (0..).zip(&row) {
                let log_prob: f64 = log_prob + f64::from(more);
                match token {
                    BOS | PAD => {}
                    EOS if has_all(&tokens, terms, continues) => {
                        complete.push((tokens.clone(), log_prob / length as f64));
                    }
                    EOS => {}
                    _ => longer.push(([&tokens[..], &[token]].concat(), log_prob)),
                }
            }
        }
        prefixes = longer;
    }
    complete.sort_by(|a, b| b.1.total_cmp(&a.1));
    complete
}

fn any_term() -> impl Strategy<Value = Term> {
    let form = prop::collection::vec(A..=C, 0..4);
    (prop::collection::vec(form, 1..4), 0usize..3).prop_map(|(forms, count)| Term { forms, count })
}

fn any_terms() -> impl Strategy<Value = Terms> {
    prop::collection::vec(any_term(), 0..4).prop_map(Terms::new)
}

/// For each token whether it goes on with the word before it.
fn table(continues: &[u32]) -> Arc<[bool]> {
    let goes_on = |token| continues.contains(&token);
    (0..VOCAB as u32).map(goes_on).collect()
}

const METHODS: [Method; 4] = [
    Method::Greedy,
    Method::Beam { size: 1 },
    Method::Beam { size: 5 },
    Method::Sample(Sampling {
        temperature: 1.0,
        top_k: None,
        top_p: None,
        seed: 0,
    }),
];

proptest! {
    #[test]
    fn a_beam_as_wide_as_the_space_finds_the_best_that_has_the_terms(
        seed: u64,
        terms in any_terms().prop_filter("a small space", |terms| terms.total() < 4),
        continues in prop::sample::subsequence(vec![A, B, C], 0..3),
        n_best in 1usize..4,
    ) {
        let model = FakeModel::random(VOCAB, seed);
        let limit = 2;
        let within = limit + terms.total();
        let options = SearchOptions {
            n_best, max_length: exactly(limit), ..SearchOptions::beam(10_000)
        };
        let request = request(terms.of_whole_words(table(&continues)));
        let truth = everything(&model, &request, within, &continues);
        let found = only(&model, &request, &options);
        let complete: Vec<_> =
            found.iter().filter(|found| found.finished == Finish::EndOfSentence).collect();
        prop_assert_eq!(complete.len(), truth.len().min(n_best));
        for (hypothesis, (tokens, score)) in complete.iter().zip(&truth) {
            prop_assert_eq!(&hypothesis.tokens, tokens);
            prop_assert!((hypothesis.score - score).abs() < 1e-9);
        }
    }

    #[test]
    fn every_hypothesis_has_every_term_whatever_the_search(
        seed: u64,
        terms in any_terms(),
        method in prop::sample::select(METHODS.to_vec()),
        beam_rule in prop::sample::select(
            vec![BeamRule::Refill, BeamRule::Shrink, BeamRule::Full, BeamRule::FullUntilEnough]
        ),
        no_repeat_ngram in prop::option::of(3usize..5),
        prefix in prop::collection::vec(3..VOCAB as u32, 0..3),
        continues in prop::sample::subsequence(vec![A, B, C], 0..3),
    ) {
        let model = FakeModel::random(VOCAB, seed);
        let options = SearchOptions { method, beam_rule, no_repeat_ngram, ..Default::default() };
        let terms = terms.of_whole_words(table(&continues));
        let request = Request { prefix: prefix.clone(), ..request(terms.clone()) };
        for found in only(&model, &request, &options) {
            prop_assert!(found.tokens.starts_with(&prefix));
            prop_assert!(terms.lacking(&found.tokens).is_empty(), "{found:?}");
            prop_assert!(has_all(&found.tokens, &terms, &continues), "{found:?}");
            prop_assert!(found.log_prob.is_finite());
        }
    }

    #[test]
    fn batched_matches_single_with_terms(
        seed: u64,
        all in prop::collection::vec(prop::option::of(any_terms()), 1..6),
        method in prop::sample::select(METHODS.to_vec()),
    ) {
        let model = FakeModel::random(VOCAB, seed);
        let options = SearchOptions { method, ..Default::default() };
        let requests: Vec<Request> = all.into_iter().enumerate().map(|(number, terms)| Request {
            terms: terms.map(Arc::new),
            ..Request::new(vec![A + number as u32 % 3, EOS])
        }).collect();
        let together = search(&model, &requests, &options);
        for (request, found) in requests.iter().zip(together) {
            prop_assert_eq!(only(&model, request, &options), found);
        }
    }

    #[test]
    fn without_terms_no_bit_changes(seed: u64, method in prop::sample::select(METHODS[..3].to_vec())) {
        let model = FakeModel::random(VOCAB, seed);
        let options = SearchOptions { method, ..Default::default() };
        let without = only(&model, &Request { terms: None, ..request(Terms::default()) }, &options);
        prop_assert_eq!(only(&model, &request(Terms::default()), &options), without);
    }
}

/// A model that says A B A B and, where it may, stops.
fn counting() -> FakeModel {
    FakeModel::from_probabilities(VOCAB, |_, target| match target.len() {
        0..4 => vec![
            ([A, B][target.len() % 2], 0.97),
            (C, 0.01),
            (3, 0.01),
            (EOS, 0.01),
        ],
        _ => vec![(EOS, 0.97), (A, 0.01), (B, 0.01), (C, 0.01)],
    })
}

#[test]
fn what_the_model_says_anyway_is_left_as_it_is() {
    let free = only(
        &counting(),
        &Request::new(vec![A, EOS]),
        &SearchOptions::beam(4),
    );
    for term in [&[A][..], &[A, B], &[B, A, B]] {
        let bound = only(
            &counting(),
            &request(Terms::new(vec![once(term)])),
            &SearchOptions::beam(4),
        );
        assert_eq!(bound[0].tokens, [A, B, A, B]);
        assert_eq!(bound[0].log_prob, free[0].log_prob);
    }
}

#[test]
fn a_term_does_not_come_behind_the_end_of_the_sentence() {
    // C instead of the second A costs as much as behind the end, where there are more tokens to share the cost.
    let found = only(
        &counting(),
        &request(Terms::new(vec![once(&[C])])),
        &SearchOptions::beam(4),
    );
    assert_eq!(found[0].tokens.len(), 4, "{found:?}");
    assert!(found[0].tokens.contains(&C));
}

#[test]
fn any_form_will_do_and_the_most_probable_is_taken() {
    let forms = vec![vec![C, C, C, C], vec![B, A], vec![C]];
    let found = only(
        &counting(),
        &request(Terms::new(vec![Term::new(forms)])),
        &SearchOptions::beam(4),
    );
    assert_eq!(found[0].tokens, [A, B, A, B]);
}

#[test]
fn a_term_that_is_impossible_for_the_model_and_forbidden_by_rules_comes_all_the_same() {
    let model = FakeModel::from_probabilities(VOCAB, |_, _| vec![(EOS, 1.0)]);
    let terms = Terms::new(vec![Term {
        forms: vec![vec![A, B]],
        count: 3,
    }]);
    let request = Request {
        constraints: vec![Arc::new(NoRepeatedNgrams(1))],
        ..request(terms)
    };
    let options = SearchOptions {
        forbidden: vec![A],
        ..SearchOptions::greedy()
    };
    let found = only(&model, &request, &options);
    assert_eq!(found[0].tokens, [A, B, A, B, A, B]);
    assert_eq!(found[0].finished, Finish::EndOfSentence);
}

#[test]
fn terms_that_cannot_fit_are_not_required_and_are_told() {
    let options = SearchOptions {
        max_length: LengthLimit {
            cap: Some(8),
            ..LengthLimit::default()
        },
        ..SearchOptions::beam(4)
    };
    let long = Terms::new(vec![once(&[C; 8])]);
    let found = only(&counting(), &request(long.clone()), &options);
    assert_eq!(found[0].tokens, [A, B, A, B], "as without");
    assert_eq!(long.lacking(&found[0].tokens), [0]);
    let fits = Terms::new(vec![once(&[C; 7])]);
    let found = only(&counting(), &request(fits.clone()), &options);
    assert!(fits.lacking(&found[0].tokens).is_empty(), "{found:?}");
}

#[test]
fn fifty_tokens_come_on_top_of_the_length_limit() {
    let phrase: Vec<u32> = (0..50).map(|place| A + place % 3).collect();
    for method in METHODS {
        let options = SearchOptions {
            method,
            max_length: exactly(5),
            ..Default::default()
        };
        let terms = Terms::new(vec![once(&phrase), once(&[C, C])]);
        let found = only(&counting(), &request(terms.clone()), &options);
        assert!(terms.lacking(&found[0].tokens).is_empty(), "{found:?}");
    }
}

#[test]
fn a_term_within_a_longer_word_does_not_count() {
    // C goes on with the word before it, and the model always says it after A.
    let model = FakeModel::from_probabilities(VOCAB, |_, target| match target.last() {
        Some(&A) => vec![(C, 0.9), (EOS, 0.05), (B, 0.05)],
        Some(&C) => vec![(EOS, 0.99), (A, 0.01)],
        _ => vec![(A, 0.9), (B, 0.1)],
    });
    let anywhere = Terms::new(vec![once(&[A])]);
    let whole = anywhere.clone().of_whole_words(table(&[C]));
    let options = SearchOptions::beam(4);
    assert_eq!(only(&model, &request(anywhere), &options)[0].tokens, [A, C]);
    assert_eq!(only(&model, &request(whole), &options)[0].tokens, [A]);
    let either = Terms::new(vec![Term::new(vec![vec![A], vec![A, C]])]);
    let either = either.of_whole_words(table(&[C]));
    assert_eq!(only(&model, &request(either), &options)[0].tokens, [A, C]);
}

#[test]
fn impossible_forms_are_left_out_and_equal_terms_add_up() {
    let terms = Terms::new(vec![
        Term::new(vec![vec![]]),
        Term::new(vec![vec![EOS], vec![BOS, A], vec![PAD]]),
        Term::new(vec![vec![A], vec![B, C], vec![A]]),
        Term::new(vec![vec![B, C], vec![A]]),
    ]);
    let expected = Term {
        forms: vec![vec![B, C], vec![A]],
        count: 2,
    };
    assert_eq!(terms.terms(), [expected]);
    assert_eq!(terms.total(), 2);
    assert!(Terms::new(vec![once(&[])]).is_empty());
}
